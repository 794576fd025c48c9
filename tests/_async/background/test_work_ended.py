"""Background work that an error ended: reported to `on_report`, else logged as an error."""

from __future__ import annotations

import logging

import pytest

import js_async as js
from js_async.exactly_once import Processing
from js_async.groups import InvalidGroupConfig
from js_async.workers import DeadLetters, Worker
from tests._async.flow import eventually
from tests._async.members import elastic
from twinstream.models import ConsumerConfig, StreamConfig


async def raises(_):
    raise LookupError("not my day")


async def worker(jet, name, on_report):
    async def leaves(_):
        raise SystemExit(3)

    config = ConsumerConfig(durable_name="c")
    work = Worker(jet, name, config, leaves, on_report=on_report)
    await work.start()
    await jet.publish(f"{name}.a")
    return work, "worker", SystemExit


async def consuming(jet, name, on_report):
    consumer = await jet.create_consumer(name, ConsumerConfig(durable_name="c"))
    work = consumer.consume(raises, on_report=on_report)
    await work.start()
    await jet.publish(f"{name}.a")
    return work, "consumer", LookupError


async def processing(jet, name, on_report):
    await jet.create_consumer(name, ConsumerConfig(durable_name="c", max_deliver=-1))
    await jet.create_stream(StreamConfig(name=f"{name}-r", subjects=[f"{name}-r"]))
    work = Processing(jet, name, "c", raises, into=f"{name}-r", by="id", on_report=on_report)
    await work.start()
    await jet.delete_consumer(name, "c")
    return work, "consumer", js.ConsumerDeleted


async def member(jet, name, on_report):
    group = await elastic(jet, f"{name}-g", "m", partitions=1)
    work = group.worker("m", raises, on_report=on_report)
    await work.start()
    bucket = await jet.get_key_value("elastic-consumer-groups")
    await bucket.put(f"{name}-g.g", b"{")
    return work, "groups", InvalidGroupConfig


WORKS = [worker, consuming, processing, member]


@pytest.mark.parametrize("begun", WORKS)
async def test_the_end_is_reported_once(opened, name, begun):
    reports = []
    async with opened() as jet:
        await jet.create_stream(StreamConfig(name=name, subjects=[f"{name}.>"]))
        work, _, kind = await begun(jet, name, reports.append)

        async def ends():
            return [each for each in reports if isinstance(each, js.WorkEnded)]

        [report] = await eventually(ends)
        assert type(report.error) is kind
        assert name in report.what
        with pytest.raises(kind):
            await work.stop()
        assert await ends() == [report]


@pytest.mark.parametrize("begun", WORKS)
async def test_without_a_callback_the_end_is_an_error_in_the_log(opened, name, begun, caplog):
    async with opened() as jet:
        await jet.create_stream(StreamConfig(name=name, subjects=[f"{name}.>"]))
        work, area, kind = await begun(jet, name, None)

        async def logged():
            return [each for each in caplog.records if "was ended by an error" in each.getMessage()]

        [record] = await eventually(logged)
        assert (record.name, record.levelno) == (f"twinstream.{area}", logging.ERROR)
        with pytest.raises(kind):
            await work.stop()
        assert await logged() == [record]


async def test_the_end_of_a_cache_is_reported(opened, name):
    reports = []

    def cannot(_):
        raise LookupError("not my day")

    async def reported():
        return reports

    async with opened() as jet:
        bucket = await jet.create_key_value(js.KeyValueConfig(bucket=name))
        async with bucket.cached(on_change=cannot, on_report=reports.append) as cache:
            await bucket.put("a", b"")
            [report] = await eventually(reported)
            assert report.what == f"the cache of bucket {name}"
            with pytest.raises(LookupError):
                cache.get("a")
    assert isinstance(report, js.WorkEnded)


async def test_a_callback_that_ends_the_work_receives_its_end(opened, name):
    reports = []

    def on_report(report):
        reports.append(report)
        raise LookupError("not my day")

    async def reported():
        return len(reports) == 2

    async with opened() as jet:
        await jet.create_stream(StreamConfig(name=name, subjects=[f"{name}.>"]))
        letters = DeadLetters(jet, name, on_report=on_report)
        await letters.start()
        advisory = f"$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.{name}.w"
        await jet.publish(advisory, b"{}")
        await eventually(reported)
        warning, report = reports
        assert isinstance(warning, js.PullWarning)
        assert isinstance(report, js.WorkEnded)
        assert report.what == f"DeadLetters of {name}"
        with pytest.raises(LookupError):
            await letters.stop()
