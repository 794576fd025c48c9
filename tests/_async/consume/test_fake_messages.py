"""Iterations over messages of a scripted server: statuses, silence, reconnects, leaving."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

import js_async as js
from js_async.consume.delivery import Delivery
from js_async.consume.message import Message
from js_async.consume.messages import Messages
from js_async.consume.pull_subscription import PullChannel
from js_async.consume.ready_messages import ReadyMessages
from tests._async.flow import eventually, together
from tests._async.scripted import scripted
from tests.fake.answers import CONSUMER
from tests.fake.statuses import STATUSES, Then
from tests.hooked import starts
from tests.inside import buffer_of, outstanding
from tests.stalls import attempts
from twinstream.core.consume.pin import Pins
from twinstream.core.consume.reports import PullWarning
from twinstream.core.deadline import Deadline, monotonic
from twinstream.core.server_faults.delays import DELETION
from twinstream.errors import PullRefused
from twinstream.testing import FakePeer, FakeServer

CASES = pytest.mark.parametrize("row", STATUSES, ids=lambda row: f"{row.code} {row.text}")
QUICK = js.ReconnectPolicy(wait=0.01, max_wait=0.05, attempts=-1)


def iterating(connection, **options):
    """Return an iteration and the list of its reports."""
    reports = []
    consumer = connection.jetstream().bind_consumer("S", "c")
    messages = consumer.messages(**({"max_messages": 10} | options), on_report=reports.append)
    return messages, reports


def warnings(reports):
    return [report for report in reports if isinstance(report, PullWarning)]


def give_five(peer: FakePeer) -> None:
    """Deliver all five messages of a stream, and signal when the client has read them."""
    peer.handshake()
    pull = peer.expect_pull()
    for seq in range(1, 6):
        peer.deliver(pull, seq)
    peer.fence()
    peer.reach("read")


async def five_are_here(connection, server):
    async def read():
        await connection.flush()
        return server.reached("read")

    await eventually(read)


@CASES
async def test_a_status_with_nothing_delivered(row):
    """One pull request follows the status if a pull request is due, otherwise none."""

    def script(peer: FakePeer) -> None:
        peer.handshake()
        pull = peer.expect_pull()
        peer.status(pull, row.code, row.text)
        if row.then is Then.OVER:
            return
        if row.code == 503:
            info = peer.expect(r"CONSUMER\.INFO")
            peer.answer(info, {"error": {"code": 503, "err_code": 10008, "description": "no"}})
        again = peer.expect_pull()
        assert again.json["batch"] == 10
        peer.deliver(again, 1, b"fine")

    with FakeServer(script) as server:
        async with js.connect(server.url) as connection:
            messages, reports = iterating(connection)
            async with messages:
                if row.then is Then.OVER:
                    for _ in range(2):
                        with pytest.raises(row.error):
                            await messages.next(timeout=5)
                else:
                    assert (await messages.next(timeout=60)).data == b"fine"
                    assert (messages.buffered, outstanding(messages)) == (0, 9)
        assert len(server.operations("MSG.NEXT")) == (1 if row.then is Then.OVER else 2)
        told = warnings(reports)
        assert len(told) == (row.then is Then.WARNED)
        for report in told:
            assert f"{row.code} {row.text}".strip() in report.text


@CASES
async def test_what_is_buffered_is_handed_over_before_an_end(row):
    def script(peer: FakePeer) -> None:
        peer.handshake()
        pull = peer.expect_pull()
        for seq in (1, 2, 3):
            peer.deliver(pull, seq, b"%d" % seq)
        peer.status(pull, row.code, row.text)
        peer.reach("said")
        peer.until_left()

    async with scripted(script) as connection:
        messages, _ = iterating(connection)
        async with messages:
            assert [(await messages.next(timeout=60)).data for _ in range(3)] == [
                b"1",
                b"2",
                b"3",
            ]


async def test_messages_that_are_waited_for_one_by_one_are_counted():
    def script(peer: FakePeer) -> None:
        peer.handshake()
        pull = peer.expect_pull()
        for seq in range(1, 6):
            peer.wait_for(f"{seq}")
            peer.status(pull, 100, "Idle Heartbeat")
            peer.deliver(pull, seq, b"%d" % seq, headers={"Odd": "yes"} if seq % 2 else None)
        again = peer.expect_pull()
        assert again.json["batch"] == 5
        peer.deliver(again, 6, b"6")
        peer.until_left()

    with FakeServer(script) as server:
        async with js.connect(server.url) as connection:
            messages, _ = iterating(connection)
            async with messages:
                for seq in range(1, 6):
                    server.tell(f"{seq}")
                    message = await messages.next(timeout=60)
                    assert (message.data, len(message.headers)) == (b"%d" % seq, seq % 2)
                    assert (messages.buffered, outstanding(messages)) == (0, 10 - seq)
                assert (await messages.next(timeout=60)).data == b"6"
                assert outstanding(messages) == 9


async def test_statuses_of_old_requests_change_nothing():
    def script(peer: FakePeer) -> None:
        peer.handshake()
        first = peer.expect_pull()
        peer.status(first, 408, "Request Timeout", Nats_Pending_Messages=10)
        second = peer.expect_pull()
        for code, text in ((408, "Request Timeout"), (409, "Consumer Deleted"), (599, "New")):
            peer.status(first, code, text)
        peer.deliver(second, 1, b"fine")

    with FakeServer(script) as server:
        async with js.connect(server.url) as connection:
            messages, reports = iterating(connection)
            async with messages:
                assert (await messages.next(timeout=60)).data == b"fine"
                assert outstanding(messages) == 9
        assert len(server.operations("MSG.NEXT")) == 2
        assert reports == []


async def test_silence_is_reported_once_and_pulled_over():
    """Missed heartbeats cause one report and one new pull request; later messages are accepted."""

    def script(peer: FakePeer) -> None:
        peer.handshake()
        first = peer.expect_pull()
        assert first.json["idle_heartbeat"] == 500_000_000
        second = peer.expect_pull()
        peer.deliver(first, 1, b"old")
        peer.deliver(second, 2, b"new")

    for attempt in attempts(1):
        with attempt, FakeServer(script) as server:
            async with js.connect(server.url) as connection:
                messages, reports = iterating(connection, expires=1, heartbeat=0.5)
                async with messages:
                    assert (await messages.next(timeout=60)).data == b"old"
                    assert (await messages.next(timeout=60)).data == b"new"
            assert len(server.operations("MSG.NEXT")) == 2
            [report] = reports
            assert "two heartbeats" in report.text


async def test_refills_keep_the_limit():
    """The server counts the requested messages, which never exceed the size of the buffer."""

    def script(peer: FakePeer) -> None:
        peer.handshake()
        owed = seq = 0
        while seq < 40:
            pull = peer.expect_pull()
            owed = pull.json["batch"]
            assert owed <= 10
            for _ in range(owed):
                seq += 1
                peer.deliver(pull, seq)

    with FakeServer(script) as server:
        async with js.connect(server.url) as connection:
            messages, _ = iterating(connection, threshold_messages=0)
            async with messages:
                for seq in range(1, 41):
                    message = await messages.next(timeout=60)
                    assert message.metadata.stream_seq == seq
                    assert messages.buffered + outstanding(messages) <= 10
        assert len(server.operations("MSG.NEXT")) in {4, 5}


async def test_a_new_link_pulls_at_once_and_once():
    def first(peer: FakePeer) -> None:
        peer.handshake()
        pull = peer.expect_pull()
        peer.deliver(pull, 1, b"one")
        peer.send(b"MSG cut.in.the 1 $JS.ACK.S.c.1.2.2.17")
        peer.reset()

    def second(peer: FakePeer) -> None:
        peer.handshake()
        pull = peer.expect_pull()
        assert pull.json["batch"] >= 9
        peer.deliver(pull, 2, b"two")
        peer.until_left()

    with FakeServer(first, second) as server:
        async with js.connect(server.url, reconnect=QUICK) as connection:
            messages, reports = iterating(connection)
            async with messages:
                assert (await messages.next(timeout=60)).data == b"one"
                assert (await messages.next(timeout=60)).data == b"two"
            assert connection.stats.connects == 2
        assert len(server.operations("MSG.NEXT")) == 2
        assert reports == []


async def test_a_refill_that_meets_a_broken_link_raises_nothing():
    """The connection is lost for longer than a request may take, while a refill is due."""

    def first(peer: FakePeer) -> None:
        peer.handshake()
        pull = peer.expect_pull()
        for seq in range(1, 11):
            peer.deliver(pull, seq)
        peer.fence()
        peer.close()

    def second(peer: FakePeer) -> None:
        peer.wait_for("go")
        peer.handshake()
        peer.deliver(peer.expect_pull(), 11)
        peer.until_left()

    with FakeServer(first, second) as server:
        options = {"reconnect": QUICK, "request_timeout": 0.05}
        async with js.connect(server.url, **options) as connection:
            messages, reports = iterating(connection)

            async def gone():
                return not connection.is_connected

            async with messages:
                seen = [(await messages.next(timeout=60)).metadata.stream_seq]
                await eventually(gone)
                seen += [(await messages.next(timeout=60)).metadata.stream_seq for _ in range(9)]
                assert await messages.next(timeout=0.1) is None
                server.tell("go")
                seen.append((await messages.next(timeout=60)).metadata.stream_seq)
            assert seen == list(range(1, 12))
        assert reports == []


async def test_what_is_drained_before_it_begins_asks_for_nothing():
    def script(peer: FakePeer) -> None:
        peer.handshake()
        peer.until_left()

    with FakeServer(script) as server:
        async with js.connect(server.url) as connection:
            messages, _ = iterating(connection)
            await messages.drain()
            assert [message async for message in messages] == []
        assert server.operations("MSG.NEXT") == []


async def test_leaving_gives_back_what_was_not_handed_over():
    def script(peer: FakePeer) -> None:
        give_five(peer)
        peer.expect("^UNSUB")
        peer.until_left()

    with FakeServer(script) as server:
        async with js.connect(server.url) as connection:
            messages, _ = iterating(connection)
            async with messages:
                await (await messages.next(timeout=60)).ack()
                await five_are_here(connection, server)
        words = {
            each.subject.split(".")[5]: each.payload for each in server.operations(r"\$JS\.ACK")
        }
        assert words.pop("1") == b"+ACK"
        assert words == dict.fromkeys(["2", "3", "4", "5"], b"-NAK")


async def test_closing_during_iteration_returns_messages_in_flight():
    """Consumptions and workers end like this.

    Without it, a message is redelivered only after ack_wait.
    """

    def script(peer: FakePeer) -> None:
        peer.stop_answering()
        peer.handshake()
        pull = peer.expect_pull()
        peer.reach("asked")
        peer.expect("^UNSUB")
        peer.expect("^PING")
        peer.deliver(pull, 1)
        peer.go_on()
        peer.send(b"PONG\r\n")
        peer.until_left()

    with FakeServer(script) as server:
        async with js.connect(server.url) as connection:
            messages, _ = iterating(connection)

            async def asked():
                return server.reached("asked")

            async def iterate():
                assert [message async for message in messages] == []

            async def close():
                await eventually(asked)
                await messages.close()

            await together(iterate, close)
            assert connection.stats.late_messages == 0
        assert [each.payload for each in server.operations(r"\$JS\.ACK")] == [b"-NAK"]


async def test_draining_hands_over_what_is_here_and_asks_for_no_more():
    def script(peer: FakePeer) -> None:
        give_five(peer)
        peer.until_left()

    with FakeServer(script) as server:
        async with js.connect(server.url) as connection:
            messages, _ = iterating(connection)
            async with messages:
                seen = [await messages.next(timeout=5)]
                await five_are_here(connection, server)
                await messages.drain()
                async for message in messages:
                    seen.append(message)
                assert [each.metadata.stream_seq for each in seen] == [1, 2, 3, 4, 5]
                with pytest.raises(js.IterationEnded, match="ended"):
                    await messages.next(timeout=5)
        assert len(server.operations("MSG.NEXT")) == 1
        assert server.operations(r"\$JS\.ACK") == []


async def test_closing_the_iteration_wakes_its_waiting_callers():
    def script(peer: FakePeer) -> None:
        peer.handshake()
        peer.expect_pull()
        peer.reach("pulled")
        peer.until_left()

    with FakeServer(script) as server:
        async with js.connect(server.url) as connection:
            messages, _ = iterating(connection)

            async def iterate():
                return [message async for message in messages]

            async def pulled():
                return server.reached("pulled")

            async def close():
                await eventually(pulled)
                await messages.close()

            seen, _ = await together(iterate, close)
            assert seen == []


async def test_a_limit_of_the_consumer_ends_what_never_worked_and_not_what_did():
    def script(peer: FakePeer) -> None:
        peer.handshake()
        peer.status(peer.expect_pull(), 409, "Exceeded MaxRequestBatch of 5")
        pull = peer.expect_pull()
        assert pull.json["batch"] == 4
        for seq in range(1, 5):
            peer.deliver(pull, seq)
        # The limit is lowered meanwhile.
        peer.status(peer.expect_pull(), 409, "Exceeded MaxRequestBatch of 1")
        peer.deliver(peer.expect_pull(), 5)
        peer.until_left()

    async with scripted(script) as connection:
        messages, _ = iterating(connection)
        async with messages:
            with pytest.raises(PullRefused) as caught:
                await messages.next(timeout=5)
            assert (caught.value.limit, caught.value.asked) == ("max_batch", 10)
        messages, reports = iterating(connection, max_messages=4)
        async with messages:
            for seq in range(1, 6):
                assert (await messages.next(timeout=60)).metadata.stream_seq == seq
        assert len(reports) == 1


async def test_a_failed_iterator_ends_after_its_buffered_messages():
    def script(peer: FakePeer) -> None:
        peer.handshake()
        pull = peer.expect_pull()
        peer.deliver(pull, 1, b"fine")
        peer.wait_for("taken")
        for seq in (2, 3, 4):
            peer.deliver(pull, seq, b"fine")
        peer.status(pull, 409, "Consumer Deleted")
        peer.fence()
        peer.reach("sent")
        peer.until_left()

    with FakeServer(script) as server:
        async with js.connect(server.url) as connection:
            messages, _ = iterating(connection)
            async with messages:
                seqs = [(await messages.next(timeout=60)).metadata.stream_seq]
                server.tell("taken")

                async def is_sent():
                    return server.reached("sent")

                await eventually(is_sent)

                async def rest():
                    # The loop raises the error, or ends before it.
                    while not messages.is_ended:
                        seqs.append((await messages.next(timeout=60)).metadata.stream_seq)
                    await messages.next(timeout=5)

                with pytest.raises(js.ConsumerDeleted):
                    await rest()
                assert seqs == [1, 2, 3, 4]


async def test_deleted_consumer_is_recreated_after_its_deletion_is_complete():
    """The same applies to repeated pull requests without responders."""
    at = []

    def script(peer: FakePeer) -> None:
        peer.handshake()
        peer.answer(peer.expect(r"CONSUMER\.INFO"), CONSUMER)
        pull = peer.expect_pull()
        at.append(monotonic())
        peer.status(pull, 409, "Consumer Deleted")
        peer.expect(r"CONSUMER\.CREATE")
        at.append(monotonic())
        peer.answer(peer.expect(r"CONSUMER\.CREATE"), CONSUMER)
        peer.deliver(peer.expect_pull(), 1, b"fine")

    reports = []
    with FakeServer(script) as server:
        async with js.connect(server.url) as connection:
            consumer = connection.jetstream(timeout=2).bind_consumer("S", "c")
            await consumer.info()
            options = {"max_messages": 10, "on_report": reports.append}
            async with consumer.messages(on_deleted="recreate", **options) as messages:
                assert (await messages.next(timeout=60)).data == b"fine"
        assert reports == [js.ConsumerRecreated("c")]
        told, asked = at
        assert asked - told > DELETION * 0.9
        assert len(server.operations(r"MSG\.NEXT")) == 2


async def test_without_a_link_nothing_is_given_back():
    class Broken:
        async def send(self, *_):
            raise js.RequestTimeout("the link broke just now")

    api = SimpleNamespace(transport=Broken())
    channel = PullChannel(api, b"ask", b"here.", SimpleNamespace(), Pins())
    await channel.give_back([(b"s", b"$JS.ACK.S.c.1.1.1.17.0", 0, b"\r\n")] * 2)


def hasty(seconds):
    """Return a consumer with this ack_wait."""
    config = {"durable_name": "c", "ack_policy": "explicit", "ack_wait": int(seconds * 1e9)}
    return CONSUMER | {"config": config}


async def test_unprocessed_arrivals_are_kept_alive():
    """The message arrived while the previous one was processed."""

    def script(peer: FakePeer) -> None:
        peer.handshake()
        peer.answer(peer.expect(r"CONSUMER\.INFO"), hasty(1.5))
        pull = peer.expect_pull()
        peer.deliver(pull, 1)
        peer.wait_for("taken")
        peer.deliver(pull, 2)
        for _ in range(2):
            kept = peer.expect(r"^PUB \$JS\.ACK\.S\.c\.1\.2\.")
            assert kept.payload == b"+WPI"
        peer.reach("kept")
        peer.until_left()

    with FakeServer(script) as server:
        async with js.connect(server.url) as connection:
            consumer = connection.jetstream().bind_consumer("S", "c")
            await consumer.info()
            async with consumer.messages(max_messages=10) as messages:
                await messages.next(timeout=10)
                server.tell("taken")

                async def kept():
                    return server.reached("kept")

                await eventually(kept)
                assert (await messages.next(timeout=60)).metadata.stream_seq == 2
                assert messages.late == 0


async def test_iteration_skips_late_messages():
    class Filled:
        ready = ReadyMessages(None, 9.0, 5.0)
        drain = drained = None

        def ends_by(self, *_):
            pass

        async def take(self, deadline):
            return self.ready.take_nowait()

    buffer, now = Filled(), monotonic()
    buffer.ready.reserved = 0
    frame = (b"s", b"$JS.ACK.S.c.1.1.1.1700000000.0", 0, b"")
    deliveries = [Delivery(None, at, 9.0, 5.0) for at in (now - 100, now - 100, now + 100)]
    buffer.ready.messages.extend(Message(frame, each) for each in deliveries)
    messages = Messages(buffer)
    assert not (await messages.__anext__()).is_late
    assert messages.late == 2


@pytest.mark.parametrize("end", ["looked at", "closed"])
async def test_heartbeat_does_not_refresh_earlier_messages(end):
    """The server has redelivered the message: it is neither returned nor kept in progress."""

    def script(peer: FakePeer) -> None:
        peer.handshake()
        peer.answer(peer.expect(r"CONSUMER\.INFO"), hasty(0.3))
        pull = peer.expect_pull()
        peer.deliver(pull, 1)
        peer.wait_for("taken")
        peer.deliver(pull, 2)
        peer.wait_for("old", timeout=30)
        peer.status(pull, 100, "Idle Heartbeat")
        peer.fence()
        peer.reach("beat")
        peer.until_left()

    for attempt in attempts(0.3):
        with attempt, FakeServer(script) as server:
            async with js.connect(server.url) as connection:
                consumer = connection.jetstream().bind_consumer("S", "c")
                await consumer.info()
                async with consumer.messages(max_messages=10) as messages:
                    await messages.next(timeout=10)
                    server.tell("taken")

                    async def not_kept_any_more():
                        return monotonic() - buffer_of(messages).ready.taken_at > 8 * 0.3

                    async def beaten():
                        await connection.flush()
                        return server.reached("beat")

                    await eventually(not_kept_any_more)
                    server.tell("old")
                    await eventually(beaten)
                    if end == "looked at":
                        assert await messages.next(timeout=0.2) is None
                        assert messages.late == 1
            words = [each.payload for each in server.operations(r"ACK\.S\.c\.1\.2\.")]
            assert set(words) == {b"+WPI"}


async def test_what_keeps_messages_alive_ends_with_its_connection():
    """The task or thread ends even if no code closes the iteration."""

    def script(peer: FakePeer) -> None:
        peer.handshake()
        peer.answer(peer.expect(r"CONSUMER\.INFO"), hasty(0.03))
        peer.deliver(peer.expect_pull(), 1, b"fine")
        peer.until_left()

    with FakeServer(script) as server:
        async with js.connect(server.url) as connection:
            consumer = connection.jetstream().bind_consumer("S", "c")
            await consumer.info()
            messages = consumer.messages()
            with starts() as tasks:
                assert (await messages.next(timeout=60)).data == b"fine"
            assert not await tasks["twinstream-progress"].join(Deadline.after(0.05))
        assert await tasks["twinstream-progress"].join(Deadline.after(10))
