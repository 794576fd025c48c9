"""The calls on consumers of a JetStream context, without asking for the stream first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from js_async._api import ApiCalls
from js_async.consumer import Consumer

if TYPE_CHECKING:
    from js_models import ConsumerConfig

__all__ = ["ConsumerCalls"]


class ConsumerCalls(ApiCalls):
    """The part of a JetStream context that is about consumers."""

    async def create_consumer(
        self, stream: str, config: ConsumerConfig, *, pedantic: bool = False
    ) -> Consumer:
        """Create a consumer; see `Stream.create_consumer`."""
        return await Consumer.create(self._api, stream, config, "create", pedantic=pedantic)

    async def create_or_update_consumer(self, stream: str, config: ConsumerConfig) -> Consumer:
        """Create a consumer or change the one of that name."""
        return await Consumer.create(self._api, stream, config, "")

    async def update_consumer(
        self, stream: str, config: ConsumerConfig, *, pedantic: bool = False
    ) -> Consumer:
        """Change a consumer that exists. Raises `ConsumerNotFound`."""
        return await Consumer.create(self._api, stream, config, "update", pedantic=pedantic)

    async def get_consumer(self, stream: str, name: str) -> Consumer:
        """Return a consumer that exists. Raises `ConsumerNotFound`."""
        return await Consumer.get(self._api, stream, name)

    def bind_consumer(self, stream: str, name: str) -> Consumer:
        """Return a consumer without asking the server, where INFO is not permitted."""
        return Consumer(self._api, stream, name, None)

    async def delete_consumer(self, stream: str, name: str) -> None:
        """Delete a consumer. Raises `ConsumerNotFound`."""
        await Consumer(self._api, stream, name, None).delete()
