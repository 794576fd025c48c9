"""Processing: results stored once, inputs confirmed, errors, rejections, required settings."""

from __future__ import annotations

from datetime import timedelta

import pytest
from attrs import evolve

import js_async as js
from js_async.exactly_once import Processing, Reject, UnsuitableSettings
from tests._async.flow import eventually
from tests._async.lossy import Lossy
from tests._async.progress import reports_of
from tests._async.streams import filled, settled
from tests.inside import api_of, writer_of
from tests.stalls import attempts
from twinstream.models import ConsumerConfig, StreamConfig

BY = pytest.mark.parametrize("by", ["subject", "id"])
WORKER = ConsumerConfig(durable_name="w", ack_policy="explicit")


async def output(jet, name, **settings):
    config = StreamConfig(name=f"{name}-OUT", subjects=[f"{name}-out.>"], **settings)
    return await jet.create_stream(config)


async def doubled(message):
    subject = message.subject.replace(".", "-out.", 1)
    return [
        js.PublishRequest(subject=f"{subject}.{{id}}", data=message.data * 2),
        js.PublishRequest(subject=f"{subject}.{{id}}", data=b"second"),
    ]


@BY
async def test_each_message_is_processed_once(opened, name, by):
    async with opened() as jet:
        stream = await filled(jet, name, 40)
        results = await output(jet, name)
        consumer = await stream.create_consumer(WORKER)
        work = Processing(jet, name, "w", doubled, into=results.name, by=by, concurrency=4)
        async with work:
            await eventually(settled, consumer, 40)
        assert (work.done, work.stored, work.repeated) == (40, 80, 0)
        first = await results.get_message(1)
        assert first.headers["Nats-Msg-Id"].startswith(f"w-{name}-")
        # All of it again, from the start, in another process as it were.
        await stream.create_consumer(ConsumerConfig(durable_name="w2", ack_policy="explicit"))
        repeat = Processing(
            jet, name, "w2", doubled, into=results.name, by=by, name="w", stop_after=40
        )
        await repeat.start()
        await repeat.wait(timeout=60)
        assert (repeat.done, repeat.stored, repeat.repeated) == (40, 0, 80)
        assert (await results.info()).state.messages == 80


async def test_a_handler_may_take_longer_than_the_consumer_waits(opened, server, name, tuned):
    # Each 0.1 s.
    tuned("ack progress reports", 600)
    async with opened() as jet, reports_of(server, name) as reports:
        stream = await filled(jet, name, 1)
        results = await output(jet, name)
        consumer = await stream.create_consumer(evolve(WORKER, ack_wait=timedelta(seconds=60)))
        calls = []

        async def handle(message):
            calls.append(message.metadata.num_delivered)
            # So it may go on.
            await reports.wait(1, times=4)

        async with Processing(jet, name, "w", handle, into=results.name, by="subject"):
            await eventually(settled, consumer, 1)
        assert calls == [1]


async def test_the_limits_of_the_consumer_are_kept(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 20)
        results = await output(jet, name)
        limits = {"max_batch": 2, "max_expires": timedelta(seconds=2)}
        consumer = await stream.create_consumer(evolve(WORKER, **limits))
        async with Processing(jet, name, "w", doubled, into=results.name, by="id") as work:
            await eventually(settled, consumer, 20)
        assert (work.done, work.stored) == (20, 40)


@pytest.mark.parametrize("end", ["stop", "drain"])
async def test_an_end_during_the_start_ends_the_work(opened, name, end):
    async with opened() as jet:
        stream = await filled(jet, name, 1)
        results = await output(jet, name)
        await stream.create_consumer(WORKER)
        work = Processing(jet, name, "w", doubled, into=results.name, by="id")
        check = writer_of(work).check

        async def ends():
            await getattr(work, end)()
            return await check()

        writer_of(work).check = ends
        await work.start()
        await work.wait(timeout=60)
        assert (work.is_running, work.done) == (False, 0)


async def test_a_missing_consumer_is_reported_by_the_start(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 1)
        results = await output(jet, name)
        work = Processing(jet, name, "w", doubled, into=results.name, by="id")
        with pytest.raises(js.ConsumerNotFound):
            await work.start()
        consumer = await stream.create_consumer(WORKER)
        async with work:
            await eventually(settled, consumer, 1)
        assert work.done == 1


