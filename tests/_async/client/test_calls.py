"""Reports to `on_call`: each call of JetStream is reported once, at its end, with its outcome."""

from __future__ import annotations

from contextvars import ContextVar

import pytest

import js_async as js
from js_async.counters import Counters
from js_async.exactly_once import SubjectWriter
from tests._async.scripted import scripted
from tests.inside import pipeline_of
from tests.logged import raised
from twinstream.errors import InvalidResponse
from twinstream.models import ConsumerConfig, StreamConfig
from twinstream.testing import FakePeer

QUICK = js.ReconnectPolicy(wait=0.01, max_wait=0.05, attempts=-1)
STATE = dict.fromkeys(("messages", "bytes", "first_seq", "last_seq", "consumer_count"), 0)
INFO = {"config": {"name": "S"}, "created": "2026-01-01T00:00:00Z", "state": STATE}
NO_LEADER = {"error": {"code": 503, "err_code": 10008, "description": "no leader"}}
TASK: ContextVar[str] = ContextVar("TASK", default="")


def brief(reported):
    """Return the reports in short form, and clear the list."""
    found = [(call.kind, call.subject, call.stream_name, call.error) for call in reported]
    assert all(call.seconds >= 0 for call in reported)
    reported.clear()
    return found


def creation(name):
    return f'{{"name":"{name}","subjects":["{name}.>"],"allow_direct":true}}'


async def test_each_call_is_reported_once_at_its_end(server, name):
    reported = []
    async with js.connect(server.url, on_call=reported.append) as connection:
        jet = connection.jetstream(timeout=60)
        stream = await jet.create_stream(
            StreamConfig(name=name, subjects=[f"{name}.>"], allow_direct=True)
        )
        assert reported[0].size == len(creation(name))
        assert brief(reported) == [("api", f"$JS.API.STREAM.CREATE.{name}", name, None)]

        await jet.publish(f"{name}.a", b"12345")
        assert (reported[0].size, reported[0].attempts) == (5, 1)
        assert brief(reported) == [("publish", f"{name}.a", name, None)]

        await jet.publish(f"{name}.a", b"12345", headers={"K": "v"})
        assert reported[0].size == len(b"NATS/1.0\r\nK: v\r\n\r\n12345")
        reported.clear()

        await stream.get_last_message(f"{name}.a", direct=True)
        assert brief(reported) == [
            ("direct_get", f"$JS.API.DIRECT.GET.{name}.{name}.a", name, None)
        ]

        await stream.get_message(1, direct=False)
        assert brief(reported) == [("api", f"$JS.API.STREAM.MSG.GET.{name}", name, None)]

        await jet.account_info()
        assert brief(reported) == [("api", "$JS.API.INFO", None, None)]

        # `insert` looks at the stream's settings first.
        await SubjectWriter(jet).insert(f"{name}.b", b"x")
        assert brief(reported)[-1] == ("publish", f"{name}.b", name, None)


async def test_pulls_and_acknowledgements_are_no_calls(server, name):
    reported = []
    async with js.connect(server.url, on_call=reported.append) as connection:
        jet = connection.jetstream(timeout=60)
        stream = await jet.create_stream(StreamConfig(name=name))
        consumer = await stream.create_consumer(ConsumerConfig(durable_name="c"))
        for _ in range(2):
            await jet.publish(name, b"x")
        reported.clear()
        [first, second] = await consumer.fetch(2, timeout=60)
        await first.ack()
        assert await second.double_ack(timeout=60)
        await connection.publish(name, b"core")
        await connection.flush()
        assert reported == []


async def test_failure_is_reported_as_raised(server, name):
    reported = []
    async with js.connect(server.url, on_call=reported.append) as connection:
        jet = connection.jetstream(timeout=60)
        with pytest.raises(js.StreamNotFound) as missing:
            await jet.get_stream(name)
        subject = f"$JS.API.STREAM.INFO.{name}"
        assert brief(reported) == [("api", subject, name, missing.value)]

        stream = await jet.create_stream(StreamConfig(name=name, allow_direct=True))
        reported.clear()
        with pytest.raises(js.MessageNotFound) as empty:
            await stream.get_last_message(name, direct=True)
        subject = f"$JS.API.DIRECT.GET.{name}.{name}"
        assert brief(reported)[0] == ("direct_get", subject, name, empty.value)

        with pytest.raises(js.WrongLastSequence) as refused:
            await jet.publish(name, expected_stream=name, expected_last_seq=7)
        assert brief(reported) == [("publish", name, name, refused.value)]


