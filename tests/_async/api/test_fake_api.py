"""API calls to a scripted server: no response, and a cluster without a leader."""

from __future__ import annotations

import json
import re
import time
from functools import partial

import pytest

import js_async as js
from js_async.api import api
from js_async.backup import backup_stream
from js_async.jetstream import range_reader
from tests._async.flow import pause, together
from tests._async.scripted import scripted
from tests.fake.answers import CONSUMER
from tests.fake.ordering import stream_info
from tests.inside import session_of
from tests.stalls import attempts
from twinstream.core.server_faults.delays import SPREADING
from twinstream.errors import InvalidResponse
from twinstream.models import ConsumerConfig, KeyValueConfig, ObjectStoreConfig, StreamConfig
from twinstream.testing import FakePeer, FakeServer

QUICK = js.ReconnectPolicy(wait=0.01, max_wait=0.05, attempts=-1)
STATE = dict.fromkeys(("messages", "bytes", "first_seq", "last_seq", "consumer_count"), 0)
CREATED = {"config": {"name": "S"}, "created": "2026-01-01T00:00:00Z", "state": STATE}
NO_LEADER = {"error": {"code": 503, "err_code": 10008, "description": "no leader"}}
EXISTS = {"error": {"code": 400, "err_code": 10058, "description": "stream name already in use"}}
GONE = {"error": {"code": 404, "err_code": 10059, "description": "stream not found"}}


async def test_a_creation_that_is_forgotten_is_sent_again():
    def script(peer: FakePeer) -> None:
        peer.handshake()
        lost = peer.expect(r"STREAM\.CREATE\.S")
        again = peer.expect(r"STREAM\.CREATE\.S")
        assert (again.reply, again.json) == (lost.reply, lost.json)
        peer.answer(again, CREATED)
        # A late response to the first request is ignored.
        peer.answer(lost, NO_LEADER)
        peer.until_left()

    async with scripted(script) as connection:
        stream = await connection.jetstream(timeout=30).create_stream(StreamConfig(name="S"))
        assert stream.name == "S"
        await connection.flush()
        assert session_of(connection).replies.open_requests == 0


async def test_a_reset_that_no_server_passes_on_is_sent_again():
    """A server that does not know the leader of a new consumer drops the request."""

    def script(peer: FakePeer) -> None:
        peer.handshake()
        lost = peer.expect(r"CONSUMER\.RESET\.S\.c")
        again = peer.expect(r"CONSUMER\.RESET\.S\.c")
        assert (again.reply, again.json) == (lost.reply, {"seq": 4})
        peer.answer(again, {**CONSUMER, "reset_seq": 4})
        peer.until_left()

    async with scripted(script) as connection:
        consumer = connection.jetstream(timeout=30).bind_consumer("S", "c")
        assert (await consumer.reset(4)).name == "c"


CALLS = [
    ("STREAM.INFO.S", lambda jet: jet.bind_stream("S").info(), CREATED),
    ("STREAM.PURGE.S", lambda jet: jet.bind_stream("S").purge(), {"success": True, "purged": 1}),
    ("STREAM.DELETE.S", lambda jet: jet.delete_stream("S"), {"success": True}),
    (
        "CONSUMER.CREATE.S",
        lambda jet: jet.create_or_update_consumer("S", ConsumerConfig(durable_name="c")),
        CONSUMER,
    ),
]
EACH_CALL = pytest.mark.parametrize(
    ("subject", "call", "response"), CALLS, ids=[subject for subject, *_ in CALLS]
)


@EACH_CALL
async def test_a_call_waits_until_jetstream_is_reached(subject, call, response, tuned):
    """The leaf node of the client may have just connected. No server got the request."""
    tuned("spreading", 30.0)

    def script(peer: FakePeer) -> None:
        peer.handshake()
        for _ in range(3):
            peer.message(peer.expect(subject).reply, status="503")
        peer.answer(peer.expect(subject), response)
        peer.until_left()

    async with scripted(script) as connection:
        await call(connection.jetstream(timeout=30))


async def test_a_call_is_repeated_though_its_first_refusal_was_read_late():
    """Its time for repeats is over, but no request was sent after that."""

    def script(peer: FakePeer) -> None:
        peer.handshake()
        request = peer.expect(r"STREAM\.INFO\.S")
        time.sleep(2 * SPREADING)
        peer.message(request.reply, status="503")
        peer.answer(peer.expect(r"STREAM\.INFO\.S"), CREATED)
        peer.until_left()

    async with scripted(script) as connection:
        await connection.jetstream(timeout=30).get_stream("S")


TYPE = "io.nats.jetstream.api.v1.response"
EMPTY = pytest.mark.parametrize(
    "body", [b"{}", b'{"success": true}', b'{"type": 5}', json.dumps({"type": TYPE}).encode()]
)


