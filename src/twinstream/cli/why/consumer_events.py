"""What stored advisories report about the deliveries of a message by its consumer."""

from __future__ import annotations

from typing import Final, TypeVar

from twinstream.cli.value_text import rfc3339
from twinstream.cli.why.advisories import Stored
from twinstream.cli.why.answer import Claim
from twinstream.cli.why.facts import Facts
from twinstream.core.workers.dead_letter import SERVER_REASONS
from twinstream.models import (
    ConsumerAck,
    ConsumerLeaderElected,
    MaxDeliver,
    Model,
    Nak,
    Terminated,
    Timestamp,
)

__all__ = [
    "acknowledged_at",
    "given_up_at",
    "has_all",
    "leader_changes",
    "most_deliveries",
    "naks",
    "removed_while_pending",
    "terminated_at",
]

M = TypeVar("M", bound=Model)

# A reason is text of a client, of any length.
_LONG: Final = 200


def terminated_at(facts: Facts) -> Claim | None:
    """Return when a client ended the delivery of the message, None if no advisory says so."""
    for stored, event in _of_kind(facts, Terminated):
        if event.reason not in SERVER_REASONS:
            reason = (event.reason or "no reason given")[:_LONG]
            return _claim(facts, stored, f"a client terminated it: {reason}")
    return None


def removed_while_pending(facts: Facts) -> Claim | None:
    """Return when the message was removed before it was acknowledged, None if not known.

    The server itself publishes that such a message is terminated, with a reason of its own.
    """
    for stored, event in _of_kind(facts, Terminated):
        if event.reason in SERVER_REASONS:
            text = f"it was removed while it waited for an acknowledgement: {event.reason}"
            return _claim(facts, stored, text)
    return None


def given_up_at(facts: Facts) -> Claim | None:
    """Return when the message reached `max_deliver`, None if no advisory says so."""
    for stored, event in _of_kind(facts, MaxDeliver):
        return _claim(facts, stored, f"given up after {event.deliveries} deliveries")
    return None


def acknowledged_at(facts: Facts) -> Claim | None:
    """Return when the message was acknowledged, None if no metric says so.

    Only consumers with `sample_freq` publish this metric.
    """
    for stored, event in _of_kind(facts, ConsumerAck):
        return _claim(facts, stored, f"acknowledged at delivery {event.deliveries}")
    return None


def naks(facts: Facts) -> list[tuple[Claim, Nak]]:
    """Return the refusals of the message by clients, the oldest first."""
    return [
        (_claim(facts, stored, f"a client refused delivery {event.deliveries}"), event)
        for stored, event in _of_kind(facts, Nak)
    ]


def most_deliveries(facts: Facts) -> int:
    """Return the largest number of deliveries that an advisory of the message names, or 0."""
    if facts.advisories is None:
        return 0
    found = [getattr(each.event.record, "deliveries", 0) for each in facts.advisories.events]
    return max(found, default=0)


def leader_changes(facts: Facts, since: Timestamp) -> list[Claim]:
    """Return the reported elections of a leader of the consumer after a time.

    The election right after the creation of the consumer is none.
    """
    found = _of_kind(facts, ConsumerLeaderElected)
    created = facts.consumer.created
    elected = [(stored, event) for stored, event in found if stored.time > created]
    if facts.advisories is not None and facts.advisories.created <= created:
        elected = elected[1:]
    return [
        _claim(facts, stored, f"{event.leader or 'a server'} became the leader of the consumer")
        for stored, event in elected
        if stored.time > since
    ]


def has_all(facts: Facts, kind: str, since: Timestamp) -> bool:
    """Return whether no advisory of a kind about the consumer can be missing since a time."""
    stream, consumer = facts.consumer.stream_name, facts.consumer.name
    return facts.advisories is not None and facts.advisories.has_all(kind, stream, consumer, since)


def _of_kind(facts: Facts, kind: type[M]) -> list[tuple[Stored, M]]:
    return [] if facts.advisories is None else facts.advisories.of_kind(kind)


def _claim(facts: Facts, stored: Stored, text: str) -> Claim:
    assert facts.advisories is not None
    source = facts.advisories.source(stored)
    return Claim(f"{text}, at {rfc3339(stored.time)}", source, "reported")