async def test_what_is_refused_before_it_is_sent_is_no_call(server):
    reported = []
    async with js.connect(server.url, on_call=reported.append) as connection:
        jet = connection.jetstream()
        large = b"x" * (connection.server_info.max_payload + 1)
        for refused in (
            lambda: jet.publish("a b"),
            lambda: jet.publish("a", ttl=-1),
            lambda: jet.publish("a", large),
            lambda: jet.get_stream("a b"),
            lambda: jet.create_stream(StreamConfig(name="a", description=large.decode())),
        ):
            with pytest.raises(js.BadArgument):
                await refused()
        [failure] = [
            outcome async for outcome in jet.publish_many([("a", large)], raise_failures=False)
        ]
        assert isinstance(failure.error, js.BadArgument)
        async with jet.publisher() as publisher:
            handle = await publisher.send("a", large)
            with pytest.raises(js.BadArgument, match="the server accepts"):
                await handle.result()
        assert reported == []


async def test_repeats_of_a_message_count_as_one_call(server, name):
    reported = []
    async with js.connect(server.url, on_call=reported.append) as connection:
        jet = connection.jetstream(timeout=60)
        with pytest.raises(js.NoStream) as unheard:
            await jet.publish(name, retry_wait=0.01)
        *asked, call = reported
        assert (call.attempts, call.stream_name, call.error) == (3, None, unheard.value)
        # The request for the reason of the failure ended first.
        assert [(each.kind, each.subject) for each in asked] == [("api", "$JS.API.STREAM.NAMES")]


async def test_repeats_of_a_request_count_as_one_call():
    def script(peer: FakePeer) -> None:
        peer.handshake()
        peer.answer(peer.expect(r"STREAM\.INFO\.S"), NO_LEADER)
        peer.expect(r"STREAM\.INFO\.S")
        # The second one had no answer, so it is sent again.
        peer.answer(peer.expect(r"STREAM\.INFO\.S"), INFO)
        peer.expect(r"STREAM\.INFO\.S")
        peer.reset()

    def second(peer: FakePeer) -> None:
        peer.handshake()
        peer.answer(peer.expect(r"STREAM\.INFO\.S"), {**INFO, "config": 5})
        peer.until_left()

    reported = []
    async with scripted(script, second, reconnect=QUICK, on_call=reported.append) as connection:
        jet = connection.jetstream(timeout=30)
        await jet.get_stream("S")
        with pytest.raises(InvalidResponse) as odd:
            await jet.get_stream("S")
    assert [(call.attempts, call.error) for call in reported] == [(3, None), (2, odd.value)]


async def test_messages_in_flight_together_are_reported_separately(server, name):
    reported = []
    async with js.connect(server.url, on_call=reported.append) as connection:
        jet = connection.jetstream(timeout=60)
        await jet.create_stream(StreamConfig(name=name, subjects=[f"{name}.>"]))
        subjects = [f"{name}.{number}" for number in range(50)]
        good = [(subject, b"123") for subject in subjects]
        bad = js.PublishRequest(subject=f"{name}.bad", expected_stream=name, expected_last_seq=999)
        reported.clear()
        outcomes = [
            outcome async for outcome in jet.publish_many([*good, bad], raise_failures=False)
        ]
        assert {call.size for call in reported[:50]} == {3}
        expected = [("publish", subject, name, None) for subject in subjects]
        assert brief(reported) == [*expected, ("publish", f"{name}.bad", name, outcomes[-1].error)]

        async with jet.publisher() as publisher:
            handles = [await publisher.send(subject, b"123") for subject in subjects]
            wrong = await publisher.send(bad)
            for handle in handles:
                await handle.result()
            with pytest.raises(js.WrongLastSequence) as refused:
                await wrong.result()
        assert brief(reported) == [*expected, ("publish", f"{name}.bad", name, refused.value)]


