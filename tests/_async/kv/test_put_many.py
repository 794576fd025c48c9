"""Writing many keys at once: outcomes, the order of each key, lost responses and failures."""

from __future__ import annotations

import gc
import json
import pickle
from dataclasses import dataclass
from functools import partial
from time import monotonic

import pytest

import js_async as js
from tests._async.buckets import bucket, listed
from tests._async.flow import eventually, together
from tests._async.scripted import scripted
from twinstream.codecs import PathKeys
from twinstream.core.kv.put_many import KeyPutFailure
from twinstream.errors import InvalidResponse, ValueTooLarge
from twinstream.models import KeyValueConfig, StreamConfig
from twinstream.testing import FakePeer, Operation, Proxy

PATIENT = js.ReconnectPolicy(wait=0.02, max_wait=0.2, attempts=-1)
PUT = r"^PUB \$KV\.B\."
AGAIN = r"^HPUB \$KV\.B\."
LAST = r"STREAM\.MSG\.GET\.KV_B"


@dataclass
class Price:
    cents: int


async def seqs(outcomes):
    """Return the revisions of outcomes, all of which must be successes."""
    return [outcome.seq async for outcome in outcomes]


async def all_of(outcomes):
    return [outcome async for outcome in outcomes]


def let_go(holder):
    """Clear a list, so that its contents are no longer referenced."""
    holder.clear()
    gc.collect()


async def values(made, key):
    """Return the values in the history of a key."""
    return [entry.value for entry in await made.history(key)]


# ---- outcomes


async def test_items_are_stored_in_order_with_their_revisions(opened, name):
    async with opened() as jet:
        made = await bucket(jet, name, history=5)
        assert await seqs(made.put_many({"a": b"1", "b": b"2"})) == [1, 2]
        assert await seqs(made.put_many([("c", b""), ("d", bytearray(b"4"))])) == [3, 4]

        async def source():
            for number in range(300):
                yield (f"k.{number}", b"%d" % number)

        async with made.put_many(source(), window=7) as outcomes:
            assert repr(outcomes).startswith("<PutMany: ")
            assert [each.stream async for each in outcomes] == [f"KV_{name}"] * 300
        assert await seqs(made.put_many([])) == []
        found = await made.get_many()
        assert len(found) == found.revision == 304
        assert (found["k.299"].value, found["d"].value, found["c"].value) == (b"299", b"4", b"")


async def test_codecs_and_types_apply(opened, name):
    async with opened() as jet:
        plain = await bucket(jet, name)
        made = plain.with_codecs(key=PathKeys()).typed(Price)
        await seqs(made.put_many({"/shop/tea": Price(350), "/shop/milk": Price(99)}))
        assert (await plain.get("_root_.shop.tea")).value == b'{"cents":350}'
        assert (await made.get("/shop/milk")).value == Price(99)


async def test_values_of_one_key_are_stored_in_their_order(opened, name):
    async with opened() as jet:
        made = await bucket(jet, name, history=64)
        items = [("ab"[number % 3 > 1], b"%d" % number) for number in range(90)]
        assert sorted(await seqs(made.put_many(items))) == list(range(1, 91))
        for key in "ab":
            assert await values(made, key) == [value for each, value in items if each == key]


async def test_other_keys_do_not_wait_for_a_key_in_flight():
    def script(peer: FakePeer) -> None:
        peer.handshake()
        first, other = peer.expect(PUT), peer.expect(PUT)
        assert (first.payload, other.payload) == (b"1", b"2")
        # The second value of the key has not been sent.
        assert peer.count(PUT) == 2
        stored(peer, other, 1)
        peer.fence()
        assert peer.count(PUT) == 2
        stored(peer, first, 2)
        stored(peer, peer.expect(PUT), 3)
        stored(peer, peer.expect(PUT), 4)

    async with scripted(script) as connection:
        made = connection.jetstream().bind_key_value("B")
        items = [("a", b"1"), ("b", b"2"), ("a", b"3"), ("c", b"4")]
        assert await seqs(made.put_many(items)) == [2, 1, 3, 4]


async def test_value_that_is_sent_again_does_not_replace_a_later_one():
    """The first value is refused for lack of a leader. The second value of the key waits for it."""

    def script(peer: FakePeer) -> None:
        peer.handshake()
        refused = peer.expect(PUT)
        peer.answer(refused, b'{"error":{"code":503,"err_code":10008,"description":"no"}}')
        again = peer.expect(PUT)
        assert again.payload == b"1"
        stored(peer, again, 1)
        last = peer.expect(PUT)
        assert last.payload == b"2"
        stored(peer, last, 2)

    async with scripted(script) as connection:
        made = connection.jetstream().bind_key_value("B")
        assert await seqs(made.put_many([("a", b"1"), ("a", b"2")])) == [1, 2]


