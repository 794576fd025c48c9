# Generated from src/js_async/core_message.py by codegen/twin.py. Edit that file instead.
"""Messages and subscriptions of core NATS: what is sent to whoever listens, stored nowhere."""

from __future__ import annotations

from typing import Final, Self

from js_core.deadline import NEVER, Deadline, Seconds
from js_core.errors import ConnectionClosed, RequestTimeout
from js_core.headers import Headers
from js_core.protocol import Frame

from js_sync._transport import Box, Transport

__all__ = ["CoreMessage", "Subscription"]


class CoreMessage:
    """A message as it came; its parts are read when they are asked for."""

    __slots__ = ("_frame", "_headers")

    def __init__(self, frame: Frame) -> None:
        self._frame: Final = frame
        self._headers: Headers | None = None

    @property
    def subject(self) -> str:
        """The subject it was sent to."""
        return self._frame[0].decode("utf-8", "surrogateescape")

    @property
    def reply(self) -> str:
        """Where an answer goes; empty when none is wanted."""
        return self._frame[1].decode("utf-8", "surrogateescape")

    @property
    def data(self) -> bytes:
        """The payload."""
        return self._frame[3][self._frame[2] : -2]

    @property
    def headers(self) -> Headers:
        """The headers, empty when there are none."""
        if self._headers is None:
            header_size = self._frame[2]
            block = self._frame[3][:header_size]
            self._headers = Headers.parse(block) if header_size else Headers()
        return self._headers

    def __repr__(self) -> str:
        size = len(self._frame[3]) - self._frame[2] - 2
        return f"<{type(self).__name__} {self.subject}: {size} bytes>"


class Subscription:
    """Messages of one subject; iterate it, or take one with `next`. Close it when done."""

    def __init__(self, transport: Transport, box: Box) -> None:
        self._transport: Final = transport
        self._box: Final = box
        self._closed = False

    @property
    def subject(self) -> str:
        """What it listens to."""
        return self._box.subject.decode()

    def next(self, timeout: Seconds | None = None) -> CoreMessage:
        """Return the next message, within `timeout` seconds (None waits for ever).

        Raises `RequestTimeout`, or `ConnectionClosed` when none can come any more.
        """
        deadline = Deadline.after(timeout)
        while True:
            message = self._take()
            if message is not None:
                return message
            if self._closed:
                raise ConnectionClosed(f"the subscription to {self.subject} is closed")
            if self._transport.is_closed:
                raise self._transport.closed_error()
            if not self._transport.wait(self._box.signal, deadline):
                raise RequestTimeout(f"{self.subject}: no message in time")

    def _take(self) -> CoreMessage | None:
        # The flag goes down first: a frame that arrives meanwhile raises it again.
        self._box.signal.clear()
        try:
            frame = self._box.frames.popleft()
        except IndexError:
            return None
        if self._box.frames:
            self._box.signal.set()
        return CoreMessage(frame)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> CoreMessage:
        """Return the next message; the iteration ends when the subscription is closed."""
        while True:
            message = self._take()
            if message is not None:
                return message
            if self._closed:
                raise StopIteration
            if self._transport.is_closed:
                raise self._transport.closed_error()
            self._transport.wait(self._box.signal, NEVER)

    def close(self) -> None:
        """Stop listening; an iteration ends after what has arrived."""
        self._closed = True
        self._transport.close_mailbox(self._box)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
