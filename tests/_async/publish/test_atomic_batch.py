"""Atomic batches: all messages or none, after any failure at any message."""

from __future__ import annotations

import pytest

import js_async as js
from tests._async.flow import eventually, together
from tests._async.lossy import Lossy
from tests._async.scripted import scripted
from tests.inside import api_of, session_of
from twinstream.errors import AtomicBatchUnknown, InvalidResponse
from twinstream.models import StreamConfig
from twinstream.testing import FakePeer, FakeServer, Proxy

pytestmark = pytest.mark.since("2.12")

SIZE = 5
POSITIONS = pytest.mark.parametrize("position", range(SIZE))
_IN_FLIGHT = 50
"""Batches that the server keeps open for one stream."""


async def atomic_stream(jet, name, **members):
    return await jet.create_stream(
        StreamConfig(name=name, subjects=[f"{name}.>"], allow_atomic=True, **members)
    )


async def fill(batch, *parts):
    """Add messages in a block: subjects, or subjects with further arguments of `add`."""
    async with batch:
        for part in parts:
            subject, arguments = part if isinstance(part, tuple) else (part, {})
            await batch.add(subject, b"x", **arguments)


def numbered(name, count=SIZE):
    return [f"{name}.{number}" for number in range(count)]


async def count_of(stream):
    return (await stream.info()).state.messages


async def test_a_block_that_ends_well_stores_all(opened, name):
    async with opened() as jet:
        stream = await atomic_stream(jet, name)
        await jet.publish(f"{name}.before")
        async with jet.atomic_batch() as batch:
            for number in range(SIZE):
                await batch.add(f"{name}.{number}", b"%d" % number, headers={"N": str(number)})
            assert await count_of(stream) == 1
            assert (batch.outcome, len(batch)) == (js.AtomicOutcome.OPEN, SIZE)
            with pytest.raises(js.AtomicBatchFailed, match="is open"):
                _ = batch.ack
        ack = batch.ack
        assert (ack.stream, ack.seq, ack.count, ack.batch) == (name, 1 + SIZE, SIZE, batch.id)
        assert (batch.outcome, batch.reason) == (js.AtomicOutcome.COMMITTED, "")
        stored = [await stream.get_message(seq) for seq in range(2, 2 + SIZE)]
        assert [each.data for each in stored] == [b"0", b"1", b"2", b"3", b"4"]
        assert [each.headers["N"] for each in stored] == ["0", "1", "2", "3", "4"]
        assert {each.headers["Nats-Batch-Id"] for each in stored} == {batch.id}
        with pytest.raises(js.AtomicBatchFailed, match="committed"):
            await batch.add(f"{name}.late")
        assert "committed" in repr(batch)


async def test_commit_inside_the_block_and_batches_of_one(opened, name):
    async with opened() as jet:
        stream = await atomic_stream(jet, name)
        async with jet.atomic_batch(id="mine") as batch:
            await batch.add(f"{name}.a", b"x")
            ack = await batch.commit()
            assert (ack.seq, ack.count, ack.batch) == (1, 1, "mine")
        assert batch.ack == ack
        assert await count_of(stream) == 1


async def test_an_empty_block_sends_nothing(opened, name):
    async with opened() as jet:
        await atomic_stream(jet, name)
        async with jet.atomic_batch() as batch:
            pass
        assert batch.outcome is js.AtomicOutcome.ABANDONED
        with pytest.raises(js.BadArgument, match="empty"):
            await jet.atomic_batch().commit()


async def test_a_thousand_messages_and_not_one_more(opened, name):
    async with opened() as jet:
        stream = await atomic_stream(jet, name)
        async with jet.atomic_batch() as batch:
            for number in range(1000):
                await batch.add(f"{name}.{number}", b"x")
        assert (batch.ack.seq, batch.ack.count) == (1000, 1000)
        batch = jet.atomic_batch(max_messages=2)
        with pytest.raises(js.BadArgument, match="batch is full"):
            await fill(batch, *numbered(name, 3))
        assert batch.outcome is js.AtomicOutcome.REFUSED
        # What the server itself says, where its limit is lower than was told here.
        batch = jet.atomic_batch(max_messages=2000)
        with pytest.raises(js.JetStreamError, match="too large") as raised:
            await fill(batch, *numbered(name, 1001))
        assert raised.value.err_code == 10199
        assert batch.outcome is js.AtomicOutcome.REFUSED
        assert await count_of(stream) == 1000


