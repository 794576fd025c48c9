"""`fetch` and `next` with a scripted server: every status in every state, and late frames."""

from __future__ import annotations

from contextlib import suppress

import pytest

import js_async as js
from tests._async.scripted import scripted
from tests.fake.answers import CONSUMER
from tests.fake.statuses import STATUSES
from twinstream.errors import InvalidResponse
from twinstream.testing import FakePeer, FakeServer
from twinstream.testing.fake_script import ScriptError

CASES = pytest.mark.parametrize("row", STATUSES, ids=lambda row: f"{row.code} {row.text}")


async def consumer_of(connection):
    return connection.jetstream().bind_consumer("S", "c")


async def test_the_request_of_a_connected_client_lasts_as_long_as_its_caller_waits():
    def script(peer: FakePeer) -> None:
        peer.handshake()
        pull = peer.expect_pull()
        assert pull.json["expires"] == 5_000_000_000
        peer.deliver(pull, 1, b"fine")

    async with scripted(script) as connection:
        assert len(await (await consumer_of(connection)).fetch(1, timeout=5)) == 1


@CASES
async def test_a_status_in_an_empty_fetch(row):
    """The end is reported once; the next fetch is not affected."""

    def script(peer: FakePeer) -> None:
        peer.handshake()
        peer.status(peer.expect_pull(), 404, "No Messages")
        for _ in range(2):
            peer.status(peer.expect_pull(), row.code, row.text)
        peer.deliver(peer.expect_pull(), 1, b"fine")

    with FakeServer(script) as server:
        async with js.connect(server.url) as connection:
            consumer = await consumer_of(connection)
            # Without responders, only the first fetch of a consumer is repeated.
            assert await consumer.next(timeout=5) is None
            if isinstance(row.empty, js.BatchEnd):
                batch = await consumer.fetch(5, max_bytes=1000, timeout=5)
                assert (len(batch), batch.reason) == (0, row.empty)
                assert batch.detail == f"{row.code} {row.text}".strip()
                if row.empty is not js.BatchEnd.INTERRUPTED:
                    assert await consumer.next(timeout=5) is None
                else:
                    await consumer.next(timeout=5)
            else:
                for call in (lambda: consumer.fetch(5, max_bytes=1000), consumer.next):
                    with pytest.raises(row.empty):
                        await call()
            message = await consumer.next(timeout=60)
            assert message is not None
            assert message.data == b"fine"
        assert len(server.operations("MSG.NEXT")) == 4


@CASES
async def test_a_status_after_messages(row):
    def script(peer: FakePeer) -> None:
        peer.handshake()
        pull = peer.expect_pull()
        peer.deliver(pull, 1, b"one")
        peer.deliver(pull, 2, b"two")
        peer.status(pull, row.code, row.text, Nats_Pending_Messages=3)

    with FakeServer(script) as server:
        async with js.connect(server.url) as connection:
            batch = await (await consumer_of(connection)).fetch(5, timeout=5)
            assert [message.data for message in batch] == [b"one", b"two"]
            assert batch.reason is row.some
            assert batch.detail == f"{row.code} {row.text}".strip()
        # Handed over is handed over: nothing is given back.
        assert server.operations(r"^PUB \$JS\.ACK") == []


async def test_a_late_status_does_not_end_the_next_fetch():
    def script(peer: FakePeer) -> None:
        peer.handshake()
        first = peer.expect_pull()
        peer.deliver(first, 1)
        second = peer.expect_pull()
        for code, text in ((408, "Request Timeout"), (409, "Consumer Deleted"), (503, "")):
            peer.status(first, code, text)
        peer.deliver(second, 2, b"mine")

    with FakeServer(script) as server:
        async with js.connect(server.url) as connection:
            consumer = await consumer_of(connection)
            assert (await consumer.fetch(1)).reason is js.BatchEnd.FILLED
            [message] = await consumer.fetch(1, timeout=60)
            assert message.data == b"mine"
        # A clean inbox is used again.
        assert len(server.operations("^SUB")) == 1


