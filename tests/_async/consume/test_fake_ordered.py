"""Ordered reads from a scripted server: heartbeats, probes, names, leaving."""

from __future__ import annotations

from functools import partial

import pytest

import js_async as js
from tests._async.flow import eventually, together
from tests._async.scripted import scripted
from tests.fake.ordering import beat, create, deliver, leave, stream_info
from tests.stalls import attempts
from twinstream.testing import FakePeer, FakeServer

QUICK = js.ReconnectPolicy(wait=0.01, max_wait=0.05, attempts=-1)
SLOW = {"expires": 120, "heartbeat": 30}
"""No heartbeats of the pulls themselves for as long as a test takes."""


async def taken(messages, count):
    """Return the stream sequences of the next messages."""
    return [(await messages.next(timeout=60)).metadata.stream_seq for _ in range(count)]


# ---- heartbeats


@pytest.mark.parametrize("sent", [3, 1], ids=["a lost message", "a consumer that began again"])
async def test_a_heartbeat_shows_at_once_that_something_is_wrong(sent):
    """Two messages arrived. The heartbeat has another number of delivered messages."""

    def script(peer: FakePeer) -> None:
        peer.handshake()
        create(peer)
        pull = peer.expect_pull()
        deliver(peer, pull, 1, 11)
        deliver(peer, pull, 2, 12)
        beat(peer, pull, sent, 20)
        config = create(peer)
        assert (config["deliver_policy"], config["opt_start_seq"]) == ("by_start_sequence", 13)
        deliver(peer, peer.expect_pull(), 1, 13)
        leave(peer, config["name"])

    async with scripted(script) as connection:
        reports = []
        stream = connection.jetstream(timeout=60).bind_stream("S")
        async with stream.ordered(**SLOW, on_report=reports.append) as messages:
            assert await taken(messages, 3) == [11, 12, 13]
            assert messages.resets == 1
        assert f"the server has sent {sent} messages" in str(reports[0])
        assert "2 arrived" in str(reports[0])


async def test_what_is_buffered_before_a_heartbeat_is_handed_over_first():
    def script(peer: FakePeer) -> None:
        peer.handshake()
        config = create(peer)
        pull = peer.expect_pull()
        deliver(peer, pull, 1, 11)
        # The read looks for heartbeats when its buffer is empty: the rest is there by then.
        peer.wait_for("taken")
        deliver(peer, pull, 2, 12)
        deliver(peer, pull, 3, 13)
        beat(peer, pull, 3, 90)
        peer.fence()
        peer.reach("read")
        leave(peer, config["name"])

    with FakeServer(script) as server:
        async with js.connect(server.url) as connection:
            stream = connection.jetstream(timeout=60).bind_stream("S")
            async with stream.ordered(**SLOW) as messages:
                assert await taken(messages, 1) == [11]
                server.tell("taken")

                async def read():
                    await connection.flush()
                    return server.reached("read")

                await eventually(read)
                assert await taken(messages, 1) == [12]
                assert (messages.position, messages.scanned) == (12, 12)
                assert await taken(messages, 1) == [13]
                assert (messages.position, messages.scanned) == (13, 90)
                assert messages.resets == 0


async def test_the_next_consumer_starts_after_what_the_server_has_looked_through():
    def script(peer: FakePeer) -> None:
        peer.handshake()
        if peer.number == 1:
            create(peer)
            pull = peer.expect_pull()
            deliver(peer, pull, 1, 11)
            beat(peer, pull, 1, 5000)
            peer.fence()
            peer.reset()
            return
        config = create(peer)
        assert config["opt_start_seq"] == 5001
        deliver(peer, peer.expect_pull(), 1, 5001)
        leave(peer, config["name"])

    async with scripted(script, script, reconnect=QUICK) as connection:
        stream = connection.jetstream(timeout=60).bind_stream("S")
        async with stream.ordered(subjects="s.a", **SLOW) as messages:
            assert await taken(messages, 2) == [11, 5001]
            assert messages.position == 5001


