"""The answer to why a message is where it is: derived from facts, without I/O."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from twinstream.cli.why.answer import Answer, Claim, Finding, Verdict
from twinstream.cli.why.delivery import (
    acknowledged,
    between_floors,
    ended,
    redelivered_before,
    without_acks,
)
from twinstream.cli.why.facts import Facts
from twinstream.cli.why.removal import removed
from twinstream.cli.why.start import before_start
from twinstream.cli.why.state import advisory_claims, state_claims
from twinstream.cli.why.waiting import not_delivered_yet
from twinstream.core.wire.subject_match import matcher

__all__ = ["decide"]


def decide(facts: Facts) -> Answer:
    """Return the verdict about a message, and the claims from which it follows.

    The steps go from the stream to the consumer: is the message stored, does the consumer want it,
    has it delivered it, and what came of the delivery.
    """
    finding = next(found for step in _STEPS if (found := step(facts)) is not None)
    also, claims = list(finding.also), [*state_claims(facts), *finding.claims]
    for other in (_filtered(facts), redelivered_before(facts)):
        known = {finding.verdict.kind, *(each.kind for each in also)}
        if other is not None and other.verdict.kind not in known:
            also.append(other.verdict)
            claims += other.claims
    used = {claim.source for claim in claims}
    claims += (claim for claim in advisory_claims(facts) if claim.source not in used)
    return Answer(finding.verdict, tuple(also), tuple(dict.fromkeys(claims)))


def _not_stored_yet(facts: Facts) -> Finding | None:
    """Return the finding that the stream has not reached the sequence, or None."""
    last = facts.stream.state.last_seq
    if facts.seq <= last:
        return None
    text = f"not stored yet: the last sequence of the stream is {last}"
    claims = [Claim(f"the last sequence is {last}", "stream info: state.last_seq")]
    mirror = facts.stream.mirror
    if mirror is not None and mirror.lag:
        lag = f"the stream is a mirror, and {mirror.lag} messages behind {mirror.name}"
        claims.append(Claim(lag, "stream info: mirror.lag"))
    return Finding(Verdict("not_stored_yet", text, "certain"), tuple(claims))


def _filtered(facts: Facts) -> Finding | None:
    """Return that the subject does not match the filters of the consumer."""
    matches, subject = matcher(facts.filters), facts.subject
    if subject is None or matches is None or matches(subject.encode("utf-8", "replace")):
        return None
    shown = ", ".join(facts.filters[:10]) + (", ..." if len(facts.filters) > 10 else "")
    text = f"not for this consumer: {subject} does not match {shown}"
    name = "filter_subjects" if facts.config.filter_subjects else "filter_subject"
    claim = Claim(f"the consumer wants only {shown}", f"consumer info: config.{name}")
    return Finding(Verdict("filtered", text, "certain"), (claim,))


# What is asked, in this order. The last step always has an answer.
_STEPS: Final[tuple[Callable[[Facts], Finding | None], ...]] = (
    _not_stored_yet,
    removed,
    _filtered,
    before_start,
    not_delivered_yet,
    ended,
    without_acks,
    acknowledged,
    between_floors,
)