@EMPTY
@EACH_CALL
async def test_an_empty_response_is_no_success(subject, call, response, body):
    def script(peer: FakePeer) -> None:
        peer.handshake()
        peer.answer(peer.expect(subject), body)
        peer.until_left()

    async with scripted(script) as connection:
        with pytest.raises(InvalidResponse, match=subject):
            await call(connection.jetstream(timeout=30))


@EMPTY
async def test_an_empty_response_begins_no_backup(tmp_path, body):
    def script(peer: FakePeer) -> None:
        peer.handshake()
        peer.answer(peer.expect(r"STREAM\.SNAPSHOT\.S"), body)
        peer.until_left()

    async with scripted(script) as connection:
        with pytest.raises(InvalidResponse, match=r"SNAPSHOT\.S"):
            await backup_stream(connection.jetstream(), "S", tmp_path / "copy")
    assert list(tmp_path.iterdir()) == []


@EACH_CALL
async def test_jetstream_that_is_off_is_reported(subject, call, response):
    def script(peer: FakePeer) -> None:
        peer.handshake()
        for request in peer.follow():
            if request.line.startswith("PUB $JS.API"):
                peer.message(request.reply, status="503")

    with FakeServer(script) as server:
        async with js.connect(server.url) as connection:
            with pytest.raises(js.JetStreamNotEnabled) as caught:
                await call(connection.jetstream(timeout=600))
        assert re.search(subject, caught.value.subject)
        assert caught.value.err_code == 0
        # On a busy machine, the time for repeats may end after the first of them.
        assert 1 < len(server.operations(subject)) < 10


async def test_a_creation_waits_for_a_leader():
    def script(peer: FakePeer) -> None:
        peer.handshake()
        for _ in range(3):
            peer.answer(peer.expect(r"STREAM\.CREATE\.S"), NO_LEADER)
        peer.answer(peer.expect(r"STREAM\.CREATE\.S"), CREATED)
        peer.until_left()

    async with scripted(script) as connection:
        await connection.jetstream(timeout=30).create_stream(StreamConfig(name="S"))


async def test_missing_leader_is_reported_at_the_deadline():
    def script(peer: FakePeer) -> None:
        peer.handshake()
        for request in peer.follow():
            if "STREAM.INFO" in request.line:
                peer.answer(request, NO_LEADER)

    for attempt in attempts(1.5):
        with attempt, FakeServer(script) as server:
            async with js.connect(server.url) as connection:
                with pytest.raises(js.JetStreamError, match="no leader"):
                    await connection.jetstream(timeout=1.5).get_stream("S")
            assert len(server.operations("STREAM.INFO")) > 1


async def test_a_missing_leader_is_the_cause_of_a_later_timeout():
    def script(peer: FakePeer) -> None:
        peer.handshake()
        peer.answer(peer.expect(r"STREAM\.INFO\.S"), NO_LEADER)
        # No response to the next attempt.
        peer.until_left()

    for attempt in attempts(0.5):
        with attempt:
            async with scripted(script) as connection:
                stream = connection.jetstream().bind_stream("S")
                with pytest.raises(js.RequestTimeout) as caught:
                    await stream.info(timeout=0.5)
                assert "no leader" in str(caught.value.__cause__)


async def test_a_doubt_about_the_leader_is_part_of_a_later_timeout():
    silent = {"name": "b", "current": False, "active": 0}
    doubtful = {**stream_info(1), "cluster": {"name": "C", "leader": "", "replicas": [silent]}}

    def script(peer: FakePeer) -> None:
        peer.handshake()
        peer.answer(peer.expect(r"STREAM\.INFO\.S"), doubtful)
        # No response to the next attempt.
        peer.until_left()

    for attempt in attempts(0.5):
        with attempt:
            async with scripted(script) as connection:
                stream = connection.jetstream().bind_stream("S")
                with pytest.raises(
                    js.RequestTimeout, match="no answer of its leader in time; last:"
                ):
                    await stream.info(confirmed=True, timeout=0.5)


async def test_a_missing_leader_is_reported_by_a_program_that_was_held_up(monkeypatch):
    """Its pause before the next attempt ends after the deadline."""

    async def late(_):
        await pause(2)

    def script(peer: FakePeer) -> None:
        peer.handshake()
        peer.answer(peer.expect(r"STREAM\.INFO"), NO_LEADER)
        peer.until_left()

    monkeypatch.setattr(api, "sleep", late)
    for attempt in attempts(1.5):
        with attempt, FakeServer(script) as server:
            async with js.connect(server.url) as connection:
                with pytest.raises(js.JetStreamError, match="no leader"):
                    await connection.jetstream(timeout=1.5).get_stream("S")
            assert len(server.operations("STREAM.INFO")) == 1


