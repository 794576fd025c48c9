"""A message read from a stream without a consumer."""

from __future__ import annotations

from typing import Any

from attrs import frozen

from twinstream.core.wire.headers import Headers
from twinstream.core.wire.payload import as_json, as_text
from twinstream.models import Timestamp

__all__ = ["StreamMessage"]


@frozen(kw_only=True)
class StreamMessage:
    """A message as the stream holds it; there is nothing to acknowledge."""

    stream: str
    """Which stream holds it: with a direct get, perhaps a mirror of the one that was asked."""
    subject: str
    seq: int
    time: Timestamp
    """When it was stored, exact in nanoseconds."""
    data: bytes
    headers: Headers

    @property
    def text(self) -> str:
        """The payload as text; raises `BadPayload` unless it is UTF-8."""
        return as_text(self.data, self.subject)

    def json(self) -> Any:
        """Return the value that the payload is in JSON; raises `BadPayload`."""
        return as_json(self.data, self.subject)
