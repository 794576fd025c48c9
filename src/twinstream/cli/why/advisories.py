"""The stored advisories that are about a message, its consumer or its stream.

Any client that may publish to the subject of an advisory can forge it. One that no server can have
published is skipped, with a reason. What the others say is `reported`, never `certain`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final, TypeVar, cast

from attrs import frozen

from twinstream.core.consume.advisories import Event, decoded_event, event_subjects
from twinstream.core.read.stream_message import StreamMessage
from twinstream.core.wire.subject_match import covers
from twinstream.models import ApiAudit, Model, Timestamp

__all__ = [
    "AUDITS",
    "CLOCKS",
    "Advisories",
    "ApiCall",
    "Skipped",
    "Stored",
    "Subject",
    "call_of",
    "judged",
]

AUDITS: Final = "$JS.EVENT.ADVISORY.API"
"""The subject of advisories of requests to the API."""

M = TypeVar("M", bound=Model)

CLOCKS: Final = timedelta(seconds=1)
"""The assumed largest difference between the clocks of two servers of a cluster."""


@frozen(kw_only=True)
class Subject:
    """The message that the question is about, with the times that no advisory of it can precede."""

    stream_name: str
    consumer_name: str
    seq: int
    stored_after: Timestamp
    """The time of the message, or of its stream if the message is removed."""
    consumer_created: Timestamp
    last_delivery: int
    """The number of deliveries that the consumer has made since its creation or its last reset."""


@frozen
class Stored:
    """An advisory with its sequence in the stream that stores it."""

    seq: int
    event: Event

    @property
    def time(self) -> Timestamp:
        """When the event happened."""
        return self.event.time or Timestamp.from_ns(0)


@frozen
class Skipped:
    """An advisory that is not used."""

    seq: int
    reason: str


@frozen(kw_only=True)
class Advisories:
    """What a stream stores of the events of a message, its consumer and its stream."""

    stream_name: str
    created: Timestamp
    """When the stream of advisories was created."""
    is_whole: bool
    """Whether the stream still has all that it stored, and all of it was read."""
    subjects: tuple[str, ...]
    """The subjects that it captures."""
    events: tuple[Stored, ...] = ()
    skipped: tuple[Skipped, ...] = ()

    def of_kind(self, kind: type[M]) -> list[tuple[Stored, M]]:
        """Return the advisories of a kind, in the order of their times."""
        return [
            (each, each.event.record)
            for each in sorted(self.events, key=lambda each: each.time.ns)
            if isinstance(each.event.record, kind)
        ]

    def has_all(self, kind: str, stream: str, consumer: str, since: Timestamp) -> bool:
        """Return whether no advisory of a kind can be missing since a time."""
        return self._has_all(event_subjects(stream, consumer, [kind]), since)

    def has_all_calls(self, since: Timestamp) -> bool:
        """Return whether no advisory of a request to the API can be missing since a time."""
        return self._has_all([AUDITS], since)

    def _has_all(self, names: list[str], since: Timestamp) -> bool:
        captured = all(any(covers(each, name) for each in self.subjects) for name in names)
        return captured and self.is_whole and self.created <= since

    def source(self, stored: Stored) -> str:
        """Return the name of an advisory for people."""
        return f"advisory {stored.seq} of {self.stream_name}: {stored.event.kind}"


@frozen(kw_only=True)
class ApiCall:
    """A request to the API that succeeded, as an advisory reports it."""

    name: str
    """The words between the prefix and the stream, such as `STREAM.PURGE`."""
    request: Mapping[str, Any]
    response: Mapping[str, Any]


_CALL: Final = re.compile(
    r".*\.(?P<name>STREAM\.(?:PURGE|MSG\.DELETE))\.(?P<stream>[^.]+)", re.DOTALL
)


def judged(message: StreamMessage[Any], subject: Subject) -> Stored | Skipped | None:
    """Return a stored advisory, or why it is skipped; None if it is about something else."""
    event = decoded_event(message.subject, message.data)
    if event.problem:
        return Skipped(message.seq, event.problem)
    if isinstance(event.record, ApiAudit):
        return _audit(message.seq, event, event.record, subject)
    if event.stream_name != subject.stream_name:
        return None
    if event.consumer_name not in ("", subject.consumer_name):
        return None
    about = getattr(event.record, "stream_seq", None)
    if about is not None and about != subject.seq:
        return None
    if event.time is None:
        return Skipped(message.seq, "it has no time")
    if about is not None and event.time + CLOCKS < subject.stored_after:
        return Skipped(message.seq, "it is older than the message that it names")
    if about is not None and event.time + CLOCKS < subject.consumer_created:
        return Skipped(message.seq, "it is older than the consumer, so about an earlier one")
    if getattr(event.record, "consumer_seq", 0) > subject.last_delivery:
        return Skipped(message.seq, "it names a later delivery than the last one of the consumer")
    return Stored(message.seq, event)


def _audit(seq: int, event: Event, audit: ApiAudit, subject: Subject) -> Stored | Skipped | None:
    """Return the advisory of a request that removed messages of the stream."""
    found = _CALL.fullmatch(audit.subject)
    if found is None or found["stream"] != subject.stream_name:
        return None
    if audit.timestamp + CLOCKS < subject.stored_after:
        return None
    call = call_of(audit)
    if call is None:
        return Skipped(seq, "the request or the response in it is no JSON object")
    return None if "error" in call.response else Stored(seq, event)


def call_of(audit: ApiAudit) -> ApiCall | None:
    """Return the request of an advisory; None if it cannot be decoded or is of another kind."""
    found = _CALL.fullmatch(audit.subject)
    request, response = _object(audit.request or "{}"), _object(audit.response)
    if found is None or request is None or response is None:
        return None
    return ApiCall(name=found["name"], request=request, response=response)


def _object(text: str) -> Mapping[str, Any] | None:
    """Return the JSON object in a text, None if there is no such object."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", found) if isinstance(found, dict) else None