@POSITIONS
async def test_a_condition_that_does_not_hold_at_each_position(opened, name, position):
    async with opened() as jet:
        stream = await atomic_stream(jet, name)
        await jet.publish(f"{name}.{position}")
        batch = jet.atomic_batch()
        parts = [(subject, {"expected_last_subject_seq": 0}) for subject in numbered(name)]
        with pytest.raises(js.WrongLastSequence):
            await fill(batch, *parts)
        assert batch.outcome is js.AtomicOutcome.REFUSED
        assert "wrong last sequence" in batch.reason
        assert await count_of(stream) == 1
        parts[position] = (f"{name}.{position}", {"expected_last_subject_seq": 1})
        await fill(jet.atomic_batch(), *parts)
        assert await count_of(stream) == 1 + SIZE


@POSITIONS
async def test_an_exception_in_the_block_at_each_position(opened, name, position):
    async with opened() as jet:
        stream = await atomic_stream(jet, name)
        batch = jet.atomic_batch()

        async def broken():
            async with batch:
                for number in range(position):
                    await batch.add(f"{name}.{number}")
                raise ZeroDivisionError("mine")

        with pytest.raises(ZeroDivisionError):
            await broken()
        assert (batch.outcome, batch.reason) == (js.AtomicOutcome.ABANDONED, "mine")
        assert await count_of(stream) == 0


@POSITIONS
async def test_a_message_that_cannot_be_sent_at_each_position(opened, name, position):
    async with opened() as jet:
        stream = await atomic_stream(jet, name)
        batch = jet.atomic_batch()
        subjects = numbered(name)
        subjects[position] += " "
        with pytest.raises(js.BadArgument, match="white space"):
            await fill(batch, *subjects)
        assert batch.outcome is js.AtomicOutcome.REFUSED
        assert await count_of(stream) == 0


@pytest.mark.parametrize("position", range(1, SIZE))
async def test_message_that_the_server_refuses_is_reported_as_such(opened, name, position):
    async with opened() as jet:
        stream = await atomic_stream(jet, name, max_msg_size=500)
        batch = jet.atomic_batch()

        async def add_all():
            async with batch:
                for number in range(SIZE):
                    await batch.add(f"{name}.{number}", b"x" * 500 * (number == position))

        with pytest.raises(js.JetStreamError, match="exceeds maximum") as raised:
            await add_all()
        assert raised.value.err_code == 10054
        assert batch.outcome is js.AtomicOutcome.REFUSED
        assert "exceeds maximum" in batch.reason
        assert await count_of(stream) == 0
        assert api_of(jet).transport.replies.open_requests == 0


async def test_abandoned_batches_give_their_places_back(opened, name):
    async with opened() as jet:
        stream = await atomic_stream(jet, name)
        for number in range(_IN_FLIGHT + 10):
            async with jet.atomic_batch() as batch:
                await batch.add(f"{name}.{number}")
                await batch.add(f"{name}.{number}")
                await batch.abandon()
            assert (batch.outcome, batch.reason) == (
                js.AtomicOutcome.ABANDONED,
                "it was abandoned",
            )
        assert await count_of(stream) == 0


async def test_block_that_continues_after_a_failure_raises_at_its_end(opened, name):
    async with opened() as jet:
        stream = await atomic_stream(jet, name)

        async def forgetful():
            async with jet.atomic_batch() as batch:
                await batch.add(f"{name}.a")
                with pytest.raises(js.BadArgument):
                    await batch.add("bad subject")

        with pytest.raises(js.AtomicBatchFailed, match="continued after that failure") as raised:
            await forgetful()
        assert raised.value.outcome is js.AtomicOutcome.REFUSED
        assert await count_of(stream) == 0


