"""Fast ingest: the outcome of each message claims no more than the server reported."""

from __future__ import annotations

import pytest

import js_async as js
from js_async.fast_ingest import FastIngest, Ingested
from tests._async.flow import ended, eventually
from tests._async.scripted import scripted
from twinstream.errors import InvalidResponse
from twinstream.models import StreamConfig
from twinstream.testing import FakePeer, Proxy

PATIENT = js.ReconnectPolicy(wait=0.02, max_wait=0.2, attempts=-1)
SUBJECT = "orders"
MESSAGES = r"^H?PUB orders "


async def open_stream(jet, name, **members):
    config = {"subjects": [f"{name}.>"], "allow_batched": True, **members}
    return await jet.create_stream(StreamConfig(name=name, **config))


def messages(subject, count, **members):
    return [js.PublishRequest(subject=subject, data=b"%d" % n, **members) for n in range(count)]


async def contents(jet, name):
    """Return the data of a stream in order."""
    stream = await jet.get_stream(name)
    found = []
    async with stream.ordered() as received:
        while len(found) < stream.cached_info.state.messages:
            found.append((await received.next(timeout=60)).data)
    return found


async def taken(ingest):
    """Return all outcomes."""
    return [each async for each in ingest]


def failures(outcomes):
    """Return the classes of the failures by their indexes."""
    return {
        place: type(each.error)
        for place, each in enumerate(outcomes)
        if isinstance(each, js.PublishFailure)
    }


# ---- real servers


@pytest.mark.since("2.14")
@pytest.mark.parametrize("gaps", ["fail", "ok"])
@pytest.mark.parametrize("count", [0, 1, 2, 2345])
async def test_every_message_is_stored_in_order(opened, name, gaps, count):
    async with opened() as jet:
        await open_stream(jet, name)
        ingest = FastIngest(jet, name, messages(f"{name}.a", count), gaps=gaps)
        async with ingest:
            outcomes = [each async for each in ingest]
        assert [each.number for each in outcomes] == list(range(1, count + 1))
        assert {each.stream_name for each in outcomes} <= {name}
        assert {each.is_certain for each in outcomes} <= {gaps == "fail"}
        assert await contents(jet, name) == [b"%d" % n for n in range(count)]
        if count:
            assert (ingest.last_ack.seq, ingest.last_ack.count) == (count, count)
        else:
            assert ingest.last_ack is None


@pytest.mark.since("2.14")
@pytest.mark.parametrize("window", [1, 2, 7])
async def test_no_more_is_in_flight_than_the_window(opened, name, window):
    async with opened() as jet:
        await open_stream(jet, name)
        ingest = FastIngest(jet, name, messages(f"{name}.a", 40), window=window)
        async for outcome in ingest:
            assert isinstance(outcome, Ingested)
            # The one that was taken from the program last comes on top.
            assert ingest.in_flight <= max(2, window) + 1
        assert len(await contents(jet, name)) == 40


@pytest.mark.since("2.14")
async def test_full_of_bytes_ends_the_batch(opened, name):
    async with opened() as jet:
        await open_stream(jet, name)
        requests = [js.PublishRequest(subject=f"{name}.a", data=b"x" * 1000)] * 30
        outcomes = [each async for each in FastIngest(jet, name, requests, window_bytes=5000)]
        assert failures(outcomes) == {}
        assert len({each.batch for each in outcomes}) > 3
        assert len(await contents(jet, name)) == 30


@pytest.mark.since("2.14")
async def test_a_refused_message_fails_alone(opened, name):
    async with opened() as jet:
        stream = await open_stream(jet, name)
        other = await open_stream(jet, f"{name}-other", subjects=[f"other.{name}"])
        requests = messages(f"{name}.a", 100)
        wrong = {
            0: js.PublishRequest(subject=f"{name}.a", expected_last_seq=7),
            10: js.PublishRequest(subject=f"{name}.a", expected_last_seq=1),
            20: js.PublishRequest(subject=f"nobody.{name}"),
            30: js.PublishRequest(subject=f"other.{name}"),
            40: js.PublishRequest(subject="bad subject"),
            50: js.PublishRequest(subject=f"{name}.a", expected_last_msg_id="x"),
            99: js.PublishRequest(subject=f"{name}.a", expected_last_subject_seq=1),
        }
        for place, request in wrong.items():
            requests[place] = request
        outcomes = [
            each
            async for each in FastIngest(jet, name, requests, retry_wait=0.01, raise_failures=False)
        ]
        found = failures(outcomes)
        assert list(found) == list(wrong)
        assert found[0] is found[10] is js.WrongLastSequence
        assert issubclass(found[20], js.NoStream)
        assert found[40] is js.BadArgument
        assert found[50] is js.BadArgument
        assert found[99] is js.WrongLastSequence
        # At the front of a batch it is the server that says so.
        assert f"{name}-other" in str(outcomes[30].error) or found[30] is js.WrongStream
        stored = [b"%d" % n for n in range(100) if n not in wrong]
        assert await contents(jet, name) == stored
        assert (await other.info()).state.messages == 0
        assert (await stream.info()).state.messages == len(stored)


