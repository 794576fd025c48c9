"""Collect the facts about a message: a few requests, all of which only read."""

from __future__ import annotations

from collections.abc import Generator
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import click
from attrs import evolve, frozen

from twinstream.cli.value_text import rfc3339
from twinstream.cli.why.advisories import (
    AUDITS,
    CLOCKS,
    Advisories,
    Skipped,
    Stored,
    Subject,
    judged,
)
from twinstream.cli.why.facts import Facts, LaterMessages, Window
from twinstream.cli.why.removal_cause import stored_between
from twinstream.core.consume.advisories import decoded_event, event_subjects
from twinstream.core.wire.subject_match import widest
from twinstream.errors import ConsumerNotFound, MessageNotFound, StreamNotFound
from twinstream.models import ConsumerInfo, DeliverPolicy, StreamInfo, Timestamp

if TYPE_CHECKING:
    from js_sync import JetStream, Stream, StreamMessage

__all__ = ["Question", "gather"]

# How many messages are read to find the pending ones, to find what replaced a removed message, and
# from a stream of advisories.
_MOST_PENDING: Final = 10_000
_MOST_LATER: Final = 500
_MOST_ADVISORIES: Final = 100_000
# Messages can be large, and most of them are needed for a header only.
_MOST_BYTES: Final = 8 << 20


@frozen(kw_only=True)
class Question:
    """What the user asks, and what the user knows about the message."""

    stream_name: str
    consumer_name: str
    seq: int
    subject: str | None = None
    """The subject of a removed message."""
    advisories: str | None = None
    """The stream that stores advisories."""


def gather(jet: JetStream, question: Question, timeout: float, server: tuple[int, ...]) -> Facts:
    """Request what is needed to answer a question.

    Args:
        jet: The JetStream context.
        question: The question.
        timeout: Seconds without progress after which a read of several messages fails.
        server: The version of the server.

    Raises:
        StreamNotFound: The stream, or the one of advisories, does not exist.
        ConsumerNotFound: The consumer does not exist.
        click.UsageError: The message is stored, and has another subject than the given one.
    """
    stream = jet.bind_stream(question.stream_name)
    # The consumer first: what it has delivered is then stored in the stream as described.
    consumer = _described(jet, question)
    facts = Facts(
        server=server,
        seq=question.seq,
        consumer=consumer,
        stream=stream.info(),
        subject=question.subject,
    )
    if facts.seq <= facts.stream.state.last_seq:
        message = _found(stream, question.seq)
        if message is not None:
            facts = _with_message(stream, facts, message, timeout)
        else:
            facts = _without_message(stream, facts, timeout)
    if question.advisories is None:
        return facts
    return evolve(facts, advisories=_advisories(jet, question.advisories, facts, timeout))


def _described(jet: JetStream, question: Question) -> ConsumerInfo:
    """Return the info of the consumer. The error for a missing one says when it was removed."""
    try:
        return jet.bind_consumer(question.stream_name, question.consumer_name).info()
    except ConsumerNotFound as error:
        if question.advisories is not None and (removed := _removal(jet, question)) is not None:
            error.add_note(
                f"advisory {removed.seq} of {question.advisories} reports that it was removed at"
                f" {rfc3339(removed.time)}"
            )
        raise


def _removal(jet: JetStream, question: Question) -> StreamMessage[Any] | None:
    """Return the last stored advisory of the removal of a consumer, None if there is none."""
    subject = f"$JS.EVENT.ADVISORY.CONSUMER.DELETED.{question.stream_name}.{question.consumer_name}"
    try:
        found = jet.bind_stream(question.advisories or "").get_last_message(subject)
    except (MessageNotFound, StreamNotFound):
        return None
    return None if decoded_event(subject, found.data).problem else found


def _found(
    stream: Stream, seq: int, *, from_it: bool = False, subject: str = ">"
) -> StreamMessage[Any] | None:
    """Return the message at a sequence, or the first one from it on; None if there is none."""
    try:
        return stream.get_next_message(subject, seq=seq) if from_it else stream.get_message(seq)
    except MessageNotFound:
        return None


def _with_message(
    stream: Stream, facts: Facts, message: StreamMessage[Any], timeout: float
) -> Facts:
    if facts.subject not in (None, message.subject):
        raise click.UsageError(
            f"message {facts.seq} is stored with the subject {message.subject}, not"
            f" {facts.subject}: omit --subject"
        )
    facts = evolve(facts, message=message, subject=message.subject)
    return evolve(
        facts, successor=_successor(stream, facts), window=_window(stream, facts, timeout)
    )


def _successor(stream: Stream, facts: Facts) -> StreamMessage[Any] | None:
    """Return the next message that competes with this one for being the last one."""
    policy = facts.config.deliver_policy
    if policy == DeliverPolicy.LAST:
        subjects: tuple[str, ...] = facts.filters or (">",)
    elif policy == DeliverPolicy.LAST_PER_SUBJECT and facts.subject is not None:
        subjects = (facts.subject,)
    else:
        return None
    found = (_found(stream, facts.seq + 1, from_it=True, subject=each) for each in subjects)
    return min((each for each in found if each), key=lambda each: each.seq, default=None)


