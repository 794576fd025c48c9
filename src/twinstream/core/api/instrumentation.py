"""What a program is told of each call that the SDK makes of JetStream."""

from __future__ import annotations

from attrs import frozen

from twinstream.errors import TwinstreamError

__all__ = ["Call"]


@frozen(kw_only=True)
class Call:
    """One call that is over, as the `on_call` of a connection is told of it."""

    kind: str
    """What it was: `"api"`, a request to JetStream's API; `"direct_get"`, the reading of one
    message from any replica; `"publish"`, a message that a stream acknowledges; `"atomic_batch"`,
    the first message of such a batch, or its commit. Later versions may have further kinds."""
    subject: str
    """Where it went."""
    size: int
    """Bytes of the request or message, headers included."""
    seconds: float
    """How long it took, all pauses and repeats included."""
    attempts: int = 1
    """How often it was tried: more than once where the SDK repeated it."""
    stream: str | None = None
    """The stream that it was meant for, or that took the message; None where it is not known."""
    error: TwinstreamError | None = None
    """Why it failed, None where it did not. What cut it short, a cancellation perhaps, is the
    cause of an `OutcomeUnknown`."""
