"""The sans-I/O state of one fetch: a single pull request and the events that end it.

Theory of operation: the fetch ends when it is complete, when a status ends its request, when the
connection is lost, or when the server is silent for too long. The server should end the request
before the client's timeout, so that the request does not stay open. If the request may still be
open when the fetch ends, `is_clean` is false. If only one response arrives, probes may show that
further responses do not arrive (`twinstream.core.wire.single_answers`).
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from twinstream.core.consume.batch import BatchEnd
from twinstream.core.consume.metadata import Positions
from twinstream.core.consume.pin import pin_size
from twinstream.core.consume.pull_error import pull_error
from twinstream.core.consume.pull_request import PullLimits
from twinstream.core.wire.protocol import Frame
from twinstream.core.wire.status import Kind, Status, is_status, read_status
from twinstream.errors import PullError, TwinstreamError

if TYPE_CHECKING:
    from twinstream.core.wire.single_answers import LoneAnswer, Verdict

__all__ = ["GRACE", "Fetch", "frame_size"]

GRACE: Final = 1.0
"""Seconds that a client waits for the server's status, after the time at which it is expected."""
# The same for a server that sends other frames after that time: it is not slow.
_SHORT_GRACE: Final = 0.1

_ENDS: Final = {
    Kind.NO_MESSAGES: BatchEnd.NO_MESSAGES,
    Kind.EXPIRED: BatchEnd.EXPIRED,
    Kind.COMPLETED: BatchEnd.FILLED,
    Kind.TOO_BIG: BatchEnd.BYTES_FILLED,
    Kind.INTERRUPTED: BatchEnd.INTERRUPTED,
    Kind.UNPINNED: BatchEnd.UNPINNED,
    Kind.UNKNOWN: BatchEnd.INTERRUPTED,
}


def frame_size(frame: Frame, *, pinned: bool = False) -> int:
    """Return the size of a message as the server counts it against max_bytes (ADR-37).

    `pinned` is true for a client that may be pinned. In this case the size excludes the pin header,
    which the server does not count.
    """
    subject, reply, _, body = frame
    size = len(subject) + len(reply) + len(body) - 2
    return size - pin_size(frame) if pinned else size


