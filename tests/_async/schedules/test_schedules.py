"""Schedules: at a time, every interval, by cron; and the times that the server computes."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from itertools import count
from zoneinfo import ZoneInfo

import pytest

import js_async as js
from js_async.schedules import Schedule, Schedules, StoredSchedule
from tests._async.flow import eventually
from tests._async.scripted import scripted
from tests.fake.answers import describe
from tests.odd_messages import OddMessage, publish_raw
from twinstream.errors import InvalidResponse
from twinstream.models import StreamConfig, Timestamp
from twinstream.testing import FakePeer, FakeServer

pytestmark = pytest.mark.since("2.12")

FAR = datetime(2040, 1, 1, tzinfo=UTC)
PATIENCE = 60.0
SECOND = timedelta(seconds=1)


async def scheduling(jet, name, **members):
    config = StreamConfig(
        name=name,
        subjects=[f"{name}.>"],
        allow_msg_schedules=True,
        allow_msg_ttl=True,
        allow_rollup_hdrs=True,
        **members,
    )
    return await jet.create_stream(config), Schedules(jet, name)


async def last(stream, subject):
    try:
        return await stream.get_last_message(subject)
    except js.MessageNotFound:
        return None


async def test_once_at_a_moment(opened, name):
    async with opened() as jet:
        stream, schedules = await scheduling(jet, name)
        soon = datetime.now(UTC) + timedelta(seconds=1)
        for number, (kind, when) in enumerate((("timer", soon), ("far", FAR)), 1):
            ack = await schedules.add(
                f"{name}.{kind}",
                Schedule.at(when),
                f"{name}.out",
                b"wake",
                headers={"Mine": "1"},
                ttl=300,
            )
            assert ack.stream == name
            assert number > 1 or ack.seq == 1
        found = await schedules.get(f"{name}.far")
        assert found.next_times(datetime.now(UTC)) == [FAR]
        assert (found.target, found.data, found.ttl) == (f"{name}.out", b"wake", "300")
        message = await eventually(last, stream, f"{name}.out", patience=PATIENCE)
        assert message.data == b"wake"
        assert dict(message.headers) == {
            "Mine": "1",
            "Nats-Scheduler": f"{name}.timer",
            "Nats-Schedule-Next": "purge",
            "Nats-TTL": "300",
        }
        assert message.time >= soon
        assert await last(stream, f"{name}.timer") is None


async def test_a_moment_that_is_over_is_now(opened, name):
    async with opened() as jet:
        stream, schedules = await scheduling(jet, name)
        past = Schedule.at(datetime(2020, 1, 1, tzinfo=UTC))
        await schedules.add(f"{name}.timer", past, f"{name}.out", b"late")
        message = await eventually(last, stream, f"{name}.out", patience=PATIENCE)
        assert message.data == b"late"


@pytest.mark.since("2.14")
async def test_every_second_from_a_source_until_cancelled(opened, name):
    async with opened() as jet:
        stream, schedules = await scheduling(jet, name)
        subject = f"{name}.timer"
        await jet.publish(f"{name}.sensor", b"17", headers={"Unit": "C"})
        every = Schedule.every(1)
        await schedules.add(
            subject, every, f"{name}.sample", source=f"{name}.sensor", rollup=True, lifetime=3600
        )
        first = await eventually(last, stream, f"{name}.sample", patience=PATIENCE)
        assert (first.data, first.headers["Unit"]) == (b"17", "C")
        foretold = Timestamp.parse(first.headers["Nats-Schedule-Next"])
        assert foretold in (await schedules.get(subject)).next_times(foretold - SECOND, 3)

        async def second():
            found = await last(stream, f"{name}.sample")
            return found.seq > first.seq

        await eventually(second, patience=PATIENCE)
        assert (await schedules.cancel(subject)).schedule == every
        with pytest.raises(js.MessageNotFound):
            await schedules.cancel(subject)
        count = (await stream.info()).state.last_seq
        await jet.publish(f"{name}.sensor", b"18")

        # Were it still there, it would fire within a second or so of another one.
        other = Schedule.at(datetime.now(UTC) + timedelta(seconds=2.5))
        await schedules.add(f"{name}.other", other, f"{name}.done")
        await eventually(last, stream, f"{name}.done", patience=PATIENCE)
        sample = await last(stream, f"{name}.sample")
        assert sample.data == b"17"
        assert sample.seq <= count


async def test_schedules_are_listed_among_other_messages(opened, name):
    async with opened() as jet:
        _, schedules = await scheduling(jet, name)
        for number in range(3):
            when = Schedule.at(FAR + timedelta(days=number))
            await schedules.add(f"{name}.timers.{number}", when, f"{name}.out", b"%d" % number)
        await jet.publish(f"{name}.timers.none", b"x")
        again = Schedule.at(FAR + timedelta(days=9))
        await schedules.add(f"{name}.timers.1", again, f"{name}.out", b"1")
        found = {each.subject: each async for each in schedules.list(f"{name}.timers.*")}
        assert sorted(found) == [f"{name}.timers.{number}" for number in range(3)]
        assert found[f"{name}.timers.1"].schedule == again
        assert len([each async for each in schedules.list()]) == 3
        with pytest.raises(InvalidResponse, match="no schedule"):
            await schedules.get(f"{name}.timers.none")
        with pytest.raises(js.MessageNotFound):
            await schedules.get(f"{name}.timers.9")
        assert repr(schedules) == f"<Schedules of {name}>"


async def test_a_result_is_stored_and_its_schedule_cancelled_or_neither(opened, name):
    async with opened() as jet:
        stream, schedules = await scheduling(jet, name)
        subject, result = f"{name}.timer", f"{name}.result"
        await schedules.add(subject, Schedule.at(FAR), f"{name}.timeout", b"too late")
        old = await schedules.get(subject)
        await schedules.add(subject, Schedule.at(FAR + SECOND), f"{name}.timeout", b"too late")
        with pytest.raises(js.WrongLastSequence):
            await schedules.finish(old, result, b"done")
        assert await last(stream, result) is None
        current = await schedules.get(subject)
        await schedules.finish(current, result, b"done", headers={"Mine": "1"})
        message = await last(stream, result)
        assert (message.data, message.headers["Mine"]) == (b"done", "1")
        assert await last(stream, subject) is None
        with pytest.raises(js.WrongLastSequence):
            await schedules.finish(current, result, b"again")
        with pytest.raises(js.BadArgument, match="another one"):
            await schedules.finish(current, subject)
        with pytest.raises(js.BadArgument, match="is set by the schedule itself"):
            await schedules.finish(current, result, headers={"Nats-Schedule-Next": "purge"})


SCHEDULE = StoredSchedule(
    subject="s.timer",
    schedule=Schedule.at(FAR),
    target="s.timeout",
    source=None,
    ttl=None,
    rollup=False,
    data=b"",
    headers=js.Headers(()),
    seq=9,
    time=Timestamp.from_ns(0),
)


@pytest.mark.parametrize("first", ["acknowledged", "lost", "silent"])
async def test_a_former_leader_does_not_decide_about_a_result(first):
    """Its refusal, or a lost response, is followed by the acknowledgement of the leader."""

    def script(peer: FakePeer) -> None:
        peer.handshake(cluster="c")
        describe(peer, allow_msg_schedules=True)
        request = peer.expect("HPUB s.result ")
        assert b"Nats-Expected-Last-Subject-Sequence: 9\r\n" in request.headers
        assert b"Nats-Expected-Last-Subject-Sequence-Subject: s.timer\r\n" in request.headers
        if first != "silent":
            error = {"code": 400, "err_code": 10071, "description": "wrong last sequence: 4"}
            peer.answer(request, {"error": error, "stream": "S", "seq": 0})
            peer.fence()
        if first != "acknowledged":
            request = peer.expect("HPUB s.result ")
        peer.answer(request, {"stream": "S", "seq": 10})
        peer.until_left()

    async with scripted(script) as connection:
        schedules = Schedules(connection.jetstream(), "S")
        assert (await schedules.finish(SCHEDULE, "s.result", b"x", timeout=6)).seq == 10


async def test_the_first_call_checks_the_stream(server, name):
    reported = []
    async with js.connect(server.url, on_call=reported.append) as connection:
        jet = connection.jetstream()
        schedules = Schedules(jet, name)
        assert (reported, schedules.stream_name) == ([], name)
        with pytest.raises(js.StreamNotFound):
            await schedules.get(f"{name}.s")
        await scheduling(jet, name)
        reported.clear()
        for _ in range(2):
            await schedules.add(f"{name}.s", Schedule.at(FAR), f"{name}.t")
        assert (await schedules.cancel(f"{name}.s")).target == f"{name}.t"
        kinds = [each.subject.rpartition(".STREAM.")[2] for each in reported]
        assert kinds == [
            f"INFO.{name}",
            *2 * [f"{name}.s"],
            f"MSG.GET.{name}",
            f"MSG.DELETE.{name}",
        ]


async def test_a_wildcard_is_no_schedule(opened, name):
    async with opened() as jet:
        _, schedules = await scheduling(jet, name)
        await schedules.add(f"{name}.s", Schedule.at(FAR), f"{name}.t")
        for work in (schedules.get, schedules.cancel):
            with pytest.raises(js.BadArgument, match="a wildcard"):
                await work(f"{name}.*")
        assert [each.subject async for each in schedules.list()] == [f"{name}.s"]


def forged(pattern, target):
    """Return a schedule as a stranger stores it, with any bytes."""
    block = f"NATS/1.0\r\nNats-Schedule: {pattern}\r\nNats-Schedule-Target: {target}\r\n\r\n"
    return OddMessage(block.encode("utf-8", "surrogateescape"), b"forged")


async def test_a_forged_wildcard_does_not_remove_other_messages(server, name):
    """The server purges the subject of a finished schedule, also if it is a filter."""
    async with js.connect(server.url) as connection:
        jet = connection.jetstream()
        stream, schedules = await scheduling(jet, name)
        publish_raw(server.port, f"{name}.s.>", forged("@at 2040-01-01T00:00:00Z", f"{name}.out"))
        await jet.publish(f"{name}.kept", b"x")
        (found,) = [each async for each in schedules.list()]
        with pytest.raises(js.BadArgument, match="wildcard; pass it to cancel"):
            await schedules.finish(found, f"{name}.result", b"done")
        assert await last(stream, f"{name}.result") is None
        assert (await schedules.cancel(found)).seq == found.seq
        assert [message.subject async for message in stream.read()] == [f"{name}.kept"]


@pytest.mark.since("2.14")
async def test_damaged_schedules_are_listed_and_cancelled(server, name):
    async with js.connect(server.url) as connection:
        stream, schedules = await scheduling(connection.jetstream(), name)
        long = "0" * 5000 + "1 * * * * *"
        for subject, pattern in (
            (f"{name}.a\udcff", "@at 2040-01-01T00:00:00Z"),
            (f"{name}.{'y' * 3500}", "@hourly"),
            (f"{name}.b\x1b", long),
        ):
            publish_raw(server.port, subject, forged(pattern, f"{name}.out\x1b[2J"))
        found = [each async for each in schedules.list()]
        assert len(found) == 3
        for each in found:
            assert len(each.next_times(datetime.now(UTC), 1)) == 1
            assert (await schedules.cancel(each)).seq == each.seq
        assert (await stream.info()).state.messages == 0


async def test_only_the_schedule_that_was_read_is_cancelled(opened, name):
    async with opened() as jet:
        stream, schedules = await scheduling(jet, name)
        await schedules.add(f"{name}.s", Schedule.at(FAR), f"{name}.t")
        found = await schedules.get(f"{name}.s")
        await schedules.add(f"{name}.s", Schedule.at(FAR + SECOND), f"{name}.t")
        with pytest.raises(js.MessageNotFound):
            await schedules.cancel(found)
        await stream.delete()
        stream, schedules = await scheduling(jet, name)
        await schedules.add(f"{name}.other", Schedule.at(FAR), f"{name}.t")
        with pytest.raises(js.BadArgument, match="read the schedule again"):
            await schedules.cancel(found)
        assert (await stream.info()).state.messages == 1


async def test_oversized_messages_are_reported(opened, name):
    async with opened() as jet:
        await jet.create_stream(StreamConfig(name=f"{name}p", subjects=[f"{name}p.>"]))
        with pytest.raises(js.BadArgument, match="allow_msg_schedules"):
            await Schedules(jet, f"{name}p").get(f"{name}p.s")
        stream, schedules = await scheduling(jet, name)
        once = Schedule.at(FAR)
        for target, headers, told in (
            (f"{name}.s", {}, "own subject"),
            (f"{name}.*", {}, "wildcard"),
            (f"{name}.t", {"Nats-Schedule": "@daily"}, "is set by the schedule itself"),
        ):
            with pytest.raises(js.BadArgument, match=told):
                await schedules.add(f"{name}.s", once, target, headers=headers)
        with pytest.raises(js.JetStreamError, match="subject of the same stream") as raised:
            await schedules.add(f"{name}.s", once, f"elsewhere.{name}")
        assert raised.value.err_code == 10190
        assert (await stream.info()).state.last_seq == 0


async def test_older_servers_know_less():
    info = {
        "config": {"name": "S", "allow_msg_schedules": True},
        "created": "2026-01-01T00:00:00Z",
        "state": {
            "messages": 0,
            "bytes": 0,
            "first_seq": 0,
            "last_seq": 0,
            "consumer_count": 0,
        },
    }

    def script(peer: FakePeer) -> None:
        peer.handshake(version="2.12.8")
        peer.answer(peer.expect(r"STREAM\.INFO\.S"), info)

    with FakeServer(script) as fake:
        async with js.connect(fake.url) as connection:
            schedules = Schedules(connection.jetstream(), "S")
            for schedule, source in ((Schedule.every(5), None), (Schedule.at(FAR), "s.u")):
                with pytest.raises(js.Unsupported, match=r"needs server 2\.14\.0"):
                    await schedules.add("s.a", schedule, "s.b", source=source)
        assert fake.operations("PUB s") == []


# ---- the server's own next time, for many patterns

ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe")
PATTERNS = 120


def random_pattern(draw, due):
    """Return a pattern that fires at a given time, and at other times."""
    values = (due.second, due.minute, due.hour, due.day, due.month, due.isoweekday() % 7)
    limits = ((0, 59), (0, 59), (0, 23), (1, 31), (1, 12), (0, 6))
    fields = []
    for value, (low, high) in zip(values, limits, strict=True):
        other = draw.randint(low, high)
        fields.append(
            draw.choice(
                (
                    "*",
                    str(value),
                    f"{value},{other}",
                    f"{min(value, other)}-{max(value, other)}",
                    f"{value}/{draw.randint(1, 9)}",
                    f"{low}-{high}/1",
                )
            )
        )
    return " ".join(fields)


@pytest.mark.since("2.14")
async def test_the_server_computes_the_same_times(server, name):
    """Each pattern fires once soon. The server then stores the time at which it fires next."""
    draw = random.Random(7)
    async with js.connect(server.url) as connection:
        stream, schedules = await scheduling(connection.jetstream(), name)
        attempts = count()

        async def added_in_time():
            """Return patterns; None if the machine was too slow to store them in time."""
            first = f"{name}.{next(attempts)}"
            due = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=6)
            crons = {}
            while len(crons) < PATTERNS:
                zone = draw.choice(ZONES)
                pattern = random_pattern(draw, due.astimezone(ZoneInfo(zone)))
                schedule = Schedule.cron(pattern, time_zone=zone)
                subject = f"{first}.s.{len(crons)}"
                crons[subject] = schedule
                await schedules.add(subject, schedule, subject.replace(".s.", ".t."))
            return (first, crons) if datetime.now(UTC) < due else None

        first, crons = await eventually(added_in_time, patience=PATIENCE)
        stored = {each.subject: each async for each in schedules.list(f"{first}.s.*")}

        async def all_have_fired():
            fired = [each async for each in stream.subjects(f"{first}.t.*")]
            return len(fired) == PATTERNS

        await eventually(all_have_fired, patience=PATIENCE)
        for subject, schedule in crons.items():
            fired = await stream.get_last_message(subject.replace(".s.", ".t."))
            foretold = schedule.next_times(stored[subject].time - SECOND, 30)
            following = Timestamp.parse(fired.headers["Nats-Schedule-Next"])
            left = [each for each in foretold if each > fired.time]
            assert following in left, (schedule, fired.time, following, left[:3])
            # The server passes over what is due while it is at work.
            assert following == left[0] or left[0] - fired.time < 3 * SECOND


@pytest.mark.since("2.14")
async def test_server_accepts_and_refuses_the_same_patterns(opened, name):
    draw = random.Random(11)
    pieces = ["*", "?", "0", "7", "59", "60", "31", "1-5", "5-1", "*/2", "*/0", "3/4", "mon", "JAN"]
    pieces += ["1,2", ",", "1,,2", "*-3", "1-2-3", "1/2/3", "+4", "-4", "0x1", "feb-apr", "1_0"]
    async with opened() as jet:
        _, schedules = await scheduling(jet, name)
        verdicts = {True: 0, False: 0}
        for number in range(300):
            # Mostly good fields, or none would ever be taken.
            fields = [draw.choice(pieces) if draw.random() < 0.4 else "*" for _ in range(6)]
            pattern = " ".join(fields)
            try:
                Schedule.cron(pattern)
                ours = True
            except js.BadArgument:
                ours = False
            unchecked = Schedule(pattern)
            theirs = await is_taken(schedules.add, f"{name}.s.{number}", unchecked, f"{name}.t")
            assert ours == theirs, pattern
            verdicts[theirs] += 1
            await (await jet.get_stream(name)).purge(subject=f"{name}.s.*")
        assert min(verdicts.values()) > 50


async def is_taken(add, *arguments):
    """Return whether the server accepts a pattern. Unexpected errors are raised."""
    try:
        await add(*arguments)
    except js.JetStreamError as error:
        if error.err_code != 10189:
            raise
        return False
    return True


async def test_what_a_schedule_publishes_may_outlive_the_age_of_its_stream(opened, name):
    async with opened() as jet:
        stream, schedules = await scheduling(jet, name)
        now = datetime.now(UTC)
        out = f"{name}.out"
        await schedules.add(
            f"{name}.timer", Schedule.at(now), out, b"wake", ttl="never", lifetime="never"
        )
        message = await eventually(last, stream, out, patience=PATIENCE)
        assert message.headers["Nats-TTL"] == "never"
