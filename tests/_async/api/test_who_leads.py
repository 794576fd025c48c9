"""Responses of a replica that is no leader: a candidate in an election, or a former leader."""

from __future__ import annotations

import pytest

import js_async as js
from tests._async.flow import pause
from tests._async.scripted import scripted
from tests.conftest import VERSION
from twinstream.core.deadline import Deadline
from twinstream.models import StreamConfig
from twinstream.testing import FakePeer, NatsCluster

CONFIG = {"name": "S", "subjects": ["s.>"], "num_replicas": 3, "allow_direct": True}
SECOND = 1_000_000_000
NO_MESSAGE = {"error": {"code": 404, "err_code": 10037, "description": "no message found"}}
# A node calls itself without a leader from ten seconds after its start on; seconds.
FROZEN = 10.0


def told(last_seq, leader="a", others=("b", "c"), active=SECOND):
    """Return a response of STREAM.INFO."""
    replicas = [{"name": name, "active": active, "current": True} for name in others]
    state = {"messages": last_seq, "bytes": 1, "first_seq": 1, "last_seq": last_seq}
    cluster = {"name": "C", "leader": leader, "replicas": replicas}
    return {
        "config": CONFIG,
        "created": "2026-01-01T00:00:00Z",
        "state": {**state, "consumer_count": 0},
        "cluster": {name: value for name, value in cluster.items() if value},
    }


DOUBTFUL = {
    "without a leader": told(5, leader="", others=("a", "b", "c")),
    "beside the leader": told(5, others=("a", "b")),
    "held up": told(5, active=60 * SECOND),
}


@pytest.mark.parametrize("first", DOUBTFUL.values(), ids=DOUBTFUL)
async def test_response_of_a_replica_is_requested_again_from_the_leader(first):
    def script(peer: FakePeer) -> None:
        peer.handshake()
        for answer in (first, first, first, told(9)):
            peer.answer(peer.expect(r"STREAM\.INFO\.S"), answer)
        peer.until_left()

    async with scripted(script) as connection:
        stream = connection.jetstream(timeout=30).bind_stream("S")
        assert (await stream.info()).state.last_seq == 5
        assert (await stream.info(confirmed=True)).state.last_seq == 9
        assert stream.cached_info.state.last_seq == 9


async def test_missing_leader_is_reported_in_time():
    def script(peer: FakePeer) -> None:
        peer.handshake()
        for request in peer.follow():
            if "STREAM.INFO" in request.line:
                peer.answer(request, DOUBTFUL["held up"])

    async with scripted(script) as connection:
        stream = connection.jetstream(timeout=0.5).bind_stream("S")
        with pytest.raises(js.RequestTimeout, match=r"stream S: .* heard from 0 of the 2"):
            await stream.info(confirmed=True)


async def test_end_of_data_counts_only_from_a_proven_leader():
    """A former leader reports no messages from 3 on. The new leader has 3 to 5."""
    asked = []

    def script(peer: FakePeer) -> None:
        peer.handshake()
        # The first who tells of the stream leads it; the second did until a moment ago.
        leaders = iter([told(5), DOUBTFUL["held up"], told(5), told(5)])
        for request in peer.follow():
            if "STREAM.INFO" in request.line:
                asked.append("INFO")
                peer.answer(request, next(leaders))
            elif "MSG.GET" in request.line:
                seq = request.json["seq"]
                asked.append(seq)
                has = 5 if asked.count("INFO") == 3 else 2
                peer.answer(request, stored(seq) if seq <= has else NO_MESSAGE)

    async with scripted(script) as connection:
        read = connection.jetstream().bind_stream("S").read(via="leader")
        assert [message.seq async for message in read] == [1, 2, 3, 4, 5]
        assert read.report.is_complete
    # At the end whether it is the same stream still.
    assert asked == ["INFO", 1, 2, 3, 3, "INFO", "INFO", 3, 3, 4, 5, "INFO"]


def stored(seq):
    """Return a response of STREAM.MSG.GET."""
    return {"message": {"subject": f"s.{seq}", "seq": seq, "time": "2026-01-01T00:00:00Z"}}


async def test_read_misses_nothing_during_an_election():
    """A suspended node answers with its old state until it learns of the new leader."""
    with NatsCluster(version=VERSION) as cluster:
        clients = [js.connect(server.url, ping_interval=60) for server in cluster.servers]
        async with clients[0] as a, clients[1] as b, clients[2] as c:
            jets = [each.jetstream(timeout=30) for each in (a, b, c)]
            stream = await jets[0].create_stream(StreamConfig(**CONFIG))
            names = [server.name for server in cluster.servers]
            lead = names.index((await stream.info(confirmed=True)).cluster.leader)
            slow = (lead + 1) % 3
            acked = await frozen(cluster.servers[slow], jets[lead])
            late, until = jets[slow].bind_stream("S"), Deadline.after(1.5)
            while not until.expired():
                assert (await late.info(confirmed=True)).state.last_seq >= acked
            assert len([message async for message in late.read()]) == acked


async def frozen(server, jet):
    """Suspend a node for the time of an election, during writes; return the last sequence."""
    until, seq = Deadline.after(FROZEN), 0
    server.pause()
    try:
        while not until.expired():
            seq = (await jet.publish("s.a", b"x")).seq
            await pause(0.005)
    finally:
        server.resume()
    return seq
