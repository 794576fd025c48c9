"""A message read from a stream without a consumer."""

from __future__ import annotations

from typing import Any, Generic, cast

from attrs import frozen

from twinstream.core.arguments.nats_py_names import hint_attributes
from twinstream.core.wire.payload import P, as_json, as_text
from twinstream.models import Timestamp
from twinstream.records.headers import Headers

__all__ = ["StreamMessage"]


@hint_attributes
@frozen(kw_only=True)
class StreamMessage(Generic[P]):
    """A message as stored in a stream; it cannot be acknowledged."""

    stream_name: str
    """The stream that returned the message: the requested one or, for a direct get, its mirror."""
    subject: str
    """Subject of the message."""
    seq: int
    """Sequence of the message in its stream."""
    time: Timestamp
    """When the message was stored, with nanosecond precision."""
    data: bytes
    """Payload of the message."""
    headers: Headers
    """Headers of the message."""

    @property
    def payload(self) -> P:
        """The value that a typed stream decodes from `data`; otherwise `data` itself.

        Raises `PayloadError` if the payload does not fit the type.
        """
        return cast("P", self.data)

    @property
    def text(self) -> str:
        """The payload as text; raises `BadPayload` unless it is UTF-8."""
        return as_text(self.data, self.subject)

    def json(self) -> Any:
        """Return the payload decoded as JSON; raises `BadPayload` if it is not JSON."""
        return as_json(self.data, self.subject)
