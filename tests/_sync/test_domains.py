# Generated from tests/_async/test_domains.py by codegen/twin.py. Edit that file instead.
"""Two connected domains whose streams have the same name and subjects: which of them is written to.

Both store what is published and both answer; the nearer one is usually quicker.
"""

from __future__ import annotations

import pytest

import js_sync as js
from twinstream.core.exactly_once.conditional_write import Stored
from twinstream.models import ObjectStoreConfig, StreamConfig
from js_sync.exactly_once.idempotent_writer import once_writer
from js_sync.exactly_once.stream_guarantees import PromisedStreams
from twinstream.testing import NatsServer
from twinstream.testing.ports import free_ports
from tests._sync.flow import eventually
from tests.conftest import VERSION

ROUNDS = 5


@pytest.fixture(scope="module")
def leaf():
    """Return a leaf node of the domain `leaf` of a hub of the domain `hub`."""
    [port] = free_ports(1)
    listen = f'leafnodes {{ listen: "127.0.0.1:{port}" }}'
    dial = f'leafnodes {{ remotes: [{{ url: "nats-leaf://127.0.0.1:{port}" }}] }}'
    with (
        NatsServer(listen, VERSION, domain="hub"),
        NatsServer(dial, VERSION, domain="leaf") as server,
    ):
        yield server


def reachable(jet):
    """Wait until a domain answers."""

    def answers():
        try:
            jet.account_info()
        except js.TwinstreamError:
            return False
        return True

    eventually(answers)


@pytest.mark.parametrize("domain", ["hub", "leaf"])
def test_writes_on_condition_tell_of_the_stream_in_their_domain(leaf, name, domain):
    with js.connect(leaf.url) as connection:
        near, far = connection.jetstream(timeout=20), connection.jetstream(domain="hub", timeout=20)
        reachable(far)
        config = StreamConfig(name=name, subjects=[f"{name}.>"], max_msgs_per_subject=1)
        near.create_stream(config)
        # Sequences differ from here on.
        near.publish(f"{name}.earlier")
        far.create_stream(config)
        jet = near if domain == "leaf" else far
        stream = jet.get_stream(name)
        for number in range(ROUNDS):
            subject = f"{name}.{number}"
            first = jet.insert(subject, b"1")
            assert isinstance(first, js.Stored)
            assert (stream.get_last_message(subject)).seq == first.seq
            second = jet.update(subject, b"2", first.seq)
            assert (stream.get_last_message(subject)).seq == second.seq
            with pytest.raises(js.WrongLastSequence):
                jet.update(subject, b"3", first.seq)
            third = jet.upsert(subject, b"4")
            found = stream.get_last_message(subject)
            assert (found.seq, found.data) == (third.seq, b"4")


def test_a_lock_is_held_in_the_domain_of_its_stream(leaf, name):
    with js.connect(leaf.url) as connection:
        near, far = connection.jetstream(timeout=20), connection.jetstream(domain="hub", timeout=20)
        reachable(far)
        here = near.coordination(name, create=True)
        # Sequences differ from here on.
        with here.lock("earlier").acquire(timeout=20):
            pass
        there = far.coordination(name, create=True)
        for number in range(ROUNDS):
            with there.lock(f"door{number}").acquire(timeout=20) as lease:
                [taken] = [each for each in there.taken("lock")]
                assert (taken.name, taken.record.seq) == (f"door{number}", lease.token)


@pytest.mark.parametrize("by", ["subject", "id"])
def test_what_another_domain_stored_is_not_taken_for_stored_once(leaf, name, by):
    with js.connect(leaf.url) as connection:
        near, far = connection.jetstream(timeout=20), connection.jetstream(domain="hub", timeout=20)
        reachable(far)
        config = StreamConfig(name=name, subjects=[f"{name}.>"])
        near.create_stream(config)
        near.publish(f"{name}.earlier")
        stream = far.create_stream(config)
        writer = once_writer(far, PromisedStreams(far._api), name, by, 5)
        writer.check()
        requests = [
            js.PublishRequest(subject=f"{name}.{at}", data=b"%d" % at, msg_id=str(at))
            for at in range(ROUNDS)
        ]
        for request, written in zip(requests, writer.write(requests), strict=True):
            if isinstance(written, Stored):
                assert (stream.get_message(written.seq)).data == request.data
            else:
                assert by == "id"
                assert isinstance(written, js.RequestTimeout)


def test_an_object_is_not_stored_in_the_store_of_another_domain(leaf, name):
    with js.connect(leaf.url) as connection:
        near, far = connection.jetstream(timeout=20), connection.jetstream(domain="hub", timeout=20)
        reachable(far)
        config = ObjectStoreConfig(bucket=name, storage="memory")
        store = far.create_object_store(config)
        store.put("a", b"of the hub")
        assert store.get_bytes("a") == b"of the hub"
        near.create_object_store(config)

        def put_often():
            # Which of the two answers first is chance.
            for _ in range(20):
                store.put("a", b"x" * 300_000)

        with pytest.raises(js.PutFailed, match="of domain leaf took what is for"):
            put_often()
