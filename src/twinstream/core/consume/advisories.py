"""The advisories and metrics of servers: their subjects, and the parser of one event.

Source: nats-server 2.11 to 2.15, `jetstream_events.go`. A server publishes an event only if a
client subscribes to its subject, or if a stream captures the subject.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

from attrs import frozen

from twinstream.core.arguments.check_arguments import check_kind
from twinstream.core.wire.protocol import Frame
from twinstream.core.wire.selection import NOTHING, one_or_several
from twinstream.core.wire.subjects import check_name
from twinstream.errors import BadArgument
from twinstream.models import DecodeError, Model, Timestamp, UnknownEvent, decode
from twinstream.models.event_subjects import EVENT_SUBJECTS

__all__ = [
    "Event",
    "EventKind",
    "contradiction",
    "decoded_event",
    "event_subjects",
    "read_event",
    "subject_of",
]

EventKind = type[Model] | str
"""A kind of event: its model class, such as `MaxDeliver`, or its name, such as `max_deliver`."""

_ALL: Final = "$JS.EVENT.>"
_ACTIONS: Final = ("CREATED", "UPDATED", "DELETED")
_KINDS: Final = {name.rpartition(".")[2]: name for name in EVENT_SUBJECTS}
_CLASSES: Final = {cls: name for name, (cls, _) in EVENT_SUBJECTS.items()}
_WORDS: Final = re.compile(r"\{(\w+)\}")
# The word in the subject for each `action` of an event.
_ACTION_WORDS: Final = {"create": "CREATED", "modify": "UPDATED", "delete": "DELETED"}
# The names in the subject of any kind of event about a stream or a consumer.
_STREAM_NAMES: Final = re.compile(r".*\.STREAM\.[^.]+\.(?P<stream>[^.]+)", re.DOTALL)
_CONSUMER_NAMES: Final = re.compile(
    r".*\.CONSUMER\.[^.]+\.(?P<stream>[^.]+)\.(?P<consumer>[^.]+)", re.DOTALL
)


@frozen
class Event:
    """One advisory or metric of a server.

    `record` is the event as a typed model. For a type that this release does not know, it is an
    `UnknownEvent` with all members. `raw` is the payload as received. If the payload cannot be
    decoded, or contradicts the subject, `problem` is the reason, and `record` is an `UnknownEvent`.
    """

    subject: str
    """Subject on which the server published the event."""
    record: Model
    raw: bytes
    missed: int = 0
    """The number of events that were dropped right before this event because of a full buffer."""
    reconnected: bool = False
    """Whether there was a reconnect before this event, so that events may be missing."""
    problem: str = ""

    @property
    def type(self) -> str:
        """The full name of the event's type, empty if the event cannot be decoded."""
        return self._text("type")

    @property
    def kind(self) -> str:
        """The last part of the type, such as `max_deliver`; empty if `type` is empty."""
        return self.type.rpartition(".")[2]

    @property
    def stream_name(self) -> str:
        """The stream that the event is about, empty if it is about none."""
        return self._text("stream")

    @property
    def consumer_name(self) -> str:
        """The consumer that the event is about, empty if it is about none."""
        return self._text("consumer")

    @property
    def domain(self) -> str:
        """The JetStream domain of the server, empty if it has none."""
        return self._text("domain")

    @property
    def cluster(self) -> str:
        """The cluster of the server, if the kind of event includes it, else empty."""
        return self._text("cluster")

    @property
    def time(self) -> Timestamp | None:
        """When the event happened, with nanosecond precision; None if the event has no time."""
        found = getattr(self.record, "timestamp", None)
        return found if isinstance(found, Timestamp) else None

    def _text(self, member: str) -> str:
        return _member(self.record, member)


def event_subjects(
    stream: str | None, consumer: str | None, kinds: Iterable[EventKind] | None
) -> list[str]:
    """Return the subjects of the events of these kinds about this stream and this consumer.

    An argument that is None matches every value, and empty `kinds` match no event. The subjects do
    not overlap. Raises `BadArgument` for an unknown kind, and for a kind whose subject does not
    contain the given stream or consumer.
    """
    values = {
        "stream": check_name(stream, "stream") if stream is not None else None,
        "consumer": check_name(consumer, "consumer") if consumer is not None else None,
    }
    if kinds is not None:
        given = one_or_several(kinds, "kinds", "a word, a class of twinstream.models")
        found = [each for kind in given for each in _of_kind(_type_of(kind), values)]
        return list(dict.fromkeys(found)) or [NOTHING]
    if consumer is not None:
        return [f"$JS.EVENT.*.CONSUMER.*.{stream or '*'}.{consumer}"]
    if stream is not None:
        # Wildcards also match kinds of events that only newer servers have.
        return [f"$JS.EVENT.*.STREAM.*.{stream}", f"$JS.EVENT.*.CONSUMER.*.{stream}.*"]
    return [_ALL]