async def test_stream_that_the_cluster_does_not_know_yet_is_found():
    """The leader of the cluster answers. It may lag behind the leader of the stream."""

    def script(peer: FakePeer) -> None:
        peer.handshake()
        for streams in ([], ["S"], None, []):
            peer.answer(peer.expect(r"STREAM\.NAMES"), {"streams": streams, "total": 0})
        peer.until_left()

    async with scripted(script) as connection:
        jet = connection.jetstream(timeout=30)
        assert await jet.stream_name_by_subject("s") == "S"
        with pytest.raises(js.StreamNotFound):
            await jet.stream_name_by_subject("s")


async def test_requests_lost_with_a_connection_are_repeated():
    asked = []

    def first(peer: FakePeer) -> None:
        peer.handshake()
        asked.append(peer.expect(r"\$JS\.API").subject)
        peer.reset()

    def second(peer: FakePeer) -> None:
        peer.handshake()
        for request in peer.follow():
            if ".STREAM." in request.subject:
                peer.answer(request, CREATED)

    calls = (
        lambda jet: jet.get_stream("S"),
        lambda jet: jet.create_stream(StreamConfig(name="S")),
        lambda jet: read_all(jet.bind_stream("S")),
        lambda jet: jet.bind_stream("S").snapshot(),
        lambda jet: jet.update_stream(StreamConfig(name="S")),
    )
    for call in calls[:-1]:
        with FakeServer(first, rest=second) as server:
            async with js.connect(server.url, reconnect=QUICK) as connection:
                await call(connection.jetstream(timeout=30))
    with FakeServer(first, rest=second) as server:
        async with js.connect(server.url, reconnect=QUICK) as connection:
            with pytest.raises(js.ConnectionLost):
                await calls[-1](connection.jetstream(timeout=30))
    assert len(asked) == len(calls)


async def read_all(stream):
    return [message async for message in stream.read()]


async def times_out(call):
    with pytest.raises(js.RequestTimeout):
        await call()


async def test_what_may_not_happen_twice_is_sent_once():
    def script(peer: FakePeer) -> None:
        peer.handshake()
        peer.until_left(timeout=60)

    config = ConsumerConfig(durable_name="c")
    with FakeServer(script) as server:
        async with js.connect(server.url) as connection:
            jet = connection.jetstream(timeout=1.5)
            calls = (
                partial(jet.update_stream, StreamConfig(name="S")),
                partial(jet.delete_stream, "S"),
                partial(jet.bind_stream("S").create_or_update_consumer, config),
            )
            await together(*(partial(times_out, call) for call in calls))
        asked = server.operations(r"\$JS\.API")
        assert len(asked) == 3, [each.line for each in asked]


async def test_a_read_is_complete_though_its_consumer_is_not_deleted():
    def script(peer: FakePeer) -> None:
        peer.handshake()
        peer.answer(peer.expect(r"CONSUMER\.CREATE"), CONSUMER)
        peer.deliver(peer.expect_pull(), 1, b"fine")
        # No response: the deletion is not waited for.
        assert not peer.expect(r"CONSUMER\.DELETE").reply
        peer.until_left()

    async with scripted(script) as connection:
        reader = range_reader(connection.jetstream(), "S", 1, 2, direct=False)
        page = await reader.next_page()
        assert page.payloads == [b"fine"]
        assert await reader.next_page() is None
        await reader.close()


async def test_an_object_store_that_others_create_and_delete_is_made_in_the_end():
    refusals = [EXISTS] * 3

    def script(peer: FakePeer) -> None:
        peer.handshake()
        for request in peer.follow():
            if "STREAM.CREATE" in request.line:
                made = {**CREATED, "config": request.json}
                peer.answer(request, refusals.pop() if refusals else made)
            elif "STREAM.INFO" in request.line:
                peer.answer(request, GONE)

    async with scripted(script) as connection:
        jet = connection.jetstream(timeout=30)
        store = await jet.create_or_update_object_store(ObjectStoreConfig(bucket="b"))
        assert store.bucket == "b"
    assert not refusals


def created_and_deleted(peer: FakePeer) -> None:
    """Another client creates the stream before each creation, and deletes it before its info."""
    peer.handshake()
    for request in peer.follow():
        if "STREAM.CREATE" in request.line:
            peer.answer(request, EXISTS)
        elif "STREAM.INFO" in request.line:
            peer.answer(request, GONE)


async def test_an_object_store_that_is_never_made_ends_at_the_deadline():
    async with scripted(created_and_deleted) as connection:
        with pytest.raises((js.StreamExists, js.RequestTimeout)):
            await connection.jetstream().create_or_update_object_store(
                ObjectStoreConfig(bucket="b"), timeout=0.3
            )


async def test_a_bucket_that_another_client_deletes_during_its_creation_exists():
    async with scripted(created_and_deleted) as connection:
        jet = connection.jetstream()
        config = KeyValueConfig(bucket="b")
        with pytest.raises(js.BucketExists, match="b exists, and another client deletes it"):
            await jet.create_key_value(config, timeout=20)
        with pytest.raises((js.BucketExists, js.RequestTimeout)):
            await jet.create_or_update_key_value(config, timeout=0.3)
