"""The watchdog of a pull engine: it notices silence, and that only first responses arrive."""

from __future__ import annotations

from typing import Final

from twinstream.core.wire.single_answers import QUIET, LoneAnswer, Verdict
from twinstream.core.wire.status import Status

__all__ = ["Watchdog"]


class Watchdog:
    """The time of the last response, and the numbers of requests and responses."""

    def __init__(self, heartbeat: float, now: float) -> None:
        self.silence: Final = 2 * heartbeat
        """The seconds without a response after which the requests are void."""
        self.heard_at = now
        """The monotonic time at which the reader last received anything."""
        self.arrived = 0
        """The number of messages that have arrived."""
        self.pulls = 0
        """The number of requests that were sent, probes included."""
        self.lone: Final = LoneAnswer()
        """The probes that find out whether several responses to a request arrive."""
        if heartbeat == float("inf"):
            self.lone.give_up()
        self._statuses = 0
        # The number of statuses that did not end their request, and the number of such statuses and
        # of messages at the last pull.
        self._beats = 0
        self._before_pull = 0
        self._probe_token = b""

    def note_response(self, at: float) -> None:
        """Record the time at which the reader last received anything for the subscription."""
        if at > self.heard_at:
            self.heard_at = at

    def pulled(self) -> None:
        """Record that a pull request is sent."""
        self.pulls += 1
        self._before_pull = self.arrived + self._beats

    def status(self, status: Status, now: float) -> None:
        """Record a status."""
        self.note_response(now)
        self._statuses += 1
        self._beats += not status.ends
        if status.ends and status.token == self._probe_token:
            self.lone.refused(self._surplus)

    def is_silent(self, now: float) -> bool:
        """Return whether nothing was received for two heartbeats."""
        return now >= self.heard_at + self.silence

    def wake_at(self) -> float:
        """Return when to look at the silence or at the responses, if requests are open."""
        silent_at = self.heard_at + self.silence
        return silent_at if self.lone.is_over else min(silent_at, self.doubt_at())

    @property
    def is_lone(self) -> bool:
        """Whether responses arrived, but none of the requests got several for certain."""
        return self._surplus <= 0 and self.arrived + self._beats > self._before_pull

    @property
    def _surplus(self) -> int:
        return self.arrived + self._statuses - self.pulls

    def doubt_at(self) -> float:
        """Return when to send a probe or to judge its result; infinity if there is no reason."""
        if self.lone.is_probing:
            return self.lone.due_at(self._surplus, self.heard_at)
        return self.heard_at + QUIET if self.is_lone else float("inf")

    def judge(self, now: float) -> Verdict | None:
        """Return what to do about the probes: AGAIN to send one, None to wait, or their result."""
        if not self.lone.is_probing:
            return Verdict.AGAIN
        return self.lone.judge(self._surplus, self.heard_at, now)

    def probed(self, token: bytes, now: float) -> None:
        """Record that a probe is sent."""
        self.pulls += 1
        self.lone.sent(self._surplus, now)
        self._probe_token = token
