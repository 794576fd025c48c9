"""Consuming messages with a handler, which workers in the background call for each message."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Final, Literal, Self
from zlib import crc32

from js_async.client.closing import WorksBeside
from js_async.client.owned import Owned
from js_async.consume.message import Message
from js_async.consume.messages import Messages, buffer_of
from js_async.runtime.concurrency import Handler, Lock, Signal, Task, call, check_handler, spawn
from twinstream.core.arguments.check_arguments import check_whole
from twinstream.core.deadline import NEVER, Deadline, Seconds
from twinstream.core.on_failure import AsyncOnFailure
from twinstream.errors import BadArgument, RequestTimeout, TwinstreamError

__all__ = ["Consuming", "Order"]

Order = Literal["none", "subject", "total"]
"""Which messages are handled strictly one after the other.

"none": no messages; "subject": messages of the same subject; "total": all messages.
"""


class _Lane:
    """A queue from which one or more workers take messages. It contains at most one message.

    All other messages stay in the buffer of the iterator. With `order="subject"`, each worker has
    its own queue, and all messages of a subject go through the same queue. Otherwise all workers
    share one queue.
    """

    def __init__(self) -> None:
        self.messages: deque[Message] = deque()
        self.filled = Signal()
        self.emptied = Signal()
        self.ended = False

    async def put(self, message: Message) -> None:
        while self.messages and not self.ended:
            self.emptied.clear()
            if self.messages:
                await self.emptied.sleep(NEVER)
        self.messages.append(message)
        self.filled.set()

    async def take(self) -> Message | None:
        while True:
            self.filled.clear()
            try:
                message = self.messages.popleft()
            except IndexError:
                if self.ended:
                    # Set the signal again, so that the other workers end, too.
                    self.filled.set()
                    return None
                await self.filled.sleep(NEVER)
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
    """A consumption that runs in the background. `Consumer.consume` creates it.

    Use it in a `with` block, or call `start`, and finally `stop` or `drain`. If an error ended the
    consumption and no call raised it, a `RuntimeWarning` is issued when the object is
    garbage-collected.
    """

    def __init__(
        self,
        consumer: str,
        messages: Messages,
        handler: Handler[Message],
        concurrency: int,
        order: Order,
        progress: bool,
        on_end: Callable[[Any], object] | None = None,
    ) -> None:
        super().__init__()
        self._on_end = on_end
        check_handler(handler)
        check_whole(concurrency, "concurrency")
        if order not in ("none", "subject", "total"):
            raise BadArgument(f"order must be 'none', 'subject' or 'total', got {order!r}")
        if order == "total" and concurrency > 1:
            raise BadArgument("order='total' works on one message at a time: concurrency=1")
        self._consumer: Final = consumer
        self._messages: Final = messages
        self._buffer: Final = buffer_of(messages)
        self._handler: Final = handler
        self._progress: Final = progress
        # With `progress`, handlers may run for a long time, during which no message is taken.
        # Report the progress of buffered messages meanwhile: otherwise the server redelivers them.
        self._buffer.progress.keep_all |= progress
        self._workers: Final = concurrency
        self._left = 0
        lanes = concurrency if order == "subject" else 1
        self._lanes: Final = [_Lane() for _ in range(lanes)]
        self._tasks: list[Task] = []
        self._stopping = False
        self._counting: Final = Lock()
        self.handled = 0
        """The number of messages whose handler has returned."""

    def __repr__(self) -> str:
        return f"<Consuming {self._consumer}: {self.handled} handled{self._ended_by}>"

    @property
    def messages(self) -> Messages:
        """The underlying iterator, with its `buffered` and `outstanding` counts."""
        return self._messages

    @property
    def _what_it_is(self) -> str:
        return f"{self._consumer}: the consumption"

    async def start(self) -> None:
        """Start the workers. Raises `BadArgument` if the consumption was started already."""
        if self._tasks:
            raise BadArgument("the consumption was started already")
        self._note_begun()
        async with AsyncOnFailure(self._end_started):
            self._tasks.append(spawn(self._dispatch, "twinstream-dispatch"))
            for number in range(self._workers):
                lane = self._lanes[number % len(self._lanes)]
                self._tasks.append(spawn(_Worker(self, lane).run, f"twinstream-worker-{number}"))

    async def _end_started(self) -> None:
        # The start was interrupted, so the caller cannot stop the started workers.
        self._stopping = True
        await self._buffer.close()

    async def stop(self, timeout: Seconds = 30.0) -> None:
        """Stop taking messages, return the buffered ones to the server and wait for the handlers.

        Args:
            timeout: The longest wait for running handlers, in seconds.

        Raises:
            RequestTimeout: A handler is still running after `timeout` seconds.
            NotStarted: The consumption was not started.
            Exception: The error that ended the consumption, if there was one.
        """
        if self._is_parents:
            return
        self._require_begun(self._what_it_is)
        self._stopping = True
        await self._buffer.close()
        await self._join(Deadline.after(timeout))

    async def drain(self, timeout: Seconds = 30.0) -> None:
        """Stop pulling, and wait until the buffered messages are handled.

        Args:
            timeout: The longest wait in seconds.

        Raises:
            RequestTimeout: A handler is still running after `timeout` seconds.
            NotStarted: The consumption was not started.
            Exception: The error that ended the consumption, if there was one.
        """
        if self._is_parents:
            return
        self._require_begun(self._what_it_is)
        await self._buffer.drain()
        await self._join(Deadline.after(timeout))

    async def wait(self, timeout: Seconds | None = None) -> None:
        """Wait until the consumption has ended by `stop`, `drain`, `stop_after` or an error.

        Args:
            timeout: The longest wait in seconds; None waits without limit.

        Raises:
            RequestTimeout: The consumption has not ended in time. It continues.
            NotStarted: The consumption was not started.
            Exception: The error that ended the consumption, if there was one.
        """
        self._require_begun(self._what_it_is)
        await self._join(Deadline.after(timeout), "the consumption has not ended: it continues")

    async def _join(self, deadline: Deadline, still: str = "a handler is still running") -> None:
        for task in self._tasks:
            if not task.is_current() and not await task.join(deadline):
                raise RequestTimeout(still)
        self._raise_kept()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        if not self._is_parents:
            await self.stop()

    # ---- the work

    async def _dispatch(self) -> None:
        try:
            while True:
                message = await self._buffer.take(NEVER)
                if message is None:
                    break
                self._buffer.progress.queue(message)
                await self._lane(message).put(message)
        except Exception as error:
            self._fail(error)
        finally:
            for lane in self._lanes:
                lane.end()

    def _lane(self, message: Message) -> _Lane:
        if len(self._lanes) == 1:
            return self._lanes[0]
        # `surrogateescape`, because not every subject is valid UTF-8.
        subject = message.subject.encode("utf-8", "surrogateescape")
        return self._lanes[crc32(subject) % len(self._lanes)]

    async def _handle(self, message: Message) -> None:
        """Call the handler with a message. Workers call this.

        A late message is skipped. While the consumption stops, a message that is not late is
        returned to the server.
        """
        self._buffer.progress.release(message)
        if message.is_late:
            self._buffer.ready.note_late()
            return
        if self._stopping:
            await message.nak()
            return
        if self._progress:
            self._buffer.progress.hold(message)
        try:
            await call(self._handler, message)
            async with self._counting:
                self.handled += 1
        finally:
            self._buffer.progress.release(message)

    def _fail(self, error: BaseException) -> None:
        """Keep the error unless an earlier one is kept, and let the workers stop."""
        self._keep_error(error, self._what_it_is)
        self._stopping = True

    async def _end(self) -> None:
        """Close the iterator after an error. Workers call this."""
        await self._buffer.close()

    async def _leave(self) -> None:
        """Count a worker that has ended. Close the iterator after the last one."""
        async with self._counting:
            self._left += 1
            is_last = self._left == self._workers
        if is_last:
            try:
                await self._buffer.close()
            except TwinstreamError as error:
                self._fail(error)


class _Worker:
    """A worker. It handles the messages of one `_Lane` until that queue has ended."""

    def __init__(self, consuming: Consuming, lane: _Lane) -> None:
        self._consuming = consuming
        self._lane = lane

    async def run(self) -> None:
        while True:
            message = await self._lane.take()
            if message is None:
                await self._consuming._leave()
                return
            try:
                await self._consuming._handle(message)
            except BaseException as error:
                # Catch `SystemExit`, too, so that `stop`, `drain` or `wait` raises it. From now on
                # `_handle` returns the messages that are still in the queues to the server.
                self._consuming._fail(error)
                await self._consuming._end()