class Fetch:
    """The state of one fetch."""

    __slots__ = (
        "_expires_at",
        "_heard_at",
        "_lone",
        "_others",
        "_probe_token",
        "_size",
        "_token",
        "arrivals",
        "detail",
        "end",
        "error",
        "frames",
        "is_clean",
        "is_over",
        "limits",
    )

    def __init__(self, limits: PullLimits, token: bytes, now: float, patience: float) -> None:
        self.limits: Final = limits
        self._lone: LoneAnswer | None = None
        # The number of statuses that arrived, of whatever request.
        self._others = 0
        self._probe_token = b""
        self._token: Final = token
        self._heard_at = now
        self._expires_at: Final = now + patience
        self._size = 0
        self.frames: Final[list[Frame]] = []
        # For each `take_all` that added messages: the length of `frames` afterwards, and `at`.
        self.arrivals: Final[list[tuple[int, float]]] = []
        # Whether the fetch has ended, with `end` or `error`. This is an attribute and not a
        # property, because it is read very often.
        self.is_over = False
        self.end: BatchEnd | None = None
        self.detail = ""
        self.error: TwinstreamError | None = None
        # False if the server may still send messages for the request.
        self.is_clean = True

    def take_all(self, frames: deque[Frame], at: float) -> bool:
        """Process frames that arrived at the time `at`; return whether the fetch has ended.

        Frames that the fetch does not need stay in `frames`. If the fetch has no byte limit,
        messages without headers are moved in a quarter of the time that `take` needs.
        """
        most, before = self.limits.max_messages, len(self.frames)
        if self.limits.max_bytes is None and not self.is_over:
            if most == 1 and frames and not frames[0][2]:
                # Fast path for a fetch of one message, with a third of the steps.
                self.frames.append(frames.popleft())
                self.arrivals.append((1, at))
                self.is_over, self.end = True, BatchEnd.FILLED
                return True
            put, pop = self.frames.append, frames.popleft
            for _ in range(min(len(frames), most - len(self.frames))):
                # A frame with headers may be a status.
                if frames[0][2]:
                    break
                put(pop())
            if len(self.frames) >= most:
                self._finish(BatchEnd.FILLED)
        while frames and not self.is_over:
            self.take(frames.popleft())
        if len(self.frames) > before:
            self.arrivals.append((len(self.frames), at))
        return self.is_over

    def take(self, frame: Frame) -> bool:
        """Process one frame; return whether it is a message of this fetch."""
        if is_status(frame):
            status = read_status(frame)
            self._others += 1
            if status.ends and status.token == self._probe_token:
                self.lone.refused(self._surplus)
            if status.token == self._token:
                self._process_status(status)
            return False
        if self.is_over:
            return False
        self.frames.append(frame)
        limits = self.limits
        if limits.max_bytes is not None:
            self._size += frame_size(frame, pinned=limits.may_pin)
            if self._size >= limits.max_bytes:
                # The server may count fewer bytes than the client, for example for messages that
                # are imported from another account. Then its request is still open.
                self.is_clean = self._size == limits.max_bytes and not self._is_probed
                self._finish(BatchEnd.BYTES_FILLED)
        if len(self.frames) >= limits.max_messages:
            self._finish(BatchEnd.FILLED)
        return True

    def _finish(self, end: BatchEnd, detail: str | None = None) -> None:
        self.is_over = True
        self.end = end
        if detail is not None:
            self.detail = detail

    def _fail(self, error: TwinstreamError) -> None:
        self.is_over = True
        self.error = error

    def _process_status(self, status: Status) -> None:
        """End the fetch if `status` ends its request; `end` or `error` is the result.

        Messages that arrived before the status are a shorter batch. A failure without messages is
        an error.
        """
        if not status.ends or self.is_over:
            return
        self.detail = str(status)
        # A status that this release does not know may or may not end the request.
        self.is_clean = status.kind is not Kind.UNKNOWN and not self._is_probed
        if status.kind is Kind.DELETED and self.frames:
            self._finish(BatchEnd.DELETED)
        elif status.kind is Kind.TOO_BIG and not self.frames:
            self._fail(
                PullError(
                    f"the next message does not fit into {self.limits.max_bytes} bytes: raise"
                    " max_bytes"
                )
            )
        elif status.kind in _ENDS:
            self._finish(_ENDS[status.kind])
        elif self.frames:
            # Raising an error now would lose the messages of this batch. The next fetch gets the
            # same status and raises the error.
            self._finish(BatchEnd.INTERRUPTED)
        else:
            self._fail(pull_error(status, self.limits))

    def lost(self) -> None:
        """Record that the connection was lost, which ends the fetch."""
        if not self.is_over:
            self._finish(BatchEnd.INTERRUPTED, "the connection was lost")
            # If the server has not noticed the loss, it may still send messages for the request
            # after a reconnect.
            self.is_clean = False

    def check(self, now: float, heard_at: float) -> None:
        """End the fetch if the server was silent for two heartbeats or the fetch timed out."""
        self._heard_at = max(self._heard_at, heard_at)
        if self.is_over or now < self._end_at():
            return
        self.is_clean = False
        if now >= self._give_up_at():
            self._finish(BatchEnd.EXPIRED, "the server did not end the request in time")
        else:
            silence = f"nothing received for {2 * self.limits.heartbeat:g} s, two heartbeats"
            self._finish(BatchEnd.INTERRUPTED, silence)

    def wake_at(self) -> float:
        """Return the time at which `check` may end the fetch, or a probe may be due."""
        return min(self._end_at(), self.doubt_at())

    def _end_at(self) -> float:
        """Return when the fetch ends if the server sends nothing more."""
        if self._lone is not None and self._lone.is_probing:
            # The result of the probe is due soon.
            return float("inf")
        return min(self._give_up_at(), self._heard_at + 2 * self.limits.heartbeat)

    # ---- probes

    @property
    def lone(self) -> LoneAnswer:
        """The probes of this fetch."""
        if self._lone is None:
            # Most programs never need it.
            from twinstream.core.wire.single_answers import LoneAnswer

            self._lone = LoneAnswer()
        return self._lone

    @property
    def _is_probed(self) -> bool:
        return self._lone is not None and self._lone.probes > 0

    @property
    def _surplus(self) -> int:
        probes = 0 if self._lone is None else self._lone.probes
        return len(self.frames) + self._others - 1 - probes

    def doubt_at(self) -> float:
        """Return when to send a probe or to judge its result; infinity if there is no reason.

        A probe is due if the only response is a message and the server has more of them, or if the
        heartbeat after the only response is late.
        """
        lone = self._lone
        if lone is not None:
            if lone.is_over:
                return float("inf")
            if lone.is_probing:
                return lone.due_at(self._surplus, self._heard_at)
        if self._surplus != 0:
            return float("inf")
        if self.frames and self.limits.max_messages > 1:
            position = Positions().read(self.frames[0][1])
            if position is not None and position[3]:
                from twinstream.core.wire.single_answers import QUIET

                return self._heard_at + QUIET
        return self._heard_at + 1.5 * self.limits.heartbeat

    def probed(self, token: bytes, now: float) -> None:
        """Record that a probe is sent. Messages that answer it are those of the fetch, too."""
        self.lone.sent(self._surplus - 1, now)
        self._probe_token, self.is_clean = token, False

    def judge(self, now: float) -> Verdict | None:
        """Return what the responses to the last probe show; AGAIN before the first probe."""
        from twinstream.core.wire.single_answers import Verdict

        if not self.lone.is_probing:
            return Verdict.AGAIN
        return self.lone.judge(self._surplus, self._heard_at, now)

    def _give_up_at(self) -> float:
        is_slow = self._heard_at < self._expires_at + _SHORT_GRACE
        return self._expires_at + (GRACE if is_slow else _SHORT_GRACE)
