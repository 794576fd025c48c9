# Generated from tests/_async/test_cluster.py by codegen/twin.py. Edit that file instead.
"""Leaders that step down, copies that move, servers that are lost: three real servers."""

from __future__ import annotations

from functools import partial

import pytest

import js_sync as js
from twinstream.models import ConsumerConfig, StreamConfig
from twinstream.testing import NatsCluster
from tests._sync.flow import eventually, together
from tests.conftest import VERSION

ACCOUNTS = """
accounts {
    SYS: { users: [{user: sys, password: pw}] }
    APP: { jetstream: enabled, users: [{user: app, password: pw}] }
}
system_account: SYS
no_auth_user: app
"""

# A group that elects its leader just now does not answer, and the node that was killed may be the
# one of the connection; asking again is all there is to do.
ELECTING = (js.RequestTimeout, js.NoResponders, js.ConnectionLost)


def answered(call, *args, **options):
    """Call until a group that elects its leader just now answers."""

    def attempt():
        try:
            return call(*args, **options) or True
        except ELECTING:
            return False
        except js.JetStreamError as error:
            if error.code == 503:
                return False
            raise

    return eventually(attempt, patience=40)


def led(handle):
    """Return the leader of a stream or consumer, once it has one and all followers are there."""

    def look():
        try:
            cluster = (handle.info()).cluster
        except (*ELECTING, js.JetStreamError):
            return None
        followers = cluster.replicas or []
        return cluster.leader if all(each.current for each in followers) else None

    return eventually(look, patience=40)


def others(info):
    """Return the names of the followers."""
    return sorted(each.name for each in info.cluster.replicas or ())


def test_leaders_step_down_in_favour_of_somebody(cluster, name):
    with js.connect(cluster.url, request_timeout=2) as connection:
        jet = connection.jetstream()
        config = StreamConfig(name=name, subjects=[name], num_replicas=3)
        stream = answered(jet.create_stream, config)
        consumer = answered(stream.create_consumer, ConsumerConfig(durable_name="c"))
        for handle, call in ((stream, stream.replicas.step_down), (consumer, consumer.step_down)):
            led(handle)
            wanted = others(handle.info())[0]
            answered(call, preferred=wanted)

            def took_over(handle=handle, wanted=wanted):
                return led(handle) == wanted

            eventually(took_over, patience=40)
            before = led(handle)
            answered(call)

            def another(handle=handle, before=before):
                return led(handle) != before

            eventually(another, patience=40)
        with pytest.raises(js.JetStreamError, match="nobody-here"):
            stream.replicas.step_down(preferred="nobody-here")
        with pytest.raises(js.JetStreamError, match=r"(?i)peer"):
            stream.replicas.remove("nobody-here")
        jet.publish(name)
        jet.delete_stream(name)


def test_a_copy_is_taken_away_and_another_is_made(cluster, name):
    with js.connect(cluster.url, request_timeout=2) as connection:
        jet = connection.jetstream()
        config = StreamConfig(name=name, subjects=[name], num_replicas=2)
        stream = answered(jet.create_stream, config)
        leader = led(stream)
        (follower,) = others(stream.cached_info)
        jet.publish(name, b"kept")
        answered(stream.replicas.remove, follower)

        def moved():
            return led(stream) and others(stream.cached_info) not in ([], [follower])

        eventually(moved, patience=40)
        assert leader not in others(stream.cached_info)
        assert (stream.get_message(1)).data == b"kept"
        jet.delete_stream(name)


@pytest.fixture
def own_cluster():
    """Three servers that a test may break, with a system account."""
    with NatsCluster(config=ACCOUNTS, version=VERSION) as running:
        yield running


def test_creations_outlive_the_leaders_they_were_sent_to(own_cluster, name):
    """The answers of 2 of 100 creations were lost when none was asked for again."""
    url = own_cluster.url
    system = js.connect(url, user="sys", password="pw", request_timeout=2)
    with js.connect(url) as app, system as operator:
        jet = app.jetstream(timeout=40)
        for step in range(6):
            creations = [
                partial(jet.create_stream, StreamConfig(name=f"{name}-{step}-{number}"))
                for number in range(5)
            ]
            together(partial(answered, operator.jetstream().meta.step_down), *creations)
        assert len([each for each in jet.stream_names()]) == 30


def test_the_operator_moves_streams_and_gives_up_servers(own_cluster, name):
    url = own_cluster.url
    system = js.connect(url, user="sys", password="pw", request_timeout=2)
    with js.connect(url, request_timeout=2) as app, system as operator:
        jet, meta = app.jetstream(), operator.jetstream().meta
        with pytest.raises(js.RequestTimeout, match="system account"):
            app.jetstream(timeout=0.3).meta.step_down()
        stream = answered(jet.create_stream, StreamConfig(name=name, subjects=[name]))
        jet.publish(name, b"kept")
        before = led(stream)
        answered(meta.move_stream, "APP", name, server=before)

        eventually(settled_elsewhere, stream, before, patience=40)
        assert (stream.get_message(1)).data == b"kept"
        with pytest.raises(js.JetStreamError, match="not in progress"):
            meta.cancel_move("APP", name)
        answered(meta.step_down)
        with pytest.raises(js.JetStreamError):
            answered(meta.remove_server, "nobody-here")
        evacuated(own_cluster, stream, meta)
        lost = own_cluster.node(next(n for n in NODES if n != last_leader(stream)))
        lost.kill()
        answered(meta.remove_server, lost.name)
        assert answered(meta.purge_account, "APP")

        def empty():
            return [each for each in jet.stream_names()] == []

        eventually(empty, patience=40)


def settled_elsewhere(stream, before):
    """Tell whether a move away is finished; what it says of itself meanwhile is read, too."""
    leader = led(stream)
    cluster = stream.cached_info.cluster
    return leader != before and not cluster.replicas and cluster.desired is None


NODES = ("node-1", "node-2", "node-3")


def last_leader(stream):
    """Return who led when the stream was asked last."""
    return stream.cached_info.cluster.leader


def evacuated(servers, stream, meta):
    """Move a stream away from its server in both ways that 2.15 has."""
    if tuple(map(int, servers.servers[0].version.split(".")[:2])) < (2, 15):
        return
    for step in (stream.replicas.evacuate, meta.evacuate_server):
        before = led(stream)
        answered(step, before)
        eventually(settled_elsewhere, stream, before, patience=40)
    with pytest.raises(js.JetStreamError, match="not in progress"):
        answered(stream.replicas.cancel_move)
    with pytest.raises(js.JetStreamError, match="leader is known"):
        meta.rescue(2, timeout=1)
