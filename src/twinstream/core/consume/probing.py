"""When an ordered read sends a probe: one more pull request, with fast idle heartbeats.

A consumer that delivers the last message of each subject of a stream that keeps more than one of
each walks through a list of sequences, which the server makes with the consumer. A message of the
list that was removed before its delivery stops the delivery until something wakes the consumer: a
new message, a new pull request, or an idle heartbeat of a request (servers 2.11 to 2.15). The
heartbeats of a probe wake it once each, so one probe brings it past many removed messages. They
also say up to where the consumer has looked, which proves that nothing is left.
"""

from __future__ import annotations

from typing import Final

__all__ = ["LIFE", "Probing"]

LIFE: Final = 20
"""How many heartbeats fit into the life of a probe."""

# Seconds without a message before the first probe.
_QUIET: Final = 0.01
# Seconds between the heartbeats of a probe; more where probes change nothing.
_FASTEST: Final = 0.001
_SLOWEST: Final = 0.25


class Probing:
    """The schedule of the probes of one consumer.

    With `pause` (seconds) probes are rare and without heartbeats. They only ask anew, in case the
    server forgot the requests before: it sends no heartbeats while it waits for a message's time.
    """

    def __init__(self, pause: float | None = None) -> None:
        self._pause: Final = pause
        self._due: float | None = None
        self._heartbeat = _FASTEST
        self._seen: object = None

    def moved(self) -> None:
        """Note that a message came: no probe is needed now."""
        self._due = None

    def hurry(self, now: float) -> None:
        """Have the next probe sent at once."""
        self._due = now

    def due_at(self, now: float) -> float:
        """Return when the next probe is due if no message comes."""
        if self._due is None:
            self._due = now + (self._pause or _QUIET)
        return self._due

    def rare(self, now: float) -> bool:
        """Tell whether the probe that is sent now is one without heartbeats."""
        if self._pause is None:
            return False
        self._due = now + self._pause
        return True

    def heartbeat(self, now: float, progress: object) -> float:
        """Return the seconds between the heartbeats of the probe that is sent now.

        `progress` is how far the consumer is. Probes that change nothing become slower and rarer:
        the consumer may be paused, or behind the leader of its stream.
        """
        stuck = progress == self._seen
        self._seen = progress
        self._heartbeat = min(self._heartbeat * 2, _SLOWEST) if stuck else _FASTEST
        self._due = now + self._heartbeat * LIFE
        return self._heartbeat