@pytest.mark.since("2.14")
async def test_batch_with_gaps_continues(opened, name):
    async with opened() as jet:
        await open_stream(jet, name)
        requests = messages(f"{name}.a", 100)
        requests[50] = js.PublishRequest(subject=f"{name}.a", expected_last_seq=1)
        requests[60] = js.PublishRequest(subject=f"nobody.{name}")
        outcomes = [
            each async for each in FastIngest(jet, name, requests, gaps="ok", raise_failures=False)
        ]
        found = failures(outcomes)
        assert list(found) == [50, 60]
        assert found[50] is js.WrongLastSequence
        assert issubclass(found[60], js.NoResponders)
        assert len({each.batch for each in outcomes if isinstance(each, Ingested)}) == 1
        assert len(await contents(jet, name)) == 98


@pytest.mark.since("2.14")
async def test_ids_that_are_known_are_not_stored_again(opened, name):
    async with opened() as jet:
        await open_stream(jet, name)
        requests = [
            js.PublishRequest(subject=f"{name}.a", data=b"%d" % n, msg_id=str(n % 5))
            for n in range(20)
        ]
        outcomes = [each async for each in FastIngest(jet, name, requests, raise_failures=False)]
        assert failures(outcomes) == {}
        assert await contents(jet, name) == [b"0", b"1", b"2", b"3", b"4"]


@pytest.mark.since("2.14")
async def test_a_source_that_pauses_has_its_outcomes(opened, name):
    """The server reports the last messages of an interval only at the end of the batch."""
    async with opened() as jet:
        await open_stream(jet, name)
        ended_by_itself = []
        ingest = None

        async def is_told():
            return ingest.last_ack is not None and ingest.last_ack.count

        async def slow():
            for request in messages(f"{name}.a", 3):
                yield request
            ended_by_itself.append(await eventually(is_told, patience=30))
            yield js.PublishRequest(subject=f"{name}.a", data=b"3")

        ingest = FastIngest(jet, name, slow())
        outcomes = [each async for each in ingest]
        assert ended_by_itself == [3]
        assert [each.number for each in outcomes] == [1, 2, 3, 1]
        assert len(await contents(jet, name)) == 4


@pytest.mark.since("2.14")
async def test_leaving_early_waits_and_reports_failures(opened, name):
    async with opened() as jet:
        await open_stream(jet, name)

        async def leave(requests, **options):
            async with FastIngest(jet, name, requests, **options) as outcomes:
                async for _ in outcomes:
                    break

        await leave(messages(f"{name}.a", 3000))
        # What was taken from the program is stored.
        stored = await contents(jet, name)
        assert stored == [b"%d" % n for n in range(len(stored))]
        assert len(stored) >= 500
        requests = messages(f"{name}.a", 600)
        requests[499] = js.PublishRequest(subject=f"{name}.a", expected_last_seq=1)
        with pytest.raises(js.PublishFailures, match=r"1 message was .*wrong last sequence"):
            await leave(requests)

        async def stumble():
            async with FastIngest(jet, name, requests) as outcomes:
                async for _ in outcomes:
                    raise ZeroDivisionError("mine")

        with pytest.raises(ZeroDivisionError) as raised:
            await stumble()
        assert "wrong last sequence" in raised.value.__notes__[0]
        outcomes = FastIngest(jet, name, messages(f"{name}.a", 900))
        async for _ in outcomes:
            with pytest.warns(ResourceWarning, match="in flight"):
                await ended(outcomes)
            break


@pytest.mark.since("2.14")
async def test_what_cannot_be_used_is_refused_before_anything_is_sent(opened, name):
    async with opened() as jet:
        plain = await open_stream(jet, name, allow_batched=False)
        with pytest.raises(js.BadArgument, match=r"allow_batched.*publish_many"):
            await taken(FastIngest(jet, name, messages(f"{name}.a", 3)))
        with pytest.raises(js.StreamNotFound):
            await taken(FastIngest(jet, f"{name}-none", messages(f"{name}.a", 3)))
        with pytest.raises(js.BadArgument, match="gaps"):
            FastIngest(jet, name, [], gaps="maybe")
        with pytest.raises(js.BadArgument, match="window"):
            FastIngest(jet, name, [], window=0)
        assert (await plain.info()).state.messages == 0