async def test_what_would_be_refused_as_a_whole_is_refused_before_it_is_sent(opened, name):
    async with opened() as jet:
        stream = await atomic_stream(jet, name, allow_rollup_hdrs=True)
        refused = [
            ({"headers": {"Nats-Batch-Id": "x"}}, "is set by the batch"),
            ({"headers": {"Nats-Expected-Last-Msg-Id": "x"}}, "expected_last_msg_id"),
            ({"expected_last_seq": 1}, "first message"),
            ({"expected_last_subject_seq": 1}, "written earlier"),
            ({"headers": {"Nats-Rollup": "all"}}, "rollup 'all'"),
            ({"headers": {"Nats-Rollup": "sub"}}, "written earlier"),
            ({"msg_id": "1"}, "twice"),
        ]
        for arguments, told in refused:
            batch = jet.atomic_batch()
            with pytest.raises(js.BadArgument, match=told):
                await fill(batch, (f"{name}.a", {"msg_id": "1"}), (f"{name}.a", arguments))
            assert batch.outcome is js.AtomicOutcome.REFUSED
        with pytest.raises(js.BadArgument, match="64"):
            jet.atomic_batch(id="x" * 65)
        with pytest.raises(js.BadArgument, match="max_messages"):
            jet.atomic_batch(max_messages=0)
        assert await count_of(stream) == 0
        async with jet.atomic_batch() as batch:
            await batch.add(f"{name}.a", expected_last_seq=0, expected_stream=name)
            await batch.add(f"{name}.b", headers={"Nats-Rollup": "sub"})
        assert await count_of(stream) == 2


async def test_a_batch_expects_the_last_sequence_of_another_subject(opened, name):
    async with opened() as jet:
        stream = await atomic_stream(jet, name)
        for subject in (f"{name}.a.1", f"{name}.b"):
            await jet.publish(subject)

        def expecting(seq, subject):
            return {
                "expected_last_subject_seq": seq,
                "expected_last_subject_seq_subject": subject,
            }

        async def write(seq, subject):
            async with jet.atomic_batch() as batch:
                await batch.add(f"{name}.c", **expecting(seq, subject))
                await batch.add(f"{name}.d")

        for seq, subject in ((1, f"{name}.a.1"), (1, f"{name}.a.*"), (0, f"{name}.none")):
            await write(seq, subject)
        assert await count_of(stream) == 8

        for seq, subject in ((7, f"{name}.a.1"), (7, f"{name}.a.*"), (7, f"{name}.none")):
            with pytest.raises(js.WrongLastSequence):
                await write(seq, subject)
        batch = jet.atomic_batch()
        with pytest.raises(js.BadArgument, match="written earlier"):
            await fill(batch, (f"{name}.a.1", {}), (f"{name}.c", expecting(1, f"{name}.a.1")))
        batch = jet.atomic_batch()
        with pytest.raises(js.BadArgument, match="expected_last_subject_seq"):
            await batch.add(f"{name}.c", expected_last_subject_seq_subject=f"{name}.a.1")
        assert await count_of(stream) == 8


async def test_id_known_to_the_stream_refuses_the_batch(opened, name):
    async with opened() as jet:
        stream = await atomic_stream(jet, name)
        subject = f"{name}.a"
        await fill(jet.atomic_batch(), (subject, {"msg_id": "1"}), (subject, {"msg_id": "2"}))
        batch = jet.atomic_batch()
        with pytest.raises(js.JetStreamError) as raised:
            await fill(batch, (subject, {"msg_id": "3"}), (subject, {"msg_id": "2"}))
        assert raised.value.err_code == 10201
        assert (await jet.publish(f"{name}.a", msg_id="3")).duplicate is None
        assert await count_of(stream) == 3


async def test_a_stream_without_batches_and_no_stream(opened, name):
    async with opened() as jet:
        stream = await jet.create_stream(StreamConfig(name=name, subjects=[f"{name}.>"]))
        batch = jet.atomic_batch()
        with pytest.raises(js.JetStreamError) as raised:
            await fill(batch, f"{name}.a")
        assert raised.value.err_code == 10174
        assert batch.outcome is js.AtomicOutcome.REFUSED
        assert await count_of(stream) == 0
        batch = jet.atomic_batch()
        with pytest.raises(js.NoResponders, match=f"nobody.{name}"):
            await fill(batch, f"nobody.{name}")
        assert batch.outcome in {js.AtomicOutcome.REFUSED, js.AtomicOutcome.ABANDONED}


async def test_batch_that_the_server_dropped_in_between(opened, name):
    async with opened() as jet:
        stream = await atomic_stream(jet, name)
        batch = jet.atomic_batch(id=f"{name}-shut")
        for subject in numbered(name):
            await batch.add(subject)
        shut = {"Nats-Batch-Id": batch.id, "Nats-Batch-Sequence": "9"}
        with pytest.raises(js.JetStreamError, match="incomplete"):
            await jet.publish(f"{name}.0", headers=shut)
        with pytest.raises(js.JetStreamError, match="incomplete") as raised:
            await batch.commit()
        assert raised.value.err_code == 10176
        assert "servers wait 10 s" in batch.reason
        assert await count_of(stream) == 0


