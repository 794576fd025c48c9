"""Typed handles: publishing, reading and handling values, and payloads that do not fit."""

from __future__ import annotations

import random
from contextlib import suppress
from datetime import timedelta
from typing import Annotated, Any

import attrs
import msgspec
import pytest

import js_async as js
from js_async.groups import GroupMessage
from js_async.workers import DeadLetters, HandlerFailed, Retry, Worker
from tests._async.flow import eventually
from tests._async.members import elastic, static
from tests._async.streams import settled
from tests.odd_payloads import odd_payloads
from tests.soak import rounds
from twinstream.codecs import (
    CloudEvent,
    CloudEventCodec,
    JsonSchemaCodec,
    MsgspecCodec,
    TextCodec,
)
from twinstream.errors import PayloadError
from twinstream.models import ConsumerConfig, KeyValueConfig, StreamConfig

PATIENT = ConsumerConfig(durable_name="c", ack_wait=timedelta(seconds=30))
SCHEMA = JsonSchemaCodec({"type": "object", "required": ["number"]})


@attrs.frozen
class Order:
    number: int
    item: str = ""


class Point(msgspec.Struct):
    x: int


Described = Annotated[dict[str, Any], SCHEMA]
BAD = b'{"number": "one"}'


class Log:
    """What handlers have seen."""

    def __init__(self):
        self.payloads = []
        self.errors = []

    async def order(self, message: js.Message[Order]) -> None:
        self.payloads.append(message.payload)

    async def grouped(self, message: GroupMessage[Order]) -> None:
        self.payloads.append(message.payload)

    async def described(self, message: js.Message[Described]) -> None:
        self.payloads.append(message.payload)

    async def either(self, message: js.Message[Order]) -> None:
        if message.payload_error is None:
            self.payloads.append(message.payload)
        else:
            self.errors.append(message.payload_error)
            assert message.data == BAD

    async def careless(self, message: js.Message[Order]) -> None:
        try:
            self.payloads.append(message.payload)
        except PayloadError as error:
            self.errors.append(error)
            raise


async def made(jet, name, *payloads, **config):
    stream = await jet.create_stream(StreamConfig(name=name, subjects=[f"{name}.>"], **config))
    for number, payload in enumerate(payloads):
        await jet.publish(f"{name}.{number}", payload)
    return stream


async def count_is(found, count):
    return len(found) >= count


async def handled(jet, name, handler, count, **options):
    """Run a worker until the consumer has no message left; return the worker and its reports."""
    reports = []
    worker = Worker(jet, name, PATIENT, handler, on_report=reports.append, **options)
    async with worker:
        consumer = await jet.get_consumer(name, "c")
        await eventually(settled, consumer, count, patience=300)
    return worker, [each for each in reports if isinstance(each, HandlerFailed)]


# ---- publishing and reading


async def test_a_value_arrives_as_it_was_published(opened, name):
    async with opened() as jet:
        stream = await made(jet, name)
        orders = jet.typed(Order)
        ack = await orders.publish(f"{name}.1", Order(1, "tea"), msg_id="one")
        assert (await orders.publish(f"{name}.1", Order(1, "tea"), msg_id="one")).duplicate
        stored = await stream.get_message(ack.seq)
        assert stored.data == b'{"number":1,"item":"tea"}'
        assert stored.headers["Content-Type"] == "application/json"
        requests = [orders.request(f"{name}.{n}", Order(n), headers={"A": "b"}) for n in (2, 3)]
        async with jet.publish_many(requests) as outcomes:
            async for outcome in outcomes:
                assert outcome.seq
        with pytest.raises(js.BadArgument, match=rf"subject {name}.9: typed\(Order\): "):
            await orders.publish(f"{name}.9", {"number": 1})

        consumer = (await stream.create_consumer(PATIENT)).typed(Order)
        wanted = [Order(1, "tea"), Order(2), Order(3)]
        first = await consumer.next(timeout=60)
        assert (first.payload, first.payload) == (wanted[0], wanted[0])
        assert first.payload is first.payload
        assert first.data == stored.data
        assert first.payload_error is None
        batch = await consumer.fetch(1, timeout=10)
        assert [each.payload for each in batch] == wanted[1:2]
        async with consumer.messages(stop_after=1) as messages:
            assert [each.payload async for each in messages] == wanted[2:]
        found = stream.typed(Order)
        assert [each.payload async for each in found.read()] == wanted
        assert (await found.get_message(1)).payload == wanted[0]
        assert (await found.get_last_message(f"{name}.2")).payload == wanted[1]
        assert (await found.get_next_message(seq=3)).payload == wanted[2]
        snapshot = await found.snapshot()
        assert [each.payload for each in snapshot.values()] == wanted
        async with found.ordered(stop_after=3) as messages:
            assert [each.payload async for each in messages] == wanted
        push = ConsumerConfig(ack_policy="none", deliver_policy="all")
        async with found.push_messages(push) as messages:
            assert [(await messages.next(timeout=10)).payload for _ in wanted] == wanted


