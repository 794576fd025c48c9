"""The relay of an outbox, which stores each event in a stream once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Self

from js_async import JetStream
from js_async.exactly_once.idempotent_writer import By, once_writer
from js_async.extension import BackgroundWork, api_of
from js_async.outbox.sender import OutboxSender
from js_async.outbox.store import OutboxStore
from js_async.outbox.store_calls import StoreCalls
from js_async.runtime.concurrency import Signal, TimedLock
from twinstream.core.deadline import NEVER, Backoff, Deadline, Failures, Seconds, seconds
from twinstream.core.exactly_once.outbox import OutboxReport
from twinstream.core.hooks import HOOKS, reached
from twinstream.core.wire.subjects import check_name
from twinstream.errors import BadArgument, PublishFailures, RequestTimeout, TwinstreamError

__all__ = ["OutboxRelay"]

_LONGEST_PAUSE: Final = 5.0


class OutboxRelay(BackgroundWork):
    """A relay, which stores each event of an outbox in a stream once.

    In a `with` block, it works in the background until the end of the block. `flush` instead works
    until no events are pending. Failures are logged and reported to `on_report`. Without
    `on_report`, refused events raise `PublishFailures` at the end of `flush`, `stop`, `wait` or the
    block. The constructor sends no request.

    Args:
        jet: The JetStream context.
        store: The outbox, for example a `SqliteOutbox`.
        stream_name: Name of the stream.
        by: How duplicates are prevented. "subject": each event has a unique subject, and the stream
            refuses a second message of a subject. "id": the stream refuses a second message with
            the same id within its duplicate window; after the window, the relay searches the stream
            for the ids.
        poll: Seconds between two checks of the outbox.
        timeout: Seconds for one attempt.
        on_report: Callback that receives failures.

    Raises:
        BadArgument: An argument is invalid.
    """

    _area = "outbox"

    def __init__(
        self,
        jet: JetStream,
        store: OutboxStore,
        stream_name: str,
        *,
        by: By,
        poll: Seconds = 0.5,
        timeout: Seconds = 5.0,
        on_report: Callable[[OutboxReport], None] | None = None,
    ) -> None:
        super().__init__()
        if not callable(getattr(store, "claim", None)):
            raise BadArgument(f"an outbox is expected, such as a SqliteOutbox, got {store!r}")
        api_of(jet)  # Raises `BadArgument` for another object.
        self._stream: Final = check_name(stream_name, "stream")
        limit = seconds(timeout)
        self._poll: Final = max(seconds(poll, "poll"), 0.001)
        self._failures: Final = Failures(Backoff(self._poll, max(self._poll, _LONGEST_PAUSE)))
        self._awake: Final = Signal()
        # Held by the call of `flush` that uses the outbox.
        self._turn: Final = TimedLock()
        # An entry for each call of `flush`. Appending to a list is atomic.
        self._flushing: Final[list[None]] = []
        self._sender: Final = OutboxSender(
            StoreCalls(store),
            once_writer(jet, stream_name, by, limit),
            self._stopping,
            self._failures,
            limit,
            on_report,
        )

    @property
    def _label(self) -> str:
        return f"to {self._stream}"

    @property
    def stored(self) -> int:
        """The number of events that this relay stored, or found in the stream."""
        return self._sender.stored

    @property
    def refused(self) -> int:
        """The number of events that this relay marked as refused: they can never be stored."""
        return self._sender.refused

    # ---- lifecycle

    async def start(self) -> None:
        """Start to work in the background.

        Raises:
            UnsuitableSettings: The settings of the stream allow duplicates.
            StreamNotFound: The stream does not exist.
            BadArgument: The relay was started before.
        """
        await super().start()

    async def _begin(self) -> None:
        await self._sender.check_stream()

    async def stop(self, *, timeout: Seconds = 30.0) -> None:
        """Stop the relay. Pending events stay in the outbox.

        Does nothing if the relay was never started or has ended. A `flush` that runs in another
        task or thread ends, too. It raises `TwinstreamError` if events are still pending.

        Args:
            timeout: How long to wait for the end of the relay, in seconds.

        Raises:
            RequestTimeout: The relay has not ended in time.
            PublishFailures: Events were refused, and there is no `on_report`.
            Exception: The error that ended the work, if no call has raised it before.
        """
        if self._is_parents:
            return
        if self._flushing:
            await self._request_stop()
        await super().stop(timeout=timeout)
        self._sender.raise_refused()

    async def _request_stop(self) -> None:
        self._stopping.set()
        self._awake.set()
        if HOOKS:
            reached("relay: stopping", self)

    async def wait(self, *, timeout: Seconds | None = None) -> None:
        """Wait until the relay has ended, by `stop` or by an error.

        Args:
            timeout: The longest wait in seconds; None waits without limit.

        Raises:
            RequestTimeout: The relay has not ended in time. It continues.
            BadArgument: The relay was never started.
            PublishFailures: Events were refused, and there is no `on_report`.
            Exception: The error that ended the relay.
        """
        await super().wait(timeout=timeout)
        self._sender.raise_refused()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if self._is_parents:
            return
        try:
            await self.stop()
        except PublishFailures as failures:
            if error is None:
                raise
            error.add_note(str(failures))

    def wake(self) -> None:
        """Let the relay check the outbox now instead of at the next poll."""
        self._awake.set()

    async def flush(self, *, timeout: Seconds | None = None) -> int:
        """Store all pending events; return how many were stored.

        Refused events, and other events of their keys, stay in the outbox. If several tasks or
        threads flush, one waits for the other.

        Args:
            timeout: The time limit in seconds; None waits without limit. The call may take longer,
                until the messages in flight are acknowledged.

        Raises:
            PublishFailures: Events were refused, and there is no `on_report`.
            RequestTimeout: Events were still pending at the timeout, or another flush was running.
                The error names the last failure.
            TwinstreamError: `stop` was called while events were pending.
            BadArgument: The relay was started, and works in the background.
        """
        if self._is_started:
            raise BadArgument("the relay was started and works in the background")
        deadline, has_turn = Deadline.after(timeout), False
        self._flushing.append(None)
        try:
            # In a forked child, a thread of the parent may hold the lock, and the flush fails.
            has_turn = self._is_parents or await self._turn.acquire(deadline)
            if not has_turn:
                raise RequestTimeout("another call of `flush` has not ended in time")
            return await self._flush(deadline)
        finally:
            self._turn.release(has_turn)
            self._flushing.pop()

    async def _flush(self, deadline: Deadline) -> int:
        before = self.stored
        try:
            while True:
                failure = await self._sender.round(deadline)
                if failure is None:
                    self._sender.raise_refused()
                    return self.stored - before
                if self._stopping.is_set():
                    raise TwinstreamError(f"events are still pending; {failure}") from failure
                if deadline.remaining() < self._failures.next_pause:
                    raise RequestTimeout(f"events are still pending; {failure}") from failure
                await self._pause()
        finally:
            await self._sender.release()

    # ---- work

    async def _work(self) -> None:
        """Run rounds until `stop`, then release the outbox.

        Pauses after a failed round. After a complete round, it waits for new events, or for the
        poll interval.
        """
        try:
            while not self._stopping.is_set():
                if HOOKS:
                    reached("relay: before clear", self)
                self._awake.clear()
                if self._stopping.is_set():
                    # `stop` may have set `_awake` just before it was cleared.
                    break
                failure = await self._sender.round(NEVER)
                if failure is None:
                    self._failures.clear()
                    await self._awake.sleep(Deadline.after(self._poll))
                elif not self._stopping.is_set():
                    await self._pause()
        except Exception as error:
            self._sender.report_end(error)
            raise
        finally:
            await self._sender.release()

    async def _pause(self) -> None:
        """Pause after a failure. The pauses grow until a round succeeds."""
        await self._stopping.sleep(Deadline.after(self._failures.add()))