# ---- trouble on the way


@POSITIONS
async def test_the_link_breaks_after_each_message(server, name, position):
    """Messages in flight may be lost; the batch is stored completely or not at all."""
    with Proxy(server.url) as proxy:
        async with js.connect(proxy.url) as connection:
            jet = connection.jetstream()
            stream = await atomic_stream(jet, name)
            failed = False
            try:
                async with jet.atomic_batch() as batch:
                    for number in range(SIZE):
                        await batch.add(f"{name}.{number}", b"x")
                        if number == position:
                            proxy.cut()
            except (js.TwinstreamError, OSError):
                failed = True
            count = await count_of(stream)
            assert count == (0 if failed else SIZE)
            assert (batch.outcome is js.AtomicOutcome.COMMITTED) is not failed
            assert batch.outcome is not js.AtomicOutcome.UNKNOWN


async def test_commit_with_lost_response_is_verified_by_reading(server, name):
    with Proxy(server.url) as proxy:
        async with (
            js.connect(proxy.url) as connection,
            js.connect(server.url) as other,
        ):
            stream = await atomic_stream(other.jetstream(), name)
            async with connection.jetstream().atomic_batch(timeout=10) as batch:
                for number in range(SIZE):
                    await batch.add(f"{name}.{number}", b"x")
                proxy.mute = True

                async def is_stored():
                    return await count_of(stream) == SIZE

                async def cut_when_stored():
                    await eventually(is_stored)
                    # Somebody else writes meanwhile.
                    await other.jetstream().publish(f"{name}.4", b"later")
                    proxy.mute = False
                    proxy.cut()

                acks = await together(batch.commit, cut_when_stored)
            assert (acks[0].seq, acks[0].count) == (SIZE, SIZE)
            assert batch.outcome is js.AtomicOutcome.COMMITTED
            assert await count_of(stream) == SIZE + 1


@pytest.mark.parametrize("refusal", ["behind", "in flight", "incomplete"])
@pytest.mark.parametrize("lost", ["", "lost "], ids=["stored", "lost"])
async def test_a_commit_that_a_former_leader_refused_is_verified_by_reading(
    cluster, name, lost, refusal
):
    async with js.connect(cluster.url) as connection:
        link = Lossy(session_of(connection))
        jet = link.jetstream(timeout=20)
        stream = await atomic_stream(jet, name, num_replicas=3)
        seq = (await jet.publish(f"{name}.0")).seq
        batch = jet.atomic_batch()
        await batch.add(f"{name}.0", b"x", expected_last_subject_seq=seq)
        await batch.add(f"{name}.1", b"x")
        link.losses = [lost + refusal]
        if lost:
            with pytest.raises(js.JetStreamError, match=r"incomplete|wrong last"):
                await batch.commit()
            assert batch.outcome is js.AtomicOutcome.REFUSED
            assert await count_of(stream) == 1
        else:
            ack = await batch.commit()
            assert (ack.seq, ack.count) == (3, 2)
            assert batch.outcome is js.AtomicOutcome.COMMITTED


async def test_commit_that_never_arrived_fails_and_closes_the_batch(server, name):
    with Proxy(server.url) as proxy:
        async with (
            js.connect(proxy.url) as connection,
            js.connect(server.url) as other,
        ):
            stream = await atomic_stream(other.jetstream(), name)
            batch = connection.jetstream().atomic_batch(timeout=10)
            for subject in numbered(name):
                await batch.add(subject, b"x")
            proxy.black_hole = True

            async def is_unknown():
                return batch.outcome is js.AtomicOutcome.UNKNOWN

            async def cut():
                await eventually(is_unknown)
                proxy.cut()
                proxy.black_hole = False

            async def commit():
                with pytest.raises(js.AtomicBatchFailed, match="does not contain it") as raised:
                    await batch.commit()
                return raised

            raised = (await together(commit, cut))[0]
            assert raised.value.outcome is js.AtomicOutcome.ABANDONED
            assert isinstance(raised.value.__cause__, js.ConnectionLost)
            # The server keeps nothing of it either: a late commit is refused.
            late = {
                "Nats-Batch-Id": batch.id,
                "Nats-Batch-Sequence": str(SIZE + 1),
                "Nats-Batch-Commit": "1",
            }
            with pytest.raises(js.JetStreamError, match="incomplete"):
                await other.jetstream().publish(f"{name}.4", headers=late)
            assert await count_of(stream) == 0


