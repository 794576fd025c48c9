"""The probes of an ordered read, and the check whether the caller has all stored messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from attrs import evolve

from twinstream.core.consume.ordered import OrderedRead
from twinstream.core.consume.probe_schedule import LIFE, ProbeSchedule
from twinstream.core.consume.pull_request import PullLimits
from twinstream.core.deadline import Deadline, monotonic
from twinstream.core.wire.status import Status
from twinstream.errors import RequestTimeout

if TYPE_CHECKING:
    from js_async.client.transport import Transport
    from js_async.consume.buffer import MessageBuffer
    from js_async.consume.message import Message

__all__ = ["OrderedProbes"]

# The interval at which to check whether the server has answered a probe (seconds).
_LOOK: Final = 0.002


class _Question:
    """The check whether the caller has all messages that were stored when the check began.

    The heartbeats with which the server answers probes decide it (see `ProbeSchedule`).
    """

    def __init__(self) -> None:
        # The tokens of the probes that were sent for this check.
        self.tokens: set[bytes] = set()
        # The number of messages that the consumer had sent at the last heartbeat that answered one
        # of these probes. None before the first such heartbeat.
        self.sent: int | None = None

    def restart(self) -> None:
        """Begin the check again with a new consumer."""
        self.tokens.clear()
        self.sent = None

    def is_answered(self, read: OrderedRead) -> bool:
        """Return whether the caller has all messages that were stored when the check began."""
        return self.sent is not None and read.has_all(self.sent) and read.is_current


class OrderedProbes:
    """The probes of the current consumer, and the pending check, if there is one.

    `pause` is the interval of probes in seconds if the server sends the messages at their original
    pace, otherwise None (see `ProbeSchedule`). `limits` are those of the pull requests.
    """

    def __init__(
        self, transport: Transport, read: OrderedRead, limits: PullLimits, pause: float | None
    ) -> None:
        self._transport: Final = transport
        self._read: Final = read
        self._limits: Final = limits
        self._pause: Final = pause
        self._probing = ProbeSchedule(pause)
        self._question: _Question | None = None

    @property
    def are_needed(self) -> bool:
        """Whether to take messages with `take`, which sends probes while none arrives."""
        return self._question is not None or self._read.has_list or self._pause is not None

    # ---- the check

    def begin_check(self) -> None:
        """Begin the check whether the caller has all stored messages, unless one is pending."""
        self._question = self._question or _Question()

    def end_check(self) -> None:
        """End the pending check, if there is one."""
        self._question = None

    @property
    def is_checked(self) -> bool:
        """Whether there is a check, and it has shown that the caller has all messages."""
        return self._question is not None and self._question.is_answered(self._read)

    def note_heartbeat(self, heartbeat: Status) -> None:
        """Record an idle heartbeat, which may answer a probe of the check."""
        question = self._question
        if question is not None and heartbeat.token in question.tokens:
            question.sent = heartbeat.last_consumer

    # ---- the probes

    def restart(self) -> None:
        """Begin again, because the consumer is replaced."""
        self._probing = ProbeSchedule(self._pause)
        if self._question is not None:
            self._question.restart()

    async def take(self, messages: MessageBuffer, deadline: Deadline) -> Message | None:
        """Return the next message, and send probes while none arrives.

        Returns None if the pending check has ended, or if a new consumer is needed.
        """
        probing = self._probing
        if self._question is not None:
            # Send a probe at once, because the last message may have ended the previous probe.
            probing.make_due(monotonic())
        while not (self.is_checked or self._read.is_outdated):
            now = monotonic()
            wake_at = probing.due_at(now)
            if self._question is not None and wake_at > now:
                wake_at = min(wake_at, now + _LOOK)
            try:
                message = await messages.take(deadline.earlier(wake_at))
            except RequestTimeout:
                now = monotonic()
                if deadline.expired() or now < wake_at:
                    raise
                if now >= probing.due_at(now):
                    await self._probe(messages)
                continue
            probing.moved()
            return message
        return None

    async def _probe(self, messages: MessageBuffer) -> None:
        """Send one probe, a short pull request that shows which messages the server has sent.

        If no check waits for it, a rare probe with the limits of the read is sent when it is due.
        """
        now, question = monotonic(), self._question
        if question is None and self._probing.rare(now):
            limits = evolve(self._limits, max_bytes=None)
        else:
            heartbeat = self._probing.heartbeat(now, self._read.progress)
            limits = PullLimits(max_messages=1, expires=heartbeat * LIFE, heartbeat=heartbeat)
        if not self._transport.is_connected:
            return
        try:
            token = await messages.probe(limits)
        except RequestTimeout:
            # The connection was just lost and not restored in time.
            return
        if question is not None:
            question.tokens.add(token)
