"""Publish many messages without waiting for each acknowledgement."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterable, Iterable
from itertools import takewhile
from typing import Final, Self

from js_async.client.closing import SentWhileRead, warn_of_unseen
from js_async.publish.inflight import Outcome, UnderWay
from js_async.publish.pipeline import Pipeline
from js_async.runtime.concurrency import Stream as Generated
from js_async.runtime.concurrency import portions
from twinstream.core.deadline import monotonic
from twinstream.core.publish.limits import PublishLimits
from twinstream.core.publish.request import Publishable, PublishFailure, UnreadFailures, several
from twinstream.models import PubAck

__all__ = ["PublishMany"]

# Interval at which unacknowledged messages are checked while the window is not full (seconds). Each
# check may pause before rejected messages are sent again.
_LOOK: Final = 0.5


class PublishMany(SentWhileRead):
    """Iterates over the outcomes of many messages, in order. Created by `publish_many`.

    An outcome is the acknowledgement, or a `PublishFailure` with the error. At the end of an
    `async with` block it waits for messages that are still in flight, if the iteration was left
    early. The end of the block, or without a block the end of the iteration, raises
    `PublishFailures` if there are failures whose `error` was not read, unless `raise_failures` is
    off.
    """

    # The call that creates it, for warnings.
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
        # Messages in sending order, until their outcome is returned.
        self._order: deque[UnderWay] = deque()
        self._look_at = 0.0
        self._managed = False
        self._closed = False
        self._outcomes: Final = self._run()
        self._unseen: Final = UnreadFailures(raise_failures)
        self._expect_reader(self._call, self._unseen)

    @property
    def under_way(self) -> int:
        """Number of messages sent without an outcome, and of those that wait behind them."""
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
        """Stop sending, wait for the messages in flight; raises `PublishFailures`.

        Closing again does nothing.
        """
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
        # Total bytes of the messages in `order`.
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
                    if entry.outcome is None and not pipeline.try_send(entry):
                        await pipeline.send(entry)
                    if entry.started > self._look_at:
                        await self._tend(entry.started)
                    # Outcomes are yielded after the send, so that no message taken from the
                    # caller's iterable is unsent.
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
                # Dropped or misused in a forked process: the object belongs to the parent.
                self._closed = True
            # A cancelled or interrupted caller knows that it did not wait for the outcomes.
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
        """Report unread outcomes of an iteration without a block; `error` ends it."""
        warn_of_unseen(self._call, len(self._order))
        for entry in self._order:
            self._note(entry.outcome)
        self._note_failures(error)

    async def _tend(self, now: float) -> None:
        # A slow producer may need an hour to fill the window, or never fill it.
        self._look_at = now + _LOOK
        await self._pipeline.look()
        await self._pipeline.tend()

    async def _make_room(self) -> None:
        # Wait for half of them at once, to wake up less often.
        order = self._order
        await self._pipeline.until(order[(len(order) - 1) // 2])
        await self._pipeline.until(order[0])
