"""The subject on which the message of a dead letter is published again.

A letter contains the subject under which a stream stored the message. Any client that may publish
dead letters can write any subject there. So the configurations of the stream, and of the streams
that it copies from, decide: only a subject on which one of them stores messages under the subject
of the letter is published to.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from attrs import frozen

from twinstream.core.wire.subject_match import covers
from twinstream.core.workers.undo_transform import before_transform, transformed
from twinstream.models import StreamConfig, StreamSource
from twinstream.models.names.subjects import is_literal_subject

__all__ = ["Place", "PlaceSearch", "copied_from", "is_reserved", "published_as"]

# The first tokens of subjects on which servers and clients exchange requests and replies.
_RESERVED: Final = frozenset({"_INBOX", "_R_", "_GR_"})
# Of the subjects that begin with `$`, only those of key-value buckets and object stores are data.
_DATA: Final = frozenset({"$KV", "$O"})
# The maximum number of places that a search examines.
_MAX_PLACES: Final = 100


@frozen
class Place:
    """A stream, and a subject under which it may have stored a message."""

    stream: str
    subject: str


class PlaceSearch:
    """Find where a message may have been published that a stream stores as `subject`.

    The caller takes each place from `next`, and passes the configuration of its stream to `enter`.
    A stream that this stream copies from counts only if no own subject leads to `subject`, and so
    on for the streams that it copies from itself.
    """

    def __init__(self, stream: str, subject: str) -> None:
        first = Place(stream, subject)
        self._waiting = [first] if is_literal_subject(subject) else []
        self._seen = {first}
        self.found: Final[list[Place]] = []
        """The streams that store the message, with the subject on which they receive it."""

    def next(self) -> Place | None:
        """Return a place whose stream is to be examined, or None at the end."""
        return self._waiting.pop(0) if self._waiting else None

    def enter(self, place: Place, config: StreamConfig) -> None:
        """Examine the configuration of the stream of a place."""
        subject = published_as(config, place.subject)
        if subject is not None:
            self.found.append(Place(place.stream, subject))
            return
        for each in copied_from(config, place.subject):
            if each not in self._seen and len(self._seen) < _MAX_PLACES:
                self._seen.add(each)
                self._waiting.append(each)


def is_reserved(subject: str, prefixes: Iterable[str]) -> bool:
    """Return whether a subject may be one of requests or replies, even if a stream captures it.

    `prefixes` are those of the JetStream API and of the inboxes of this client.
    """
    first = subject.partition(".")[0]
    if first in _RESERVED or (first.startswith("$") and first not in _DATA):
        return True
    return any(f"{subject}.".startswith(f"{prefix}.") for prefix in prefixes)


def published_as(config: StreamConfig, stored: str) -> str | None:
    """Return the subject on which a stream receives the messages that it stores as `stored`.

    Return None if none of its own subjects leads to `stored`.
    """
    own = config.subjects or []
    for subject in _received(config, stored):
        if any(covers(each, subject) for each in own):
            return subject
    return None


def _received(config: StreamConfig, stored: str) -> Iterator[str]:
    """Return the subjects that the transform of a stream changes to `stored`, or leaves as it."""
    transform = config.subject_transform
    if transform is None:
        yield stored
        return
    if transformed(transform, stored) in (None, stored):
        yield stored
    before = before_transform(transform, stored)
    if before is not None and before != stored:
        yield before


def copied_from(config: StreamConfig, stored: str) -> list[Place]:
    """Return the streams that a stream copies from, with the subject that they give to `stored`.

    Streams of other domains and accounts are omitted, because their configuration is unknown.
    """
    origins = [config.mirror] if config.mirror is not None else config.sources or []
    return [
        Place(origin.name, subject)
        for origin in origins
        if origin.external is None and origin.name
        for received in _received(config, stored)
        for subject in _at_origin(origin, received)
    ]


def _at_origin(origin: StreamSource, copied: str) -> list[str]:
    if origin.subject_transforms:
        before = [before_transform(each, copied) for each in origin.subject_transforms]
        return list(dict.fromkeys(each for each in before if each is not None))
    if origin.filter_subject and not covers(origin.filter_subject, copied):
        return []
    return [copied]