async def test_untyped_messages_have_their_bytes_as_payload(opened, name):
    async with opened() as jet:
        stream = await made(jet, name, BAD)
        message = await (await stream.create_consumer(PATIENT)).next(timeout=10)
        assert (message.payload, message.payload_error) == (BAD, None)
        assert not hasattr(message, "_payload")
        assert (await stream.get_message(1)).payload == BAD


@pytest.mark.parametrize(
    ("model", "value"),
    [
        (bytes, b"\x00"),
        (TextCodec(), "grün"),
        (list[Order], [Order(1)]),
        (Point, Point(1)),
        (MsgspecCodec(Order), Order(1, "tea")),
        (SCHEMA, {"number": 1}),
        (CloudEventCodec(Order), CloudEvent(id="1", source="s", type="t", data=Order(1))),
        (CloudEventCodec(Order, "binary"), CloudEvent(id="1", source="ü", type="t", data=Order(1))),
    ],
)
async def test_each_codec_in_a_stream(opened, name, model, value):
    async with opened() as jet:
        stream = await made(jet, name)
        await jet.typed(model).publish(f"{name}.a", value)
        consumer = (await stream.create_consumer(PATIENT)).typed(model)
        found = (await consumer.next(timeout=60)).payload
        assert type(found) is type(value)
        if isinstance(value, CloudEvent):
            assert (found.id, found.source, found.data) == (value.id, value.source, value.data)
        else:
            assert found == value


async def test_a_payload_that_does_not_fit_is_handed_over_with_its_error(opened, name):
    async with opened() as jet:
        stream = await made(jet, name, BAD, b'{"number": 2}')
        await jet.publish(f"{name}.text", b"{}", headers={"content-type": "text/plain"})
        consumer = (await stream.create_consumer(PATIENT)).typed(Order)
        for found in (
            await consumer.fetch(3, timeout=10),
            [each async for each in stream.typed(Order).read()],
        ):
            bad, good, text = found
            for _ in range(2):
                with pytest.raises(PayloadError) as caught:
                    bad.payload  # noqa: B018
                error = caught.value
                assert (error.stream_name, error.seq, error.subject) == (name, 1, f"{name}.0")
                assert (error.path, error.type_name) == ("$.number", "Order")
            assert (bad.data, good.payload) == (BAD, Order(2))
            with pytest.raises(PayloadError, match="Content-Type is text/plain, expected"):
                text.payload  # noqa: B018


async def test_a_bucket_names_key_and_revision(opened, name):
    async with opened() as jet:
        plain = await jet.create_key_value(KeyValueConfig(bucket=name))
        await plain.put("k", b"{}")
        await plain.put("k", BAD)
        with pytest.raises(PayloadError) as caught:
            await plain.typed(Order).get("k")
        error = caught.value
        assert (error.bucket, error.key, error.revision, error.path) == (name, "k", 2, "$.number")


# ---- workers


async def test_a_worker_reads_the_annotation_of_its_handler(opened, name):
    async with opened() as jet:
        await made(jet, name, b'{"number": 1}', b'{"number": 2}')
        log = Log()
        worker, failures = await handled(jet, name, log.order, 2)
        assert log.payloads == [Order(1), Order(2)]
        assert (worker.handled, failures) == (2, [])


async def test_an_annotation_may_name_a_codec(opened, name):
    async with opened() as jet:
        await made(jet, name, b'{"number": "x"}', b"{}")
        log = Log()
        worker, _ = await handled(jet, name, log.described, 2)
        assert log.payloads == [{"number": "x"}]
        assert worker.rejected == 1


@pytest.mark.parametrize("order", ["none", "subject"])
async def test_a_payload_that_does_not_fit_becomes_a_dead_letter(opened, name, order):
    async with opened() as jet:
        await made(jet, name, BAD, b'{"number": 2}', retention="workqueue")
        log, letters = Log(), DeadLetters(jet, name)
        options = {"dead_letters": letters, "retry": Retry(attempts=None, first=0.01)}
        worker, failures = await handled(jet, name, log.order, 2, order=order, **options)
        assert log.payloads == [Order(2)]
        assert (worker.handled, worker.retried, worker.rejected) == (1, 0, 1)
        [failure] = failures
        assert (failure.stream_seq, failure.attempt, failure.retry_in) == (1, 1, None)
        assert isinstance(failure.error, PayloadError)
        [letter] = [each async for each in letters.letters()]
        assert (letter.data, letter.subject, letter.stream_seq) == (BAD, f"{name}.0", 1)
        assert f"stream {name}, seq 1, subject {name}.0: the payload" in letter.reason
        # With a corrected type, the replayed message is handled.
        await letters.replay(letter)
        seen = []

        async def loose(message: js.Message[dict]) -> None:
            seen.append(message.payload)

        worker = Worker(jet, name, "c", loose)
        async with worker:
            await eventually(count_is, seen, 1)
        assert seen == [{"number": "one"}]


