"""Why a message was delivered again: a refusal, the end of `ack_wait`, or another leader."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from twinstream.cli.value_text import in_time, rfc3339
from twinstream.cli.why.answer import Claim, Finding, Verdict
from twinstream.cli.why.consumer_events import has_all, leader_changes, most_deliveries, naks
from twinstream.cli.why.facts import Facts
from twinstream.models import Timestamp

__all__ = ["cause_of_redelivery", "no_pulls", "refused_and_waiting"]

# How long after its creation a consumer may get its first leader.
_FIRST_ELECTION: Final = timedelta(seconds=10)


def refused_and_waiting(facts: Facts, *, is_delivered_once: bool) -> Finding | None:
    """Return that a client refused the message, which was not delivered again since.

    Args:
        facts: The facts.
        is_delivered_once: Whether it is known that the message was delivered only once.
    """
    refused = naks(facts)
    if not refused:
        return None
    claim, event = refused[-1]
    last = facts.delivered.last_active
    if last is not None and last < event.timestamp:
        proof = Claim(f"the last delivery was before, at {rfc3339(last)}", _LAST_DELIVERY)
    elif is_delivered_once and event.deliveries == 1:
        proof = Claim("no pending message was delivered again", "consumer info: num_redelivered")
    else:
        return None
    text = (
        f"{claim.text}, and it is not delivered again yet: the refusal may ask for a delay,"
        " which no advisory contains"
    )
    claims = (*(each for each, _ in refused), proof, *no_pulls(facts))
    return Finding(Verdict("nak_pending", text, "reported"), claims)


_LAST_DELIVERY: Final = "consumer info: delivered.last_active"


def no_pulls(facts: Facts) -> tuple[Claim, ...]:
    """Return that no client asks for messages, if none does.

    The server delivers a message of a pull consumer again only to answer a pull request.
    """
    if facts.config.deliver_subject or facts.consumer.num_waiting:
        return ()
    text = "no pull request waits: nothing is delivered again until a client asks for messages"
    return (Claim(text, "consumer info: num_waiting"),)


def cause_of_redelivery(facts: Facts) -> Finding:
    """Return why a message was delivered again that is known to have been."""
    refused = naks(facts)
    since = max(facts.message.time if facts.message else _EVER, facts.consumer.created)
    elected = leader_changes(facts, since)
    claims = (*(claim for claim, _ in refused), *elected, *_leader_since(facts, since))
    claims += _ack_wait(facts)
    # A refusal of the last known delivery is not known to have led to another one.
    known = max(most_deliveries(facts), 2)
    leading = [claim for claim, event in refused if event.deliveries < known]
    if leading:
        text = f"delivered again: {leading[-1].text}"
        return Finding(Verdict("redelivered_by_nak", text, "reported"), claims)
    if not has_all(facts, "nak", since):
        return Finding(Verdict("redelivered", _unknown_cause(facts), "unknown"), claims)
    assert facts.advisories is not None
    text = "no client refused an earlier delivery"
    none = Claim(text, f"stream {facts.advisories.stream_name}", "reported")
    if elected:
        text = f"delivered again after a change of the leader: {elected[-1].text}"
        verdict = Verdict("redelivered_after_leader_change", text, "likely")
    else:
        text = f"delivered again: {_wait(facts)} passed without an acknowledgement"
        verdict = Verdict("redelivered_by_ack_wait", text, "likely")
    return Finding(verdict, (none, *claims))


_EVER: Final = Timestamp.from_ns(0)


def _unknown_cause(facts: Facts) -> str:
    return (
        f"delivered again: {_wait(facts)} passed, a client refused it, or the leader of the"
        " consumer changed; the server keeps no record of this, only its advisories say it"
    )


def _wait(facts: Facts) -> str:
    if facts.config.backoff:
        return f"the backoff ({', '.join(in_time(each) for each in facts.config.backoff)})"
    wait = facts.config.ack_wait
    return f"ack_wait ({in_time(wait)})" if wait else "ack_wait"


def _ack_wait(facts: Facts) -> tuple[Claim, ...]:
    name = "backoff" if facts.config.backoff else "ack_wait"
    text = f"a message is delivered again when {_wait(facts)} has passed"
    return (Claim(text, f"consumer info: config.{name}"),)


def _leader_since(facts: Facts, since: Timestamp) -> tuple[Claim, ...]:
    """Return that the leader changed, if the server says since when it leads."""
    cluster, created = facts.consumer.cluster, facts.consumer.created
    leads = cluster.leader_since if cluster is not None else None
    if leads is None or leads <= since or leads <= created + _FIRST_ELECTION:
        return ()
    text = f"the present leader leads the consumer since {rfc3339(leads)}: the leader changed"
    return (Claim(text, "consumer info: cluster.leader_since (server 2.11.9)", "likely"),)
