"""Reading many keys at once: exactly the named keys, all as of one revision."""

from __future__ import annotations

import json
from functools import partial

import pytest

import js_async as js
from tests._async.buckets import bucket
from tests._async.flow import together
from tests._async.scripted import scripted
from twinstream.models import KeyValueConfig, evolve
from twinstream.testing import FakePeer, FakeServer, Proxy

pytestmark = pytest.mark.since("2.11")

GET = r"DIRECT\.GET\.KV_B "
INFO = r"STREAM\.INFO\.KV_B"


@pytest.mark.parametrize("storage", ["memory", "file"])
async def test_exactly_the_named_keys_are_returned(opened, name, storage):
    async with opened() as jet:
        made = await bucket(jet, name, storage=storage)
        items = [(f"k.{number}", b"%d" % number) for number in range(10_001)]
        async for outcome in made.put_many(items):
            assert isinstance(outcome, js.PubAck)
        for count in (1, 2, 1024, 1025, 10_000):
            wanted = dict(items[:count])
            found = await made.get_many([*wanted, "none", items[0][0]])
            assert {key: entry.value for key, entry in found.items()} == wanted
            assert found.revision == 10_001
        await made.delete("k.7")
        assert sorted(await made.get_many(["k.6", "k.7", "k.8"])) == ["k.6", "k.8"]
        assert len(await made.get_many("k.7")) == 0
        entry = (await made.get_many("k.8"))["k.8"]
        assert entry == await made.get("k.8")


@pytest.mark.parametrize("count", [40, 1500])
async def test_values_are_those_of_one_moment(opened, name, count):
    """No other keys are written, so the bucket's last revision belongs to one of these keys."""
    async with opened() as jet:
        made = await bucket(jet, name)
        keys = [f"k.{number}" for number in range(count)]
        done = []

        async def write():
            number = 0
            while not done:
                items = [(key, b"%d" % number) for key in keys[number % 7 :: 7]]
                async for outcome in made.put_many(items, window=1):
                    assert isinstance(outcome, js.PubAck)
                number += 1

        async def read():
            try:
                for _ in range(30):
                    found = await made.get_many(keys)
                    newest = max((entry.revision for entry in found.values()), default=0)
                    assert newest == found.revision
            finally:
                done.append(True)

        await made.put("k.0", b"first")
        await together(write, read)


async def test_large_values_are_read_in_several_requests(opened, name):
    async with opened() as jet:
        made = await bucket(jet, name)
        values = {f"k.{number}": b"%d" % number * 100_000 for number in range(40)}
        async for outcome in made.put_many(values):
            assert isinstance(outcome, js.PubAck)
        found = await made.get_many(values)
        assert {key: entry.value for key, entry in found.items()} == values


async def test_mirror_does_not_answer_for_its_origin(opened, name):
    async with opened() as jet:
        made = await bucket(jet, name)
        await made.put("a", b"1")
        config = KeyValueConfig(bucket=f"{name}-copy", mirror=js.StreamSource(name=name))
        await jet.create_key_value(config)
        for number in range(100):
            await made.put("a", b"%d" % number)
            entries = await made.get_many(["a", "b"])
            assert (entries["a"].value, entries.revision) == (b"%d" % number, number + 2)


# ---- requests


def described(peer: FakePeer, last_seq: int, replicas: int = 1) -> None:
    """Answer the request for the stream's info."""
    state = {"messages": 1, "bytes": 9, "first_seq": 1, "last_seq": last_seq, "consumer_count": 0}
    zero = "0001-01-01T00:00:00Z"
    config = {
        "name": "KV_B",
        "subjects": ["$KV.B.>"],
        "max_msgs_per_subject": 1,
        "allow_direct": True,
        "num_replicas": replicas,
    }
    answer = {"config": config, "state": {**state, "first_ts": zero, "last_ts": zero}}
    peer.answer(peer.expect(INFO), {**answer, "created": "2026-01-01T00:00:00Z"})


def value(peer: FakePeer, request, key: str, seq: int, stream: str = "KV_B", data=b"x") -> None:
    headers = {
        "Nats-Stream": stream,
        "Nats-Subject": f"$KV.B.{key}",
        "Nats-Sequence": seq,
        "Nats-Time-Stamp": "2026-01-01T00:00:00.5Z",
        "Nats-Num-Pending": 0,
    }
    peer.message(request.reply, data, headers=headers)


def ended(peer: FakePeer, request, up_to: int, pending: int = 0) -> None:
    peer.status(request, 204, "EOB", Nats_Num_Pending=pending, Nats_UpTo_Sequence=up_to)


async def read(script, *keys):
    """Read keys of a script's bucket; return key, value and revision of each, and the revision."""
    with FakeServer(script) as server:
        async with js.connect(server.url) as connection:
            made = await connection.jetstream().get_key_value("B")
            found = await made.get_many(keys)
    entries = [(entry.key, entry.value, entry.revision) for entry in found.values()]
    return entries, found.revision, [each.line for each in server.operations(r"\$JS")]


async def test_one_replica_is_asked_once():
    def script(peer: FakePeer) -> None:
        peer.handshake()
        described(peer, 4)
        request = peer.expect(GET)
        assert json.loads(request.payload)["multi_last"] == ["$KV.B.a", "$KV.B.b", "$KV.B.c"]
        value(peer, request, "c", 5)
        value(peer, request, "a", 7)
        ended(peer, request, 9)

    entries, revision, requests = await read(script, "a", "b", "c")
    assert entries == [("c", b"x", 5), ("a", b"x", 7)]
    assert (revision, len(requests)) == (9, 2)


