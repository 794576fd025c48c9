"""Check that a STREAM.INFO response is from the stream's leader, and not from a former leader.

Only the leader is certain to have every acknowledged message, but other replicas also reply (seen
on servers 2.11 to 2.15):

1. A replica that knows of no leader reports its own state.
2. A replica that was stalled for longer than an election timeout becomes a candidate. It reports
   its own state, even if there is a leader.
3. A leader that was stalled considers itself the leader until it learns of the next leader.

The response shows each of these cases. In the first two, it names no leader, or it lists the leader
as one of the *other* replicas. In the third, it reports that the sender has not heard from the
other replicas for a long time.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from twinstream.models import ClusterInfo

__all__ = ["HEARD", "doubt_of_leader"]

HEARD: Final = timedelta(seconds=3)
"""The time within which the leader must have heard from a replica.

The leader sends a heartbeat every second. A replica replies to each heartbeat, and votes for no
other server in the next 4 s. So if the leader has heard from a majority of the replicas within this
time, no other leader has been elected.
"""


def doubt_of_leader(cluster: ClusterInfo | None) -> str:
    """Return why a response may not be the leader's; an empty string if it is the leader's."""
    if cluster is None:
        return ""  # A server without a cluster is always the leader.
    others = cluster.replicas or []
    if not cluster.leader:
        # A stream with one replica has no other replica that could have more messages.
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