async def test_a_heartbeat_without_positions_changes_nothing():
    def script(peer: FakePeer) -> None:
        peer.handshake()
        config = create(peer)
        pull = peer.expect_pull()
        peer.status(pull, 100, "Idle Heartbeat")
        deliver(peer, pull, 1, 11)
        peer.status(pull, 100, "Idle Heartbeat")
        deliver(peer, pull, 2, 12)
        leave(peer, config["name"])

    async with scripted(script) as connection:
        stream = connection.jetstream(timeout=60).bind_stream("S")
        async with stream.ordered(**SLOW) as messages:
            assert await taken(messages, 2) == [11, 12]
            assert (messages.resets, messages.scanned) == (0, 12)


# ---- probes


def probed(peer: FakePeer):
    """Return the next pull request, which must be a probe."""
    probe = peer.expect_pull()
    assert probe.json["batch"] == 1
    assert probe.json["idle_heartbeat"] * 20 <= probe.json["expires"] < 10_000_000_000
    return probe


async def test_a_snapshot_that_stops_is_probed_until_it_is_over():
    """With each heartbeat, the server skips one removed message of its list."""

    def script(peer: FakePeer) -> None:
        peer.handshake()
        config = create(peer, last_seq=40, keeps=5)
        assert config["deliver_policy"] == "last_per_subject"
        pull = peer.expect_pull()
        deliver(peer, pull, 1, 11)
        first = probed(peer)
        for looked in (12, 13):
            beat(peer, first, 1, looked)
        deliver(peer, pull, 2, 14)
        peer.wait_for("two taken")
        beat(peer, probed(peer), 2, 40)
        deliver(peer, pull, 3, 41)
        leave(peer, config["name"])

    with FakeServer(script) as server:
        async with js.connect(server.url) as connection:
            stream = connection.jetstream(timeout=60).bind_stream("S")
            options = {"deliver_policy": "last_per_subject", "max_messages": 30}
            async with stream.ordered(**options, **SLOW) as messages:
                assert await taken(messages, 2) == [11, 14]
                assert not messages.is_current
                server.tell("two taken")
                assert await taken(messages, 1) == [41]
                assert messages.is_current

                async def requests():
                    # The server has received all that was sent before a flush.
                    await connection.flush()
                    return len(server.operations(r"MSG\.NEXT"))

                # Nothing is left of the snapshot, so there is nothing to ask for.
                before = await requests()
                assert await messages.next(timeout=0.1) is None
                assert await requests() == before


async def test_a_probe_without_responders_reveals_a_deleted_consumer():
    """The server also drops the pull request, so nothing else would end the wait."""

    def script(peer: FakePeer) -> None:
        peer.handshake()
        create(peer, last_seq=40, keeps=5)
        deliver(peer, peer.expect_pull(), 1, 11)
        peer.status(probed(peer), 503)
        # The read repeats its request after a pause, and sends probes before and after that. The
        # answer to a probe may end the request, and then the read repeats it again.
        while "MSG.NEXT" in (asked := peer.expect(r"MSG\.NEXT|STREAM\.INFO")).subject:
            peer.status(asked, 503)
        config = create(peer, last_seq=40, keeps=5, asked=asked)
        deliver(peer, peer.expect_pull(), 1, 14)
        leave(peer, config["name"])

    async with scripted(script) as connection:
        stream = connection.jetstream(timeout=60).bind_stream("S")
        options = {"deliver_policy": "last_per_subject", "max_messages": 30}
        async with stream.ordered(**options, **SLOW) as messages:
            assert await taken(messages, 2) == [11, 14]
            assert messages.resets == 1


@pytest.mark.parametrize(
    ("keeps", "options"),
    [(1, {"deliver_policy": "last_per_subject"}), (5, {}), (5, {"deliver_policy": "new"})],
)
async def test_where_nothing_can_stop_nothing_is_probed(keeps, options):
    def script(peer: FakePeer) -> None:
        peer.handshake()
        config = create(peer, last_seq=40, keeps=keeps)
        pull = peer.expect_pull()
        deliver(peer, pull, 1, 11)
        peer.wait_for("waited")
        assert peer.count(r"MSG\.NEXT") == 1
        deliver(peer, pull, 2, 41)
        leave(peer, config["name"])

    with FakeServer(script) as server:
        async with js.connect(server.url) as connection:
            stream = connection.jetstream(timeout=60).bind_stream("S")
            async with stream.ordered(**options, max_messages=30, **SLOW) as messages:
                # The short timeout is for the wait, not for the creation of the consumer.
                assert await taken(messages, 1) == [11]
                assert await messages.next(timeout=0.2) is None
                server.tell("waited")
                assert await taken(messages, 1) == [41]


