"""Whether a consumer began after the message: its deliver policy and its creation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from twinstream.cli.value_text import rfc3339
from twinstream.cli.why.answer import Claim, Confidence, Finding, Verdict
from twinstream.cli.why.facts import Facts
from twinstream.models import DeliverPolicy

__all__ = ["before_start"]


def before_start(facts: Facts) -> Finding | None:
    """Return that the consumer began after the message, None if it began before."""
    policy = facts.config.deliver_policy
    judge = _JUDGES.get(policy) if policy is not None else None
    claim = judge(facts) if judge is not None and facts.message is not None else None
    if claim is None:
        return None
    confidence: Confidence = "certain" if claim.confidence == "certain" else "likely"
    text = f"never to be delivered: the consumer began after it (deliver policy {policy})"
    return Finding(Verdict("before_start", text, confidence), (claim, *_delivered_nothing(facts)))


def _by_sequence(facts: Facts) -> Claim | None:
    start = facts.config.opt_start_seq or 0
    if facts.seq >= start:
        return None
    return Claim(f"the consumer began at sequence {start}", "consumer info: config.opt_start_seq")


def _by_time(facts: Facts) -> Claim | None:
    start = facts.config.opt_start_time
    if facts.message is None or start is None or facts.message.time >= start:
        return None
    text = f"the consumer began with messages from {rfc3339(start)} on"
    return Claim(text, "consumer info: config.opt_start_time")


def _new(facts: Facts) -> Claim | None:
    """Compare the time of the message with the creation of the consumer.

    The two times can be from clocks of two servers. A consumer that has delivered nothing is at its
    start, which needs no clock.
    """
    created = facts.consumer.created
    is_at_start = not facts.delivered.consumer_seq
    if is_at_start and facts.seq <= facts.delivered.stream_seq:
        text = f"the consumer has delivered nothing, and begins after {facts.delivered.stream_seq}"
        return Claim(text, "consumer info: delivered")
    if is_at_start or facts.message is None or facts.message.time >= created:
        return None
    text = f"the consumer was created at {rfc3339(created)}, after the message was stored"
    return Claim(text, "consumer info: created", "likely")


def _last(facts: Facts) -> Claim | None:
    successor, created = facts.successor, facts.consumer.created
    if successor is None or successor.time >= created:
        return None
    text = (
        f"message {successor.seq} was stored after it, and before the consumer was created at"
        f" {rfc3339(created)}"
    )
    return Claim(text, f"message {successor.seq}: time, consumer info: created", "likely")


_JUDGES: Final[dict[DeliverPolicy, Callable[[Facts], Claim | None]]] = {
    DeliverPolicy.BY_START_SEQUENCE: _by_sequence,
    DeliverPolicy.BY_START_TIME: _by_time,
    DeliverPolicy.NEW: _new,
    DeliverPolicy.LAST: _last,
    DeliverPolicy.LAST_PER_SUBJECT: _last,
}


def _delivered_nothing(facts: Facts) -> tuple[Claim, ...]:
    if facts.delivered.consumer_seq:
        return ()
    return (Claim("the consumer has delivered nothing yet", "consumer info: delivered"),)
