"""Whether the last stored messages of a stream fit its contracts."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final, cast

from attrs import frozen

from twinstream.cli.deploy.contracts import Contracts, stored_contracts

if TYPE_CHECKING:
    from js_sync import JetStream, StreamMessage
    from twinstream.cli.deploy.step import Step
    from twinstream.errors import PayloadError

# A filter with at most this number of subjects is checked subject by subject.
_EACH: Final = 100
# The number of subjects whose last messages are requested together.
_SNAPSHOT: Final = 10_000
# How much further back each further read begins, if the one before found too few messages.
_FURTHER: Final = 8


@frozen
class Checked:
    """The result for the messages of one subject or filter."""

    stream_name: str
    subject: str
    messages: int
    misfits: int
    first: str
    """The error of the newest message that does not fit; empty if all fit."""


def check_last(jet: JetStream, stream_name: str, contracts: Contracts, count: int) -> list[Checked]:
    """Decode the last stored messages of each subject, by reads that prove their completeness.

    Of a filter with more than 100 subjects, the last `count` messages of the filter are decoded,
    and the last one of each subject.
    """
    from twinstream.codecs import JsonSchemaCodec

    found: list[Checked] = []
    for subject, schema in contracts.items():
        stream = jet.bind_stream(stream_name).typed(JsonSchemaCodec(schema))
        fits: dict[int, bool] = {}
        newest, text = 0, ""
        for message in _last_of_each(stream, subject, count):
            error = _error(message)
            fits[message.seq] = error is None
            if error is not None and message.seq > newest:
                newest, text = message.seq, str(error)
        misfits = len(fits) - sum(fits.values())
        found.append(Checked(stream_name, subject, len(fits), misfits, text))
    return found


def _last_of_each(stream: Any, filter: str, count: int) -> Iterator[StreamMessage[Any]]:
    """Yield the last messages of each subject that matches a filter; some may come twice."""
    stored: Iterator[tuple[str, int]] = iter(stream.subjects(filter))
    subjects = dict(islice(stored, _EACH + 1))
    if len(subjects) <= _EACH:
        for subject, number in subjects.items():
            yield from _last(stream, subject, count, number <= count)
        return
    yield from _last(stream, filter, count)
    names = chain(subjects, (subject for subject, _ in stored))
    while part := list(islice(names, _SNAPSHOT)):
        yield from stream.snapshot(part).values()


def _last(
    stream: Any, subject: str, count: int, is_rare: bool = False
) -> Iterable[StreamMessage[Any]]:
    """Return the last messages of a subject, oldest first. `is_rare`: it has no more than that."""
    state = stream.info().state
    first, end = max(state.first_seq, 1), state.last_seq + 1
    window = end if is_rare else count
    while True:
        start = max(first, end - window)
        kept: deque[StreamMessage[Any]] = deque(maxlen=count)
        with stream.read(start, end, subjects=subject) as messages:
            kept.extend(messages)
        if len(kept) == count or start <= first:
            return kept
        window *= _FURTHER


def _error(message: StreamMessage[Any]) -> PayloadError | None:
    from twinstream.errors import PayloadError

    try:
        _ = message.payload
    except PayloadError as error:
        return error
    return None


def checked_last(jet: JetStream, steps: Iterable[Step], count: int) -> list[Checked]:
    """Check the last messages of all streams of a plan that exist and have schemas."""
    from js_sync import StreamNotFound

    found: list[Checked] = []
    for step in steps:
        metadata = step.config.members.get("metadata")
        if step.kind != "stream" or not isinstance(metadata, dict):
            continue
        contracts = stored_contracts(cast("Any", metadata))
        try:
            found += check_last(jet, step.config.name, contracts, count)
        except StreamNotFound:
            # The step creates the stream.
            continue
    return found
