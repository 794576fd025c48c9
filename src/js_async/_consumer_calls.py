"""The calls on consumers of a JetStream context, without asking for the stream first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from js_async._api import ApiCalls
from js_async.consumer import Consumer

if TYPE_CHECKING:
    from js_core.deadline import Seconds
    from js_models import ConsumerConfig

__all__ = ["ConsumerCalls"]


class ConsumerCalls(ApiCalls):
    """The part of a JetStream context that is about consumers."""

    async def create_consumer(
        self,
        stream: str,
        config: ConsumerConfig,
        *,
        pedantic: bool = False,
        timeout: Seconds | None = None,
    ) -> Consumer:
        """Create a consumer; see `Stream.create_consumer`."""
        return await Consumer.create(
            self._api, stream, config, "create", pedantic=pedantic, timeout=timeout
        )

    async def create_or_update_consumer(
        self, stream: str, config: ConsumerConfig, *, timeout: Seconds | None = None
    ) -> Consumer:
        """Create a consumer or change the one of that name."""
        return await Consumer.create(self._api, stream, config, "", timeout=timeout)

    async def update_consumer(
        self,
        stream: str,
        config: ConsumerConfig,
        *,
        pedantic: bool = False,
        timeout: Seconds | None = None,
    ) -> Consumer:
        """Change a consumer that exists. Raises `ConsumerNotFound`."""
        return await Consumer.create(
            self._api, stream, config, "update", pedantic=pedantic, timeout=timeout
        )

    async def get_consumer(
        self, stream: str, name: str, *, timeout: Seconds | None = None
    ) -> Consumer:
        """Return a consumer that exists. Raises `ConsumerNotFound`."""
        return await Consumer.get(self._api, stream, name, timeout)

    def bind_consumer(self, stream: str, name: str) -> Consumer:
        """Return a consumer without asking the server, where INFO is not permitted."""
        return Consumer(self._api, stream, name, None)

    async def delete_consumer(
        self, stream: str, name: str, *, timeout: Seconds | None = None
    ) -> None:
        """Delete a consumer. Raises `ConsumerNotFound`."""
        await Consumer(self._api, stream, name, None).delete(timeout=timeout)
