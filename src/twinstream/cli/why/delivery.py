"""What became of a message that the consumer has passed: acknowledged, pending, given up.

Source: nats-server 2.11 to 2.15. The ack floor is right below the first message that is pending
acknowledgement. Above it, up to the last delivery, the info of the consumer says only how many
messages are pending. So what is not proven by their number stays unknown.
"""

from __future__ import annotations

from typing import Final

from twinstream.cli.why.answer import Claim, Finding, Verdict
from twinstream.cli.why.consumer_events import (
    acknowledged_at,
    given_up_at,
    most_deliveries,
    terminated_at,
)
from twinstream.cli.why.facts import Facts
from twinstream.cli.why.redelivery import (
    cause_of_redelivery,
    no_pulls,
    refused_and_waiting,
)
from twinstream.core.server_faults.table import LAZY_FLOOR
from twinstream.models import AckPolicy

__all__ = ["acknowledged", "between_floors", "ended", "redelivered_before", "without_acks"]

_FLOOR: Final = "consumer info: ack_floor.stream_seq"
_NUMBERS: Final = "consumer info: num_ack_pending, ack_floor, delivered"


def ended(facts: Facts) -> Finding | None:
    """Return how the delivery of the message ended, if a stored advisory says so."""
    if (claim := terminated_at(facts)) is not None:
        verdict = Verdict("terminated", f"not delivered again: {claim.text}", "reported")
    elif (claim := acknowledged_at(facts)) is not None:
        verdict = Verdict("acknowledged", claim.text, "reported")
    elif (claim := given_up_at(facts)) is not None:
        verdict = Verdict("given_up", f"not delivered again: {claim.text}", "reported")
    else:
        return None
    return Finding(verdict, (claim,))


def without_acks(facts: Facts) -> Finding | None:
    """Return that the message was delivered by a consumer without acknowledgements."""
    if facts.config.ack_policy not in (None, AckPolicy.NONE):
        return None
    claim = Claim("the consumer expects no acknowledgements", "consumer info: config.ack_policy")
    text = "delivered once, and never again: the consumer expects no acknowledgement"
    return Finding(Verdict("delivered", text, "likely"), (claim, *_passed(facts)))


def acknowledged(facts: Facts) -> Finding | None:
    """Return that the consumer has finished with the message: it is not above the ack floor."""
    if facts.seq > facts.ack_floor.stream_seq:
        return None
    others = "terminated by a client"
    if _max_deliver(facts):
        others += f", or given up after {_max_deliver(facts)} deliveries"
    claim = Claim(f"the consumer has finished with all up to {facts.ack_floor.stream_seq}", _FLOOR)
    text = f"acknowledged; the server does not keep whether it was {others} instead"
    return Finding(Verdict("acknowledged", text, "likely"), (claim, *_passed(facts)))


def between_floors(facts: Facts) -> Finding:
    """Return what became of a message above the ack floor that was delivered."""
    pending = facts.consumer.num_ack_pending or 0
    if not pending:
        return _none_pending(facts)
    proof, again = _proof_of_pending(facts), facts.consumer.num_redelivered or 0
    refused = refused_and_waiting(facts, is_delivered_once=not again)
    if refused is not None:
        return refused
    numbers = (_numbers(facts), *no_pulls(facts))
    if proof is None:
        return Finding(_ambiguous(facts), (*_passed(facts), *numbers))
    # A message that was given up still counts as delivered again, so the number proves less then.
    if most_deliveries(facts) > 1 or (again == pending and not _max_deliver(facts)):
        cause = cause_of_redelivery(facts)
        return Finding(cause.verdict, (proof, *numbers, *cause.claims), (_pending(proof, facts),))
    return Finding(_pending(proof, facts), (proof, *numbers))


def redelivered_before(facts: Facts) -> Finding | None:
    """Return why a message that is no longer pending was delivered more than once, if known."""
    return cause_of_redelivery(facts) if most_deliveries(facts) > 1 else None


def _none_pending(facts: Facts) -> Finding:
    """Return what became of the message if nothing is pending, although the floor is below.

    An acknowledgement of the last pending message raises the floor to the last delivery. The end of
    deliveries by `max_deliver` does not. In older servers, the floor then stays where it is.
    """
    claim = Claim("no message is pending, and the ack floor is below", _NUMBERS)
    if not _max_deliver(facts):
        text = "delivered, and not pending; the server does not say how it ended"
        return Finding(Verdict("unknown", text, "unknown"), (claim, *_passed(facts)))
    if LAZY_FLOOR.affects(facts.server):
        text = (
            f"acknowledged, or given up after {_max_deliver(facts)} deliveries: the ack floor of"
            " this server stays where it is after it gave up a message"
        )
        return Finding(Verdict("unknown", text, "unknown"), (claim, *_passed(facts)))
    text = f"not delivered again: given up after {_max_deliver(facts)} deliveries"
    limit = Claim(
        f"the consumer delivers a message at most {_max_deliver(facts)} times",
        "consumer info: config.max_deliver",
    )
    return Finding(Verdict("given_up", text, "likely"), (claim, limit, *_passed(facts)))


def _proof_of_pending(facts: Facts) -> Claim | None:
    """Return why the message must be pending, None if this is not known."""
    window, pending = facts.window, facts.consumer.num_ack_pending or 0
    if window is None:
        return None
    if window.count == pending:
        text = f"all {pending} messages above the ack floor up to the last delivery are pending"
        return Claim(text, f"{_NUMBERS}, stored messages")
    if window.first_seq == facts.seq and not _max_deliver(facts):
        text = (
            "it is the first message above the ack floor, which stays below the first pending one"
        )
        return Claim(text, f"{_FLOOR}, stored messages", "likely")
    return None


def _pending(proof: Claim, facts: Facts) -> Verdict:
    text = "delivered, and waits for its acknowledgement"
    again = facts.consumer.num_redelivered or 0
    if again and (again != facts.consumer.num_ack_pending or _max_deliver(facts)):
        text += "; whether it was delivered again is unknown"
    return Verdict("pending", text, proof.confidence)


def _ambiguous(facts: Facts) -> Verdict:
    text = (
        "delivered; whether it is acknowledged or still pending is unknown: between the ack floor"
        f" {facts.ack_floor.stream_seq} and the last delivery {facts.delivered.stream_seq} the"
        f" server says only that {facts.consumer.num_ack_pending} are pending"
    )
    return Verdict("unknown", text, "unknown")


def _numbers(facts: Facts) -> Claim:
    text = (
        f"{facts.consumer.num_ack_pending} are pending; {facts.consumer.num_redelivered} were"
        " delivered again, which includes those that were given up"
    )
    return Claim(text, "consumer info: num_ack_pending, num_redelivered")


def _passed(facts: Facts) -> tuple[Claim, ...]:
    """Return that the consumer has passed the message, and what may contradict its delivery."""
    text = f"it was delivered: the last delivery is {facts.delivered.stream_seq}"
    found = [Claim(text, "consumer info: delivered.stream_seq", "likely")]
    if facts.filters:
        source = "consumer info: config.filter_subject"
        found.append(Claim("the filters may have been others then", source, "possible"))
    return tuple(found)


def _max_deliver(facts: Facts) -> int:
    """Return the largest number of deliveries of a message, 0 if there is none."""
    return max(facts.config.max_deliver or 0, 0)
