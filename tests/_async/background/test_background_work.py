"""The life cycle that all objects which work in the background have in common."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

import js_async as js
from js_async.coordination import Coordination
from js_async.exactly_once import Processing
from js_async.outbox import OutboxRelay, SqliteOutbox
from js_async.workers import DeadLetters, Worker
from tests._async.flow import eventually, together
from tests._async.members import elastic
from tests._async.streams import filled
from tests.dropping import let_go
from twinstream.models import AckPolicy, ConsumerConfig, StreamConfig

EXPLICIT = ConsumerConfig(durable_name="c", ack_policy=AckPolicy.EXPLICIT)


async def returns(_):
    pass


async def a_consumption(jet, name, handler):
    stream = await filled(jet, name, 1)
    consumer = await stream.create_consumer(EXPLICIT)
    return consumer.consume(handler), f"Consuming c of {name}"


async def a_processing(jet, name, handler):
    stream = await filled(jet, name, 1)
    await stream.create_consumer(EXPLICIT)
    await jet.create_stream(StreamConfig(name=f"{name}-r", subjects=[f"{name}-r"]))
    work = Processing(jet, name, "c", handler, into=f"{name}-r", by="id")
    return work, f"Processing c of {name}"


async def a_worker(jet, name, handler):
    await filled(jet, name, 1)
    return Worker(jet, name, EXPLICIT, handler), f"Worker c of {name}"


async def a_member(jet, name, handler):
    group = await elastic(jet, name, "m", partitions=1)
    await jet.publish(f"{name}.a")
    return group.worker("m", handler), f"GroupWorker m of elastic consumer group g of stream {name}"


async def a_campaign(jet, name, handler):
    made = Coordination(jet, name, create=True)
    return made.leader("boss", on_elected=handler), f"Leader boss of {name}"


async def a_relay(jet, name, path):
    await filled(jet, name, 0)
    outbox = SqliteOutbox(path / "outbox.db")
    return OutboxRelay(jet, outbox, name, by="id"), f"OutboxRelay to {name}"


async def dead_letters(jet, name, path):
    await filled(jet, name, 0)
    return DeadLetters(jet, name), f"DeadLetters of {name}"


WITH_HANDLER = [a_consumption, a_processing, a_worker, a_member, a_campaign]
WITHOUT = [a_relay, dead_letters]
# Others can be used without `start`.
WARNED = [a_consumption, a_processing, a_worker, a_member]


async def made_by(kind, jet, name, path):
    return await kind(jet, name, path if kind in WITHOUT else returns)


@pytest.mark.parametrize("kind", [*WITH_HANDLER, *WITHOUT])
async def test_work_that_never_ran_can_be_stopped_but_not_awaited(opened, name, tmp_path, kind):
    async with opened() as jet:
        work, title = await made_by(kind, jet, name, tmp_path)
        assert repr(work) == f"<{title}: not started>"
        expected = pytest.warns(RuntimeWarning, match="was never started")
        with expected if kind in WARNED else nullcontext():
            await work.stop()
        if kind in {a_consumption, a_processing}:
            await work.drain()
        assert (work.is_running, work.error) == (False, None)
        with pytest.raises(js.BadArgument, match=r"was never started: use it in a `with` block"):
            await work.wait()


@pytest.mark.parametrize("kind", WARNED)
async def test_work_that_a_program_never_starts_is_reported(opened, name, kind):
    async with opened() as jet:
        made = [(await kind(jet, name, returns))[0]]
        with pytest.warns(RuntimeWarning, match=r"was never started: use it in a `with` block"):
            let_go(made)


@pytest.mark.parametrize("kind", [a_campaign, dead_letters])
async def test_objects_with_other_uses_need_not_be_started(opened, name, tmp_path, kind):
    async with opened() as jet:
        let_go([(await made_by(kind, jet, name, tmp_path))[0]])


async def test_work_that_was_refused_is_not_reported(opened, name):
    async with opened() as jet:
        for wrong in (3, None):
            with pytest.raises(js.BadArgument):
                Worker(jet, name, EXPLICIT, wrong)
            with pytest.raises(js.BadArgument):
                jet.bind_consumer(name, "c").consume(wrong)


@pytest.mark.parametrize("kind", [*WITH_HANDLER, *WITHOUT])
async def test_work_runs_until_it_is_stopped(opened, name, tmp_path, kind):
    async with opened() as jet:
        work, title = await made_by(kind, jet, name, tmp_path)
        await work.start()
        assert work.is_running
        assert repr(work) == f"<{title}: running>"
        with pytest.raises(js.BadArgument, match=f"{title} was started already"):
            await work.start()
        with pytest.raises(js.RequestTimeout, match=f"{title}: it is still running"):
            await work.wait(timeout=0.01)
        assert work.is_running
        await work.stop()
        assert (work.is_running, work.error) == (False, None)
        assert repr(work) == f"<{title}: stopped>"
        await work.wait()
        await work.stop()
        with pytest.raises(js.BadArgument, match="was started already"):
            await work.start()


@pytest.mark.parametrize("kind", [*WITH_HANDLER, *WITHOUT])
async def test_a_block_runs_the_work(opened, name, tmp_path, kind):
    async with opened() as jet:
        work, title = await made_by(kind, jet, name, tmp_path)
        async with work as entered:
            assert entered is work
            assert work.is_running
        assert repr(work) == f"<{title}: stopped>"


@pytest.mark.parametrize("kind", [*WITH_HANDLER, *WITHOUT])
async def test_run_ends_when_another_caller_stops_the_work(opened, name, tmp_path, kind):
    async with opened() as jet:
        work, title = await made_by(kind, jet, name, tmp_path)

        async def runs():
            await work.run(signals=False)

        async def is_running():
            return work.is_running

        async def stops():
            await eventually(is_running)
            await work.stop()

        await together(runs, stops)
        assert repr(work) == f"<{title}: stopped>"


@pytest.mark.parametrize("kind", WITH_HANDLER)
async def test_a_handler_may_stop_its_own_work(opened, name, kind):
    """The call returns, and the work ends after the handler."""
    async with opened() as jet:
        seen = []

        async def handler(_):
            await work.stop()
            seen.append(work.is_running)

        work, title = await kind(jet, name, handler)
        await work.run(signals=False)
        assert seen == [True]
        assert repr(work) == f"<{title}: stopped>"


@pytest.mark.parametrize("kind", WITH_HANDLER)
async def test_the_error_of_a_handler_ends_the_work(opened, name, kind, unlogged):
    async with opened() as jet:

        async def handler(_):
            raise SystemExit(3)

        work, title = await kind(jet, name, handler)
        await work.start()

        async def has_ended():
            return not work.is_running

        await eventually(has_ended)
        assert isinstance(work.error, SystemExit)
        assert repr(work) == f"<{title}: ended by SystemExit>"
        for _ in range(2):
            with pytest.raises(SystemExit):
                await work.wait()
        # A call has raised the error.
        await work.stop()


@pytest.mark.parametrize("kind", WITH_HANDLER)
async def test_the_end_of_a_block_raises_an_error_that_no_call_raised(opened, name, kind, unlogged):
    async with opened() as jet:

        async def handler(_):
            raise SystemExit(3)

        work, _ = await kind(jet, name, handler)

        async def has_ended():
            return work.error is not None

        with pytest.raises(SystemExit):
            async with work:
                await eventually(has_ended)


async def test_work_that_could_not_start_may_be_started_later(opened, name):
    async with opened() as jet:
        await filled(jet, name, 1)
        work = Worker(jet, name, "c", returns)
        with pytest.raises(js.ConsumerNotFound):
            await work.start()
        await work.stop()
        assert repr(work) == f"<Worker c of {name}: not started>"
        await jet.create_consumer(name, EXPLICIT)
        async with work:
            assert work.is_running


async def test_dead_letters_of_two_workers_are_created_until_both_have_ended(opened, name):
    async with opened() as jet:
        await filled(jet, name, 0)
        letters = DeadLetters(jet, name)
        workers = [Worker(jet, name, EXPLICIT, returns, dead_letters=letters) for _ in range(3)]

        async def created(count):
            return letters.skipped == count

        advisory = f"$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.{name}.w"
        async with workers[0]:
            async with workers[1]:
                await jet.publish(advisory, b"{}")
                await eventually(created, 1)
            await jet.publish(advisory, b"{}")
            await eventually(created, 2)
        # They can begin again.
        async with workers[2]:
            await jet.publish(advisory, b"{}")
            await eventually(created, 3)
        assert not letters.is_running
