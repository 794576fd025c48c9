"""Lines of a page for the leader and the followers of a stream or consumer."""

from __future__ import annotations

from twinstream.cli.table import Page
from twinstream.cli.value_text import in_time
from twinstream.models import ClusterInfo, PeerInfo


def add_cluster(page: Page, cluster: ClusterInfo) -> None:
    """Add a line for the leader and for each follower of a stream or consumer.

    A further line shows the new servers while the stream or consumer moves.
    """
    page.add_row("leader", cluster.leader or "none now")
    for peer in cluster.replicas or ():
        page.add_row("follower", f"{peer.name}, {_condition(peer)}")
    if cluster.desired is not None:
        target = ", ".join(peer.name for peer in cluster.desired.replicas or ())
        page.add_row("moving to", target or cluster.desired.name or "elsewhere")


def _condition(peer: PeerInfo) -> str:
    if peer.offline:
        return "offline"
    if peer.current:
        return "current"
    seen = f", heard {in_time(peer.active)} ago" if peer.active else ""
    return f"{peer.lag or 0:,} behind{seen}"