async def test_a_program_that_asks_with_short_timeouts_gets_probes_too():
    def script(peer: FakePeer) -> None:
        peer.handshake()
        config = create(peer, last_seq=40, keeps=5)
        pull = peer.expect_pull()
        deliver(peer, pull, 1, 11)
        peer.wait_for("short")
        beat(peer, probed(peer), 1, 20)
        deliver(peer, pull, 2, 30)
        leave(peer, config["name"])

    with FakeServer(script) as server:
        async with js.connect(server.url) as connection:
            stream = connection.jetstream(timeout=60).bind_stream("S")
            options = {"deliver_policy": "last_per_subject", "max_messages": 30}
            async with stream.ordered(**options, **SLOW) as messages:
                assert await taken(messages, 1) == [11]

                async def one():
                    server.tell("short")
                    return await messages.next(timeout=0.002)

                assert (await eventually(one)).metadata.stream_seq == 30


async def test_a_consumer_that_waits_for_a_messages_time_is_left_alone():
    """It sends no heartbeats while it waits. But its pull requests may have been dropped."""

    def script(peer: FakePeer) -> None:
        peer.handshake()
        config = create(peer)
        assert config["replay_policy"] == "original"
        first = peer.expect_pull()
        assert "idle_heartbeat" not in first.json
        again = peer.expect_pull()
        assert "idle_heartbeat" not in again.json
        assert again.json["batch"] == 7
        deliver(peer, again, 1, 11)
        leave(peer, config["name"])

    async with scripted(script) as connection:
        stream = connection.jetstream(timeout=60).bind_stream("S")
        options = {"replay_policy": "original", "max_messages": 7}
        async with stream.ordered(**options, expires=1, heartbeat=0.5) as messages:
            assert await taken(messages, 1) == [11]
            assert messages.resets == 0


# ---- refusals


async def test_a_message_that_is_too_big_costs_no_consumer():
    def script(peer: FakePeer) -> None:
        peer.handshake()
        config = create(peer)
        for _ in range(3):
            pull = peer.expect_pull()
            peer.status(pull, 409, "Message Size Exceeds MaxBytes", Nats_Pending_Messages=1)
        deliver(peer, peer.expect_pull(), 1, 11)
        leave(peer, config["name"])

    async with scripted(script) as connection:
        reports = []
        stream = connection.jetstream(timeout=60).bind_stream("S")
        options = {"max_bytes": 200, "on_report": reports.append}
        async with stream.ordered(**options, **SLOW) as messages:
            assert await taken(messages, 1) == [11]
            assert messages.resets == 0
        assert "Message Size Exceeds MaxBytes" in str(reports)


async def test_consumers_that_are_lost_at_once_are_created_with_pauses():
    """One consumer may be lost by chance. After the second one there is a pause, and a report."""

    def script(peer: FakePeer) -> None:
        peer.handshake()
        for _ in range(3):
            config = create(peer)
            peer.status(peer.expect_pull(), 409, "Consumer Deleted")
        config = create(peer)
        deliver(peer, peer.expect_pull(), 1, 11)
        leave(peer, config["name"])

    with FakeServer(script) as server:
        async with js.connect(server.url) as connection:
            reports = []
            stream = connection.jetstream(timeout=60).bind_stream("S")
            async with stream.ordered(**SLOW, on_report=reports.append) as messages:
                assert await taken(messages, 1) == [11]
                assert messages.resets == 3
        pauses = [report for report in reports if "no consumer for the ordered" in report.text]
        assert len(pauses) == 2


# ---- names, and what is left on the server