@pytest.mark.since("2.12")
async def test_batches_and_counters_are_reported(server, name):
    reported = []
    async with js.connect(server.url, on_call=reported.append) as connection:
        jet = connection.jetstream(timeout=60)
        await jet.create_stream(StreamConfig(name=name, subjects=[f"{name}.>"], allow_atomic=True))
        reported.clear()
        async with jet.atomic_batch() as batch:
            for number in range(3):
                await batch.add(f"{name}.{number}", b"x")
        first, commit = brief(reported)
        # Whose stream the first one is, its answer does not tell.
        assert first == ("atomic_batch", f"{name}.0", None, None)
        assert commit == ("atomic_batch", f"{name}.2", name, None)

        with pytest.raises(js.WrongLastSequence) as refused:
            async with jet.atomic_batch() as batch:
                await batch.add(f"{name}.0", b"x", expected_last_seq=99)
        assert brief(reported)[-1] == ("atomic_batch", f"{name}.0", None, refused.value)

        await jet.create_stream(
            StreamConfig(name=f"{name}C", subjects=[f"{name}C.>"], allow_msg_counter=True)
        )
        counters = Counters(jet, f"{name}C")
        assert await counters.add(f"{name}C.a", 5) == 5
        reported.clear()
        assert await counters.add(f"{name}C.a", 5) == 10
        assert brief(reported) == [("publish", f"{name}C.a", f"{name}C", None)]


async def test_failing_callback_does_not_fail_the_call(server, name, caplog):
    caplog.set_level("DEBUG", "twinstream")

    def reported(call):
        raise ValueError(call.kind)

    async with js.connect(server.url, on_call=reported) as connection:
        jet = connection.jetstream(timeout=60)
        await jet.create_stream(StreamConfig(name=name))
        assert (await jet.publish(name)).seq == 1
        with pytest.raises(js.StreamNotFound):
            await jet.get_stream(f"{name}-none")
        assert [each.seq async for each in jet.publish_many([(name, b"x")])] == [2]
    kinds = ["api", "publish", "api", "publish"]
    assert raised(caplog) == [f"on_call raised ValueError('{each}')" for each in kinds]


async def test_callback_runs_in_the_context_of_the_call(server, name):
    tasks = []

    def reported(call):
        tasks.append((call.kind, TASK.get()))

    async with js.connect(server.url, on_call=reported) as connection:
        jet = connection.jetstream(timeout=60)
        TASK.set("one")
        await jet.create_stream(StreamConfig(name=name))
        TASK.set("two")
        await jet.publish(name)
    assert tasks == [("api", "one"), ("publish", "two")]


async def test_message_has_an_outcome_even_if_its_report_is_interrupted(server, name):
    class Interrupt(BaseException):
        pass

    def reported(call):
        if call.kind == "publish":
            raise Interrupt

    async with js.connect(server.url, on_call=reported) as connection:
        # A subscriber that does not respond.
        silent = await connection.subscribe(name)
        publisher = connection.jetstream().publisher()
        await publisher.flush()
        pipeline = pipeline_of(publisher)
        entry = pipeline.prepare((name, b""))
        assert pipeline.write(entry)
        with pytest.raises(Interrupt):
            pipeline.note(None, js.ConnectionLost("gone"))
        assert isinstance(entry.outcome, js.PublishFailure)
        assert pipeline.oldest is None
        # A second answer is one too many.
        pipeline.note(None, js.ConnectionLost("gone"))
        with pytest.raises(js.PublishFailures, match="1 message was not acknowledged"):
            await publisher.close()
        await silent.close()


async def test_callback_must_be_a_plain_function(server):
    for wrong in ("reported", 5):
        with pytest.raises(js.BadArgument, match="on_call must be a plain function, got"):
            await js.connect(server.url, on_call=wrong)
