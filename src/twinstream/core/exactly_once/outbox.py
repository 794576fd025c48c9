"""Events that wait in an outbox, in which order they go, and which errors are an event's own."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Final

from attrs import frozen

from twinstream.errors import (
    BadArgument,
    JetStreamError,
    PermissionDenied,
    SubjectTaken,
    TwinstreamError,
)
from twinstream.core.wire.headers import Headers
from twinstream.core.publish.request import PublishRequest

__all__ = [
    "Lanes",
    "OutboxEvent",
    "OutboxReport",
    "graver",
    "is_fault_of_event",
    "is_of_event_alone",
]

# What the server says to a message that no repeat makes better: too large, headers too large,
# rollup, time to live, counters, batches, schedules, a condition that cannot be read, a header that
# only a server may write.
_SCHEDULES: Final = frozenset({*range(10188, 10193), 10203, 10212, 10223})
_FAULTS: Final = _SCHEDULES | {
    *(10054, 10097, 10111, 10165, 10166),
    *range(10168, 10176),
    *(10177, 10179, 10193, 10227),
}


@frozen(kw_only=True)
class OutboxEvent:
    """A message that is to be stored once. Those of one `key` are stored in the order of `number`.

    `id` is its identity for ever, made when it was added.
    """

    number: int
    id: str
    subject: str
    data: bytes
    headers: tuple[tuple[str, str], ...] = ()
    key: str | None = None

    def request(self, stream: str) -> PublishRequest:
        """Return the message to publish into a stream."""
        headers = Headers(self.headers) if self.headers else None
        return PublishRequest(
            subject=self.subject,
            data=self.data,
            headers=headers,
            msg_id=self.id,
            expected_stream=stream,
        )


@frozen(kw_only=True)
class OutboxReport:
    """Something that a relay met: an event that is `refused` for good, or trouble that passes.

    With `ended` it is what ended a relay that worked beside the program; `wait` raises it.
    """

    error: TwinstreamError
    event: OutboxEvent | None = None
    refused: bool = False
    ended: bool = False

    @property
    def subject(self) -> str:
        """The subject of the event; empty where no event is concerned."""
        return "" if self.event is None else self.event.subject

    def __str__(self) -> str:
        if self.ended:
            return f"the relay has ended: {self.error}"
        if self.event is None:
            return str(self.error)
        verdict = "refused" if self.refused else "not stored yet"
        return f"event {self.event.number} ({self.event.subject}) {verdict}: {self.error}"


class Lanes:
    """A page of events as waves: of each key one event a wave, all of those without a key.

    Events of keys in `held` do not go; a key that is held here is added to it.
    """

    def __init__(self, events: Iterable[OutboxEvent], held: set[str] | None = None) -> None:
        self._free: list[OutboxEvent] = []
        self._lanes: dict[str, deque[OutboxEvent]] = {}
        self._held: Final[set[str]] = set() if held is None else held
        for event in events:
            if event.key is None:
                self._free.append(event)
            elif event.key not in self._held:
                self._lanes.setdefault(event.key, deque()).append(event)

    def next_wave(self) -> list[OutboxEvent]:
        """Return the events that may be under way together now; empty when all went."""
        wave, self._free = self._free, []
        for key in list(self._lanes):
            lane = self._lanes[key]
            wave.append(lane.popleft())
            if not lane:
                del self._lanes[key]
        return wave

    def hold(self, event: OutboxEvent) -> None:
        """Let nothing more of the event's key go: it was not stored."""
        if event.key is not None:
            self._lanes.pop(event.key, None)
            self._held.add(event.key)


def is_fault_of_event(error: TwinstreamError) -> bool:
    """Tell whether an error is of the event, so that trying again does not help."""
    if isinstance(error, JetStreamError):
        return error.err_code in _FAULTS
    return isinstance(error, BadArgument | SubjectTaken)


def is_of_event_alone(error: TwinstreamError) -> bool:
    """Tell whether trouble that may pass says nothing of other events: its subject is denied."""
    return isinstance(error, PermissionDenied)


def graver(one: TwinstreamError | None, other: TwinstreamError | None) -> TwinstreamError | None:
    """Return of two troubles, if there are two, one that other events meet, too."""
    if one is None or other is None:
        return one or other
    return other if is_of_event_alone(one) else one