async def test_a_server_that_is_too_old(name):
    def script(peer: FakePeer) -> None:
        peer.handshake(version="2.12.8")

    async with scripted(script) as connection:
        jet = connection.jetstream()
        with pytest.raises(js.Unsupported, match=r"2\.14\.0.*2\.12\.8"):
            await taken(FastIngest(jet, "S", messages("orders", 3)))


@pytest.mark.since("2.14")
async def test_messages_too_large_fail_alone(opened, name):
    async with opened() as jet:
        await open_stream(jet, name)
        requests = messages(f"{name}.a", 5)
        requests[2] = js.PublishRequest(subject=f"{name}.a", data=b"x" * (2 << 20))
        outcomes = [each async for each in FastIngest(jet, name, requests, raise_failures=False)]
        assert failures(outcomes) == {2: js.BadArgument}
        assert len(await contents(jet, name)) == 4


@pytest.mark.since("2.14")
@pytest.mark.parametrize("ids", [True, False])
async def test_a_server_killed_in_the_middle(server_factory, name, ids):
    """With ids, all messages are stored once. Without ids, each outcome is correct or unknown."""
    server = server_factory()
    count = 6000
    async with js.connect(server.url, reconnect=PATIENT) as connection:
        jet = connection.jetstream()
        await open_stream(jet, name)
        requests = [
            js.PublishRequest(subject=f"{name}.a", data=b"%d" % n, msg_id=str(n) if ids else None)
            for n in range(count)
        ]
        outcomes = []
        ingest = FastIngest(jet, name, requests, timeout=40, raise_failures=False)
        async with ingest:
            async for outcome in ingest:
                outcomes.append(outcome)
                if len(outcomes) in (1000, 3000):
                    server.kill()
                    server.restart()
        stored = await contents(jet, name)
        certain = {b"%d" % n for n, each in enumerate(outcomes) if isinstance(each, Ingested)}
        assert len(outcomes) == count
        assert len(stored) == len(set(stored))
        assert certain <= set(stored)
        if ids:
            assert len(certain) == count
        else:
            unknown = set(failures(outcomes).values())
            assert unknown <= {js.OutcomeUnknown, js.ConnectionLost}
            assert unknown


@pytest.mark.since("2.14")
async def test_a_broken_link_leaves_what_was_not_acknowledged_unknown(server, name):
    with Proxy(server.url) as proxy:
        async with js.connect(proxy.url, reconnect=PATIENT) as connection:
            jet = connection.jetstream()
            await open_stream(jet, name)

            async def source():
                for place, request in enumerate(messages(f"{name}.a", 60)):
                    if place == 50:
                        proxy.cut()
                    yield request

            outcomes = [
                each
                async for each in FastIngest(jet, name, source(), window=20, raise_failures=False)
            ]
            found = failures(outcomes)
            stored = await contents(jet, name)
            assert set(found.values()) <= {js.OutcomeUnknown, js.ConnectionLost}
            assert 0 < len(found) <= 21
            for place, outcome in enumerate(outcomes):
                if isinstance(outcome, Ingested):
                    assert b"%d" % place in stored
            assert len(stored) == len(set(stored))


# ---- scripted servers


def begin(peer: FakePeer):
    """Complete the handshake, and answer the request for the stream's info."""
    peer.handshake()
    zero = "0001-01-01T00:00:00Z"
    state = {"messages": 0, "bytes": 0, "first_seq": 0, "last_seq": 0, "consumer_count": 0}
    config = {"name": "S", "subjects": ["orders"], "allow_batched": True}
    info = {"config": config, "state": {**state, "first_ts": zero, "last_ts": zero}}
    peer.answer(peer.expect(r"STREAM\.INFO\.S"), {**info, "created": "2026-01-01T00:00:00Z"})


def expect(peer: FakePeer, number, operation):
    """Return the message with this number, and the id of its batch."""
    return peer.expect(rf"^H?PUB \S+ \S+\.{number}\.{operation}\.\$FI ")


def flow(peer: FakePeer, request, seq, interval):
    peer.answer(request, {"type": "ack", "seq": seq, "msgs": interval})


def end(peer: FakePeer, request, count, seq=None):
    batch = request.reply.split(".")[-6]
    seq = count if seq is None else seq
    peer.answer(request, {"stream": "S", "seq": seq, "batch": batch, "count": count})


