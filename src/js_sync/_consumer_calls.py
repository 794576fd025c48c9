# Generated from src/js_async/_consumer_calls.py by codegen/twin.py. Edit that file instead.
"""The calls on consumers of a JetStream context, without asking for the stream first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from js_sync._api import ApiCalls
from js_sync.consumer import Consumer

if TYPE_CHECKING:
    from js_core.deadline import Seconds
    from js_models import ConsumerConfig

__all__ = ["ConsumerCalls"]


class ConsumerCalls(ApiCalls):
    """The part of a JetStream context that is about consumers."""

    def create_consumer(
        self,
        stream: str,
        config: ConsumerConfig,
        *,
        pedantic: bool = False,
        timeout: Seconds | None = None,
    ) -> Consumer:
        """Create a consumer; see `Stream.create_consumer`."""
        return Consumer.create(
            self._api, stream, config, "create", pedantic=pedantic, timeout=timeout
        )

    def create_or_update_consumer(
        self, stream: str, config: ConsumerConfig, *, timeout: Seconds | None = None
    ) -> Consumer:
        """Create a consumer or change the one of that name."""
        return Consumer.create(self._api, stream, config, "", timeout=timeout)

    def update_consumer(
        self,
        stream: str,
        config: ConsumerConfig,
        *,
        pedantic: bool = False,
        timeout: Seconds | None = None,
    ) -> Consumer:
        """Change a consumer that exists. Raises `ConsumerNotFound`."""
        return Consumer.create(
            self._api, stream, config, "update", pedantic=pedantic, timeout=timeout
        )

    def get_consumer(self, stream: str, name: str, *, timeout: Seconds | None = None) -> Consumer:
        """Return a consumer that exists. Raises `ConsumerNotFound`."""
        return Consumer.get(self._api, stream, name, timeout)

    def bind_consumer(self, stream: str, name: str) -> Consumer:
        """Return a consumer without asking the server, where INFO is not permitted."""
        return Consumer(self._api, stream, name, None)

    def delete_consumer(self, stream: str, name: str, *, timeout: Seconds | None = None) -> None:
        """Delete a consumer. Raises `ConsumerNotFound`."""
        Consumer(self._api, stream, name, None).delete(timeout=timeout)
