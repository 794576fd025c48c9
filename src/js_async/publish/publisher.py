"""Publish messages one by one without waiting for each acknowledgement."""

from __future__ import annotations

import warnings
from collections import deque
from typing import Final, Self

from js_async.api.api import Api
from js_async.client.closing import Leaving, warn_of_failures
from js_async.client.connection_keeper import EXIT_TIME
from js_async.publish.inflight import InFlight, Outcome
from js_async.publish.pipeline import Pipeline
from js_async.runtime.concurrency import Lock, Signal, Task, before_exit, sleep, spawn
from twinstream.core.arguments.nats_py_names import hint_attributes
from twinstream.core.deadline import Deadline
from twinstream.core.on_failure import AsyncOnFailure
from twinstream.core.publish.limits import PublishLimits
from twinstream.errors import BadArgument, ConnectionClosed, PublishFailure
from twinstream.errors.publish_failures import UnreadFailures
from twinstream.models import PubAck
from twinstream.records.headers import HeaderValues
from twinstream.records.publish_request import PublishRequest, Rollup, Ttl

__all__ = ["PublishHandle", "Publisher"]

# Interval at which a background task or thread checks for timeouts and retries (seconds).
_LOOK: Final = 0.1
# Pause between two looks at the messages in flight when the program ends (seconds).
_POLL: Final = 0.01


@hint_attributes
class PublishHandle:
    """A message that a `Publisher` has sent. Its result is available later."""

    __slots__ = ("_entry", "_publisher")

    def __init__(self, publisher: Publisher, entry: InFlight) -> None:
        self._publisher = publisher
        self._entry = entry

    @property
    def request(self) -> PublishRequest:
        """The message that was sent."""
        return self._entry.request

    @property
    def is_done(self) -> bool:
        """Whether `result` returns without waiting."""
        return self._entry.outcome is not None

    async def result(self) -> PubAck:
        """Wait for the acknowledgement and return it, or raise the error.

        Raises the same errors as `JetStream.publish`. After this call, `Publisher.close` does not
        report the error of this message again.
        """
        return await self._publisher._result_of(self._entry)

    def __repr__(self) -> str:
        state = "done" if self.is_done else "in flight"
        return f"<PublishHandle {self.request.subject}: {state}>"


class _Work:
    """The state of a publisher that its background task or thread uses.

    Neither this task or thread nor the code that reads the socket has a reference to the
    `Publisher`. When the user drops the last reference, the `Publisher` is therefore deleted, and
    its `__del__` can warn.
    """

    def __init__(self, api: Api, limits: PublishLimits, failures: UnreadFailures) -> None:
        self.pipeline: Final = Pipeline(api, limits, self._on_done, "publisher")
        self.failures: Final = failures
        # Sizes of finished messages. The code that reads the socket appends them. The next `send`
        # removes them and reduces the counts of messages and bytes in flight.
        self.released: Final[deque[int]] = deque()
        self.is_dropped = False

    def release(self, entry: InFlight) -> bool:
        """Count a message as finished; return False if it was counted before."""
        if entry.is_recorded:
            return False
        entry.is_recorded = True
        self.released.append(entry.size)
        return True

    def _on_done(self, entry: InFlight, outcome: Outcome) -> bool:
        if not self.release(entry):
            return False
        if isinstance(outcome, PublishFailure):
            self.failures.add(outcome)
        return True

    async def keep(self, ended: Signal) -> None:
        """Carry out retries and timeouts periodically until the publisher is closed.

        For a publisher that was garbage-collected, this ends when no message is in flight. It runs
        in the background, because retries are also due while no caller waits.
        """
        try:
            # If the program or its event loop ends, wait for the messages in flight.
            async with AsyncOnFailure(lambda: self.flush_at_exit(Deadline.after(EXIT_TIME))):
                while not await ended.sleep(Deadline.after(_LOOK)):
                    await self.pipeline.tend()
                    if self.pipeline.is_over:
                        # The connection was closed before the publisher. No message is in flight.
                        return
                    if self.is_dropped and self.pipeline.oldest is None:
                        await self.pipeline.close()
                        return
        finally:
            if self.is_dropped:
                # Messages in flight may have failed after the publisher was deleted.
                self.warn_unclosed()

    async def flush_at_exit(self, deadline: Deadline) -> None:
        """Wait for the responses to messages in flight, until the deadline."""
        while not (self.pipeline.oldest is None or self.pipeline.is_over or deadline.expired()):
            await sleep(_POLL)

    def warn_unclosed(self) -> None:
        """Warn about failures that the program did not read."""
        failures = self.failures.take()
        if failures is not None:
            warn_of_failures("publisher", failures)


