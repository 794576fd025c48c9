"""Publishing one by one without waiting for each acknowledgement."""

from __future__ import annotations

from collections import deque
from typing import Final, Self

from js_async._api import Api
from js_async._io import Lock, Signal, Task, spawn
from js_async._leaving import LISTED, Leaving
from js_async._pipeline import Pipeline
from js_async._under_way import Outcome, UnderWay
from js_core.deadline import Deadline
from js_core.errors import ConnectionClosed, PublishFailures
from js_core.headers import HeaderValues
from js_core.publish import PublishFailure, PublishRequest, Rollup, request_of
from js_core.publish_limits import PublishLimits
from js_core.ttl import Ttl
from js_models import PubAck

__all__ = ["PublishHandle", "Publisher"]

# How often messages without an answer are looked at while nobody waits (seconds).
_LOOK: Final = 0.1


class PublishHandle:
    """A message that was sent; whoever wants to know takes its result."""

    __slots__ = ("_entry", "_publisher")

    def __init__(self, publisher: Publisher, entry: UnderWay) -> None:
        self._publisher = publisher
        self._entry = entry

    @property
    def request(self) -> PublishRequest:
        """What was sent."""
        return self._entry.request

    @property
    def is_done(self) -> bool:
        """Tell whether the result is here."""
        return self._entry.outcome is not None

    async def result(self) -> PubAck:
        """Return the acknowledgement, or raise why there is none, as `JetStream.publish` does.

        A failure that is raised here is not told again when the publisher closes.
        """
        return await self._publisher._result_of(self._entry)


class Publisher(Leaving):
    """Sends messages and lets them be acknowledged meanwhile; made by `JetStream.publisher`.

    Used in `async with`, it waits at the end for all that is under way, and raises
    `PublishFailures` when there were failures whose result nobody took. May be shared between
    tasks or threads.
    """

    def __init__(self, api: Api, limits: PublishLimits) -> None:
        super().__init__()
        self._limits: Final = limits
        self._pipeline: Final = Pipeline(api, limits, self._on_done)
        self._lock: Final = Lock()
        self._ended = Signal()
        self._keeper: Task | None = None
        self._count = 0
        self._bytes = 0
        # Sizes of messages that are done: the receiver appends, senders subtract.
        self._released: deque[int] = deque()
        self._failed: deque[UnderWay] = deque()
        self._unlisted = 0
        self._closed = False
        self._left = False

    @property
    def under_way(self) -> int:
        """How many messages have no answer yet."""
        return max(0, self._count - len(self._released))

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
        ended = self._ended = Signal()
        try:
            await self._pipeline.open()
            self._keeper = spawn(lambda: self._keep(ended), "twinstream-publisher")
        except BaseException:
            # Interrupted while the keeper began, which would go on: nobody comes to `close`.
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
        """Send a message; waits only while the window is full. Arguments as of `publish`.

        Raises `BadArgument` for a bad message, and `ConnectionClosed` after the end; any other
        failure is the handle's.
        """
        request = request_of(
            (
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
        )
        return await self.send_request(request)

    async def send_request(self, request: PublishRequest) -> PublishHandle:
        """Send a message that was made before; see `send`."""
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
            self._tell(entry)
            raise
        return PublishHandle(self, entry)

    async def _take_room(self, entry: UnderWay) -> bool:
        size = entry.size
        async with self._lock:
            if self._closed:
                raise ConnectionClosed("the publisher is closed")
            released = self._released
            while released:
                self._bytes -= released.popleft()
                self._count -= 1
            if self._limits.is_full(self._count, self._bytes, size):
                return False
            # Under the lock: whoever closes waits for all that are let in. First, for room that is
            # taken when an interrupt comes in between would never be given back.
            self._pipeline.expect(entry)
            self._count += 1
            self._bytes += size
            return True

    def _tell(self, entry: UnderWay) -> bool:
        """Give the room of a message back, once; tell whether that was now."""
        if entry.is_told:
            return False
        entry.is_told = True
        self._released.append(entry.size)
        return True

    def _on_done(self, entry: UnderWay, outcome: Outcome) -> bool:
        try:
            if not self._tell(entry):
                return False
            if isinstance(outcome, PublishFailure):
                self._fail(entry)
        except BaseException:
            # Interrupted: it is told, and nobody else would give it its outcome.
            if entry.is_told:
                entry.outcome = outcome
                self._pipeline.forget(entry)
            raise
        return True

    def _fail(self, entry: UnderWay) -> None:
        self._failed.append(entry)
        if len(self._failed) > LISTED:
            self._failed.pop()
            self._unlisted += 1

    async def _result_of(self, entry: UnderWay) -> PubAck:
        """Return the result of a message; `PublishHandle.result` calls it."""
        outcome = await self._pipeline.until(entry)
        if not isinstance(outcome, PublishFailure):
            return outcome
        async with self._lock:
            if not entry.seen:
                entry.seen = True
                try:
                    self._failed.remove(entry)
                except ValueError:
                    self._unlisted -= 1
        raise outcome.error

    async def flush(self) -> None:
        """Return when every message sent so far is acknowledged or failed.

        Failures are told by their handles, or in the end by `close`.
        """
        last = self._pipeline.under_way()
        for entry in last:
            await self._pipeline.until(entry)

    async def close(self) -> None:
        """Wait for what is under way, then raise `PublishFailures` for what nobody looked at.

        Closing again does nothing, or what an interrupt left undone.
        """
        async with self._lock:
            if self._left:
                return
            self._closed = True
        try:
            await self.flush()
        finally:
            self._ended.set()
            await self._pipeline.close()
            self._left = True
        if self._failed:
            failures = [
                entry.outcome
                for entry in tuple(self._failed)
                if isinstance(entry.outcome, PublishFailure)
            ]
            raise PublishFailures(failures, len(failures) + self._unlisted)

    async def _keep(self, ended: Signal) -> None:
        """Repeat and give up messages also while nobody sends or waits."""
        while not await ended.sleep(Deadline.after(_LOOK)):
            await self._pipeline.tend()
            if self._pipeline.is_over:
                # Nobody closed the publisher: this would go on as long as the program.
                return