async def test_without_dead_letters_it_is_terminated_with_the_reason(opened, name):
    async with opened() as jet:
        await made(jet, name, BAD)
        log = Log()
        async with jet.events(stream_name=name, kinds=["terminated"]) as events:
            worker, _ = await handled(jet, name, log.order, 1)
            event = await events.next(timeout=30)
        assert "the payload does not fit Order at $.number" in event.record.reason
        assert (log.payloads, worker.rejected) == ([], 1)


async def test_terminated_in_spite_of_dead_letters(opened, name):
    async with opened() as jet:
        await made(jet, name, BAD)
        log, letters = Log(), DeadLetters(jet, name)
        options = {"dead_letters": letters, "on_bad": "terminate"}
        worker, _ = await handled(jet, name, log.order, 1, **options)
        assert worker.rejected == 1
        found = [each async for each in letters.letters()]
        assert [each.cause for each in found] in ([], ["terminated"])


async def test_handed_over_with_its_error(opened, name):
    async with opened() as jet:
        await made(jet, name, BAD, b'{"number": 2}')
        log = Log()
        worker, failures = await handled(jet, name, log.either, 2, on_bad="hand_over")
        assert (log.payloads, len(log.errors)) == ([Order(2)], 1)
        assert (worker.handled, worker.rejected, failures) == (2, 0, [])


async def test_a_handler_that_fails_with_the_error_does_not_loop(opened, name):
    async with opened() as jet:
        await made(jet, name, BAD)
        log = Log()
        retry = Retry(attempts=None, first=0.01)
        options = {"on_bad": "hand_over", "retry": retry}
        worker, failures = await handled(jet, name, log.careless, 1, **options)
        assert (len(log.errors), worker.rejected, worker.retried) == (1, 1, 0)
        assert failures[0].error is log.errors[0]


async def test_on_bad_is_checked(opened, name):
    async with opened() as jet:
        with pytest.raises(js.BadArgument, match=r"on_bad must be 'dead_letter', .*got 'skip'"):
            Worker(jet, name, "c", Log().order, on_bad="skip")
        with pytest.raises(js.BadArgument, match="on_bad='dead_letter' needs dead_letters"):
            Worker(jet, name, "c", Log().order, on_bad="dead_letter")


# ---- annotations that are refused


class Strange:
    pass


async def strange(message: js.Message[Strange]) -> None:
    raise AssertionError


async def unknown(message: js.Message[Missing]) -> None:  # noqa: F821
    raise AssertionError


async def alias(message: OrderMessage) -> None:  # noqa: F821
    raise AssertionError


async def plain(message: js.Message) -> None:
    raise AssertionError


async def only_for_checkers(message: nowhere.Message) -> None:  # noqa: F821
    raise AssertionError


async def another_parameter(message: js.Message, more: Missing = 0) -> None:  # noqa: F821
    raise AssertionError


@pytest.mark.parametrize(
    ("handler", "text"),
    [
        (strange, "handler strange: JsonCodec cannot encode Strange"),
        (unknown, r"handler unknown: its annotation 'js_?\w*\.Message\[Missing\]' cannot be"),
        (alias, "handler alias: its annotation 'OrderMessage' cannot be resolved .*top of the"),
    ],
)
async def test_an_annotation_is_never_ignored(opened, name, handler, text):
    async with opened() as jet:
        with pytest.raises(js.BadArgument, match=text):
            Worker(jet, name, "c", handler)
        group = await elastic(jet, name)
        with pytest.raises(js.BadArgument, match=text):
            group.worker("m", handler)


@pytest.mark.parametrize("handler", [plain, only_for_checkers, another_parameter])
async def test_the_annotation_of_bytes_need_not_be_resolved(opened, name, handler):
    async with opened() as jet:
        worker = Worker(jet, name, "c", handler)
        with pytest.warns(RuntimeWarning, match="was never started"):
            await worker.stop()


# ---- groups


