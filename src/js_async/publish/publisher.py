"""Publish messages one by one without waiting for each acknowledgement."""

from __future__ import annotations

import warnings
from collections import deque
from typing import Final, Self

from js_async.api.api import Api
from js_async.client.closing import Leaving, warn_of_failures
from js_async.publish.inflight import Outcome, UnderWay
from js_async.publish.pipeline import Pipeline
from js_async.runtime.concurrency import Lock, Signal, Task, spawn
from twinstream.core.deadline import Deadline
from twinstream.core.publish.limits import PublishLimits
from twinstream.core.publish.request import (
    PublishFailure,
    PublishRequest,
    Rollup,
    UnreadFailures,
)
from twinstream.core.publish.ttl import Ttl
from twinstream.core.wire.headers import HeaderValues
from twinstream.errors import ConnectionClosed
from twinstream.models import PubAck

__all__ = ["PublishHandle", "Publisher"]

# Interval at which unacknowledged messages are checked while no call waits (seconds).
_LOOK: Final = 0.1


class PublishHandle:
    """A message that was sent, with its result."""

    __slots__ = ("_entry", "_publisher")

    def __init__(self, publisher: Publisher, entry: UnderWay) -> None:
        self._publisher = publisher
        self._entry = entry

    @property
    def request(self) -> PublishRequest:
        """The message that was sent."""
        return self._entry.request

    @property
    def is_done(self) -> bool:
        """Whether the result is available."""
        return self._entry.outcome is not None

    async def result(self) -> PubAck:
        """Return the acknowledgement, or raise the error, as `JetStream.publish` does.

        An error raised here is not raised again when the publisher closes.
        """
        return await self._publisher._result_of(self._entry)


class _Work:
    """The messages that a publisher has in flight.

    The receiver and the keeper refer to this object and not to the publisher, so that a publisher
    that its user dropped is deleted and can warn about it.
    """

    def __init__(self, api: Api, limits: PublishLimits, failures: UnreadFailures) -> None:
        self.pipeline: Final = Pipeline(api, limits, self._on_done)
        self.failures: Final = failures
        # Sizes of finished messages: the receiver appends, senders subtract.
        self.released: Final[deque[int]] = deque()
        self.is_dropped = False

    def release(self, entry: UnderWay) -> bool:
        """Free a message's share of the window, once; return whether this call did it."""
        if entry.is_told:
            return False
        entry.is_told = True
        self.released.append(entry.size)
        return True

    def _on_done(self, entry: UnderWay, outcome: Outcome) -> bool:
        try:
            if not self.release(entry):
                return False
            if isinstance(outcome, PublishFailure):
                self.failures.add(outcome)
        except BaseException:
            # Interrupted after the release: no other code would set the outcome.
            if entry.is_told:
                entry.outcome = outcome
                self.pipeline.forget(entry)
            raise
        return True

    async def keep(self, ended: Signal) -> None:
        """Retry messages and time them out while no call sends or waits."""
        try:
            while not await ended.sleep(Deadline.after(_LOOK)):
                await self.pipeline.tend()
                if self.pipeline.is_over:
                    # The publisher was not closed. Without this check the loop would run on.
                    return
                if self.is_dropped and self.pipeline.oldest is None:
                    await self.pipeline.close()
                    return
        finally:
            failures = self.failures.take() if self.is_dropped else None
            if failures is not None:
                # Failures of messages that were in flight when the publisher was dropped.
                warn_of_failures("publisher", failures)


