"""Check that STREAM.INFO was answered by the stream's leader, and that it is still the leader.

Only the leader is certain to have every acknowledged message, but others reply as well (seen on
servers 2.11 to 2.15): a replica that knows of no leader reports its own state. So does a replica
that was stalled for longer than an election timeout, while it is a candidate, even if there is a
real leader; and a leader that was stalled considers itself the leader until it learns of the next
one. The response shows it: the first two name no leader, or name the leader among the *other*
replicas; the third has not heard from the others for a long time.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from twinstream.models import ClusterInfo

__all__ = ["HEARD", "doubt_of_leader"]

HEARD: Final = timedelta(seconds=3)
"""How recently a replica must have been heard from.

Replicas answer each heartbeat, one a second, and vote for no other server within 4 s of one: while
most of them were heard from this recently, no other leader has been elected.
"""


def doubt_of_leader(cluster: ClusterInfo | None) -> str:
    """Return why a response may lack acknowledged messages; empty if it cannot."""
    if cluster is None:
        return ""  # a single server
    others = cluster.replicas or []
    if not cluster.leader:
        # With a single copy, its server names itself as the leader.
        return "the stream has no leader" if others else ""
    if cluster.leader in {each.name for each in others}:
        return f"a replica answered in place of the leader, {cluster.leader}"
    voters = [each for each in others if not each.observer]
    # Zero means that the replica was never heard from.
    heard = sum(1 for each in voters if each.active and each.active < HEARD)
    group = len(voters) + 1
    if heard + 1 > group // 2:
        return ""
    return (
        f"{cluster.leader} claims to be the leader, but has heard from {heard} of the"
        f" {len(voters)} other replicas within {HEARD.total_seconds():g} s"
    )
