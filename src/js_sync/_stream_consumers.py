# Generated from src/js_async/_stream_consumers.py by codegen/twin.py. Edit that file instead.
"""The consumers of a stream: creating, changing, finding and deleting them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from twinstream.core.deadline import Seconds
from twinstream.core.wire.subjects import check_name
from js_sync.api.api import Api
from js_sync.consumer import Consumer
from js_sync.api.listing import Listing

if TYPE_CHECKING:
    from twinstream.models import ConsumerConfig, ConsumerInfo

__all__ = ["StreamConsumers"]


class StreamConsumers:
    """The part of a stream that is about its consumers."""

    def __init__(self, api: Api, name: str) -> None:
        self._api: Final = api
        self._name: Final = check_name(name, "stream")

    def create_consumer(
        self, config: ConsumerConfig, *, pedantic: bool = False, timeout: Seconds | None = None
    ) -> Consumer:
        """Create a consumer; one that exists with the same configuration is fine.

        Without a name it gets one; without `ack_policy` it wants explicit acknowledgement (the
        server's own default is none). With `name` instead of `durable_name` the consumer vanishes
        after 5 idle seconds. With `pedantic` the server refuses a configuration that it would have
        to change (2.11). Raises `ConsumerExists` if it exists with another configuration.
        """
        return Consumer.create(
            self._api, self._name, config, "create", pedantic=pedantic, timeout=timeout
        )

    def create_or_update_consumer(
        self, config: ConsumerConfig, *, timeout: Seconds | None = None
    ) -> Consumer:
        """Create a consumer or change the one of that name."""
        return Consumer.create(self._api, self._name, config, "", timeout=timeout)

    def update_consumer(
        self, config: ConsumerConfig, *, pedantic: bool = False, timeout: Seconds | None = None
    ) -> Consumer:
        """Change a consumer that exists, named by the configuration. Raises `ConsumerNotFound`."""
        return Consumer.create(
            self._api, self._name, config, "update", pedantic=pedantic, timeout=timeout
        )

    def get_consumer(self, name: str, *, timeout: Seconds | None = None) -> Consumer:
        """Return a consumer that exists. Raises `ConsumerNotFound`."""
        return Consumer.get(self._api, self._name, name, timeout)

    def bind_consumer(self, name: str) -> Consumer:
        """Return a consumer without asking the server, where INFO is not permitted."""
        return Consumer(self._api, self._name, name, None)

    def delete_consumer(self, name: str, *, timeout: Seconds | None = None) -> None:
        """Delete a consumer. Raises `ConsumerNotFound`."""
        Consumer(self._api, self._name, name, None).delete(timeout=timeout)

    def consumers(self, *, timeout: Seconds | None = None) -> Listing[ConsumerInfo]:
        """Iterate over the infos of all consumers; `missing` and `offline` name those without.

        `timeout` is for each page.
        """
        from js_sync.api import pager as _paging

        return _paging.ConsumerInfos(self._api, self._name, timeout)

    def consumer_names(self, *, timeout: Seconds | None = None) -> Listing[str]:
        """Iterate over the names of all consumers; `timeout` is for each page."""
        from js_sync.api import pager as _paging

        return _paging.ConsumerNames(self._api, self._name, timeout)
