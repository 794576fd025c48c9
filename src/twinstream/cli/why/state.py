"""The claims that belong to each answer: the message, the stream, the consumer, the advisories."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from twinstream.cli.server.event_view import describe
from twinstream.cli.value_text import in_time, rfc3339
from twinstream.cli.why.advisories import Advisories
from twinstream.cli.why.answer import Claim
from twinstream.cli.why.facts import Facts
from twinstream.models import ApiAudit, DeliverPolicy
from twinstream.records.header_names import TTL

__all__ = ["advisory_claims", "state_claims"]

# What an advisory says in the table: at most this many, of this length.
_MOST: Final = 50
_LONG: Final = 300


def state_claims(facts: Facts) -> Iterator[Claim]:
    """Yield what the server says about the message, the stream and the consumer."""
    message, state = facts.message, facts.stream.state
    if message is not None:
        text = f"stored at {rfc3339(message.time)}, subject {message.subject}"
        yield Claim(text, f"message {message.seq}")
        yield from _leaves(facts)
    elif facts.seq <= state.last_seq:
        yield Claim("the stream does not have the message", f"message {facts.seq}: not found")
    messages = f"{state.messages} messages, first sequence {state.first_seq}, last {state.last_seq}"
    yield Claim(messages, "stream info: state")
    floor, last = facts.ack_floor, facts.delivered
    text = f"ack floor {floor.stream_seq}, last delivery {last.stream_seq}"
    yield Claim(f"{text}, {last.consumer_seq} deliveries", "consumer info: ack_floor, delivered")
    yield from _earlier_consumer(facts)


def _leaves(facts: Facts) -> Iterator[Claim]:
    """Yield until when a stored message stays."""
    message, limit = facts.message, facts.stream.config.max_age
    if message is None:
        return
    if message.headers.get(TTL):
        text = f"the message has a TTL of {message.headers[TTL]}"
        yield Claim(text, f"message {message.seq}: header {TTL} (ADR-43)")
    if limit:
        ends = rfc3339(message.time + limit)
        text = f"max_age ({in_time(limit)}) removes it at {ends}"
        yield Claim(text, "stream info: config.max_age")


def _earlier_consumer(facts: Facts) -> Iterator[Claim]:
    """Yield that a consumer of the same name may have delivered a stored message before."""
    if facts.message is None or facts.config.deliver_policy != DeliverPolicy.ALL:
        return
    if facts.message.time < facts.consumer.created:
        text = (
            "the consumer is younger than the message: an earlier consumer of this name may have"
            " delivered it, too"
        )
        yield Claim(text, "consumer info: created", "possible")


def advisory_claims(facts: Facts) -> Iterator[Claim]:
    """Yield what stored advisories say, what was skipped, and that there are none."""
    advisories = facts.advisories
    if advisories is None:
        text = "refusals, terminations, purges and elections are visible in advisories only"
        yield Claim(text, "no --advisories", "unknown")
        return
    for stored in advisories.events[-_MOST:]:
        if not isinstance(stored.event.record, ApiAudit):
            text = f"{describe(stored.event.record)[:_LONG]}, at {rfc3339(stored.time)}"
            yield Claim(text, advisories.source(stored), "reported")
    yield from _gaps(advisories)


def _gaps(advisories: Advisories) -> Iterator[Claim]:
    """Yield claims about advisories that could not be read or may be missing."""
    name = advisories.stream_name
    for each in advisories.skipped[:_MOST]:
        yield Claim(f"skipped: {each.reason[:_LONG]}", f"advisory {each.seq} of {name}", "unknown")
    if len(advisories.skipped) > _MOST:
        count = len(advisories.skipped) - _MOST
        yield Claim(f"skipped: {count} more", f"stream {name}", "unknown")
    if not advisories.is_whole:
        text = "advisories may be missing: the stream has removed some, or has too many to read"
        yield Claim(text, f"stream {name}", "unknown")