def _window(stream: Stream, facts: Facts, timeout: float) -> Window | None:
    """Count the messages that may be pending, up to one more than are pending."""
    floor, last = facts.ack_floor.stream_seq, facts.delivered.stream_seq
    pending, start = facts.consumer.num_ack_pending or 0, _first_to_deliver(facts)
    if start is None or not (floor < facts.seq <= last and 0 < pending <= _MOST_PENDING):
        return None
    subjects = widest(facts.filters) or None
    reading = stream.read(**start, end=last + 1, subjects=subjects, idle_timeout=timeout)
    with reading:
        found = [message.seq for message in islice(reading, pending + 1)]
    return Window(first_seq=found[0], count=len(found)) if found else None


def _first_to_deliver(facts: Facts) -> dict[str, Any] | None:
    """Return where to read messages that the consumer has delivered, above its ack floor.

    Servers before 2.14 report 0 as the ack floor until the first acknowledgement, also of a
    consumer that began later. Return None if it is not known where it began, or if the consumer
    delivers only some of the messages that match.
    """
    config, floor = facts.config, facts.ack_floor.stream_seq
    match config.deliver_policy:
        case DeliverPolicy.LAST_PER_SUBJECT:
            return None
        case _ if floor:
            return {"start": floor + 1}
        case DeliverPolicy.LAST:
            return None
        case DeliverPolicy.NEW:
            return {"start_time": facts.consumer.created}
        case DeliverPolicy.BY_START_TIME:
            return {"start_time": config.opt_start_time}
        case _:
            return {"start": config.opt_start_seq or 1}


def _without_message(stream: Stream, facts: Facts, timeout: float) -> Facts:
    subject, older = facts.subject, None
    if subject is not None:
        older = _found(stream, 1, from_it=True, subject=subject)
    return evolve(
        facts,
        next=_found(stream, facts.seq, from_it=True),
        has_older_of_subject=older is not None and older.seq < facts.seq,
        later=_later(stream, facts, timeout),
    )


def _later(stream: Stream, facts: Facts, timeout: float) -> LaterMessages:
    """Read messages above the sequence, which may show what removed the message."""
    config = facts.stream.config
    is_overwritten = facts.subject is not None and config.max_msgs_per_subject
    if not (config.allow_rollup_hdrs or config.subject_delete_marker_ttl or is_overwritten):
        return LaterMessages()
    found: list[StreamMessage[Any]] = []
    size, is_whole = 0, True
    reading = stream.read(facts.seq + 1, subjects=facts.subject, idle_timeout=timeout)
    with reading:
        for message in reading:
            if len(found) == _MOST_LATER or size > _MOST_BYTES:
                is_whole = False
                break
            found.append(message)
            size += len(message.data)
    return LaterMessages(messages=tuple(found), is_whole=is_whole)


def _advisories(jet: JetStream, name: str, facts: Facts, timeout: float) -> Advisories:
    """Read the stored advisories about a message, its consumer and its stream."""
    stream = jet.bind_stream(name)
    described = stream.info()
    subject = Subject(
        stream_name=facts.consumer.stream_name,
        consumer_name=facts.consumer.name,
        seq=facts.seq,
        stored_after=facts.message.time if facts.message else stored_between(facts)[0],
        consumer_created=facts.consumer.created,
        last_delivery=facts.delivered.consumer_seq,
    )
    found = list[Stored | Skipped]()
    reading = _advisory_messages(stream, subject, timeout)
    for message in islice(reading, _MOST_ADVISORIES):
        if (each := judged(message, subject)) is not None:
            found.append(each)
    is_cut = next(reading, None) is not None
    reading.close()
    return Advisories(
        stream_name=name,
        created=described.created,
        is_whole=not is_cut and _has_all(described, subject.stored_after),
        subjects=tuple(described.config.subjects or ()),
        events=tuple(each for each in found if isinstance(each, Stored)),
        skipped=tuple(each for each in found if isinstance(each, Skipped)),
    )


def _advisory_messages(
    stream: Stream, subject: Subject, timeout: float
) -> Generator[StreamMessage[Any]]:
    """Read the stored advisories that can be about a message, its consumer or its stream.

    Each kind of subject is read by itself. A consumer of server 2.11.11 with the filters `$X.V.A`
    and `$X.*.C` skips messages of the first subject that are before the first one of the second.
    """
    start = subject.stored_after - CLOCKS
    for each in (
        *event_subjects(subject.stream_name, subject.consumer_name, None),
        f"$JS.EVENT.*.STREAM.*.{subject.stream_name}",
        AUDITS,  # the most, so the last
    ):
        with stream.read(start_time=start, subjects=each, idle_timeout=timeout) as reading:
            yield from reading


def _has_all(described: StreamInfo, since: Timestamp) -> bool:
    """Return whether a stream still has all that it has stored since a time."""
    state = described.state
    if state.num_deleted:
        return False
    is_from_start = state.first_seq <= max(described.config.first_seq or 1, 1)
    return is_from_start or (
        state.messages > 0 and state.first_ts is not None and state.first_ts <= since
    )