async def test_errors_come_again_and_rejections_do_not(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 3)
        results = await output(jet, name)
        consumer = await stream.create_consumer(WORKER)
        tries = []

        async def handle(message):
            tries.append(message.data)
            if message.data == b"0":
                raise Reject("never")
            if message.data == b"1" and tries.count(b"1") < 3:
                raise ValueError("not yet")
            if message.data == b"1":
                return 5 if tries.count(b"1") == 3 else None
            return js.PublishRequest(subject=f"{name}-out.x")

        reports = []
        work = Processing(
            jet,
            name,
            "w",
            handle,
            into=results.name,
            by="id",
            retry=[0.01, 0],
            on_report=reports.append,
        )
        async with work:
            await eventually(settled, consumer, 3)
        assert (work.done, work.stored) == (2, 1)
        assert [(each.seq, each.rejected, each.delay, str(each.error)) for each in reports] == [
            (1, True, 0.0, "never"),
            (2, False, 0.01, "not yet"),
            (2, False, 0.0, "not yet"),
            (
                2,
                False,
                0.0,
                "a handler must return None or one or several PublishRequests, got int",
            ),
        ]


@BY
async def test_a_lost_answer_of_a_result_is_no_end(opened, name, by):
    async with opened() as jet:
        stream = await filled(jet, name, 5)
        results = await output(jet, name)
        consumer = await stream.create_consumer(WORKER)
        reports = []
        work = Processing(
            jet, name, "w", doubled, into=results.name, by=by, retry=0.01, on_report=reports.append
        )
        write, lost = writer_of(work).write, []

        async def forgetful(requests):
            outcomes = await write(requests)
            if lost:
                return outcomes
            lost.extend(outcomes)
            return [js.OutcomeUnknown("no answer came") for _ in outcomes]

        writer_of(work).write = forgetful
        async with work:
            await eventually(settled, consumer, 5)
        assert [type(each.error) for each in reports] == [js.OutcomeUnknown]
        assert (await results.info()).state.messages == 10
        assert (work.done, len(lost)) == (5, 2)


async def test_a_handler_leaves_acknowledging_alone(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 1)
        await output(jet, name)
        await stream.create_consumer(WORKER)
        reports = []

        async def handle(message):
            await message.ack()

        work = Processing(
            jet,
            name,
            "w",
            handle,
            into=f"{name}-OUT",
            by="id",
            on_report=reports.append,
            stop_after=1,
        )
        await work.start()
        await work.wait(timeout=60)
        assert "the handler acknowledged" in str(reports[0])


async def test_the_settings_are_checked_first(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 1)
        await output(jet, name, max_age=timedelta(hours=1))
        await stream.create_consumer(
            ConsumerConfig(durable_name="few", ack_policy="explicit", max_deliver=3)
        )
        with pytest.raises(UnsuitableSettings, match=f"{name}/few does not .* raise Reject"):
            await Processing(jet, name, "few", doubled, into=f"{name}-OUT", by="id").start()
        await stream.create_consumer(WORKER)
        with pytest.raises(UnsuitableSettings, match="max_age"):
            await Processing(jet, name, "w", doubled, into=f"{name}-OUT", by="subject").start()
        with pytest.raises(js.StreamNotFound):
            await Processing(jet, name, "w", doubled, into=f"{name}-NO", by="subject").start()


async def test_results_beyond_the_window_are_looked_up(opened, name):
    async with opened() as jet:
        stream = await jet.create_stream(StreamConfig(name=name, subjects=[f"{name}.>"]))
        results = await output(jet, name, duplicate_window=timedelta(seconds=3))
        consumer = await stream.create_consumer(WORKER)
        for number in range(3):
            await jet.publish(f"{name}.{number}", b"x")
        work = Processing(jet, name, "w", doubled, into=results.name, by="id", timeout=0.7)
        await work.start()
        await eventually(settled, consumer, 3)
        await work.stop()
        await jet.publish(f"{name}.3", b"x")
        message = await consumer.next(timeout=60)
        # As by a process that died before the acknowledgement.
        known = await results.get_message(1)
        ids = [known.headers["Nats-Msg-Id"].replace("-1-", "-4-")]
        ids.append(ids[0][:-1] + "1")
        for result, msg_id in zip(await doubled(message), ids, strict=True):
            await jet.publish(result.subject.replace("{id}", msg_id), result.data, msg_id=msg_id)
        await message.nak()

        async def forgotten():
            ack = await jet.publish(f"{name}-out.probe", msg_id=ids[0])
            return not ack.duplicate

        await eventually(forgotten)
        before = (await results.info()).state.messages
        again = Processing(jet, name, "w", doubled, into=results.name, by="id", timeout=0.7)
        await again.start()
        await eventually(settled, consumer, 4)
        await again.stop()
        assert (again.done, again.stored, again.repeated) == (1, 0, 2)
        assert (await results.info()).state.messages == before