async def test_a_creation_without_an_answer_is_repeated_under_its_name():
    def script(peer: FakePeer) -> None:
        peer.handshake()
        peer.answer(peer.expect(r"STREAM\.INFO\.S"), stream_info(9))
        name = peer.expect(r"CONSUMER\.CREATE\.S").json["config"]["name"]
        peer.wait_for("given up")
        # Repeats of the first request may have come meanwhile, under the same name.
        config = create(peer)
        assert config["name"] == name
        deliver(peer, peer.expect_pull(), 1, 10)
        leave(peer, name)

    for attempt in attempts(1):
        with attempt, FakeServer(script) as server:
            async with js.connect(server.url) as connection:
                stream = connection.jetstream(timeout=60).bind_stream("S")
                async with stream.ordered(**SLOW) as messages:
                    with pytest.raises(js.RequestTimeout, match="no answer in time"):
                        await messages.next(timeout=1)
                    server.tell("given up")
                    assert await taken(messages, 1) == [10]


async def test_a_creation_without_an_answer_leaves_nothing_after_the_close():
    def script(peer: FakePeer) -> None:
        peer.handshake()
        peer.answer(peer.expect(r"STREAM\.INFO\.S"), stream_info(9))
        leave(peer, peer.expect(r"CONSUMER\.CREATE\.S").json["config"]["name"])

    for attempt in attempts(1):
        with attempt:
            async with scripted(script) as connection:
                stream = connection.jetstream(timeout=60).bind_stream("S")
                async with stream.ordered(**SLOW) as messages:
                    with pytest.raises(js.RequestTimeout, match="no answer in time"):
                        await messages.next(timeout=1)
                    assert messages.consumer_name is None


async def test_a_read_that_is_closed_while_its_consumer_is_created_deletes_it():
    def script(peer: FakePeer) -> None:
        peer.handshake()
        peer.answer(peer.expect(r"STREAM\.INFO\.S"), stream_info(9))
        request = peer.expect(r"CONSUMER\.CREATE\.S")
        peer.reach("asked")
        name = request.json["config"]["name"]
        # The one that closes does not wait for the one that creates.
        peer.answer(peer.expect(rf"CONSUMER\.DELETE\.S\.{name} \S+ 0"), {"success": True})
        peer.wait_for("closed")
        peer.answer(request, {**stream_info(0), "name": name, "stream_name": "S"})
        # It is there all the same: created after that, perhaps.
        leave(peer, name)

    with FakeServer(script) as server:
        async with js.connect(server.url) as connection:
            stream = connection.jetstream(timeout=60).bind_stream("S")
            messages = stream.ordered(**SLOW)

            async def read():
                return [message async for message in messages]

            async def closed():
                await eventually(asked)
                await messages.close()
                server.tell("closed")

            async def asked():
                return server.reached("asked")

            assert (await together(read, closed))[0] == []


async def test_the_deletion_of_a_lost_consumer_is_not_waited_for():
    """The leader of the consumer may be lost, too, and would not answer."""

    def script(peer: FakePeer) -> None:
        peer.handshake()
        lost = create(peer)["name"]
        deliver(peer, peer.expect_pull(), 9, 11)
        # No reply subject: three words, and the size.
        peer.expect(rf"^PUB \S+CONSUMER\.DELETE\.S\.{lost} 0")
        config = create(peer)
        assert config["name"] != lost
        deliver(peer, peer.expect_pull(), 1, 12)
        leave(peer, config["name"])

    async with scripted(script) as connection:
        stream = connection.jetstream(timeout=60).bind_stream("S")
        async with stream.ordered(**SLOW) as messages:
            assert await taken(messages, 1) == [12]


async def test_a_consumer_that_was_lost_with_the_connection_is_deleted_over_the_next():
    def script(peer: FakePeer) -> None:
        peer.handshake()
        if peer.number == 1:
            create(peer)
            deliver(peer, peer.expect_pull(), 1, 11)
            peer.fence()
            peer.reset()
            return
        peer.expect(r"^PUB \S+CONSUMER\.DELETE\.S\.\S+_1 0")
        config = create(peer)
        deliver(peer, peer.expect_pull(), 1, 12)
        leave(peer, config["name"])

    async with scripted(script, script, reconnect=QUICK) as connection:
        stream = connection.jetstream(timeout=60).bind_stream("S")
        async with stream.ordered(**SLOW) as messages:
            assert await taken(messages, 2) == [11, 12]


