"""The report that an application gets about each JetStream call."""

from __future__ import annotations

from twinstream.errors import TwinstreamError
from twinstream.models.records import frozen

__all__ = ["Call"]


@frozen(kw_only=True)
class Call:
    """A completed call, as passed to the `on_call` of a connection."""

    kind: str
    """The kind of call: `"api"`, a request to JetStream's API; `"direct_get"`, a read of one
    message from any replica; `"publish"`, a message that a stream acknowledges; `"atomic_batch"`,
    the first message of such a batch, or its commit. Later versions may have further kinds."""
    subject: str
    """The subject of the request or message."""
    size: int
    """Bytes of the request or message, headers included."""
    seconds: float
    """Duration in seconds, including pauses and retries."""
    attempts: int = 1
    """Number of attempts: more than one if the call was retried."""
    stream: str | None = None
    """The target stream, or the stream that stored the message; None if unknown."""
    error: TwinstreamError | None = None
    """Why the call failed, or None if it succeeded. If it was interrupted, for example by a
    cancellation, that exception is the cause of an `OutcomeUnknown`."""