async def test_message_that_arrives_after_the_end_is_returned():
    def script(peer: FakePeer) -> None:
        peer.handshake()
        first = peer.expect_pull()
        peer.status(first, 404, "No Messages")
        late = peer.deliver(first, 1, b"late")
        peer.fence()
        peer.reach("late")
        assert peer.expect(r"^PUB \$JS\.ACK").subject == late
        peer.deliver(peer.expect_pull(), 2, b"mine")

    with FakeServer(script) as server:
        async with js.connect(server.url) as connection:
            consumer = await consumer_of(connection)
            assert not await consumer.fetch(1, timeout=5)
            while not server.reached("late"):
                await connection.flush()
            [message] = await consumer.fetch(1, timeout=60)
            assert message.data == b"mine"
        [word] = server.operations(r"^PUB \$JS\.ACK")
        assert word.payload == b"-NAK"


async def test_headers_that_look_like_a_status_are_a_message():
    def script(peer: FakePeer) -> None:
        peer.handshake()
        pull = peer.expect_pull()
        reply = "$JS.ACK.S.c.1.1.1.1700000000000000000.0"
        for status in ("409 Consumer Deleted", "503", "404 No Messages"):
            peer.message(pull.reply, b"x", subject="a", reply=reply, status=status)

    async with scripted(script) as connection:
        batch = await (await consumer_of(connection)).fetch(3, timeout=5)
        assert (len(batch), batch.reason) == (3, js.BatchEnd.FILLED)


@pytest.mark.parametrize("every", [1, 3, 64])
async def test_frames_in_pieces(every):
    def script(peer: FakePeer) -> None:
        peer.split(every)
        peer.handshake()
        pull = peer.expect_pull()
        for seq in range(1, 6):
            peer.deliver(pull, seq, b"\r\n" * seq, headers={"A": seq})
        peer.status(pull, 408, "Request Timeout", Nats_Pending_Messages=1)

    async with scripted(script) as connection:
        batch = await (await consumer_of(connection)).fetch(6, timeout=5)
        assert [message.data for message in batch] == [b"\r\n" * seq for seq in range(1, 6)]
        assert [message.headers["A"] for message in batch] == list("12345")
        assert batch.reason is js.BatchEnd.EXPIRED


async def test_request_without_an_end_is_cancelled():
    """The client's own deadline ends the request.

    It replaces the inbox, so that no late message arrives.
    """

    def script(peer: FakePeer) -> None:
        peer.handshake()
        pull = peer.expect_pull()
        peer.deliver(pull, 1, b"one")
        peer.expect("^UNSUB")
        again = peer.expect_pull()
        assert again.reply.rpartition(".")[0] != pull.reply.rpartition(".")[0]
        peer.deliver(again, 2)

    async with scripted(script) as connection:
        consumer = await consumer_of(connection)
        batch = await consumer.fetch(2, timeout=0.05)
        assert (len(batch), batch.reason) == (1, js.BatchEnd.EXPIRED)
        assert "in time" in batch.detail
        assert len(await consumer.fetch(1, timeout=5)) == 1


async def test_double_ack_does_not_accept_a_status_as_confirmation():
    def script(peer: FakePeer) -> None:
        peer.handshake()
        pull = peer.expect_pull()
        reply = peer.deliver(pull, 1)
        for _ in range(2):
            ack = peer.expect(r"^PUB \$JS\.ACK")
            assert (ack.subject, ack.payload) == (reply, b"+ACK")
            peer.message(ack.reply, status="503")
        ack = peer.expect(r"^PUB \$JS\.ACK")
        peer.message(ack.reply, b"odd")
        peer.answer(peer.expect(r"^PUB \$JS\.ACK"), b"")

    async with scripted(script) as connection:
        message = await (await consumer_of(connection)).next(timeout=5)
        for error in (js.NoResponders, js.NoResponders, InvalidResponse):
            with pytest.raises(error):
                await message.double_ack(timeout=60)
            assert not message.is_acknowledged
        await message.double_ack(timeout=60)
        with pytest.raises(js.AlreadyAcknowledged):
            await message.ack()


async def test_double_ack_without_confirmation_explains_the_consequences():
    def script(peer: FakePeer) -> None:
        peer.handshake()
        peer.deliver(peer.expect_pull(), 1)
        for _ in range(2):
            peer.expect(r"^PUB \$JS\.ACK")
        peer.reset()

    async with scripted(script, reconnect=None) as connection:
        message = await (await consumer_of(connection)).next(timeout=5)
        for error, timeout in ((js.RequestTimeout, 0.05), (js.ConnectionLost, 30)):
            with pytest.raises(error, match="may be redelivered after the consumer's ack_wait"):
                await message.double_ack(timeout=timeout)
            assert not message.is_acknowledged