class Publisher(Leaving):
    """Sends messages without waiting for acknowledgements. Created by `JetStream.publisher`.

    At the end of an `async with` block it waits for all messages in flight, and raises
    `PublishFailures` for the failures that no `result` of a handle has raised, unless
    `raise_failures` is off. May be shared between tasks or threads.
    """

    # A default for `__del__` after an `__init__` that raised.
    _keeper: Task | None = None

    def __init__(self, api: Api, limits: PublishLimits, raise_failures: bool) -> None:
        super().__init__()
        failures = UnreadFailures(raise_failures)
        self._limits: Final = limits
        self._work: Final = _Work(api, limits, failures)
        self._pipeline: Final = self._work.pipeline
        self._lock: Final = Lock()
        self._ended = Signal()
        self._count = 0
        self._bytes = 0
        self._closed = False
        self._left = False
        self._watch_failures("publisher", failures)

    @property
    def under_way(self) -> int:
        """Number of messages in flight."""
        return max(0, self._count - len(self._work.released))

    def __repr__(self) -> str:
        return f"<Publisher: {self.under_way} in flight{', closed' * self._closed}>"

    async def __aenter__(self) -> Self:
        await self._open()
        return self

    async def _open(self) -> None:
        async with self._lock:
            if self._keeper is None:
                await self._start()

    async def _start(self) -> None:
        work, ended = self._work, Signal()
        self._ended = ended
        try:
            await self._pipeline.open()
            self._keeper = spawn(lambda: work.keep(ended), "twinstream-publisher")
        except BaseException:
            # Interrupted while the keeper started; without this it would run on, unstoppable.
            ended.set()
            await self._pipeline.close()
            raise

    async def send(
        self,
        subject: str,
        data: bytes = b"",
        *,
        headers: HeaderValues | None = None,
        msg_id: str | None = None,
        expected_stream: str | None = None,
        expected_last_seq: int | None = None,
        expected_last_msg_id: str | None = None,
        expected_last_subject_seq: int | None = None,
        expected_last_subject_seq_subject: str | None = None,
        rollup: Rollup | None = None,
        ttl: Ttl | None = None,
    ) -> PublishHandle:
        """Send a message; wait only while the window is full. Arguments are those of `publish`.

        Raises `BadArgument` for an invalid message, and `ConnectionClosed` if the publisher is
        closed. `PublishHandle.result` raises all other errors.
        """
        request = PublishRequest(
            subject,
            data,
            headers,
            msg_id,
            expected_stream,
            expected_last_seq,
            expected_last_msg_id,
            expected_last_subject_seq,
            expected_last_subject_seq_subject,
            rollup,
            ttl,
        )
        return await self.send_request(request)

    async def send_request(self, request: PublishRequest) -> PublishHandle:
        """Send an existing request; see `send`."""
        if self._keeper is None:
            await self._open()
        pipeline = self._pipeline
        entry = pipeline.prepare(request)
        if isinstance(entry.outcome, PublishFailure):
            raise entry.outcome.error
        while not await self._take_room(entry):
            oldest = pipeline.oldest
            if oldest is not None:
                await pipeline.until(oldest)
        try:
            if not pipeline.try_send(entry):
                await pipeline.send(entry)
        except BaseException:
            pipeline.forget(entry)
            self._work.release(entry)
            raise
        return PublishHandle(self, entry)

    async def _take_room(self, entry: UnderWay) -> bool:
        size = entry.size
        async with self._lock:
            if self._closed:
                raise ConnectionClosed("the publisher is closed")
            released = self._work.released
            while released:
                self._bytes -= released.popleft()
                self._count -= 1
            if self._limits.is_full(self._count, self._bytes, size):
                return False
            # Done under the lock, because `close` waits for all admitted messages. `expect` comes
            # first: if the share was counted first and an interrupt came in between, it would never
            # be freed.
            self._pipeline.expect(entry)
            self._count += 1
            self._bytes += size
            return True

    async def _result_of(self, entry: UnderWay) -> PubAck:
        """Return the result of a message. Called by `PublishHandle.result`."""
        outcome = await self._pipeline.until(entry)
        if isinstance(outcome, PublishFailure):
            raise outcome.error
        return outcome

    async def flush(self) -> None:
        """Wait until every message sent so far is acknowledged or has failed.

        Failures are raised by the handles' `result`, or finally by `close`.
        """
        last = self._pipeline.under_way()
        for entry in last:
            await self._pipeline.until(entry)

    async def close(self) -> None:
        """Wait for the messages in flight, then raise `PublishFailures` for unread failures.

        Closing again does nothing, or completes an interrupted close.
        """
        async with self._lock:
            is_left = self._left
            self._closed = True
        if not is_left:
            try:
                await self.flush()
            finally:
                self._ended.set()
                await self._pipeline.close()
                self._left = True
        self._raise_unread()

    def __del__(self) -> None:
        if self._keeper is not None and not (self._left or self._is_inherited):
            # The keeper ends when nothing is in flight.
            self._work.is_dropped = True
            self._warn_of_drop()
        super().__del__()

    def _warn_of_drop(self) -> None:
        # If the connection is closed, all messages have an outcome.
        if not self._pipeline.is_over:
            warnings.warn(
                f"publisher was dropped without close, with {self.under_way} messages in flight;"
                " use it in a `with` block, or close it, to learn their outcome",
                ResourceWarning,
                stacklevel=3,
            )
