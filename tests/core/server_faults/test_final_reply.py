"""Which replies are final, and which replica answered STREAM.INFO: the leader, or another one."""

from __future__ import annotations

from datetime import timedelta

import pytest

from twinstream.core.server_faults.final_reply import HEARD, FinalReply, doubt_of_leader
from twinstream.errors import BadArgument
from twinstream.models import ClusterInfo, PeerInfo

LATELY = HEARD / 2
LONG = HEARD * 2


def peer(name, active=LATELY, **fields):
    return PeerInfo(name=name, active=active, **fields)


@pytest.mark.parametrize(
    "cluster",
    [
        None,
        ClusterInfo(leader="a"),
        ClusterInfo(leader="a", replicas=[peer("b"), peer("c")]),
        ClusterInfo(leader="a", replicas=[peer("b"), peer("c", LONG, offline=True)]),
        ClusterInfo(leader="a", replicas=[peer("b")]),
        ClusterInfo(leader="a", replicas=[peer("b"), peer("c"), peer("d", LONG), peer("e", LONG)]),
        ClusterInfo(leader="a", replicas=[peer("b"), peer("c"), peer("d", LONG, observer=True)]),
    ],
)
def test_responding_leader_is_trusted(cluster):
    assert doubt_of_leader(cluster) == ""


@pytest.mark.parametrize(
    ("cluster", "why"),
    [
        (ClusterInfo(replicas=[peer("a"), peer("b"), peer("c")]), "no leader"),
        (ClusterInfo(leader="", replicas=[peer("a")]), "no leader"),
        (ClusterInfo(leader="a", replicas=[peer("a"), peer("b")]), "in place of the leader, a"),
        (ClusterInfo(leader="a", replicas=[peer("b", LONG), peer("c", LONG)]), "0 of the 2"),
        (ClusterInfo(leader="a", replicas=[peer("b", HEARD), peer("c", LONG)]), "within 3 s"),
        # No contact so far: the server writes 0, or omits the member.
        (
            ClusterInfo(leader="a", replicas=[peer("b", timedelta(0)), peer("c", None)]),
            "0 of the 2",
        ),
        (ClusterInfo(leader="a", replicas=[peer("b", LONG)]), "0 of the 1"),
        # Half of a group is no majority, and members without a vote do not count.
        (ClusterInfo(leader="a", replicas=[peer("b"), peer("c", LONG), peer("d", LONG)]), "1 of"),
        (
            ClusterInfo(
                leader="a", replicas=[peer("b", observer=True), peer("c", LONG), peer("d", LONG)]
            ),
            "0 of the 2",
        ),
    ],
)
def test_others_are_doubted(cluster, why):
    assert why in doubt_of_leader(cluster)


@pytest.mark.parametrize("refuses", [None, lambda _: None])
def test_replies_of_the_server_are_final(refuses):
    is_final = FinalReply(refuses)
    assert is_final((b"s", b"", 0, b'{"stream":"S","seq":1}'))
    assert not is_final((b"s", b"", 0, b"of a subscriber"))
    assert is_final.refusal is None


def test_last_refusal_is_kept():
    error = BadArgument("behind")
    is_final = FinalReply(lambda frame: error if b"error" in frame[3] else None)
    assert not is_final((b"s", b"", 0, b'{"error":{}}'))
    assert is_final((b"s", b"", 0, b'{"stream":"S","seq":1}'))
    assert is_final.refusal is error