async def test_attempts_to_replace_a_lost_consumer_may_be_limited():
    def script(peer: FakePeer) -> None:
        peer.handshake()
        create(peer)
        deliver(peer, peer.expect_pull(), 2, 11)
        error = {"code": 503, "err_code": 10023, "description": "insufficient resources"}
        for _ in range(2):
            peer.answer(peer.expect(r"STREAM\.INFO\.S"), stream_info(9))
            peer.answer(peer.expect(r"CONSUMER\.CREATE\.S"), {"error": error})
        config = create(peer)
        deliver(peer, peer.expect_pull(), 1, 12)
        leave(peer, config["name"])

    async with scripted(script) as connection:
        stream = connection.jetstream(timeout=60).bind_stream("S")
        async with stream.ordered(max_reset_attempts=2, **SLOW) as messages:
            with pytest.raises(js.JetStreamError, match="insufficient resources"):
                await messages.next(timeout=20)
            # A later call tries again.
            assert await taken(messages, 1) == [12]


async def test_an_attempt_without_time_does_not_hide_why_the_one_before_failed():
    """The server refuses a consumer. It does not respond to the next attempts."""

    def script(peer: FakePeer) -> None:
        peer.handshake()
        create(peer)
        deliver(peer, peer.expect_pull(), 2, 11)
        error = {"code": 400, "err_code": 10026, "description": "maximum consumers limit reached"}
        peer.answer(peer.expect(r"STREAM\.INFO\.S"), stream_info(9))
        peer.answer(peer.expect(r"CONSUMER\.CREATE\.S"), {"error": error})
        peer.expect(r"STREAM\.INFO\.S")
        peer.wait_for("given up")
        config = create(peer)
        deliver(peer, peer.expect_pull(), 1, 11)
        leave(peer, config["name"])

    for attempt in attempts(1):
        with attempt, FakeServer(script) as server:
            async with js.connect(server.url) as connection:
                reports = []
                stream = connection.jetstream(timeout=60).bind_stream("S")
                async with stream.ordered(**SLOW, on_report=reports.append) as messages:
                    for timeout in (1, 0):
                        with pytest.raises(js.RequestTimeout, match="no message in time") as caught:
                            await messages.next(timeout=timeout)
                        assert "maximum consumers limit reached" in str(caught.value.__cause__)
                        assert "maximum consumers limit reached" in reports[-1].text
                    server.tell("given up")
                    assert await taken(messages, 1) == [11]


async def test_callers_take_turns():
    """Four callers wait at once. One consumer is created, and each caller gets one message."""

    def script(peer: FakePeer) -> None:
        peer.handshake()
        config = create(peer)
        pull = peer.expect_pull()
        for number in range(1, 5):
            deliver(peer, pull, number, number)
        leave(peer, config["name"])

    with FakeServer(script) as server:
        async with js.connect(server.url) as connection:
            stream = connection.jetstream(timeout=60).bind_stream("S")
            async with stream.ordered(**SLOW) as messages:
                got = await together(*(partial(messages.next, timeout=20) for _ in range(4)))
                assert sorted(each.metadata.stream_seq for each in got) == [1, 2, 3, 4]
        assert len(server.operations("CONSUMER.CREATE")) == 1


async def test_caller_waiting_for_its_turn_has_its_own_deadline():
    def script(peer: FakePeer) -> None:
        peer.handshake()
        config = create(peer)
        pull = peer.expect_pull()
        peer.wait_for("in vain")
        deliver(peer, pull, 1, 1)
        leave(peer, config["name"])

    with FakeServer(script) as server:
        async with js.connect(server.url) as connection:
            stream = connection.jetstream(timeout=60).bind_stream("S")
            async with stream.ordered(**SLOW) as messages:

                async def patient():
                    return (await messages.next(timeout=60)).metadata.stream_seq

                async def hasty():
                    await eventually(created)
                    assert await messages.next(timeout=0.05) is None
                    server.tell("in vain")

                async def created():
                    return messages.consumer_name is not None

                assert (await together(patient, hasty))[0] == 1
