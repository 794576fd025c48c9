"""A message read from a stream without a consumer."""

from __future__ import annotations

from attrs import frozen

from js_core.headers import Headers
from js_models import Timestamp

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
