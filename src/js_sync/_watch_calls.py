# Generated from src/js_async/_watch_calls.py by codegen/twin.py. Edit that file instead.
"""The calls of a JetStream context about what happens: events, dead letters, workers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, cast

from twinstream.core.deadline import Seconds, finite_seconds
from twinstream.core.workers.retry import RETRY, Retry
from js_sync._consumer_calls import ConsumerCalls
from js_sync.runtime.concurrency import Handler
from js_sync.runtime.opening import opening

if TYPE_CHECKING:
    from twinstream.core.api.advisories import EventKind
    from twinstream.core.connect.connection_events import MessagesDropped
    from twinstream.core.api.health import Health, Thresholds
    from twinstream.core.consume.pull_request import Priority
    from twinstream.core.consume.reports import PullReport, WorkReport
    from twinstream.models import ConsumerConfig
    from js_sync.workers.settings import KeyOf
    from js_sync.workers.dead_letters import DeadLetters
    from js_sync.consume.advisories import Events
    from js_sync.jetstream import JetStream
    from js_sync.consume.message import Message
    from js_sync.workers.worker import Worker

__all__ = ["WatchCalls"]


class WatchCalls(ConsumerCalls):
    """The part of a JetStream context that watches and works; of use in a whole one only."""

    @property
    def _whole(self) -> JetStream:
        return cast("JetStream", self)

    def events(
        self,
        *,
        stream: str | None = None,
        consumer: str | None = None,
        kinds: Iterable[EventKind] | None = None,
        max_pending: int = 65_536,
        on_drop: Callable[[MessagesDropped], None] | None = None,
    ) -> Events:
        """Iterate over advisories and metrics from now on, typed; close it when done.

        Only those of a stream, a consumer, or some `kinds`: classes of `twinstream.models` such as
        `MaxDeliver`, or words such as "max_deliver". At most `max_pending` events wait to be
        taken; what comes then is dropped, told by the next event and to `on_drop`.
        """
        from twinstream.core.api.advisories import event_subjects
        from js_sync.consume.advisories import listen

        subjects = event_subjects(stream, consumer, kinds)
        return opening(listen(self._api.transport, subjects, max_pending, on_drop))

    def dead_letters(
        self,
        stream: str,
        *,
        consumer: str | None = None,
        letters: str | None = None,
        failures: str | None = None,
        prefix: str | None = None,
        on_report: Callable[[PullReport], None] | None = None,
    ) -> DeadLetters:
        """Return the dead letters of a stream, or of one of its consumers.

        `letters` is the stream that holds them (`STREAM-dead`, below the subjects `prefix`,
        `dead.STREAM`), `failures` the one that captures the advisories (`STREAM-failures`). Nothing
        is sent before `prepare`, or before it is entered as a context manager.
        """
        from twinstream.core.workers.dead_letter import Names
        from js_sync.workers.dead_letters import DeadLetters

        names = Names.of(stream, consumer, letters, failures, prefix)
        return DeadLetters(self._whole, self._api, names, on_report)

    def worker(
        self,
        stream: str,
        consumer: str | ConsumerConfig,
        handler: Handler[Message],
        *,
        concurrency: int = 1,
        order: KeyOf = "none",
        retry: Retry = RETRY,
        dead_letters: DeadLetters | None = None,
        max_messages: int | None = None,
        priority: Priority | None = None,
        on_report: Callable[[WorkReport], None] | None = None,
    ) -> Worker:
        """Return a worker that calls a handler for each message of a consumer.

        The consumer is named, or made from its configuration. Up to `concurrency` handlers run at
        once; those of one subject, or of one key that the function `order` returns, run one after
        the other, and "total" is one for all. The server is told that work goes on meanwhile.

        When a handler returns, its message is acknowledged. When it raises, the message is tried
        again as `retry` says; `TryLater` says when, and `Reject` gives the message up, as the last
        attempt does. What is given up becomes one of the `dead_letters`, if given, and is
        terminated. The worker holds at most `max_messages`, by default two for each handler, or
        500 where there is an order, and as many again are on their way to it. Those that go back
        to the server at the end count as delivered.

        `priority` is for a consumer with priority groups: with the policy `pinned_client` one
        worker has all messages, and others stand by.
        """
        from js_sync.workers.settings import WorkSettings
        from js_sync.workers.worker import Worker

        settings = WorkSettings(
            concurrency=concurrency,
            order=order,
            retry=retry,
            dead_letters=dead_letters,
            max_messages=max_messages,
            priority=priority,
            on_report=on_report,
        )
        return Worker(self._whole, stream, consumer, handler, settings)

    # ---- health

    def health(
        self,
        *,
        stream: str | None = None,
        interval: Seconds = 2.0,
        thresholds: Thresholds | None = None,
    ) -> Health:
        """Return findings about all streams, or one, and their consumers.

        They are looked at twice, `interval` seconds apart, to see what moves, and judged by
        `thresholds`, those of a plain `Thresholds()` by default. One that nobody can tell of is a
        finding. Raises `StreamNotFound` for a `stream` that is not there.
        """
        from twinstream.core.api.health import THRESHOLDS
        from js_sync.api.health import health

        pause = finite_seconds(interval, "interval")
        chosen = THRESHOLDS if thresholds is None else thresholds
        return health(self._whole, self._api.transport, stream, pause, chosen)
