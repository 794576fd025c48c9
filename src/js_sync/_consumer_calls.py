# Generated from src/js_async/_consumer_calls.py by codegen/twin.py. Edit that file instead.
"""The calls on consumers of a JetStream context, without asking for the stream first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from js_sync.api.api import ApiCalls
from js_sync.consumer import Consumer
from js_sync.stream import Stream

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    from twinstream.core.deadline import Seconds
    from twinstream.core.consume.reports import PullReport
    from twinstream.models import ConsumerConfig, DeliverPolicy, DeliverPolicyWord, ReplayPolicy
    from js_sync.consume.ordered import OrderedMessages

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

    def ordered(
        self,
        stream: str,
        *,
        subjects: str | Sequence[str] | None = None,
        deliver_policy: DeliverPolicy | DeliverPolicyWord | None = None,
        start_seq: int | None = None,
        start_time: datetime | None = None,
        headers_only: bool = False,
        replay_policy: ReplayPolicy | str | None = None,
        stop_after: int | None = None,
        max_messages: int | None = None,
        max_bytes: int | None = None,
        expires: Seconds = 30.0,
        heartbeat: Seconds | None = 5.0,
        inactive_threshold: Seconds | None = None,
        metadata: Mapping[str, str] | None = None,
        name_prefix: str | None = None,
        max_reset_attempts: int | None = None,
        on_report: Callable[[PullReport], None] | None = None,
    ) -> OrderedMessages:
        """Return a read of a stream in order, without asking for it first; see `Stream.ordered`."""
        return Stream(self._api, stream, None).ordered(
            subjects=subjects,
            deliver_policy=deliver_policy,
            start_seq=start_seq,
            start_time=start_time,
            headers_only=headers_only,
            replay_policy=replay_policy,
            stop_after=stop_after,
            max_messages=max_messages,
            max_bytes=max_bytes,
            expires=expires,
            heartbeat=heartbeat,
            inactive_threshold=inactive_threshold,
            metadata=metadata,
            name_prefix=name_prefix,
            max_reset_attempts=max_reset_attempts,
            on_report=on_report,
        )
