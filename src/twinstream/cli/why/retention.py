"""Whether the retention of the stream removed a message: an acknowledgement, or no interest."""

from __future__ import annotations

from typing import Final

from twinstream.cli.why.consumer_events import acknowledged_at, removed_while_pending, terminated_at
from twinstream.cli.why.facts import Facts
from twinstream.cli.why.removal_cause import Cause, stored_between
from twinstream.models import RetentionPolicy

__all__ = ["by_acknowledgement", "by_no_interest"]

_ACKNOWLEDGED: Final = "acknowledged_and_removed"


def by_acknowledgement(facts: Facts) -> Cause | None:
    """Judge the removal after an acknowledgement; None if the stream keeps such messages."""
    retention = facts.stream.config.retention
    if retention not in (RetentionPolicy.WORKQUEUE, RetentionPolicy.INTEREST):
        return None
    if (claim := terminated_at(facts)) is not None:
        return Cause("terminated", "reported", claim.text, claim.source)
    if (claim := acknowledged_at(facts)) is not None:
        return Cause(_ACKNOWLEDGED, "reported", claim.text, claim.source)
    source = f"stream info: config.retention = {retention}"
    if removed_while_pending(facts) is not None:
        text = "not by an acknowledgement: it was removed while it waited for one"
        return Cause(_ACKNOWLEDGED, "unlikely", text, source)
    return _from_floors(facts, source)


def _from_floors(facts: Facts, source: str) -> Cause:
    """Judge, from the consumer's positions alone, whether an acknowledgement removed the message.

    The result is never certain, because the positions do not name single messages.
    """
    floor, last = facts.ack_floor, facts.delivered
    if facts.seq > last.stream_seq:
        return _of_others(facts, source)
    source += ", consumer info: ack_floor, delivered"
    # Each message before this one needs a delivery, unless it was removed without one.
    before = facts.seq - max(facts.stream.config.first_seq or 1, 1)
    if before >= last.consumer_seq and not facts.filters:
        text = (
            f"the consumer made only {last.consumer_seq} deliveries, too few for all up to this"
            " message: it skipped messages that were removed before"
        )
        return Cause(_ACKNOWLEDGED, "unlikely", text, source)
    if facts.seq <= floor.stream_seq:
        text = f"the consumer has finished with all up to {floor.stream_seq}"
    else:
        text = f"the consumer has delivered all up to {last.stream_seq}"
    return Cause(
        _ACKNOWLEDGED, "likely", f"{text}, and the stream removes what is acknowledged", source
    )


def _of_others(facts: Facts, source: str) -> Cause:
    """Judge the acknowledgements of other consumers of the stream."""
    source += ", consumer info: delivered"
    text = f"this consumer has delivered only up to {facts.delivered.stream_seq}"
    if facts.stream.state.consumer_count > 1:
        text += "; another consumer of the stream may have acknowledged it"
        return Cause(_ACKNOWLEDGED, "possible", text, source)
    return Cause(_ACKNOWLEDGED, "excluded", f"not by an acknowledgement: {text}", source)


def by_no_interest(facts: Facts) -> Cause | None:
    """Judge the lack of interest; None unless the retention of the stream is `interest`."""
    if facts.stream.config.retention != RetentionPolicy.INTEREST:
        return None
    source = "stream info: config.retention = interest, consumer info: created"
    earliest, latest = stored_between(facts)
    if latest is not None and latest < facts.consumer.created:
        text = "this consumer did not exist yet, and the stream keeps only what a consumer wants"
        return Cause("no_interest", "likely", text, source)
    if facts.filters:
        text = "the subject may not match this consumer, and the stream keeps what a consumer wants"
        return Cause("no_interest", "possible", text, source)
    if facts.consumer.created < earliest:
        text = "not for lack of interest: this consumer takes all subjects, and existed before"
        return Cause("no_interest", "excluded", text, source)
    text = "this consumer may not have existed yet"
    return Cause("no_interest", "possible", text, source)
