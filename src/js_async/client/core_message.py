"""A message of core NATS: the server sends it to the current subscribers and does not store it."""

from __future__ import annotations

from typing import Any

from twinstream.core.arguments.nats_py_names import hint_attributes
from twinstream.core.wire.payload import as_json, as_text
from twinstream.core.wire.protocol import Frame
from twinstream.core.wire.status import is_unserved
from twinstream.records.headers import Headers

__all__ = ["CoreMessage", "is_unserved_reply"]


@hint_attributes
class CoreMessage:
    """A received core NATS message. Its parts are parsed on access."""

    __slots__ = ("_frame", "_headers")

    def __init__(self, frame: Frame) -> None:
        self._frame = frame

    @property
    def subject(self) -> str:
        """The subject to which the message was published."""
        return self._frame[0].decode("utf-8", "surrogateescape")

    @property
    def reply(self) -> str:
        """The subject for a response, or an empty string if the sender expects none."""
        return self._frame[1].decode("utf-8", "surrogateescape")

    @property
    def data(self) -> bytes:
        """The payload."""
        return self._frame[3][self._frame[2] : -2]

    @property
    def text(self) -> str:
        """The payload as text; raises `BadPayload` unless it is valid UTF-8."""
        return as_text(self.data, self.subject)

    def json(self) -> Any:
        """Return the payload parsed as JSON; raises `BadPayload` if it is invalid."""
        return as_json(self.data, self.subject)

    @property
    def headers(self) -> Headers:
        """The headers; empty if the message has none."""
        try:
            return self._headers
        except AttributeError:
            header_size = self._frame[2]
            block = self._frame[3][:header_size]
        self._headers: Headers = Headers.parse(block) if header_size else Headers()
        return self._headers

    def __repr__(self) -> str:
        size = len(self._frame[3]) - self._frame[2] - 2
        return f"<{type(self).__name__} {self.subject}: {size} bytes>"


def is_unserved_reply(message: CoreMessage) -> bool:
    """Return whether the server sent a reply, because nothing listens to a request's subject."""
    return is_unserved(message._frame)
