"""Publish the messages of an iterable without waiting for each acknowledgement."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterable, Iterable
from itertools import takewhile
from typing import Final, Self

from js_async.client.closing import SentWhileRead, warn_of_unseen
from js_async.publish.inflight import InFlight, Outcome
from js_async.publish.pipeline import Pipeline
from js_async.runtime.concurrency import Stream as Generated
from js_async.runtime.concurrency import portions
from twinstream.core.deadline import monotonic
from twinstream.core.publish.limits import PublishLimits
from twinstream.core.publish.request import several
from twinstream.errors import PublishFailure
from twinstream.errors.publish_failures import UnreadFailures
from twinstream.models import PubAck
from twinstream.records.publish_request import Publishable

__all__ = ["PublishMany"]

# Interval at which timeouts and retries are checked while the window is not full (seconds).
_LOOK: Final = 0.5


class PublishMany(SentWhileRead):
    """An iterator over the outcomes of many messages, in order. Created by `publish_many`.

    An outcome is the acknowledgement, or a `PublishFailure` with the error. The iteration sends the
    messages. The end of a `with` block waits for the messages that are still in flight.

    The end of the block raises `PublishFailures` if there are failures whose `error` was not read,
    unless `raise_failures` is off. Without a block, the end of the iteration raises this error.
    """

    # The name of the method that creates the iterator, for warnings.
    _call = "publish_many"

    def __init__(
        self,
        pipeline: Pipeline,
        requests: Iterable[Publishable] | AsyncIterable[Publishable],
        limits: PublishLimits,
        raise_failures: bool,
    ) -> None:
        super().__init__()
        self._requests: Final = several(requests)
        self._limits: Final = limits
        self._pipeline: Final = pipeline
        # Messages in sending order whose outcome the iterator has not returned yet.
        self._order: deque[InFlight] = deque()
        self._look_at = 0.0
        self._managed = False
        self._closed = False
        self._outcomes: Final = self._run()
        self._unseen: Final = UnreadFailures(raise_failures)
        self._expect_reader(self._call, self._unseen)

    @property
    def under_way(self) -> int:
        """Number of messages from the oldest one in flight to the last one sent.

        Some of the later messages may have an outcome already.
        """
        done = takewhile(lambda entry: entry.outcome is not None, tuple(self._order))
        return len(self._order) - sum(1 for _ in done)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.under_way} in flight{', closed' * self._closed}>"

    def __aiter__(self) -> Generated[Outcome]:
        self._is_read()
        return self._outcomes

    async def __aenter__(self) -> Self:
        self._managed = True
        return self

    async def close(self) -> None:
        """Stop sending, wait for the messages in flight, then raise `PublishFailures`.

        Only failures whose `error` was not read are raised. A second call does not wait again.
        """
        if self._is_parents:
            return
        if not self._closed:
            self._closed = True
            try:
                for entry in self._order:
                    self._note(await self._pipeline.until(entry))
            finally:
                await self._end()
        self._raise_unread()

    def _note(self, outcome: Outcome | None) -> None:
        if isinstance(outcome, PublishFailure):
            self._unseen.add(outcome)

    async def _end(self) -> None:
        self._closed = True
        self._order.clear()
        await self._pipeline.close()

    async def _run(self) -> Generated[Outcome]:
        pipeline, order = self._pipeline, self._order
        window, window_bytes = self._limits.window, self._limits.window_bytes
        unseen = self._unseen
        # Total size in bytes of the messages in `order`.
        held = 0
        await pipeline.open()
        self._look_at = monotonic() + _LOOK
        try:
            async for portion in portions(self._requests):
                for request in portion:
                    entry = pipeline.prepare(request)
                    held += entry.size
                    if len(order) >= window or (held > window_bytes and order):
                        await self._make_room()
                    order.append(entry)
                    if entry.outcome is None and not pipeline.write(entry):
                        await pipeline.send(entry)
                    if entry.started > self._look_at:
                        await self._tend(entry.started)
                    # Yield after the send: if the caller stops here, every message taken from the
                    # caller's iterable has been sent.
                    while order and (outcome := order[0].outcome) is not None:
                        held -= order.popleft().size
                        if not isinstance(outcome, PubAck):
                            unseen.add(outcome)
                        yield outcome
                        if self._closed:
                            return
            while order:
                outcome = await pipeline.until(order[0])
                order.popleft()
                if not isinstance(outcome, PubAck):
                    unseen.add(outcome)
                yield outcome
                if self._closed:
                    return
        except (Exception, GeneratorExit) as error:
            if self._is_inherited:
                # This is a forked process. The object belongs to its parent: report nothing.
                self._closed = True
            # `except` does not catch a cancellation or an interrupt, so they cause no report.
            if not (self._closed or self._managed):
                self._leave(error)
            raise
        else:
            if not self._managed:
                self._raise_unread()
        finally:
            if not self._closed and not (self._managed and order):
                await self._end()

    def _leave(self, error: BaseException) -> None:
        """Report unread outcomes when `error` ends an iteration without a block."""
        warn_of_unseen(self._call, len(self._order))
        for entry in self._order:
            self._note(entry.outcome)
        self._note_failures(error)

    async def _tend(self, now: float) -> None:
        # This runs at intervals and not only when the window is full, because a slow producer may
        # never fill the window.
        self._look_at = now + _LOOK
        await self._pipeline.look()

    async def _make_room(self) -> None:
        # Wait for half of the messages at once, so that the sender wakes up less often.
        order = self._order
        await self._pipeline.until(order[(len(order) - 1) // 2])
        await self._pipeline.until(order[0])
