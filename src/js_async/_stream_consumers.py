"""The methods of `Stream` that create, change, find and delete consumers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from js_async.api.api import Api
from js_async.consumer import Consumer, existing_consumer, made_consumer
from twinstream.core.arguments.nats_py_names import methods_of, takes_config
from twinstream.core.deadline import Seconds
from twinstream.core.log.logger import Log
from twinstream.core.wire.subjects import check_name
from twinstream.errors import TwinstreamError

if TYPE_CHECKING:
    from js_async.api.create_update import CreateAction
    from js_async.api.listing import Listing
    from twinstream.models import ConsumerConfig, ConsumerInfo, StreamInfo

__all__ = ["StreamConsumers"]

# The number of filters and of subjects that a warning names.
_SHOWN: Final = 10


@methods_of("Stream")
class StreamConsumers:
    """The base class of `Stream` with the methods for consumers."""

    cached_info: StreamInfo | None = None
    """The last known info of the stream, or None."""

    def __init__(self, api: Api, name: str) -> None:
        self._api: Final = api
        self._name: Final = check_name(name, "stream")

    @takes_config("ConsumerConfig")
    async def create_consumer(
        self, config: ConsumerConfig, *, pedantic: bool = False, timeout: Seconds | None = None
    ) -> Consumer:
        """Create a consumer, or return the existing one if its configuration is the same.

        If a filter matches none of the stream's subjects, a warning is logged. Calls with the name
        of a stream, such as those of `JetStream`, do not know its subjects and so do not warn:
        `check_health` also finds their consumers.

        Args:
            config: Configuration of the consumer. Without a name, the client generates one. Without
                `ack_policy`, the consumer requires explicit acks (the server's own default is
                none). With `name` instead of `durable_name`, the server deletes the consumer after
                5 idle seconds.
            pedantic: Let the server refuse a configuration that it would have to change (server
                2.11).
            timeout: Seconds; the default is that of the JetStream context.

        Raises:
            ConsumerExists: The consumer exists with another configuration.
        """
        return await self._create(config, "create", timeout, pedantic=pedantic)

    @takes_config("ConsumerConfig")
    async def create_or_update_consumer(
        self, config: ConsumerConfig, *, timeout: Seconds | None = None
    ) -> Consumer:
        """Create a consumer, or update the existing consumer with the name in `config`.

        Args:
            config: The settings of the consumer, with its name.
            timeout: Seconds for the whole call; the default is that of the JetStream context.
        """
        return await self._create(config, "", timeout)

    @takes_config("ConsumerConfig")
    async def update_consumer(
        self, config: ConsumerConfig, *, pedantic: bool = False, timeout: Seconds | None = None
    ) -> Consumer:
        """Update the consumer with the name in `config`. Raises `ConsumerNotFound`.

        The arguments are those of `create_consumer`.

        Args:
            config: The new settings of the consumer, with its name.
            pedantic: Let the server refuse a setting that it would otherwise change (server 2.11).
            timeout: Seconds for the whole call; the default is that of the JetStream context.
        """
        return await self._create(config, "update", timeout, pedantic=pedantic)

    async def _create(
        self,
        config: ConsumerConfig,
        action: CreateAction,
        timeout: Seconds | None,
        *,
        pedantic: bool = False,
    ) -> Consumer:
        """Create or change a consumer, and log a warning about filters that match nothing."""
        consumer = await made_consumer(
            self._api, self._name, config, action, pedantic=pedantic, timeout=timeout
        )
        known = self.cached_info
        if known is not None and (config.filter_subject or config.filter_subjects):
            # Programs that create no consumer with a filter do not load the comparison.
            from twinstream.core.api.outside_filters import outside_filters

            if outside_filters(known.config, config):
                await self._warn_outside(consumer.name, config)
        return consumer

    async def _warn_outside(self, consumer: str, config: ConsumerConfig) -> None:
        """Log a warning if the filters do not match the current subjects of the stream.

        The subjects may have been changed since the stream info was requested.
        """
        from twinstream.core.api.outside_filters import outside_filters
        from twinstream.core.log.events import FilterOutside

        try:
            self.cached_info = info = await self._api.stream_info(self._name)
        except TwinstreamError:
            return
        missed = outside_filters(info.config, config)
        if missed:
            subjects = info.config.subjects or []
            shown = ", ".join(missed[:_SHOWN]), ", ".join(subjects[:_SHOWN])
            log = Log("consumer", stream=self._name, consumer=consumer)
            log(FilterOutside(self._name, consumer, *shown))

    async def get_consumer(self, name: str, *, timeout: Seconds | None = None) -> Consumer:
        """Return an existing consumer. Raises `ConsumerNotFound`.

        Args:
            name: Name of the consumer.
            timeout: Seconds for the whole call; the default is that of the JetStream context.
        """
        return await existing_consumer(self._api, self._name, name, timeout)

    def bind_consumer(self, name: str) -> Consumer:
        """Return a handle of a consumer without a request to the server.

        Use this if the user lacks the permission to request the consumer's info.

        Args:
            name: Name of the consumer.
        """
        return Consumer(self._api, self._name, name, None)

    async def delete_consumer(self, name: str, *, timeout: Seconds | None = None) -> None:
        """Delete a consumer. Raises `ConsumerNotFound`.

        Args:
            name: Name of the consumer.
            timeout: Seconds for the whole call; the default is that of the JetStream context.
        """
        await Consumer(self._api, self._name, name, None).delete(timeout=timeout)

    def consumers(self, *, timeout: Seconds | None = None) -> Listing[ConsumerInfo]:
        """Return an iterator over the infos of all consumers.

        The iterator's `missing` and `offline` contain the names of consumers without an info now.

        Args:
            timeout: Seconds for each page; the default is that of the JetStream context.
        """
        from js_async.api import pager

        return pager.ConsumerInfos(self._api, self._name, timeout)

    def consumer_names(self, *, timeout: Seconds | None = None) -> Listing[str]:
        """Return an iterator over the names of all consumers.

        Args:
            timeout: Seconds for each page; the default is that of the JetStream context.
        """
        from js_async.api import pager

        return pager.ConsumerNames(self._api, self._name, timeout)