@POSITIONS
async def test_a_scripted_refusal_of_each_message(position):
    """The server refuses one message in the middle. The next call raises the refusal."""
    refusal = {"error": {"code": 400, "err_code": 10176, "description": "told"}, "seq": 0}

    def script(peer: FakePeer) -> None:
        peer.handshake()
        for number in range(position + 1):
            operation = peer.expect(rf"^HPUB s\.{number} ")
            peer.answer(operation, refusal if number == position else b"")
            peer.reach(f"answered {number}")

    with FakeServer(script) as fake:
        async with js.connect(fake.url) as connection:
            batch = connection.jetstream().atomic_batch(timeout=30)

            async def add_all():
                async with batch:
                    for number in range(SIZE):
                        await batch.add(f"s.{number}", b"x")
                        await eventually(answered_if_sent, fake, number, position)
                        # Its answer has been read when that of a PING behind it has been.
                        await connection.flush()

            with pytest.raises(js.JetStreamError, match="told"):
                await add_all()
            assert batch.outcome is js.AtomicOutcome.REFUSED
        assert not any(b"Nats-Batch-Commit" in each.headers for each in fake.operations("^HPUB"))


async def answered_if_sent(fake, number, position):
    return number > position or fake.reached(f"answered {number}")


async def test_the_first_message_waits_until_the_stream_is_reached():
    """In a cluster, some servers learn of a new stream later than its creator."""

    def script(peer: FakePeer) -> None:
        peer.handshake()
        for _ in range(3):
            peer.message(peer.expect(r"^HPUB s\.0 ").reply, status="503")
        peer.answer(peer.expect(r"^HPUB s\.0 "), b"")
        commit = peer.expect(r"^HPUB s\.0 ")
        peer.answer(commit, {"stream": "S", "seq": 7, "batch": "b", "count": 1})

    async with scripted(script) as connection:
        async with connection.jetstream().atomic_batch(id="b") as batch:
            await batch.add("s.0", b"x")
        assert batch.ack.seq == 7


async def test_a_batch_without_a_stream_has_no_responders():
    def script(peer: FakePeer) -> None:
        peer.handshake()
        for request in peer.follow():
            if request.reply:
                peer.message(request.reply, status="503")

    async with scripted(script) as connection:
        batch = connection.jetstream(timeout=600).atomic_batch()
        with pytest.raises(js.NoResponders):
            await batch.add("s.0", b"x")
        assert batch.outcome is js.AtomicOutcome.ABANDONED


async def test_a_commit_that_somebody_else_answers_is_not_believed():
    def script(peer: FakePeer) -> None:
        peer.handshake()
        peer.answer(peer.expect(r"^HPUB s\.0 "), b"")
        commit = peer.expect(r"^HPUB s\.0 ")
        peer.answer(commit, {"stream": "S", "seq": 7, "batch": "another", "count": 1})
        shut = peer.expect(r"^HPUB s\.0 ")
        peer.answer(shut, {"error": {"code": 400, "err_code": 10176, "description": "shut"}})
        peer.answer(peer.expect(r"^PUB \$JS\.API\.STREAM\.NAMES"), {"streams": [], "total": 0})

    with FakeServer(script, patience=15) as fake:
        async with js.connect(fake.url) as connection:
            batch = connection.jetstream().atomic_batch(timeout=20)
            await batch.add("s.0", b"x")
            with pytest.raises(js.OutcomeUnknown, match="is unknown") as raised:
                await batch.commit(timeout=0.5)
            assert isinstance(raised.value, AtomicBatchUnknown)
            assert raised.value.outcome is js.AtomicOutcome.UNKNOWN
            assert isinstance(raised.value.__cause__, InvalidResponse)


async def test_old_server_is_reported_before_anything_is_sent():
    for version, told in (("2.11.11", "needs server 2.12.0"), ("2.12.0", "needs server 2.12.1")):

        def script(peer: FakePeer, version: str = version) -> None:
            peer.handshake(version=version)
            peer.until_left()

        with FakeServer(script) as fake:
            async with js.connect(fake.url) as connection:
                batch = connection.jetstream().atomic_batch()
                with pytest.raises(js.Unsupported, match=told):
                    await fill(batch, ("s.0", {"msg_id": "1"}))
                assert batch.outcome is js.AtomicOutcome.ABANDONED
            assert fake.operations("^HPUB") == []
