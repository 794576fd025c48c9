"""Detect that only the first response to each request arrives.

An account that imports the JetStream API of another account gets only the first response if the
export has the default `response_type`, Singleton. The server reports nothing: the other responses
are missing.

Theory of operation: if a request for several messages got one response and then none for a moment,
the client sends a probe. That is a request which the server answers at least twice within a moment,
whatever the stream contains. If only one response to each of two probes arrives, the error
`SingleAnswers` is raised. A connection remembers that several responses to a probe arrived.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Final

from twinstream.errors import InvalidResponse

__all__ = [
    "PROBE_EXPIRES",
    "PROBE_HEARTBEAT",
    "PROBE_MESSAGES",
    "QUIET",
    "LoneAnswer",
    "SingleAnswers",
    "Verdict",
]

QUIET: Final = 0.5
"""Seconds without another response after which the first probe is sent."""
PROBE_MESSAGES: Final = 2
"""The number of messages that a probing pull requests."""
PROBE_EXPIRES: Final = 0.4
"""The lifetime of a probing pull in seconds. At its end, or before, the second response is due."""
PROBE_HEARTBEAT: Final = 0.1
"""The heartbeat interval of a probing pull in seconds."""

# Seconds to wait for the second response to a probe, after the first one.
_SECOND: Final = 0.8
# Seconds to wait for the first response to a probe.
_FIRST: Final = 2.0
_PROBES: Final = 2


class SingleAnswers(InvalidResponse):
    """Only the first response to each request arrives, so the call cannot get all messages."""

    @classmethod
    def of(cls, subject: str, prefix: str) -> SingleAnswers:
        """Return the error for requests to `subject`, where `prefix` is that of the API."""
        return cls(
            f"{subject}: only the first of several responses arrives. The account that exports the"
            " JetStream API lets one response to each request through; its export needs"
            ' `response_type: stream`, as in {service: "$JS.API.>", response_type: stream}'
            f" (imported here as {prefix}.>). Until then, only calls that need one response work"
        )


class Verdict(Enum):
    """What the responses to the probes have shown."""

    SEVERAL = auto()
    """Several responses to a probe arrived."""
    SINGLE = auto()
    """Only the first response to each probe arrived."""
    AGAIN = auto()
    """Send another probe."""
    UNKNOWN = auto()
    """Nothing: no response arrived, it ended the probe, or others came. Send no more probes."""


class LoneAnswer:
    """The probes of one request, fetch or iterator.

    The owner passes its surplus: the number of responses that arrived, less the number of requests
    that it sent, including the probes. A surplus above 0 shows that several responses arrive,
    whichever request they answer.
    """

    __slots__ = ("_before", "_sent_at", "is_over", "probes")

    def __init__(self) -> None:
        self._before = 0
        self._sent_at = 0.0
        self.probes = 0
        """The number of probes that were sent."""
        self.is_over = False
        """Whether no more probes are needed."""

    @property
    def is_probing(self) -> bool:
        """Whether a probe was sent and its result is not known."""
        return self.probes > 0 and not self.is_over

    def sent(self, surplus: int, now: float) -> None:
        """Record that a probe is sent; `surplus` includes it."""
        self.probes += 1
        self._before, self._sent_at = surplus, now

    def give_up(self) -> None:
        """Send no more probes."""
        self.is_over = True

    def refused(self, surplus: int) -> None:
        """Record that a status ended the probe. It shows nothing if it is the only response."""
        if surplus <= 0 and surplus - self._before <= 1:
            self.is_over = True

    def due_at(self, surplus: int, heard_at: float) -> float:
        """Return when `judge` has a result; `heard_at` is the time of the last response."""
        if surplus > 0:
            return 0.0
        return heard_at + _SECOND if surplus > self._before else self._sent_at + _FIRST

    def judge(self, surplus: int, heard_at: float, now: float) -> Verdict | None:
        """Return what the responses to the last probe show, or None if that is not known yet."""
        if now < self.due_at(surplus, heard_at):
            return None
        is_one = surplus == self._before + 1 and surplus <= 0
        if is_one and self.probes < _PROBES:
            return Verdict.AGAIN
        self.is_over = True
        if surplus > 0:
            return Verdict.SEVERAL
        return Verdict.SINGLE if is_one else Verdict.UNKNOWN
