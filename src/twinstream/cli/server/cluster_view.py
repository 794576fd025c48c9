"""Table rows for the leader and the followers of a stream or consumer."""

from __future__ import annotations

from rich.table import Table

from twinstream.cli.value_text import in_time
from twinstream.models import ClusterInfo, PeerInfo


def add_cluster(table: Table, cluster: ClusterInfo) -> None:
    """Add a row for the leader and for each follower of a stream or consumer.

    A further row shows the new servers while the stream or consumer moves.
    """
    table.add_row("leader", cluster.leader or "none now")
    for peer in cluster.replicas or ():
        table.add_row("follower", f"{peer.name}, {_condition(peer)}")
    if cluster.desired is not None:
        target = ", ".join(peer.name for peer in cluster.desired.replicas or ())
        table.add_row("moving to", target or cluster.desired.name or "elsewhere")


def _condition(peer: PeerInfo) -> str:
    if peer.offline:
        return "offline"
    if peer.current:
        return "current"
    seen = f", heard {in_time(peer.active)} ago" if peer.active else ""
    return f"{peer.lag or 0:,} behind{seen}"
