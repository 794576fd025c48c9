"""The methods of `Stream` that create, change, find and delete consumers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from js_async.api.api import Api
from js_async.consumer import Consumer
from twinstream.core.base.check_arguments import takes_config
from twinstream.core.base.nats_py_names import hint_keywords
from twinstream.core.deadline import Seconds
from twinstream.core.wire.subjects import check_name

if TYPE_CHECKING:
    from js_async.api.listing import Listing
    from twinstream.models import ConsumerConfig, ConsumerInfo

__all__ = ["StreamConsumers"]


class StreamConsumers:
    """The base class of `Stream` with the methods for consumers."""

    def __init__(self, api: Api, name: str) -> None:
        self._api: Final = api
        self._name: Final = check_name(name, "stream")

    @takes_config("ConsumerConfig")
    async def create_consumer(
        self, config: ConsumerConfig, *, pedantic: bool = False, timeout: Seconds | None = None
    ) -> Consumer:
        """Create a consumer, or return the existing one if its configuration is the same.

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
        return await Consumer.create(
            self._api, self._name, config, "create", pedantic=pedantic, timeout=timeout
        )

    @takes_config("ConsumerConfig")
    async def create_or_update_consumer(
        self, config: ConsumerConfig, *, timeout: Seconds | None = None
    ) -> Consumer:
        """Create a consumer, or update the existing consumer with the name in `config`."""
        return await Consumer.create(self._api, self._name, config, "", timeout=timeout)

    @takes_config("ConsumerConfig")
    async def update_consumer(
        self, config: ConsumerConfig, *, pedantic: bool = False, timeout: Seconds | None = None
    ) -> Consumer:
        """Update the consumer with the name in `config`. Raises `ConsumerNotFound`.

        The arguments are those of `create_consumer`.
        """
        return await Consumer.create(
            self._api, self._name, config, "update", pedantic=pedantic, timeout=timeout
        )

    @hint_keywords
    async def get_consumer(self, name: str, *, timeout: Seconds | None = None) -> Consumer:
        """Return an existing consumer. Raises `ConsumerNotFound`."""
        return await Consumer.get(self._api, self._name, name, timeout)

    def bind_consumer(self, name: str) -> Consumer:
        """Return a handle of a consumer without a request to the server.

        Use this if the user lacks the permission to request the consumer's info.
        """
        return Consumer(self._api, self._name, name, None)

    @hint_keywords
    async def delete_consumer(self, name: str, *, timeout: Seconds | None = None) -> None:
        """Delete a consumer. Raises `ConsumerNotFound`."""
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
