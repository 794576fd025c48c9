"""Consuming messages with a handler, which workers in the background call for each message."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, Final, Self
from zlib import crc32

from js_async.background.work import BackgroundWork
from js_async.client.closing import failure_of
from js_async.consume.message import Message, delivery_of
from js_async.consume.messages import Messages, buffer_of
from js_async.runtime.concurrency import Handler, Lock, Signal, Task, call, check_handler
from twinstream.core.arguments.check_arguments import check_whole
from twinstream.core.arguments.nats_py_names import hint_attributes
from twinstream.core.consume.order import Order
from twinstream.core.deadline import NEVER, Seconds
from twinstream.core.hooks import HOOKS, reached
from twinstream.errors import BadArgument

__all__ = ["Consuming"]


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
        """Wait for a message and return it, or return None when the lane has ended and is empty."""
        while True:
            self.filled.clear()
            # Read this before the queue: `end` sets it after the last message was put there.
            is_last = self.ended
            try:
                message = self.messages.popleft()
            except IndexError:
                if HOOKS:
                    reached("lane: found empty", self)
                if is_last:
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


@hint_attributes
class Consuming(BackgroundWork):
    """A consumption that runs in the background. `Consumer.consume` creates it.

    Use it in a `with` block, or call `run`, or call `start`, and finally `stop` or `drain`. `stop`
    returns the buffered messages to the server, `drain` handles them.
    """

    # The call that works, for observers.
    _call = "consume"

    def __init__(
        self,
        label: str,
        messages: Messages[Any],
        handler: Handler[Message[Any]],
        concurrency: int,
        order: Order,
        progress: bool,
        on_end: Callable[[Any], object] | None = None,
    ) -> None:
        super().__init__(on_end)
        check_handler(handler)
        check_whole(concurrency, "concurrency")
        if order not in ("none", "subject", "total"):
            raise BadArgument(f"order must be 'none', 'subject' or 'total', got {order!r}")
        if order == "total" and concurrency > 1:
            raise BadArgument("order='total' works on one message at a time: concurrency=1")
        self._consumer: Final = label
        self._messages: Final = messages
        self._buffer: Final = buffer_of(messages)
        # Draining the connection drains the buffer, whose messages are still handled.
        self._buffer.ends_by(self._buffer.drain, self._ended_by)
        self._handler: Final = handler
        self._progress: Final = progress
        # With `progress`, handlers may run for a long time, during which no message is taken.
        # Report the progress of buffered messages meanwhile: otherwise the server redelivers them.
        self._buffer.progress.keep_all |= progress
        self._workers: Final = concurrency
        lanes = concurrency if order == "subject" else 1
        self._lanes: Final = [_Lane() for _ in range(lanes)]
        self._counting: Final = Lock()
        self.handled = 0
        """The number of messages whose handler has returned."""
        # A subclass is a part of other work, which starts it.
        self._is_unstarted = type(self) is Consuming

    @property
    def _label(self) -> str:
        return self._consumer

    @property
    def messages(self) -> Messages[Any]:
        """The underlying iterator, with the number of `buffered` messages."""
        return self._messages

    async def drain(self, *, timeout: Seconds = 30.0) -> None:
        """Stop pulling, and wait until the buffered messages are handled.

        Messages that the server is about to send at this moment may be redelivered after the
        consumer's `ack_wait`.

        Does nothing if the consumption has ended, or was never started, which causes a
        `RuntimeWarning`. If a handler calls `drain`, the call does not wait.

        Args:
            timeout: The longest wait in seconds.

        Raises:
            RequestTimeout: A handler is still running after `timeout` seconds.
            Exception: The error that ended the consumption, if no call has raised it before.
        """
        if self._is_parents:
            return
        if not self._is_started:
            self._warn_if_unstarted()
            return
        await self._buffer.drain()
        await self._await_end(timeout)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    # ---- the work

    async def _begin(self) -> None:
        pass

    async def _work(self) -> None:
        """Run the workers and distribute messages to them until the consumption ends.

        Waits for the running handlers before it closes the buffer.
        """
        workers: list[Task] = []
        try:
            for number in range(self._workers):
                worker = _Worker(self, self._lanes[number % len(self._lanes)])
                workers.append(self._spawn(worker.run, f"twinstream-worker-{number}"))
            await self._dispatch()
        except Exception as error:
            # Report it before the handlers have ended.
            self._keep_error(error)
            self._stopping.set()
        finally:
            for lane in self._lanes:
                lane.end()
            for task in workers:
                await task.join(NEVER)
            await self._buffer.close()

    async def _request_stop(self) -> None:
        await self._buffer.close()

    async def _dispatch(self) -> None:
        while True:
            message = await self._buffer.take(NEVER)
            if message is None:
                return
            self._buffer.progress.queue(message)
            await self._lane(message).put(message)

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
        if self._stopping.is_set():
            await message.nak()
            return
        if self._progress:
            self._buffer.progress.hold(message)
        observers = delivery_of(message).transport.observers
        try:
            if observers is None:
                await call(self._handler, message)
            else:
                with observers.begin_of("handle", self._call, message):
                    await call(self._handler, message)
            async with self._counting:
                self.handled += 1
        finally:
            self._buffer.progress.release(message)

    async def _fail(self, error: BaseException) -> None:
        """Keep the error of a handler unless an earlier one is kept, and let the workers stop."""
        self._keep_error(error)
        self._stopping.set()
        await self._buffer.close()


class _Worker:
    """A worker. It handles the messages of one `_Lane` until that queue has ended."""

    def __init__(self, consuming: Consuming, lane: _Lane) -> None:
        self._consuming = consuming
        self._lane = lane

    async def run(self) -> None:
        while True:
            message = await self._lane.take()
            if message is None:
                return
            error = await failure_of(partial(self._consuming._handle, message))
            if error is not None:
                # From now on `_handle` returns the messages that are still in the queues to the
                # server.
                await self._consuming._fail(error)