async def test_one_look_finds_the_results_of_all_that_come_again(opened, name, tuned):
    # Everything counts as older than the window, which is far from over.
    tuned("result skew", timedelta(hours=1))
    async with opened() as jet:
        stream = await filled(jet, name, 20)
        results = await output(jet, name)
        consumer = await stream.create_consumer(WORKER)
        lossy = Lossy(api_of(jet).transport)
        # A look asks for the first of the results, once.
        start_at = f"$JS.API.STREAM.MSG.GET.{results.name}"
        seen = lossy.jetstream(timeout=60)
        async with Processing(seen, name, "w", doubled, into=results.name, by="id") as work:
            await eventually(settled, consumer, 20)
        assert start_at not in lossy.api
        again = await stream.create_consumer(evolve(WORKER, durable_name="w2"))
        # Delivered once, by a process that died.
        for message in await again.fetch(20):
            await message.nak()
        repeat = Processing(
            seen, name, "w2", doubled, into=results.name, by="id", name="w", concurrency=4
        )
        async with repeat:
            await eventually(settled, again, 20)
        assert (work.stored, repeat.stored, repeat.repeated) == (40, 0, 40)
        assert lossy.api.count(start_at) == 1


async def test_a_gap_where_results_may_be_ends_the_work(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 1)
        results = await output(jet, name, duplicate_window=timedelta(seconds=20))
        consumer = await stream.create_consumer(WORKER)
        message = await consumer.next(timeout=60)
        for _ in range(3):
            await jet.publish(f"{name}-out.other")
        await results.purge(keep=1)
        await message.nak()
        work = Processing(jet, name, "w", doubled, into=results.name, by="id")
        await work.start()
        with pytest.raises(js.OutcomeUnknown, match="has only sequences from 3"):
            await work.wait(timeout=60)


async def test_results_removed_by_limits_are_not_stored_again(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 1)
        age = timedelta(seconds=1)
        results = await output(jet, name, duplicate_window=age, max_age=age)
        consumer = await stream.create_consumer(WORKER)
        message = await consumer.next(timeout=60)
        # What was stored by a process that was killed before it acknowledged the message.
        await jet.publish(f"{name}-out.0")

        async def is_empty():
            return not (await results.info()).state.messages

        await eventually(is_empty)
        await message.nak()
        work = Processing(jet, name, "w", doubled, into=results.name, by="id", timeout=0.2)
        await work.start()
        with pytest.raises(js.OutcomeUnknown, match="has only sequences from 2"):
            await work.wait(timeout=60)
        assert work.stored == 0


async def test_a_result_that_somebody_deleted_is_not_waited_for(opened, name, tuned):
    tuned("result skew", timedelta())
    async with opened() as jet:
        # A write and an acknowledgement have 0.2 s each.
        for number, attempt in enumerate(attempts(0.6)):
            with attempt:
                await write_what_was_deleted(jet, f"{name}-{number}")


async def write_what_was_deleted(jet, name):
    stream = await jet.create_stream(StreamConfig(name=name, subjects=[f"{name}.>"]))
    results = await output(jet, name, duplicate_window=timedelta(seconds=1))
    consumer = await stream.create_consumer(WORKER)
    await jet.publish(f"{name}-out.before")
    await jet.publish(f"{name}.0", b"x")
    message = await consumer.next(timeout=60)

    async def forgotten():
        ack = await jet.publish(f"{name}-out.after", msg_id="after")
        return ack.seq > 2

    # The message is older than half of the window when its identity is known no more.
    await eventually(forgotten)
    for seq in (2, 3):
        await results.delete_message(seq)
    await message.nak()
    reports = []
    work = Processing(
        jet,
        name,
        "w",
        doubled,
        into=results.name,
        by="id",
        timeout=0.2,
        on_report=reports.append,
    )
    async with work:
        await eventually(settled, consumer, 1)
    assert (work.stored, work.repeated, reports) == (2, 0, [])
