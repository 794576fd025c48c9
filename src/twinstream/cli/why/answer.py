"""The answer to the question: a verdict, and claims that each name their source."""

from __future__ import annotations

from typing import Literal

from attrs import frozen

__all__ = ["Answer", "Claim", "Confidence", "Finding", "Kind", "Verdict"]

Confidence = Literal["certain", "reported", "likely", "possible", "unlikely", "unknown"]
"""How far a claim can be trusted.

`certain` is a statement of the server in a reply, `reported` one of a stored advisory. `likely`,
`possible` and `unlikely` are conclusions. `unknown` is what the server does not keep.
"""

Kind = Literal[
    "acknowledged",
    "acknowledged_and_removed",
    "before_start",
    "deleted",
    "delivered",
    "expired",
    "filtered",
    "given_up",
    "lost",
    "max_ack_pending",
    "max_bytes",
    "max_msgs",
    "nak_pending",
    "never_stored",
    "no_interest",
    "no_leader",
    "no_pull",
    "no_subscriber",
    "not_in_origin",
    "not_stored_yet",
    "overwritten",
    "paused",
    "pending",
    "pinned",
    "purged",
    "redelivered",
    "redelivered_after_leader_change",
    "redelivered_by_ack_wait",
    "redelivered_by_nak",
    "removed",
    "removed_by_client",
    "rolled_up",
    "schedule_done",
    "terminated",
    "ttl_expired",
    "unknown",
    "waiting",
]
"""What a verdict says. The guide of the command describes each kind."""


@frozen
class Claim:
    """A statement about the message with the reply, the advisory or the rule that it is from."""

    text: str
    source: str
    confidence: Confidence = "certain"


@frozen
class Verdict:
    """What happened to the message."""

    kind: Kind
    text: str
    confidence: Confidence


@frozen
class Finding:
    """A verdict with the claims from which it follows."""

    verdict: Verdict
    claims: tuple[Claim, ...] = ()
    also: tuple[Verdict, ...] = ()
    """What is true besides, such as a second reason for which a message waits."""


@frozen
class Answer:
    """The verdict, what is true besides, and all claims."""

    verdict: Verdict
    also: tuple[Verdict, ...]
    evidence: tuple[Claim, ...]