def _type_of(kind: EventKind) -> str:
    """Return the name of an event type. Raises `BadArgument` for an unknown kind."""
    check_kind(kind, str | type, "a kind of event", "a class of twinstream.models, or a word")
    if isinstance(kind, str):
        name = kind if kind in EVENT_SUBJECTS else _KINDS.get(kind)
    else:
        name = _CLASSES.get(kind.__name__)
    if name is not None:
        return name
    word = kind if isinstance(kind, str) else kind.__name__
    near = get_close_matches(word, _KINDS, 1)
    hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(sorted(_KINDS))}"
    raise BadArgument(f"unknown kind of event {word!r}: {hint}")


def _of_kind(name: str, values: dict[str, str | None]) -> list[str]:
    """Return the subjects of a kind of event, with `*` for each value that is not given."""
    _, template = EVENT_SUBJECTS[name]
    words = _WORDS.findall(template)
    for word, value in values.items():
        if value is not None and word not in words:
            kind = name.rpartition(".")[2]
            raise BadArgument(f"events of kind {kind} have no {word} to filter by: omit it")
    subject = _WORDS.sub(lambda found: values.get(found[1], found[0]) or "*", template)
    if "action" in words:
        return [subject.replace("{action}", action) for action in _ACTIONS]
    return [subject]


def subject_of(record: Model) -> str | None:
    """Return the subject on which a server publishes an event; None for an unknown type."""
    _, template = EVENT_SUBJECTS.get(_member(record, "type"), ("", None))
    if template is None:
        return None
    return _WORDS.sub(lambda found: _word(record, found[1]), template)


def _word(record: Model, member: str) -> str:
    value = _member(record, member)
    return _ACTION_WORDS.get(value, "") if member == "action" else value


def _member(record: Model, name: str) -> str:
    found = getattr(record, name, None) or record.unknown.get(name)
    return found if isinstance(found, str) else ""


def contradiction(subject: str, record: Model) -> str:
    """Return how the content of an event contradicts its subject, or "" if both agree.

    A server writes the same names into both. The permissions of a client that publishes an event
    limit the subject only. So an event of another kind, or about another stream or consumer, is
    forged. An import of an account may add tokens after the third one of the subject.
    """
    expected = subject_of(record)
    if expected is not None:
        _, _, tail = expected.removeprefix("$JS.EVENT.").partition(".")
        if subject == expected or subject.endswith(f".{tail}"):
            return ""
        return f"its content belongs on {expected!r:.400}, not on {subject!r:.400}"
    found = _CONSUMER_NAMES.fullmatch(subject) or _STREAM_NAMES.fullmatch(subject)
    for name, token in found.groupdict().items() if found else ():
        value = _member(record, name)
        if value not in ("", token):
            return f"its content names the {name} {value!r:.400}, its subject {token!r:.400}"
    return ""


def read_event(frame: Frame, missed: int = 0, reconnected: bool = False) -> Event:
    """Return the event in a message, as `decoded_event` does."""
    subject, _, header_size, body = frame
    raw = bytes(body[header_size:-2])
    return decoded_event(subject.decode("utf-8", "surrogateescape"), raw, missed, reconnected)


def decoded_event(name: str, raw: bytes, missed: int = 0, reconnected: bool = False) -> Event:
    """Return the event with a subject and a payload.

    Its `problem` is set if the payload cannot be decoded, or if it contradicts the subject.
    """
    record: Model = UnknownEvent()
    try:
        record = decode(raw)
        problem = contradiction(name, record)
    except DecodeError as error:
        problem = str(error)
    if problem:
        try:
            # Keep all members undecoded, so that no program takes the event for one of its kind.
            record = decode(raw, UnknownEvent)
        except DecodeError:
            record = UnknownEvent()
    return Event(name, record, raw, missed, reconnected, problem)
