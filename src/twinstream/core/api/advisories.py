"""Advisories and metrics: on which subjects they come, and reading one.

Source: nats-server 2.11 to 2.15, `jetstream_events.go`. A server sends an event only while
somebody listens to its subject, or a stream captures it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

from attrs import frozen

from twinstream.errors import BadArgument
from twinstream.core.base.check_arguments import check_kind
from twinstream.core.wire.protocol import Frame
from twinstream.core.wire.subjects import check_name
from twinstream.models import DecodeError, Model, Timestamp, UnknownEvent, decode
from twinstream.models.event_subjects import EVENT_SUBJECTS

__all__ = ["Event", "EventKind", "event_subjects", "read_event"]

EventKind = type[Model] | str
"""A kind of event: its class, such as `twinstream.models.MaxDeliver`, or its word, such as max_deliver."""

_ALL: Final = "$JS.EVENT.>"
_ACTIONS: Final = ("CREATED", "UPDATED", "DELETED")
_KINDS: Final = {name.rpartition(".")[2]: name for name in EVENT_SUBJECTS}
_CLASSES: Final = {cls: name for name, (cls, _) in EVENT_SUBJECTS.items()}
_WORDS: Final = re.compile(r"\{(\w+)\}")


@frozen
class Event:
    """One advisory or metric of a server.

    `record` is the event as a typed model, an `UnknownEvent` with all its members for a type that
    this release does not know; `raw` is what came. What cannot be read is told in `problem`.
    """

    subject: str
    record: Model
    raw: bytes
    missed: int = 0
    """Events dropped right before this one, because too many waited for their reader."""
    reconnected: bool = False
    """Whether the link broke before this one, so that events may be missing."""
    problem: str = ""

    @property
    def type(self) -> str:
        """The full name of the type, empty where the event cannot be read."""
        return self._text("type")

    @property
    def kind(self) -> str:
        """The last part of the type, such as `max_deliver`."""
        return self.type.rpartition(".")[2]

    @property
    def stream(self) -> str:
        """The stream that it is about, empty for events about none."""
        return self._text("stream")

    @property
    def consumer(self) -> str:
        """The consumer that it is about, empty for events about none."""
        return self._text("consumer")

    @property
    def domain(self) -> str:
        """The JetStream domain of the server, empty where it has none."""
        return self._text("domain")

    @property
    def cluster(self) -> str:
        """The cluster of the server, where the kind of event tells it."""
        return self._text("cluster")

    @property
    def time(self) -> Timestamp | None:
        """When it happened, exact in nanoseconds."""
        found = getattr(self.record, "timestamp", None)
        return found if isinstance(found, Timestamp) else None

    def _text(self, member: str) -> str:
        found = getattr(self.record, member, None) or self.record.unknown.get(member)
        return found if isinstance(found, str) else ""


def event_subjects(
    stream: str | None, consumer: str | None, kinds: Iterable[EventKind] | None
) -> list[str]:
    """Return the subjects to listen to, as narrow as the filters; no two of them overlap.

    Raises `BadArgument` for a kind that does not exist, or that tells no stream or consumer while
    one is asked for.
    """
    values = {
        "stream": check_name(stream, "stream") if stream is not None else None,
        "consumer": check_name(consumer, "consumer") if consumer is not None else None,
    }
    if isinstance(kinds, str):
        # One word is a list of letters to Python.
        kinds = [kinds]
    if kinds is not None:
        check_kind(kinds, Iterable, "kinds", "a list of classes of twinstream.models, or of words")
        found = [each for kind in kinds for each in _of_kind(_type_of(kind), values)]
        if not found:
            raise BadArgument("kinds is empty: leave it out for all kinds")
        return list(dict.fromkeys(found))
    if consumer is not None:
        return [f"$JS.EVENT.*.CONSUMER.*.{stream or '*'}.{consumer}"]
    if stream is not None:
        # Patterns instead of the known kinds: a newer server may have others.
        return [f"$JS.EVENT.*.STREAM.*.{stream}", f"$JS.EVENT.*.CONSUMER.*.{stream}.*"]
    return [_ALL]


def _type_of(kind: EventKind) -> str:
    check_kind(kind, str | type, "a kind of event", "a class of twinstream.models, or a word")
    if isinstance(kind, str):
        name = kind if kind in EVENT_SUBJECTS else _KINDS.get(kind)
    else:
        name = _CLASSES.get(kind.__name__)
    if name is not None:
        return name
    word = kind if isinstance(kind, str) else kind.__name__
    near = get_close_matches(word, _KINDS, 1)
    hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(sorted(_KINDS))}"
    raise BadArgument(f"there is no kind of event {word!r}: {hint}")


def _of_kind(name: str, values: dict[str, str | None]) -> list[str]:
    _, template = EVENT_SUBJECTS[name]
    words = _WORDS.findall(template)
    for word, value in values.items():
        if value is not None and word not in words:
            kind = name.rpartition(".")[2]
            raise BadArgument(f"events of kind {kind} tell no {word}: ask for them without one")
    subject = _WORDS.sub(lambda found: values.get(found[1], found[0]) or "*", template)
    if "action" in words:
        return [subject.replace("{action}", action) for action in _ACTIONS]
    return [subject]


def read_event(frame: Frame, missed: int = 0, reconnected: bool = False) -> Event:
    """Return the event in a message; one that cannot be read is kept, with the reason."""
    subject, _, header_size, body = frame
    raw = bytes(body[header_size:-2])
    record: Model = UnknownEvent()
    problem = ""
    try:
        record = decode(raw)
    except DecodeError as error:
        problem = str(error)
        try:
            # The type is known, a member is not as it should be: keep all of them as they came.
            record = decode(raw, UnknownEvent)
        except DecodeError:
            pass
    name = subject.decode("utf-8", "surrogateescape")
    return Event(name, record, raw, missed, reconnected, problem)