@pytest.mark.parametrize(
    ("call", "arguments", "word"),
    [
        ("nak", [2.5], b'-NAK {"delay": 2500000000}'),
        ("term", ["no tea"], b"+TERM no tea"),
        ("in_progress", [], b"+WPI"),
    ],
)
async def test_each_acknowledgement_may_be_confirmed(call, arguments, word):
    def script(peer: FakePeer) -> None:
        peer.handshake()
        peer.deliver(peer.expect_pull(), 1)
        told = peer.expect(r"^PUB \$JS\.ACK")
        assert told.payload == word
        peer.message(told.reply, status="503")
        told = peer.expect(r"^PUB \$JS\.ACK")
        assert told.payload == word
        peer.answer(told, b"")

    async with scripted(script) as connection:
        message = await (await consumer_of(connection)).next(timeout=5)
        say = getattr(message, call)
        with pytest.raises(js.NoResponders):
            await say(*arguments, confirm=True)
        assert not message.is_acknowledged
        await say(*arguments, confirm=True)
        assert message.is_acknowledged is (call != "in_progress")


async def test_batch_reports_unconfirmed_acknowledgements():
    def script(peer: FakePeer) -> None:
        peer.handshake()
        pull = peer.expect_pull()
        for seq in range(1, 5):
            peer.deliver(pull, seq)
        acks = [peer.expect(r"^PUB \$JS\.ACK") for _ in range(4)]
        # The first is lost, another gets no answer but a status.
        peer.answer(acks[3], b"")
        peer.message(acks[2].reply, status="503")
        peer.answer(acks[1], b"")

    async with scripted(script) as connection:
        consumer = await consumer_of(connection)
        batch = await consumer.fetch(4, timeout=5)
        left = await consumer.double_ack(batch, timeout=1)
        assert [message.metadata.stream_seq for message in left] == [1, 3]
        assert [message.is_acknowledged for message in batch] == [False, True, False, True]


async def test_a_batch_is_not_confirmed_where_the_link_breaks():
    def script(peer: FakePeer) -> None:
        peer.handshake()
        pull = peer.expect_pull()
        for seq in (1, 2):
            peer.deliver(pull, seq)
        for _ in range(2):
            peer.expect(r"^PUB \$JS\.ACK")
        peer.reset()

    async with scripted(script, reconnect=None) as connection:
        consumer = await consumer_of(connection)
        batch = await consumer.fetch(2, timeout=5)
        assert await consumer.double_ack(batch, timeout=30) == list(batch)


async def got(connection):
    return await connection.jetstream().get_consumer("S", "c")


HANDLES = pytest.mark.parametrize("handle", [got, consumer_of], ids=["got", "bound"])


@HANDLES
@pytest.mark.parametrize("wait", ["full", "first", "none"])
async def test_the_first_fetch_waits_until_the_consumer_is_reached(wait, handle):
    def script(peer: FakePeer) -> None:
        peer.handshake()
        if handle is got:
            peer.answer(peer.expect(r"CONSUMER\.INFO"), CONSUMER)
        for _ in range(3):
            peer.status(peer.expect_pull(), 503)
        peer.deliver(peer.expect_pull(), 1, b"fine")
        peer.status(peer.expect_pull(), 503)

    async with scripted(script) as connection:
        consumer = await handle(connection)
        [message] = await consumer.fetch(1, wait=wait)
        assert message.data == b"fine"
        # The consumer existed: now it is deleted, or has no leader.
        with pytest.raises(js.NoResponders):
            await consumer.fetch(1, wait=wait)


@HANDLES
async def test_a_consumer_that_is_never_reached_has_no_responders(handle):
    def script(peer: FakePeer) -> None:
        peer.handshake()
        if handle is got:
            peer.answer(peer.expect(r"CONSUMER\.INFO"), CONSUMER)
        # As often as it asks, until it leaves.
        with suppress(ScriptError):
            while True:
                peer.status(peer.expect_pull(), 503)

    with FakeServer(script) as server:
        async with js.connect(server.url) as connection:
            consumer = await handle(connection)
            with pytest.raises(js.NoResponders, match="S/c"):
                await consumer.fetch(1)
        assert len(server.operations("MSG.NEXT")) > 2
