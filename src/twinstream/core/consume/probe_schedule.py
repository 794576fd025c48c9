"""The schedule of probes. A probe is an additional pull request with frequent idle heartbeats.

If a stream keeps more than one message per subject, a consumer that delivers the last message of
each subject iterates over a list of sequences, which the server makes when it creates the consumer.
If a listed message is removed before its delivery, the delivery stalls until something wakes the
consumer: a new message, a new pull request, or an idle heartbeat of a request. Each heartbeat of a
probe wakes the consumer once, so one probe moves it past many removed messages. The heartbeats also
report how far the consumer has scanned the stream. So an ordered read knows when no listed message
remains.
"""

from __future__ import annotations

from typing import Final

from twinstream.core.deadline import Backoff

__all__ = ["LIFE", "ProbeSchedule"]

LIFE: Final = 20
"""Number of heartbeats within the lifetime of a probe."""

# Seconds without a message before the first probe.
_QUIET: Final = 0.01
# Seconds between the heartbeats of a probe; the interval grows while probes have no effect.
_HEARTBEATS: Final = Backoff(0.001, 0.25)


class ProbeSchedule:
    """The schedule of the probes of one consumer.

    With `pause` (seconds), probes are infrequent and have no heartbeats. They only repeat the pull
    request, in case the server lost the earlier ones. This is for consumers that replay messages at
    their original speed. Their missing heartbeats do not show a loss, because a server sends none
    while it waits for the time of the next message.
    """

    def __init__(self, pause: float | None = None) -> None:
        self._pause: Final = pause
        self._due: float | None = None
        self._futile = 1
        self._seen: object = None

    def moved(self) -> None:
        """Record that a message arrived, so that no probe is needed now."""
        self._due = None

    def make_due(self, now: float) -> None:
        """Make the next probe due immediately."""
        self._due = now

    def due_at(self, now: float) -> float:
        """Return when the next probe is due if no message arrives."""
        if self._due is None:
            self._due = now + (self._pause or _QUIET)
        return self._due

    def rare(self, now: float) -> bool:
        """Return whether the probe to send now has no heartbeats; if so, schedule the next one."""
        if self._pause is None:
            return False
        self._due = now + self._pause
        return True

    def heartbeat(self, now: float, progress: object) -> float:
        """Return the heartbeat interval, in seconds, of the probe to send now; schedule the next.

        `progress` is any value that changes when the consumer makes progress. While it does not
        change, the interval grows. The reason may be that the consumer is paused, or that its
        replica lags behind the leader of the stream.
        """
        stuck = progress == self._seen
        self._seen = progress
        self._futile = self._futile + 1 if stuck else 1
        heartbeat = _HEARTBEATS.pause(self._futile)
        self._due = now + heartbeat * LIFE
        return heartbeat