def other_stream(peer: FakePeer, request) -> None:
    value(peer, request, "a", 9, stream="KV_MIRROR", data=b"theirs")
    ended(peer, request, 9)


def refused(peer: FakePeer, request) -> None:
    peer.status(request, 408, "Bad Request")


def cut_off(peer: FakePeer, request) -> None:
    value(peer, request, "a", 3)
    ended(peer, request, 9, pending=1)


def empty(peer: FakePeer, request) -> None:
    peer.status(request, 404, "No Results")


@pytest.mark.parametrize("first", [refused, cut_off])
async def test_answer_that_is_not_whole_is_followed_by_the_leaders(first):
    def script(peer: FakePeer) -> None:
        peer.handshake()
        described(peer, 4)
        first(peer, peer.expect(GET))
        described(peer, 9)
        request = peer.expect(GET)
        value(peer, request, "a", 7, data=b"new")
        ended(peer, request, 9)

    entries, revision, _ = await read(script, "a", "b")
    assert (entries, revision) == ([("a", b"new", 7)], 9)


@pytest.mark.parametrize("first", [other_stream, empty])
async def test_answer_of_a_mirror_or_of_nothing_is_confirmed_by_the_leader(first):
    def script(peer: FakePeer) -> None:
        peer.handshake()
        described(peer, 4)
        first(peer, peer.expect(GET))
        described(peer, 0)

    entries, revision, _ = await read(script, "a", "b")
    assert (entries, revision) == ([], 0)


async def test_replicas_are_asked_with_the_leaders_last_sequence():
    def script(peer: FakePeer) -> None:
        peer.handshake()
        described(peer, 4, replicas=3)
        described(peer, 9, replicas=3)
        lagging = peer.expect(GET)
        value(peer, lagging, "a", 8)
        ended(peer, lagging, 8)
        # A stream that was created again might never reach the sequence.
        described(peer, 9, replicas=3)
        request = peer.expect(GET)
        value(peer, request, "a", 9)
        ended(peer, request, 9)

    entries, revision, _ = await read(script, "a", "b")
    assert (entries, revision) == ([("a", b"x", 9)], 9)


async def test_own_writes_are_read_after_another_program_has_raised_the_replicas():
    """A replica that was added after the bucket was opened lags behind the leader."""
    leaders = r"MSG\.GET\.KV_B"

    def last(peer: FakePeer, seq: int) -> None:
        stored = {"subject": "$KV.B.a", "seq": seq, "data": "bmV3", "time": "2026-01-01T00:00:00Z"}
        peer.answer(peer.expect(leaders), {"message": stored})

    def script(peer: FakePeer) -> None:
        peer.handshake()
        described(peer, 4)
        peer.answer(peer.expect(r"KV\.B\.a "), {"stream": "KV_B", "seq": 9})
        lagging = peer.expect(GET)
        value(peer, lagging, "a", 3, data=b"old")
        ended(peer, lagging, 8)
        described(peer, 9)
        request = peer.expect(GET)
        value(peer, request, "a", 9, data=b"new")
        ended(peer, request, 9)
        value(peer, peer.expect(r"DIRECT\.GET\.KV_B\."), "a", 3, data=b"old")
        described(peer, 9, replicas=3)
        last(peer, 9)
        # From here on, the leader is asked.
        last(peer, 9)
        # A key that this program did not write.
        peer.answer(peer.expect(leaders), {"error": {"code": 404, "err_code": 10037}})

    async with scripted(script) as connection:
        made = await connection.jetstream().get_key_value("B")
        assert await made.put("a", b"new") == 9
        assert (await made.get_many("a"))["a"].value == b"new"
        for _ in range(2):
            assert (await made.get("a")).revision == 9
        assert await made.entry("b") is None


async def test_the_replicas_are_looked_up_again_after_many_own_writes(opened, name):
    async with opened() as jet:
        made = await bucket(jet, name)
        other = await jet.get_key_value(name)
        await other.change(lambda config: evolve(config, history=5))
        items = [(f"k{number}", b"%d" % number) for number in range(1500)]
        async for outcome in made.put_many(items):
            assert isinstance(outcome, js.PubAck)
        assert (await made.get("k1")).value == b"1"
        assert made.cached_status.info.config.max_msgs_per_subject == 5


async def test_times_are_exact(opened, name):
    async with opened() as jet:
        made = await bucket(jet, name)
        async for _ in made.put_many((f"k.{number}", b"") for number in range(200)):
            pass
        found = await made.get_many()
        for key in found:
            assert found[key].timestamp_ns == (await made.get(key)).timestamp_ns
        assert await together(partial(made.get_many, "k.1"), partial(made.get_many, "k.2"))


async def test_silent_server_ends_the_call_at_its_timeout(server, name):
    with Proxy(server.url) as proxy:
        async with js.connect(proxy.url) as connection:
            # If the call waited for this timeout, the test would not end.
            made = await connection.jetstream(timeout=3600).create_key_value(
                KeyValueConfig(bucket=name)
            )
            proxy.mute = True
            with pytest.raises(js.RequestTimeout):
                await made.get_many("a", idle_timeout=0.3)
            proxy.mute = False
