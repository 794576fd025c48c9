"""The relay of an outbox, which stores each event in a stream once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Self

from js_async.api.api import Api
from js_async.client.closing import WorksBeside
from js_async.client.owned import Owned
from js_async.exactly_once.conditional_writes import SubjectWrites
from js_async.exactly_once.idempotent_writer import By, once_writer
from js_async.exactly_once.outbox_sender import OutboxSender
from js_async.exactly_once.outbox_store import OutboxStore
from js_async.exactly_once.outbox_store_calls import StoreCalls
from js_async.runtime.concurrency import Signal, Task, spawn
from twinstream.core.deadline import NEVER, Backoff, Deadline, Failures, Seconds, seconds
from twinstream.core.exactly_once.outbox import OutboxReport
from twinstream.core.hooks import HOOKS, reached
from twinstream.core.wire.subjects import check_name
from twinstream.errors import BadArgument, PublishFailures, RequestTimeout, TwinstreamError

__all__ = ["OutboxRelay"]

_LONGEST_PAUSE: Final = 5.0


class OutboxRelay(Owned, WorksBeside):
    """A relay, which stores the events of an outbox in a stream. `JetStream.outbox` creates it.

    In a `with` block, it works in the background until the end of the block. `drain` instead works
    until no events are pending. Failures are logged and reported to `on_report`. Without
    `on_report`, refused events raise `PublishFailures` at the end of `drain`, `stop`, `wait` or the
    block.
    """

    _area = "outbox"

    def __init__(
        self,
        api: Api,
        writes: SubjectWrites,
        store: OutboxStore,
        stream: str,
        by: By,
        *,
        poll: Seconds,
        timeout: Seconds,
        on_report: Callable[[OutboxReport], None] | None,
    ) -> None:
        super().__init__()
        if not callable(getattr(store, "claim", None)):
            raise BadArgument(f"an outbox is expected, such as a SqliteOutbox, got {store!r}")
        self._stream: Final = check_name(stream, "stream")
        limit = seconds(timeout)
        self._poll: Final = max(seconds(poll, "poll"), 0.001)
        self._failures: Final = Failures(Backoff(self._poll, max(self._poll, _LONGEST_PAUSE)))
        self._stop: Final = Signal()
        self._awake: Final = Signal()
        self._task: Task | None = None
        self._sender: Final = OutboxSender(
            api,
            StoreCalls(store),
            once_writer(api, writes, stream, by, limit),
            stream,
            self._stop,
            self._failures,
            limit,
            on_report,
        )

    def __repr__(self) -> str:
        counts = f"{self.stored} stored, {self.refused} refused"
        return f"<OutboxRelay to {self._stream}: {counts}{self._ended_by}>"

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
            NotPromised: The settings of the stream allow duplicates.
            StreamNotFound: The stream does not exist.
            BadArgument: The relay was started already.
        """
        if self._task is not None:
            raise BadArgument("the relay was started already")
        self._note_begun()
        await self._sender.check_stream()
        self._task = spawn(self._run, "twinstream-outbox")

    async def stop(self, timeout: Seconds = 30.0) -> None:
        """Stop the relay. Pending events stay in the outbox.

        A `drain` that runs in another task or thread ends, too. It raises `TwinstreamError` if
        events are still pending.

        Args:
            timeout: How long to wait for the end of the relay, in seconds.

        Raises:
            RequestTimeout: The relay has not ended in time.
            PublishFailures: Events were refused, and there is no `on_report`.
            Exception: The error that ended the work, if there was one.
        """
        if self._is_parents:
            return
        self._stop.set()
        self._awake.set()
        if HOOKS:
            reached("relay: stopping", self)
        await self._join(timeout)
        if self._task is not None:
            # Without `_task`, `drain` may be running. It releases the outbox when it ends.
            await self._sender.release()

    async def wait(self, timeout: Seconds | None = None) -> None:
        """Wait until the relay has ended, by `stop` or by an error.

        Args:
            timeout: The longest wait in seconds; None waits without limit.

        Raises:
            RequestTimeout: The relay has not ended in time. It continues.
            NotStarted: The relay was not started.
            PublishFailures: Events were refused, and there is no `on_report`.
            Exception: The error that ended the relay.
        """
        self._require_begun(f"the relay of an outbox to {self._stream}")
        await self._join(timeout)

    async def _join(self, timeout: Seconds | None) -> None:
        if self._task is not None and not await self._task.join(Deadline.after(timeout)):
            raise RequestTimeout("the relay is still working")
        self._raise_kept()
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

    async def drain(self, timeout: Seconds | None = None) -> int:
        """Store all pending events; return how many were stored.

        Refused events, and other events of their keys, stay in the outbox.

        Args:
            timeout: The time limit in seconds; None waits without limit. The call may take longer,
                until the messages in flight are acknowledged.

        Raises:
            PublishFailures: Events were refused, and there is no `on_report`.
            RequestTimeout: Events were still pending at the timeout. The error names the last
                failure.
            TwinstreamError: `stop` was called while events were pending.
            BadArgument: The relay was started, and works in the background.
        """
        if self._task is not None:
            raise BadArgument("the relay was started and works in the background")
        deadline = Deadline.after(timeout)
        before = self.stored
        try:
            while True:
                trouble = await self._sender.round(deadline)
                if trouble is None:
                    self._sender.raise_refused()
                    return self.stored - before
                if self._stop.is_set():
                    raise TwinstreamError(f"events are still pending; {trouble}") from trouble
                if deadline.remaining() < self._failures.next_pause:
                    raise RequestTimeout(f"events are still pending; {trouble}") from trouble
                await self._pause()
        finally:
            await self._sender.release()

    # ---- work

    async def _run(self) -> None:
        try:
            while not self._stop.is_set():
                if HOOKS:
                    reached("relay: before clear", self)
                self._awake.clear()
                if self._stop.is_set():
                    # `stop` may have set `_awake` just before it was cleared.
                    break
                trouble = await self._sender.round(NEVER)
                if trouble is None:
                    self._failures.clear()
                    await self._awake.sleep(Deadline.after(self._poll))
                elif not self._stop.is_set():
                    await self._pause()
        except Exception as error:
            self._keep_error(error, f"the relay of an outbox to {self._stream}")
            self._sender.report_end(error)
        finally:
            await self._sender.release()

    async def _pause(self) -> None:
        """Pause after a failure. The pauses grow until a round succeeds."""
        await self._stop.sleep(Deadline.after(self._failures.add()))
