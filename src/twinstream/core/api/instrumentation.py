"""The report that an application gets about each JetStream call."""

from __future__ import annotations

from attrs import frozen

from twinstream.core.log.report import DEBUG, Report
from twinstream.errors import TwinstreamError

__all__ = ["Call"]


@frozen(kw_only=True)
class Call(Report):
    """A completed call, as passed to the `on_call` of a connection."""

    kind: str
    """The kind of call: `"api"`, a request to JetStream's API; `"direct_get"`, a read of one
    message from any replica; `"publish"`, a message that a stream acknowledges; `"atomic_batch"`,
    the first message of such a batch, or its commit. Later versions may have further kinds."""
    subject: str
    """The subject of the request or message."""
    size: int
    """The size of the request or message in bytes, including headers."""
    seconds: float
    """Duration in seconds, including pauses and retries."""
    attempts: int = 1
    """The number of attempts, which is above 1 if the call was retried."""
    stream_name: str | None = None
    """The target stream, or the stream that stored the message; None if unknown."""
    error: TwinstreamError | None = None
    """The error of a failed call, or None. If an exception interrupted the call, for example a
    cancellation, this is an `OutcomeUnknown` whose cause is that exception."""

    log_area = "api"
    log_level = DEBUG

    def __str__(self) -> str:
        how = "done" if self.error is None else "failed"
        took = f"{how} in {self.seconds:.4f} s, attempts: {self.attempts}"
        text = f"{self.kind} {self.subject}: {took}"
        return text if self.error is None else f"{text}: {self.error!r}"
