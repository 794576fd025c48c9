"""The events of an outbox: their order of sending, and errors that concern a single event."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Final

from attrs import frozen

from twinstream.core.log.report import ERROR, WARNING, Report
from twinstream.errors import (
    BadArgument,
    JetStreamError,
    PermissionDenied,
    SubjectTaken,
    TwinstreamError,
)
from twinstream.models.error_codes import (
    BATCH_DISABLED,
    BATCH_HEADER_UNSUPPORTED,
    BATCH_ID_INVALID,
    BATCH_SEQUENCE_MISSING,
    COUNTER_BROKEN,
    COUNTER_DISABLED,
    COUNTER_INCREMENT_INVALID,
    COUNTER_INCREMENT_MISSING,
    COUNTER_PAYLOAD,
    EXPECTED_SEQUENCE_MISSING,
    HEADERS_TOO_LARGE,
    MESSAGE_TOO_LARGE,
    MIRROR_WITH_COUNTERS,
    ROLLUP_NOT_PERMITTED,
    SCHEDULE_PATTERN_INVALID,
    SCHEDULE_ROLLUP_INVALID,
    SCHEDULE_SOURCE_INVALID,
    SCHEDULE_TARGET_INVALID,
    SCHEDULE_TIME_ZONE_INVALID,
    SCHEDULE_TTL_INVALID,
    SCHEDULER_INVALID,
    SCHEDULES_DISABLED,
    STREAM_SOURCE_HEADER,
    TTL_DISABLED,
    TTL_INVALID,
)
from twinstream.records.headers import Headers
from twinstream.records.publish_request import PublishRequest

__all__ = [
    "Lanes",
    "OutboxEvent",
    "OutboxReport",
    "graver",
    "is_fault_of_event",
    "is_of_event_alone",
    "request_of",
]

# Errors of a message for which a retry does not help: it is too large, its headers are too large,
# the stream does not allow its rollup, TTL, counter, batch or schedule, a condition is invalid, or
# it has a header that only servers may write.
_SCHEDULES: Final = frozenset(
    {
        *(SCHEDULES_DISABLED, SCHEDULE_PATTERN_INVALID),
        *(SCHEDULE_TARGET_INVALID, SCHEDULE_TTL_INVALID),
        SCHEDULE_ROLLUP_INVALID,
        *(SCHEDULE_SOURCE_INVALID, SCHEDULER_INVALID, SCHEDULE_TIME_ZONE_INVALID),
    }
)
_FAULTS: Final = _SCHEDULES | {
    *(MESSAGE_TOO_LARGE, HEADERS_TOO_LARGE, ROLLUP_NOT_PERMITTED, TTL_INVALID, TTL_DISABLED),
    *(COUNTER_DISABLED, COUNTER_INCREMENT_MISSING, COUNTER_PAYLOAD, COUNTER_INCREMENT_INVALID),
    *(COUNTER_BROKEN, MIRROR_WITH_COUNTERS, BATCH_DISABLED, BATCH_SEQUENCE_MISSING),
    *(BATCH_HEADER_UNSUPPORTED, BATCH_ID_INVALID, EXPECTED_SEQUENCE_MISSING, STREAM_SOURCE_HEADER),
}


@frozen(kw_only=True)
class OutboxEvent:
    """A message in an outbox, which is to be stored in a stream exactly once.

    Events with the same `key` are stored in the order of `number`. `id` is the message id, which
    was created when the event was added. If the stored event could not be read, `damage` is the
    reason, and the other members may be empty. A relay refuses such an event.
    """

    number: int
    id: str
    subject: str
    """Subject to which it is published."""
    data: bytes
    """Payload of the message."""
    headers: tuple[tuple[str, str], ...] = ()
    """Headers of the message, as pairs."""
    key: str | None = None
    damage: str = ""


@frozen(kw_only=True)
class OutboxReport(Report):
    """A report of a relay about an error.

    If `refused` is true, the stream has permanently refused `event`. If `ended` is true, the error
    has ended a relay that ran in the background, and the relay's `wait` raises it. Otherwise the
    problem is temporary. If `event` is None, the report is not about a single event.
    """

    error: TwinstreamError
    """What went wrong."""
    event: OutboxEvent | None = None
    refused: bool = False
    ended: bool = False

    @property
    def subject(self) -> str:
        """The subject of the event, empty if the report is not about an event."""
        return "" if self.event is None else self.event.subject

    log_area = "outbox"
    log_limit = "traceback"

    def _level(self) -> int:
        return ERROR if self.refused else WARNING

    def __str__(self) -> str:
        if self.ended:
            return f"the relay has ended: {self.error}"
        if self.event is None:
            return f"the outbox cannot be sent now, it is tried again: {self.error}"
        verdict = "refused and set aside" if self.refused else "not stored yet"
        return f"event {self.event.number} ({self.event.subject}) is {verdict}: {self.error}"


def request_of(event: OutboxEvent, stream_name: str) -> PublishRequest:
    """Return an event as a message to publish to a stream."""
    headers = Headers(event.headers) if event.headers else None
    return PublishRequest(
        subject=event.subject,
        data=event.data,
        headers=headers,
        msg_id=event.id,
        expected_stream=stream_name,
    )


class Lanes:
    """A page of events, divided into waves of events that may be sent together.

    A wave has one event of each key. The first wave also has all events without a key. Events whose
    keys are in `held` are not sent; `hold` adds keys to `held`.
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
        """Return the next events that may be sent together, an empty list after the last wave."""
        wave, self._free = self._free, []
        for key in list(self._lanes):
            lane = self._lanes[key]
            wave.append(lane.popleft())
            if not lane:
                del self._lanes[key]
        return wave

    def hold(self, event: OutboxEvent) -> None:
        """Exclude further events with the key of `event`, because `event` was not stored."""
        if event.key is not None:
            self._lanes.pop(event.key, None)
            self._held.add(event.key)


def is_fault_of_event(error: TwinstreamError) -> bool:
    """Return whether an error is caused by the event itself, so that a retry does not help."""
    if isinstance(error, JetStreamError):
        return error.err_code in _FAULTS
    return isinstance(error, BadArgument | SubjectTaken)


def is_of_event_alone(error: TwinstreamError) -> bool:
    """Return whether a temporary error concerns only this event, because its subject is denied."""
    return isinstance(error, PermissionDenied)


def graver(one: TwinstreamError | None, other: TwinstreamError | None) -> TwinstreamError | None:
    """Return the more serious of two errors. None counts as no error.

    An error is more serious if it also affects other events.
    """
    if one is None or other is None:
        return one or other
    return other if is_of_event_alone(one) else one