def refuse(peer: FakePeer, request, err_code):
    error = {"code": 400, "err_code": err_code, "description": "told"}
    peer.answer(request, {"error": error, "stream": "S", "seq": 0})


async def run(script, count, **options):
    """Return the outcomes of `count` messages with a script as the server."""
    async with scripted(script) as connection:
        options.setdefault("raise_failures", False)
        ingest = FastIngest(connection.jetstream(), "S", messages(SUBJECT, count), **options)
        return [each async for each in ingest]


async def test_lost_acknowledgement_is_requested_again():
    def script(peer: FakePeer) -> None:
        begin(peer)
        flow(peer, expect(peer, 1, 0), 0, 2)
        # Those for 2 and 4 get lost; the window is full.
        flow(peer, expect(peer, 4, 4), 4, 2)
        end(peer, expect(peer, 6, 3), 5)

    outcomes = await run(script, 5, window=4, timeout=2)
    assert [each.number for each in outcomes] == [1, 2, 3, 4, 5]


async def test_a_leader_that_waits_for_what_is_lost():
    """The leader waits for a lost message. The client ends the batch, and sends the rest again."""

    def script(peer: FakePeer) -> None:
        begin(peer)
        flow(peer, expect(peer, 1, 0), 0, 1)
        for operation in peer.follow():
            if ".2.4.$FI " in operation.line:
                flow(peer, operation, 0, 1)
            elif ".3.3.$FI " in operation.line:
                peer.answer(operation, {"type": "gap", "last_seq": 2, "seq": 3})
                end(peer, operation, 1)
                break
        flow(peer, expect(peer, 1, 0), 0, 5)
        end(peer, expect(peer, 3, 3), 2, 3)

    def lost(peer: FakePeer) -> None:
        begin(peer)
        flow(peer, expect(peer, 1, 0), 0, 1)
        peer.until_left()

    outcomes = await run(script, 3, window=2, timeout=2)
    assert [each.number for each in outcomes] == [1, 1, 2]
    # Without any response it ends after a few attempts, with an unknown outcome.
    outcomes = await run(lost, 5, window=2, timeout=0.3, retries=1)
    assert set(failures(outcomes).values()) <= {js.OutcomeUnknown, js.RequestTimeout}
    assert len(failures(outcomes)) == 5


async def test_the_interval_follows_the_server():
    def script(peer: FakePeer) -> None:
        begin(peer)
        flow(peer, expect(peer, 1, 0), 0, 1)
        second = expect(peer, 2, 1)
        peer.fence()
        assert peer.count(MESSAGES) == 2
        flow(peer, second, 2, 3)
        expect(peer, 8, 1)
        peer.fence()
        assert peer.count(MESSAGES) == 8
        flow(peer, second, 8, 1)
        end(peer, expect(peer, 10, 3), 9)

    assert len(await run(script, 9, window=6)) == 9


async def test_a_lost_commit_is_sent_again():
    def script(peer: FakePeer) -> None:
        begin(peer)
        flow(peer, expect(peer, 1, 0), 0, 10)
        expect(peer, 4, 3)
        end(peer, expect(peer, 4, 3), 3)

    assert len(await run(script, 3, timeout=2)) == 3


async def test_a_lost_answer_to_a_commit_leaves_the_rest_unknown():
    def script(peer: FakePeer) -> None:
        begin(peer)
        flow(peer, expect(peer, 1, 0), 0, 2)
        flow(peer, expect(peer, 2, 1), 2, 2)
        expect(peer, 4, 3)
        refuse(peer, expect(peer, 4, 3), 10208)

    outcomes = await run(script, 3, timeout=1)
    assert failures(outcomes) == {2: js.OutcomeUnknown}
    assert isinstance(outcomes[2].error.__cause__, js.JetStreamError)


async def test_silence_is_reported_as_unknown():
    def script(peer: FakePeer) -> None:
        begin(peer)
        flow(peer, expect(peer, 1, 0), 0, 10)
        peer.until_left()

    outcomes = await run(script, 3, timeout=0.4)
    assert failures(outcomes) == dict.fromkeys(range(3), js.OutcomeUnknown)
    assert isinstance(outcomes[0].error.__cause__, js.RequestTimeout)


