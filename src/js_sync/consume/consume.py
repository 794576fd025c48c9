# Generated from src/js_async/consume/consume.py by codegen/twin.py. Edit that file instead.
"""Consuming with a handler: workers beside the caller, in the order that was asked for."""

from __future__ import annotations

from collections import deque
from typing import Final, Literal, Self
from zlib import crc32

from twinstream.core.deadline import NEVER, Deadline, Seconds
from twinstream.errors import BadArgument, RequestTimeout, TwinstreamError
from twinstream.core.base.check_arguments import check_whole
from js_sync.runtime.concurrency import Handler, Lock, Signal, Task, call, check_handler, spawn
from js_sync.client.closing import WorksBeside
from js_sync.client.owned import Owned
from js_sync.consume.message import Message
from js_sync.consume.messages import Messages

__all__ = ["Consuming", "Order"]

Order = Literal["none", "subject", "total"]
"""Which messages may not be worked on at the same time: none, those of a subject, any."""


class _Lane:
    """Messages on the way to the workers of one lane: at most one, the rest stays buffered."""

    def __init__(self) -> None:
        self.messages: deque[Message] = deque()
        self.filled = Signal()
        self.emptied = Signal()
        self.ended = False

    def put(self, message: Message) -> None:
        while self.messages and not self.ended:
            self.emptied.clear()
            if self.messages:
                self.emptied.sleep(NEVER)
        self.messages.append(message)
        self.filled.set()

    def take(self) -> Message | None:
        while True:
            self.filled.clear()
            try:
                message = self.messages.popleft()
            except IndexError:
                if self.ended:
                    # Another worker may have lowered the flag in between.
                    self.filled.set()
                    return None
                self.filled.sleep(NEVER)
                continue
            if self.messages or self.ended:
                self.filled.set()
            self.emptied.set()
            return message

    def end(self) -> None:
        self.ended = True
        self.filled.set()
        self.emptied.set()


class Consuming(Owned, WorksBeside):
    """A consumption that runs beside its starter; made by `Consumer.consume`.

    Use it in a `with` block, or call `start`, and `stop` or `drain` in the end. An error that ended
    it and that nobody waited for is a `RuntimeWarning` when it is dropped.
    """

    def __init__(
        self,
        consumer: str,
        messages: Messages,
        handler: Handler[Message],
        concurrency: int,
        order: Order,
        progress: bool,
    ) -> None:
        super().__init__()
        check_handler(handler)
        check_whole(concurrency, "concurrency")
        if order not in ("none", "subject", "total"):
            raise BadArgument(f"order must be 'none', 'subject' or 'total', got {order!r}")
        if order == "total" and concurrency > 1:
            raise BadArgument("order='total' works on one message at a time: concurrency=1")
        self._consumer: Final = consumer
        self._messages: Final = messages
        self._handler: Final = handler
        self._progress: Final = progress
        # Otherwise what waits behind a long handler would be delivered here again and again.
        messages._held.keep_all |= progress
        self._workers: Final = concurrency
        self._left = 0
        lanes = concurrency if order == "subject" else 1
        self._lanes: Final = [_Lane() for _ in range(lanes)]
        self._tasks: list[Task] = []
        self._stopping = False
        self._counting: Final = Lock()
        self.handled = 0
        """Messages whose handler returned."""

    def __repr__(self) -> str:
        return f"<Consuming {self._consumer}: {self.handled} handled>"

    @property
    def messages(self) -> Messages:
        """The iteration underneath: what is buffered and outstanding."""
        return self._messages

    @property
    def _what_it_is(self) -> str:
        return f"{self._consumer}: the consumption"

    def start(self) -> None:
        """Start to work."""
        if self._tasks:
            raise BadArgument("the consumption was started already")
        self._note_begun()
        try:
            self._tasks.append(spawn(self._dispatch, "twinstream-dispatch"))
            for number in range(self._workers):
                lane = self._lanes[number % len(self._lanes)]
                self._tasks.append(spawn(_Worker(self, lane).run, f"twinstream-worker-{number}"))
        except BaseException:
            # Interrupted while it began, which would go on: nobody comes to `stop`.
            self._stopping = True
            self._messages.close()
            raise

    def stop(self, timeout: Seconds = 30.0) -> None:
        """End at once: handlers that run may finish, everything else goes back to the server.

        Raises `RequestTimeout` when a handler takes longer than `timeout` seconds, the error that
        ended the consumption, if one did, and `NotStarted`.
        """
        self._require_begun(self._what_it_is)
        self._stopping = True
        self._messages.close()
        self._join(Deadline.after(timeout))

    def drain(self, timeout: Seconds = 30.0) -> None:
        """Ask for no more, work on what is buffered, then end. Raises as `stop` does."""
        self._require_begun(self._what_it_is)
        self._messages.drain()
        self._join(Deadline.after(timeout))

    def wait(self, timeout: Seconds | None = None) -> None:
        """Return when the consumption has ended: by `stop` or `drain`, or by an error, raised here.

        Raises `RequestTimeout` after `timeout` seconds; the consumption goes on then. Raises
        `NotStarted`.
        """
        self._require_begun(self._what_it_is)
        self._join(Deadline.after(timeout), "the consumption has not ended: it goes on")

    def _join(self, deadline: Deadline, still: str = "a handler is still running") -> None:
        for task in self._tasks:
            if not task.is_current() and not task.join(deadline):
                raise RequestTimeout(still)
        self._raise_kept()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        if not self._is_parents:
            self.stop()

    # ---- the work

    def _dispatch(self) -> None:
        try:
            while True:
                message = self._messages._take(NEVER)
                if message is None:
                    break
                self._messages._held.queue(message)
                self._lane(message).put(message)
        except Exception as error:
            self._fail(error)
        finally:
            for lane in self._lanes:
                lane.end()

    def _lane(self, message: Message) -> _Lane:
        if len(self._lanes) == 1:
            return self._lanes[0]
        # As it came: not every subject is UTF-8.
        subject = message.subject.encode("utf-8", "surrogateescape")
        return self._lanes[crc32(subject) % len(self._lanes)]

    def _handle(self, message: Message) -> None:
        """Work on one message; a worker does it."""
        self._messages._held.release(message)
        if message.is_late:
            self._messages._note_late()
            return
        if self._stopping:
            message.nak()
            return
        if self._progress:
            self._messages._held.hold(message)
        try:
            call(self._handler, message)
            with self._counting:
                self.handled += 1
        finally:
            self._messages._held.release(message)

    def _fail(self, error: BaseException) -> None:
        """Keep the first error, and end."""
        self._keep_error(error, self._what_it_is)
        self._stopping = True

    def _end(self) -> None:
        """Stop taking messages, after an error; a worker does it."""
        self._messages.close()

    def _leave(self) -> None:
        """Note that a worker has ended; with the last one nothing is left to be kept alive."""
        with self._counting:
            self._left += 1
            is_last = self._left == self._workers
        if is_last:
            try:
                self._messages.close()
            except TwinstreamError as error:
                self._fail(error)


class _Worker:
    """Takes messages from a lane until it ends."""

    def __init__(self, consuming: Consuming, lane: _Lane) -> None:
        self._consuming = consuming
        self._lane = lane

    def run(self) -> None:
        while True:
            message = self._lane.take()
            if message is None:
                self._consuming._leave()
                return
            try:
                self._consuming._handle(message)
            except BaseException as error:
                # Also of a handler that exits: who waits for the end is who exits then. What is
                # in the lane goes back meanwhile.
                self._consuming._fail(error)
                self._consuming._end()
