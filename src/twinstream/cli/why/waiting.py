"""Why a stored message that a consumer has to deliver is not delivered yet.

Several reasons can hold at once. The first one is the verdict, the others are added to it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from twinstream.cli.value_text import in_time, rfc3339
from twinstream.cli.why.answer import Claim, Finding, Kind, Verdict
from twinstream.cli.why.facts import Facts
from twinstream.models import PriorityPolicy, ReplayPolicy

__all__ = ["not_delivered_yet"]

_Reason = tuple[Kind, Claim]


def not_delivered_yet(facts: Facts) -> Finding | None:
    """Return why the message waits, None if the consumer has passed its sequence."""
    if facts.seq <= facts.delivered.stream_seq:
        return None
    last = facts.delivered.stream_seq
    place = Claim(
        f"the consumer has delivered up to {last}, and has {facts.consumer.num_pending} to deliver",
        "consumer info: delivered.stream_seq, num_pending",
    )
    reasons = [found for judge in _JUDGES if (found := judge(facts)) is not None]
    claims = (place, *(claim for _, claim in reasons), *_hints(facts))
    verdicts = [
        Verdict(kind, f"not delivered yet: {claim.text}", claim.confidence)
        for kind, claim in reasons
    ]
    if not verdicts:
        text = "not delivered yet: nothing that the server reports prevents it"
        return Finding(Verdict("waiting", text, "unknown"), claims)
    return Finding(verdicts[0], claims, tuple(verdicts[1:]))


def _no_leader(facts: Facts) -> _Reason | None:
    cluster = facts.consumer.cluster
    if cluster is None or cluster.leader:
        return None
    return "no_leader", Claim("the consumer has no leader", "consumer info: cluster.leader")


def _paused(facts: Facts) -> _Reason | None:
    if not facts.consumer.paused:
        return None
    left = facts.consumer.pause_remaining
    text = "the consumer is paused" + (f" for {in_time(left)} more" if left else "")
    return "paused", Claim(text, "consumer info: paused, pause_remaining (server 2.11)")


def _max_ack_pending(facts: Facts) -> _Reason | None:
    limit, pending = facts.config.max_ack_pending or 0, facts.consumer.num_ack_pending or 0
    if limit <= 0 or pending < limit:
        return None
    text = f"{pending} messages wait for an acknowledgement, of at most {limit}"
    source = "consumer info: num_ack_pending, config.max_ack_pending"
    return "max_ack_pending", Claim(text, source)


def _pinned(facts: Facts) -> _Reason | None:
    """Judge a pin while requests of other clients wait; otherwise no client pulls at all."""
    if facts.config.priority_policy != PriorityPolicy.PINNED_CLIENT:
        return None
    for group in facts.consumer.priority_groups or ():
        if group.pinned_client_id and facts.consumer.num_waiting:
            since = f" since {rfc3339(group.pinned_ts)}" if group.pinned_ts else ""
            text = f"only the client {group.pinned_client_id} of group {group.group} gets messages"
            source = "consumer info: priority_groups, num_waiting (ADR-42)"
            return "pinned", Claim(text + since, source)
    return None


def _no_pull(facts: Facts) -> _Reason | None:
    if facts.config.deliver_subject or facts.consumer.num_waiting:
        return None
    text = "no pull request waits: no client asks for messages"
    return "no_pull", Claim(text, "consumer info: num_waiting")


def _no_subscriber(facts: Facts) -> _Reason | None:
    if not facts.config.deliver_subject or facts.consumer.push_bound:
        return None
    text = f"no client listens to {facts.config.deliver_subject}"
    return "no_subscriber", Claim(text, "consumer info: push_bound, config.deliver_subject")


_JUDGES: Final[tuple[Callable[[Facts], _Reason | None], ...]] = (
    _no_leader,
    _paused,
    _max_ack_pending,
    _pinned,
    _no_pull,
    _no_subscriber,
)


def _hints(facts: Facts) -> list[Claim]:
    """Return settings that delay deliveries without being visible in the state."""
    config, found = facts.config, list[Claim]()
    if config.replay_policy == ReplayPolicy.ORIGINAL:
        text = "the consumer repeats the pauses with which the messages were stored"
        found.append(Claim(text, "consumer info: config.replay_policy", "possible"))
    if config.rate_limit_bps:
        text = f"the consumer delivers at most {config.rate_limit_bps} bits per second"
        found.append(Claim(text, "consumer info: config.rate_limit_bps", "possible"))
    if config.priority_policy == PriorityPolicy.OVERFLOW:
        text = "a pull request may ask for more pending messages than there are"
        found.append(Claim(text, "consumer info: config.priority_policy (ADR-42)", "possible"))
    if config.inactive_threshold and not facts.consumer.num_waiting:
        length = in_time(config.inactive_threshold)
        text = f"the server removes the consumer after {length} without clients"
        found.append(Claim(text, "consumer info: config.inactive_threshold", "likely"))
    if facts.consumer.num_redelivered:
        text = "messages that are delivered again go first"
        found.append(Claim(text, "consumer info: num_redelivered", "possible"))
    return found