async def test_a_message_behind_a_gap_is_sent_again():
    def script(peer: FakePeer) -> None:
        begin(peer)
        flow(peer, expect(peer, 1, 0), 0, 10)
        fourth = expect(peer, 4, 1)
        peer.answer(fourth, {"type": "gap", "last_seq": 2, "seq": 4})
        end(peer, fourth, 1)
        again = expect(peer, 1, 0)
        assert again.data.endswith(b"\r\n\r\n1\r\n")
        flow(peer, again, 0, 10)
        end(peer, expect(peer, 4, 3), 3, 4)

    outcomes = await run(script, 4)
    assert [each.number for each in outcomes] == [1, 1, 2, 3]


async def test_a_message_that_is_lost_where_gaps_are_allowed():
    def script(peer: FakePeer) -> None:
        begin(peer)
        flow(peer, expect(peer, 1, 0), 0, 10)
        third = expect(peer, 3, 1)
        peer.answer(third, {"type": "gap", "last_seq": 2, "seq": 3})
        end(peer, expect(peer, 4, 3), 3)

    outcomes = await run(script, 3, gaps="ok")
    assert failures(outcomes) == {1: js.NoResponders}


@pytest.mark.parametrize("err_code", [10205, 10206, 10207, 10209])
async def test_a_batch_that_is_refused(err_code):
    def script(peer: FakePeer) -> None:
        begin(peer)
        for _ in range(2):
            refuse(peer, expect(peer, 1, 0), err_code)

    outcomes = await run(script, 2)
    assert [each.error.err_code for each in outcomes] == [err_code] * 2


async def test_too_many_batches_are_waited_for():
    def script(peer: FakePeer) -> None:
        begin(peer)
        refuse(peer, expect(peer, 1, 0), 10211)
        first = expect(peer, 1, 0)
        flow(peer, first, 0, 10)
        end(peer, expect(peer, 3, 3), 2)

    assert failures(await run(script, 2, retry_wait=0.01)) == {}


async def test_too_many_batches_for_too_long():
    def script(peer: FakePeer) -> None:
        begin(peer)
        for operation in peer.follow():
            if operation.verb in ("PUB", "HPUB") and operation.subject == SUBJECT:
                refuse(peer, operation, 10211)

    outcomes = await run(script, 3, retry_wait=0.01)
    assert [each.error.err_code for each in outcomes] == [10211] * 3


async def test_a_batch_that_the_server_dropped():
    """Refused messages are certainly not stored. Unacknowledged messages may be stored."""

    def script(peer: FakePeer) -> None:
        begin(peer)
        flow(peer, expect(peer, 1, 0), 0, 2)
        flow(peer, expect(peer, 2, 1), 2, 2)
        refuse(peer, expect(peer, 4, 1), 10208)
        refuse(peer, expect(peer, 5, 3), 10208)
        first = expect(peer, 1, 0)
        assert first.data.endswith(b"\r\n\r\n3\r\n")
        flow(peer, first, 0, 2)
        end(peer, expect(peer, 2, 3), 1)

    outcomes = await run(script, 4, window=4, timeout=1)
    assert failures(outcomes) == {2: js.OutcomeUnknown}
    assert outcomes[3].number == 1


async def test_somebody_else_answers():
    def script(peer: FakePeer) -> None:
        begin(peer)
        peer.answer(expect(peer, 1, 0), b"hello")
        peer.until_left()

    outcomes = await run(script, 1, timeout=1)
    assert failures(outcomes) == {0: js.OutcomeUnknown}
    assert "hello" in str(outcomes[0].error)


async def test_message_stored_outside_of_the_batch_is_reported():
    def script(peer: FakePeer) -> None:
        begin(peer)
        peer.answer(expect(peer, 1, 0), {"stream": "S", "seq": 7})

    outcomes = await run(script, 1)
    assert failures(outcomes) == {0: InvalidResponse}
    assert "as 7" in str(outcomes[0].error)


@pytest.mark.parametrize("place", [0, 2])
async def test_a_subject_that_the_user_may_not_use(place):
    def script(peer: FakePeer) -> None:
        begin(peer)
        if place:
            flow(peer, expect(peer, 1, 0), 0, 10)
        peer.expect(r"^H?PUB secret ")
        peer.error('Permissions Violation for Publish to "secret"')
        if place:
            end(peer, expect(peer, 4, 3), place)
        else:
            flow(peer, expect(peer, 1, 0), 0, 10)
            end(peer, expect(peer, 3, 3), 2)

    requests = messages(SUBJECT, 2)
    requests.insert(place, js.PublishRequest(subject="secret"))
    async with scripted(script) as connection:
        ingest = FastIngest(connection.jetstream(), "S", requests, raise_failures=False)
        outcomes = [each async for each in ingest]
    assert failures(outcomes) == {place: js.PermissionDenied}