def stored(peer: FakePeer, request, seq: int, stream: str = "KV_B") -> None:
    peer.answer(request, {"stream": stream, "seq": seq})


# ---- failures


class Picky:
    """A codec that fails for one value."""

    def encode(self, value):
        return b"%d" % (1 // value)

    def decode(self, data):
        return int(data)


async def test_failed_items_keep_no_other_from_being_stored(opened, name):
    async with opened() as jet:
        made = await bucket(jet, name, max_value_size=100)
        items = [("a", b"1"), ("no key", b"2"), ("b", b"x" * 200), ("c", "text"), ("d", b"5")]
        async with made.put_many(items) as outcomes:
            found = [each async for each in outcomes]
            failures = [each for each in found if isinstance(each, KeyPutFailure)]
            assert [each.key for each in failures] == ["no key", "b", "c"]
            assert failures[1].value == b"x" * 200
            kinds = [type(each.error) for each in failures]
            assert kinds == [js.InvalidKey, ValueTooLarge, js.BadArgument]
            assert f"[$KV.{name}.b]" in str(failures[1].error)
        assert [found[0].seq, found[4].seq] == [1, 2]
        assert await listed(made.keys()) == ["a", "d"]
        copy = pickle.loads(pickle.dumps(failures[0]))
        assert (copy.key, copy.value, repr(copy)) == ("no key", b"2", repr(failures[0]))


async def test_codec_that_fails_is_a_failure_of_the_item(opened, name):
    async with opened() as jet:
        made = (await bucket(jet, name)).with_codecs(value=Picky())
        outcomes = made.put_many([("a", 0), ("b", 1)], raise_failures=False)
        failure, ack = [each async for each in outcomes]
        assert ack.seq == 1
        assert isinstance(failure.error, js.BadArgument)
        assert isinstance(failure.error.__cause__, ZeroDivisionError)


async def test_unread_failures_are_raised(opened, name):
    async with opened() as jet:
        made = await bucket(jet, name)
        taken = []

        async def run(**options):
            async for outcome in made.put_many([("a", b"1"), ("a b", b""), ("", b"")], **options):
                taken.append(outcome)

        with pytest.raises(js.PublishFailures, match="2 messages were not acknowledged") as caught:
            await run()
        assert [each.key for each in caught.value.failures] == ["a b", ""]
        await run(raise_failures=False)
        assert len(taken) == 6
        holder = [made.put_many({"a": b"1"})]
        with pytest.warns(RuntimeWarning, match="put_many sent nothing"):
            let_go(holder)


async def test_missing_bucket_is_named(opened, name):
    async with opened() as jet:
        made = jet.bind_key_value(name)
        outcomes = made.put_many({"a": b""}, raise_failures=False)
        [failure] = [each async for each in outcomes]
        assert isinstance(failure.error, js.BucketNotFound)


async def test_acknowledgement_of_another_stream_is_a_failure(opened, name):
    async with opened() as jet:
        await jet.create_stream(StreamConfig(name=name, subjects=[f"$KV.{name}.>"]))
        made = jet.bind_key_value(name)
        outcomes = made.put_many({"a": b""}, raise_failures=False)
        [failure] = [each async for each in outcomes]
        assert isinstance(failure.error, InvalidResponse)
        assert f"{name} acknowledged, not KV_{name}" in str(failure.error)


@pytest.mark.parametrize("items", ["ab", b"ab", 7, None])
async def test_items_that_are_none_are_refused_at_once(opened, name, items):
    async with opened() as jet:
        made = await bucket(jet, name)
        with pytest.raises(js.BadArgument, match="a mapping, or pairs of key and value"):
            made.put_many(items)


@pytest.mark.parametrize("item", ["ab", ["a", b"1"], ("a",), ("a", b"", 1), js.PublishRequest("a")])
async def test_item_that_is_no_pair_is_refused(opened, name, item):
    async with opened() as jet:
        made = await bucket(jet, name)
        with pytest.raises(js.BadArgument, match="must be a pair of key and value"):
            await seqs(made.put_many([item]))


async def test_leaving_early_waits_for_what_was_sent(opened, name):
    async with opened() as jet:
        made = await bucket(jet, name)
        items = ((f"k.{number}", b"") for number in range(1000))
        async with made.put_many(items, window=20) as outcomes:
            async for _ in outcomes:
                break
        left = len(list(items))
        assert len(await made.get_many()) == 1000 - left


async def test_calls_are_reported(server, name):
    calls = []
    async with js.connect(server.url, on_call=calls.append) as connection:
        made = await bucket(connection.jetstream(), name)
        calls.clear()
        outcomes = made.put_many({"a": b"1", "b": b"2", "no key": b""}, raise_failures=False)
        assert len([each async for each in outcomes]) == 3
    assert [(each.kind, each.subject, each.stream_name) for each in calls] == [
        ("publish", f"$KV.{name}.a", f"KV_{name}"),
        ("publish", f"$KV.{name}.b", f"KV_{name}"),
    ]


async def test_several_callers_share_a_bucket(opened, name):
    async with opened() as jet:
        made = await bucket(jet, name)

        async def write(who):
            items = ((f"{who}.{number}", b"x") for number in range(300))
            return await seqs(made.put_many(items, window=50))

        found = await together(*(partial(write, who) for who in range(4)))
        assert sorted(seq for each in found for seq in each) == list(range(1, 1201))


# ---- time to live


@pytest.mark.since("2.11")
async def test_ttl_is_that_of_all_items(opened, name):
    async with opened() as jet:
        made = await bucket(jet, name, limit_marker_ttl=2)
        assert await seqs(made.put_many({"a": b"1", "b": b"2"}, ttl=59.5)) == [1, 2]
        assert [(await made.get(key)).headers["Nats-TTL"] for key in "ab"] == ["60", "60"]
        with pytest.raises(js.BadArgument, match="at least 1 second"):
            await seqs(made.put_many({"a": b"1"}, ttl=0.5))


async def test_ttl_needs_a_bucket_that_has_it(opened, name):
    async with opened() as jet:
        made = await bucket(jet, name)
        with pytest.raises(js.Unsupported, match="limit_marker_ttl"):
            await seqs(made.put_many({"a": b"1"}, ttl=5))
        assert await listed(made.keys()) == []


# ---- lost responses


def info(peer: FakePeer, last_seq: int = 0, request: Operation | None = None) -> None:
    state = {"messages": 0, "bytes": 0, "first_seq": 0, "last_seq": last_seq, "consumer_count": 0}
    zero = "0001-01-01T00:00:00Z"
    peer.answer(
        request or peer.expect(r"STREAM\.INFO\.KV_B"),
        {
            "config": {"name": "KV_B", "subjects": ["$KV.B.>"], "max_msgs_per_subject": 1},
            "state": {**state, "first_ts": zero, "last_ts": zero},
            "created": "2026-01-01T00:00:00Z",
        },
    )


def found(peer: FakePeer, key: str, seq: int, data: str) -> None:
    """Answer a request for the last message of a key; the data is base64."""
    request = peer.expect(LAST)
    assert json.loads(request.payload)["last_by_subj"] == f"$KV.B.{key}"
    message = {"subject": f"$KV.B.{key}", "seq": seq, "time": "2026-01-01T00:00:00Z", "data": data}
    peer.answer(request, {"message": message})


def nothing(peer: FakePeer) -> None:
    missing = {"code": 404, "err_code": 10037, "description": "no message found"}
    peer.answer(peer.expect(LAST), {"error": missing})


async def test_writes_without_a_response_are_looked_up_and_repeated_once():
    def script(peer: FakePeer) -> None:
        peer.handshake()
        info(peer, last_seq=4)
        stored(peer, peer.expect(PUT), 5)
        for _ in range(4):
            peer.expect(PUT)
        peer.close()

    def rest(peer: FakePeer) -> None:
        peer.handshake()
        # Stored: it is the value that was sent.
        found(peer, "b", 6, "Mg==")
        # Not stored, and no value: the repeat is a create.
        nothing(peer)
        again = peer.expect(AGAIN)
        assert b"Nats-Expected-Last-Subject-Sequence: 0" in again.headers
        stored(peer, again, 8)
        # Not stored: the key is at a revision from before.
        found(peer, "d", 4, "b2xk")
        again = peer.expect(AGAIN)
        assert b"Nats-Expected-Last-Subject-Sequence: 4" in again.headers
        stored(peer, again, 9)
        # Another client wrote since.
        found(peer, "e", 7, "dGhlaXJz")
        # The later value of a key waited for the one that was looked up.
        last = peer.expect(PUT)
        assert (last.payload, "$KV.B.b" in last.line) == (b"6", True)
        stored(peer, last, 10)

    async with scripted(script, rest, reconnect=PATIENT) as connection:
        made = await connection.jetstream().get_key_value("B")
        items = [(key, b"%d" % at) for at, key in enumerate("abcdeb", 1)]
        outcomes = made.put_many(items, raise_failures=False)
        *stored_ones, unknown, last = [each async for each in outcomes]
    assert [each.seq for each in stored_ones] == [5, 6, 8, 9]
    assert last.seq == 10
    assert (unknown.key, type(unknown.error)) == ("e", js.OutcomeUnknown)
    assert "revision 7 of another client" in str(unknown.error)


@pytest.mark.parametrize("window", [1, 100])
async def test_own_earlier_value_of_the_key_is_not_taken_for_another_clients(window):
    def script(peer: FakePeer) -> None:
        peer.handshake()
        info(peer, last_seq=4)
        stored(peer, peer.expect(PUT), 5)
        peer.expect(PUT)
        peer.close()

    def rest(peer: FakePeer) -> None:
        peer.handshake()
        found(peer, "a", 5, "MQ==")
        again = peer.expect(AGAIN)
        assert (again.payload, b"Subject-Sequence: 5" in again.headers) == (b"2", True)
        stored(peer, again, 6)

    async with scripted(script, rest, reconnect=PATIENT) as connection:
        made = await connection.jetstream().get_key_value("B")
        items = [("a", b"1"), ("a", b"2")]
        assert await seqs(made.put_many(items, window=window)) == [5, 6]


async def test_items_fail_together_while_the_server_is_away(server, name):
    items = [(f"k{number}", b"") for number in range(400)]
    async with js.connect(server.url) as observer:
        await observer.jetstream().create_key_value(KeyValueConfig(bucket=name))
        stream = await observer.jetstream().get_stream(f"KV_{name}")

        async def all_are_stored():
            return (await stream.info()).state.messages == len(items)

        with Proxy(server.url) as proxy:
            async with js.connect(proxy.url, reconnect=PATIENT) as connection:
                made = await connection.jetstream().get_key_value(name)
                proxy.mute = True
                outcomes = made.put_many(items, timeout=0.5, raise_failures=False)

                async def lose():
                    await eventually(all_are_stored)
                    proxy.refuse = True
                    proxy.cut()

                began = monotonic()
                _, failures = await together(lose, lambda: all_of(outcomes))
                # One timeout for all, not one for each.
                assert monotonic() - began < 100
                found = {type(each.error) for each in failures}
                assert found <= {js.OutcomeUnknown, js.RequestTimeout}
                proxy.refuse = proxy.mute = False


async def test_silent_server_is_a_timeout_of_each_item():
    def script(peer: FakePeer) -> None:
        peer.handshake()
        for _ in range(2):
            peer.expect(PUT)
        for request in peer.follow():
            if "STREAM.NAMES" in request.subject:
                peer.answer(request, {"streams": ["KV_B"], "total": 1})
            elif "STREAM.INFO" in request.subject:
                info(peer, request=request)
            elif "$KV.B." in request.subject:
                stored(peer, request, int(request.payload))

    async with scripted(script) as connection:
        made = connection.jetstream().bind_key_value("B")
        # On a busy machine, the first of the other items may be late, too.
        items = [("a", b"1"), ("b", b"2"), *(("a", b"%d" % number) for number in range(3, 9))]
        outcomes = made.put_many(items, timeout=0.5, raise_failures=False)
        first, second, *others = [each async for each in outcomes]
    assert [type(each.error) for each in (first, second)] == [js.RequestTimeout] * 2
    assert others[-1].seq == 8


async def test_server_that_is_killed_loses_and_repeats_nothing(server_factory, name):
    server = server_factory()
    keys, rounds = 1500, 4
    async with js.connect(server.url, reconnect=PATIENT) as connection:
        jet = connection.jetstream(timeout=40)
        config = KeyValueConfig(bucket=name, history=rounds)
        made = await jet.create_key_value(config)
        items = [(f"k.{at % keys}", b"%d" % at) for at in range(keys * rounds)]
        taken = []
        async with made.put_many(items, window=500, timeout=40) as outcomes:
            async for outcome in outcomes:
                assert isinstance(outcome, js.PubAck), outcome
                taken.append(outcome.seq)
                if len(taken) in (1000, 2500, 4000):
                    server.kill()
                    server.restart()
        assert len(set(taken)) == len(items)
        stored_ones = {}
        async for message in jet.bind_stream(made.stream_name).read():
            stored_ones[message.seq] = (message.subject, message.data)
        assert [stored_ones[seq] for seq in taken] == [(f"$KV.{name}.{k}", v) for k, v in items]
        # Each value once, and those of a key in their order.
        assert len(stored_ones) == len(items)
        expected = [b"%d" % at for at in range(7, keys * rounds, keys)]
        assert await values(made, "k.7") == expected
