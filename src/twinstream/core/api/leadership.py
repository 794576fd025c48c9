"""Tell whether STREAM.INFO was answered by the stream's leader, and by one that leads still.

Only the leader is certain to have every acknowledged message, but others answer as well (seen on
servers 2.11 to 2.15): while a replica knows of no leader it describes what it has itself. So does
one that was held up for longer than an election timeout, for as long as it runs for leader, even
beside the real one; and a leader that was held up takes itself for the leader until it hears of
the next. The answer shows it: the first names no leader, or the leader among the *other* replicas;
the second has not heard from the others for long.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from twinstream.models import ClusterInfo

__all__ = ["HEARD", "doubt_of_leader"]

HEARD: Final = timedelta(seconds=3)
"""From how long ago a replica must have been heard of.

Replicas answer each heartbeat, one a second, and vote for nobody else within 4 s of one: while
most of them were heard of this lately, no other leader has been elected.
"""


def doubt_of_leader(cluster: ClusterInfo | None) -> str:
    """Return why an answer may lack acknowledged messages, in words; empty when it cannot."""
    if cluster is None:
        return ""  # a server by itself
    others = cluster.replicas or []
    if not cluster.leader:
        # Of a single copy the server that has it says that it leads.
        return "the stream has no leader" if others else ""
    if cluster.leader in {each.name for each in others}:
        return f"a replica answered in place of the leader, {cluster.leader}"
    voters = [each for each in others if not each.observer]
    # Zero stands for a replica that was never heard of.
    heard = sum(1 for each in voters if each.active and each.active < HEARD)
    group = len(voters) + 1
    if heard + 1 > group // 2:
        return ""
    return (
        f"{cluster.leader} says that it leads, but has heard from {heard} of the"
        f" {len(voters)} other replicas within {HEARD.total_seconds():g} s"
    )
