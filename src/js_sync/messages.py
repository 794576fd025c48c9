# Generated from src/js_async/messages.py by codegen/twin.py. Edit that file instead.
"""An endless iteration over a consumer's messages, with a buffer that refills itself (ADR-37)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final, Self

from js_core.deadline import NEVER, Deadline, Seconds, monotonic
from js_core.errors import BadArgument, RequestTimeout, TwinstreamError
from js_core.fetch import frame_size
from js_core.protocol import Frame
from js_core.pull import Action, Finish, PullEngine, Report, SendPull
from js_core.pull_request import PullLimits
from js_core.status import is_status, read_status

from js_sync._api import Api
from js_sync._pulls import PullChannel, PullChannels
from js_sync.message import Message

__all__ = ["Messages"]


class Messages:
    """Iterates over messages until it is closed; made by `Consumer.messages`.

    It never ends by itself: what cannot be mended raises (`ConsumerDeleted`, `ConsumerIsPush`,
    `BadPull`, `ConnectionClosed`), everything else is mended and told to `on_report`.
    """

    def __init__(
        self,
        api: Api,
        channels: PullChannels,
        limits: PullLimits,
        on_report: Callable[[Report], None] | None,
        give_back: bool,
    ) -> None:
        self._api: Final = api
        self._channels: Final = channels
        self._limits: Final = limits
        self._on_report: Final = on_report
        self._give_back: Final = give_back
        self._ready: deque[Frame] = deque()
        self._channel: PullChannel | None = None
        self._engine: PullEngine | None = None
        self._epoch = 0
        self._error: TwinstreamError | None = None
        self._draining = False
        self._closed = False

    @property
    def buffered(self) -> int:
        """How many messages are here and not handed over."""
        return len(self._ready) + (len(self._channel.box.frames) if self._channel else 0)

    @property
    def outstanding(self) -> int:
        """How many messages are asked for and not here."""
        return self._engine.outstanding if self._engine else 0

    def drain(self) -> None:
        """Ask for no more; the iteration ends after what is here (with `close` at once)."""
        self._draining = True
        if self._engine is not None:
            self._engine.stop()
        if self._channel is not None:
            self._api.transport.close_mailbox(self._channel.box, settle=True)

    def close(self) -> None:
        """End the iteration. What was buffered and not handed over is given back with a NAK."""
        if self._closed:
            return
        self._closed = True
        channel = self._channel
        if channel is None:
            return
        channel.box.signal.set()
        frames = list(self._ready)
        self._ready.clear()
        if not self._give_back:
            channel.box.take_all()
        elif self._api.transport.is_connected:
            channel.give_back(frames)
        self._channels.put(channel, clean=False)

    def __enter__(self) -> Self:
        self._open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open(self) -> tuple[PullChannel, PullEngine]:
        if self._channel is None or self._engine is None:
            self._channel = self._channels.take()
            self._channel.box.take_all()
            self._engine = PullEngine(self._limits, self._channel.token, monotonic())
            self._epoch = self._api.transport.epoch
        return self._channel, self._engine

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Message:
        """Return the next message; the iteration ends after `drain` or `close`."""
        message = self._next(NEVER)
        if message is None:
            raise StopIteration
        return message

    def next(self, timeout: Seconds) -> Message:
        """Return the next message within `timeout` seconds; raises `RequestTimeout`.

        Raises `BadArgument` when the iteration has ended.
        """
        message = self._next(Deadline.after(timeout))
        if message is None:
            raise BadArgument("the iteration has ended: it was drained or closed")
        return message

    def _next(self, deadline: Deadline) -> Message | None:
        channel, engine = self._channel, self._engine
        if channel is None or engine is None:
            channel, engine = self._open()
        while not self._closed:
            if engine.due(monotonic()):
                self._decide(channel, engine)
            if self._ready:
                return self._hand_over(engine)
            # The flag goes down before the mailbox is looked into: nothing is missed.
            channel.box.signal.clear()
            self._sort(channel, engine)
            if self._ready:
                continue
            self._decide(channel, engine)
            if self._ends():
                break
            wake_at = deadline.earlier(engine.wake_at())
            came = self._api.transport.wait(channel.box.signal, wake_at)
            if not came and deadline.expired():
                raise RequestTimeout("no message in time")
        return None

    def _ends(self) -> bool:
        if self._error is not None:
            raise self._error
        if self._draining:
            return True
        if self._api.transport.is_closed:
            raise self._api.transport.closed_error()
        return False

    def _hand_over(self, engine: PullEngine) -> Message:
        """Give one message away: it leaves the buffer in the step that returns it."""
        frame = self._ready.popleft()
        engine.handed_over(frame_size(frame))
        return Message(frame, self._api.transport)

    def _sort(self, channel: PullChannel, engine: PullEngine) -> None:
        """Move what arrived into the buffer, and tell the engine."""
        transport = self._api.transport
        if transport.epoch != self._epoch:
            self._epoch = transport.epoch
            engine.restored(monotonic())
        elif not transport.is_connected:
            engine.lost()
        engine.heard(channel.box.heard_at)
        frames = channel.box.frames
        count = size = 0
        for _ in range(len(frames)):
            frame = frames.popleft()
            if frame[2] and is_status(frame):
                engine.arrived(count, size)
                count = size = 0
                engine.status(read_status(frame), monotonic())
            else:
                self._ready.append(frame)
                count += 1
                size += frame_size(frame)
        if count:
            engine.arrived(count, size)

    def _decide(self, channel: PullChannel, engine: PullEngine) -> None:
        """Do what the engine says."""
        for action in engine.poll(monotonic()):
            self._do(channel, action)

    def _do(self, channel: PullChannel, action: Action) -> None:
        match action:
            case SendPull(token, batch, max_bytes):
                channel.pull(token, batch, max_bytes, self._limits)
            case Report():
                if self._on_report is not None:
                    self._on_report(action)
            case Finish(error):
                self._error = error