class Publisher(Leaving):
    """A sender that does not wait for acknowledgements. Created by `JetStream.publisher`.

    The end of a `with` block waits for all messages in flight. Then it raises
    `PublishFailures` for the failures that no `PublishHandle.result` has raised, unless
    `raise_failures` is off. Tasks or threads may share a publisher.
    """

    # A default for `__del__`, which also runs if `__init__` raised.
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
    def in_flight(self) -> int:
        """Number of messages in flight."""
        return max(0, self._count - len(self._work.released))

    def __repr__(self) -> str:
        return f"<Publisher: {self.in_flight} in flight{', closed' * self._closed}>"

    async def __aenter__(self) -> Self:
        await self._open()
        return self

    async def _open(self) -> None:
        async with self._lock:
            self._check_open()
            if self._keeper is None:
                await self._start()

    def _check_open(self) -> None:
        if self._closed:
            raise ConnectionClosed("the publisher is closed")

    async def _start(self) -> None:
        """Open the inbox and start the task or thread that looks after messages in flight."""
        work, ended = self._work, Signal()
        self._ended = ended

        async def undo() -> None:
            # If the keeper was created, stop it, because no other code would.
            ended.set()
            await work.pipeline.close()

        async with AsyncOnFailure(undo):
            await self._pipeline.open()
            before_exit(work)
            self._keeper = spawn(lambda: work.keep(ended), "twinstream-publisher")

    async def send(
        self,
        subject: str | PublishRequest,
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
        """Send a message and return its handle.

        Waits only while the window is full or the client is not connected. The arguments are those
        of `JetStream.publish`, or a `PublishRequest` alone. `PublishHandle.result` raises all
        errors that are not listed here.

        Args:
            subject: Subject of the message.
            data: Payload of the message.
            headers: Headers of the message.
            msg_id: Id by which the stream detects duplicates.
            expected_stream: Name of the stream that must store the message.
            expected_last_seq: Last sequence that the stream must have.
            expected_last_msg_id: Message id that the stream's last message must have.
            expected_last_subject_seq: Last sequence that the subject must have; 0 means none.
            expected_last_subject_seq_subject: The subject or filter whose last sequence is compared
                (server 2.11).
            rollup: `sub` removes earlier messages of the subject, `all` those of the stream.
            ttl: Time to live in whole seconds, or `never` (server 2.11).

        Raises:
            BadArgument: The message is invalid.
            ConnectionClosed: The publisher is closed.
            RequestTimeout: This is the first call, not in a `with` block, and the client is not
                connected in time.
        """
        whole_request = subject if isinstance(subject, PublishRequest) else None
        request = PublishRequest(
            subject.subject if isinstance(subject, PublishRequest) else subject,
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
        if whole_request is not None:
            if request != PublishRequest(whole_request.subject):
                raise BadArgument("a PublishRequest contains all arguments: pass it alone")
            request = whole_request
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
        is_sent = False
        try:
            if not pipeline.write(entry):
                await pipeline.send(entry)
            is_sent = True
        finally:
            if not is_sent:
                pipeline.forget(entry)
                self._work.release(entry)
        return PublishHandle(self, entry)

    async def _take_room(self, entry: InFlight) -> bool:
        """Count a message into the window. Return False if the window is full."""
        size = entry.size
        async with self._lock:
            self._check_open()
            released = self._work.released
            while released:
                self._bytes -= released.popleft()
                self._count -= 1
            if self._limits.is_full(self._count, self._bytes, size):
                return False
            # Do this under the lock, so that `close` waits for every admitted message. Call
            # `expect` first: an interrupt may stop this code before the next line. A message that
            # is counted but not expected would reduce the window permanently.
            self._pipeline.expect(entry)
            self._count += 1
            self._bytes += size
            return True

    async def _result_of(self, entry: InFlight) -> PubAck:
        """Wait for the outcome of a message; return its acknowledgement or raise its error."""
        outcome = await self._pipeline.until(entry)
        if isinstance(outcome, PublishFailure):
            raise outcome.error
        return outcome

    async def flush(self) -> None:
        """Wait until every message sent so far is acknowledged or has failed.

        Does not raise failures: `PublishHandle.result` or `close` raises them.
        """
        last = self._pipeline.in_flight()
        for entry in last:
            await self._pipeline.until(entry)

    async def close(self) -> None:
        """Wait for the messages in flight, then raise `PublishFailures` for unread failures.

        If the call is interrupted, the messages in flight fail with `OutcomeUnknown`. A second call
        does not wait again.
        """
        if self._is_parents:
            return
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
            # The keeper ends when no message is in flight.
            self._work.is_dropped = True
            self._warn_of_drop()
        super().__del__()

    def _warn_of_drop(self) -> None:
        # If the connection is closed, every message has an outcome.
        if not self._pipeline.is_over:
            warnings.warn(
                f"publisher was dropped without close, with {self.in_flight} messages in flight;"
                " use it in a `with` block, or close it, to learn their outcome",
                ResourceWarning,
                stacklevel=3,
            )
