"""The consumers of a stream: creating, changing, finding and deleting them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from js_async.api.api import Api
from js_async.consumer import Consumer
from js_async.api.listing import Listing
from twinstream.core.deadline import Seconds
from twinstream.core.wire.subjects import check_name

if TYPE_CHECKING:
    from twinstream.models import ConsumerConfig, ConsumerInfo

__all__ = ["StreamConsumers"]


class StreamConsumers:
    """The part of a stream that is about its consumers."""

    def __init__(self, api: Api, name: str) -> None:
        self._api: Final = api
        self._name: Final = check_name(name, "stream")

    async def create_consumer(
        self, config: ConsumerConfig, *, pedantic: bool = False, timeout: Seconds | None = None
    ) -> Consumer:
        """Create a consumer; one that exists with the same configuration is fine.

        Without a name it gets one; without `ack_policy` it wants explicit acknowledgement (the
        server's own default is none). With `name` instead of `durable_name` the consumer vanishes
        after 5 idle seconds. With `pedantic` the server refuses a configuration that it would have
        to change (2.11). Raises `ConsumerExists` if it exists with another configuration.
        """
        return await Consumer.create(
            self._api, self._name, config, "create", pedantic=pedantic, timeout=timeout
        )

    async def create_or_update_consumer(
        self, config: ConsumerConfig, *, timeout: Seconds | None = None
    ) -> Consumer:
        """Create a consumer or change the one of that name."""
        return await Consumer.create(self._api, self._name, config, "", timeout=timeout)

    async def update_consumer(
        self, config: ConsumerConfig, *, pedantic: bool = False, timeout: Seconds | None = None
    ) -> Consumer:
        """Change a consumer that exists, named by the configuration. Raises `ConsumerNotFound`."""
        return await Consumer.create(
            self._api, self._name, config, "update", pedantic=pedantic, timeout=timeout
        )

    async def get_consumer(self, name: str, *, timeout: Seconds | None = None) -> Consumer:
        """Return a consumer that exists. Raises `ConsumerNotFound`."""
        return await Consumer.get(self._api, self._name, name, timeout)

    def bind_consumer(self, name: str) -> Consumer:
        """Return a consumer without asking the server, where INFO is not permitted."""
        return Consumer(self._api, self._name, name, None)

    async def delete_consumer(self, name: str, *, timeout: Seconds | None = None) -> None:
        """Delete a consumer. Raises `ConsumerNotFound`."""
        await Consumer(self._api, self._name, name, None).delete(timeout=timeout)

    def consumers(self, *, timeout: Seconds | None = None) -> Listing[ConsumerInfo]:
        """Iterate over the infos of all consumers; `missing` and `offline` name those without.

        `timeout` is for each page.
        """
        from js_async.api import pager as _paging

        return _paging.ConsumerInfos(self._api, self._name, timeout)

    def consumer_names(self, *, timeout: Seconds | None = None) -> Listing[str]:
        """Iterate over the names of all consumers; `timeout` is for each page."""
        from js_async.api import pager as _paging

        return _paging.ConsumerNames(self._api, self._name, timeout)