async def test_a_group_worker_reads_the_annotation(opened, name):
    async with opened() as jet:
        group = await static(jet, name, "m")
        for number, payload in enumerate([BAD, b'{"number": 2}', b'{"number": 3}']):
            await jet.publish(f"{name}.{number}", payload)
        log = Log()
        async with group.worker("m", log.grouped) as worker:
            await eventually(count_is, log.payloads, 2)

            async def one_is_rejected():
                return worker.rejected == 1

            await eventually(one_is_rejected)
        assert sorted(each.number for each in log.payloads) == [2, 3]


async def test_consume_hands_over(opened, name):
    async with opened() as jet:
        stream = await made(jet, name, BAD, b'{"number": 2}')
        seen = []

        async def handler(message):
            seen.append(message.payload_error or message.payload)
            await message.ack()

        consumer = (await stream.create_consumer(PATIENT)).typed(Order)
        async with consumer.consume(handler, stop_after=2) as consuming:
            await consuming.wait(timeout=30)
        assert isinstance(seen[0], PayloadError)
        assert seen[1] == Order(2)


# ---- odd payloads, by every way


def many_odd(seed):
    # Each kind of damage at each place of the payload, several times.
    return odd_payloads(b'{"number":1,"item":"tea"}', rounds(1500, 10_000), random.Random(seed))


async def test_soak_odd_payloads_end_nothing(opened, name):
    """Each is decoded, or reported with its bytes; none is lost, and none comes again."""
    payloads = many_odd(7)
    async with opened() as jet:
        stream = await made(jet, name)
        async with jet.publish_many([(f"{name}.a", each) for each in payloads]) as outcomes:
            async for outcome in outcomes:
                assert outcome.seq

        def checked(message):
            error = message.payload_error
            if error is None:
                assert isinstance(message.payload, Order)
            else:
                assert (error.seq, error.subject) == (message.seq, f"{name}.a")
            return message.data

        consumer = (await stream.create_consumer(ConsumerConfig(durable_name="m"))).typed(Order)
        found = []
        async with consumer.messages(stop_after=len(payloads)) as messages:
            async for each in messages:
                found.append(checked(each))
                await each.ack()
        assert found == payloads
        found = []
        async for each in stream.typed(Order).read():
            with suppress(PayloadError):
                assert isinstance(each.payload, Order)
            found.append(each.data)
        assert found == payloads

        log, letters = Log(), DeadLetters(jet, name)
        worker, failures = await handled(
            jet, name, log.order, len(payloads), dead_letters=letters, concurrency=4
        )
        assert worker.retried == 0
        assert len(log.payloads) == worker.handled
        assert worker.handled + worker.rejected == len(payloads)
        assert {type(each.error) for each in failures} == {PayloadError}
        kept = {each.stream_seq: each.data async for each in letters.letters()}
        assert kept == {each.stream_seq: payloads[each.stream_seq - 1] for each in failures}
        assert len(kept) == worker.rejected


async def test_soak_odd_payloads_end_no_group(opened, name):
    payloads = many_odd(9)
    async with opened() as jet:
        group = await static(jet, name, "m")
        items = [(f"{name}.{number % 7}", each) for number, each in enumerate(payloads)]
        async with jet.publish_many(items) as outcomes:
            async for outcome in outcomes:
                assert outcome.seq
        log, reports = Log(), []
        async with group.worker("m", log.grouped, on_report=reports.append) as worker:

            async def all_are_done():
                return worker.handled + worker.rejected >= len(payloads)

            await eventually(all_are_done, patience=300)
        failures = [each for each in reports if isinstance(each, HandlerFailed)]
        assert {type(each.error) for each in failures} == {PayloadError}
        assert (worker.retried, len(failures)) == (0, worker.rejected)
        assert len(log.payloads) == worker.handled == len(payloads) - worker.rejected


async def test_soak_odd_values_end_no_watch_and_no_cache(opened, name):
    payloads = many_odd(8)
    async with opened() as jet:
        plain = await jet.create_key_value(KeyValueConfig(bucket=name))
        typed = plain.typed(Order)
        items = [(f"k{number}", each) for number, each in enumerate(payloads)]
        async with plain.put_many(items) as outcomes:
            async for outcome in outcomes:
                assert outcome.seq
        async with typed.watch() as watch:
            seen = [entry async for entry in watch.initial()]
        assert [(each.key, each.raw_value) for each in seen] == items
        errors = {each.key for each in seen if each.error is not None}
        assert {type(each.error) for each in seen} == {PayloadError, type(None)}
        assert {key for key, each in (await typed.get_many()).items() if each.error} == errors
        async with typed.cached() as cache:
            for key, _ in items:
                if key in errors:
                    with pytest.raises(PayloadError):
                        cache.get(key)
                else:
                    assert isinstance(cache[key], Order)
