"""The outbox: events of committed transactions are stored once and in order, in both modes."""

from __future__ import annotations

import os
import sqlite3
import sys
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from subprocess import PIPE, Popen

import pytest

import js_async as js
from js_async.outbox import OutboxRelay, SqliteOutbox, UnsuitableSettings
from js_async.runtime.concurrency import Signal, spawn
from tests._async.flow import eventually, together
from tests.descriptors import open_files
from tests.dropping import let_go
from tests.hooked import hooked, starts
from tests.inside import api_of
from tests.odd_messages import OddMessage, publish_raw
from twinstream.core.deadline import Deadline
from twinstream.models import StreamConfig, evolve

BY = pytest.mark.parametrize("by", ["subject", "id"])


async def made(jet, name, **settings):
    return await jet.create_stream(StreamConfig(name=name, subjects=[f"{name}.>"], **settings))


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "app.db")


def added(path, subjects, **options):
    """Return an outbox with an event for each subject."""
    outbox = SqliteOutbox(path)
    with closing(sqlite3.connect(path)) as db, db:
        outbox.create(db)
        for subject in subjects:
            outbox.add(db, subject, subject.encode(), **options)
    return outbox


async def stored(stream):
    """Return the messages of a stream, in order."""
    last = (await stream.info()).state.last_seq
    return [await stream.get_message(seq) for seq in range(1, last + 1)]


async def in_vain(relay, reason):
    """Return whether a short flush ends for this reason. On a busy machine, it may end before."""
    with pytest.raises(js.RequestTimeout) as caught:
        await relay.flush(timeout=0.2)
    return reason in str(caught.value)


async def test_files_that_a_relay_creates_are_private(opened, name, path):
    async with opened() as jet:
        await made(jet, name)
        relay = OutboxRelay(jet, SqliteOutbox(path), name, by="id")
        assert await relay.flush(timeout=60) == 0
    modes = {each: os.stat(each).st_mode & 0o777 for each in (path, f"{path}.outbox.relay")}
    assert modes == dict.fromkeys(modes, 0o600)


@BY
async def test_events_are_stored_once_and_leave(opened, name, path, by):
    async with opened() as jet:
        stream = await made(jet, name)
        outbox = added(path, [f"{name}.{{id}}"] * 5, headers={"A": "b"})
        assert outbox.waiting() == 5
        relay = OutboxRelay(jet, outbox, name, by=by)
        assert await relay.flush(timeout=60) == 5
        assert await relay.flush(timeout=60) == 0
        assert outbox.waiting() == 0
        messages = await stored(stream)
        assert len(messages) == 5
        for message in messages:
            id = message.headers["Nats-Msg-Id"]
            assert message.subject == f"{name}.{id}"
            assert message.headers.get_all("A") == ["b"]


async def test_only_what_was_committed_is_sent(opened, name, path):
    async with opened() as jet:
        stream = await made(jet, name)
        outbox = added(path, [])
        with closing(sqlite3.connect(path)) as db:
            db.execute("CREATE TABLE orders (id)")
            db.execute("INSERT INTO orders VALUES (1)")
            outbox.add(db, f"{name}.1", b"rolled back")
            db.rollback()
            db.execute("INSERT INTO orders VALUES (2)")
            event = outbox.add(db, f"{name}.2", b"committed", id="order-2")
            db.commit()
        assert (event.id, event.subject) == ("order-2", f"{name}.2")
        assert await OutboxRelay(jet, outbox, name, by="id").flush(timeout=60) == 1
        assert [message.data for message in await stored(stream)] == [b"committed"]


@BY
async def test_the_order_of_a_key_is_kept(opened, name, path, by):
    async with opened() as jet:
        stream = await made(jet, name)
        outbox = added(path, [])
        with closing(sqlite3.connect(path)) as db, db:
            for number in range(60):
                outbox.add(db, f"{name}.{number}", b"%d" % number, key=f"key {number % 3}")
        await OutboxRelay(jet, outbox, name, by=by).flush(timeout=60)
        numbers = [int(message.data) for message in await stored(stream)]
        assert sorted(numbers) == list(range(60))
        for key in range(3):
            own = [number for number in numbers if number % 3 == key]
            assert own == sorted(own)


KEYS = pytest.mark.parametrize("key", [None, "one"])


@KEYS
async def test_a_flush_ends_with_its_time_though_there_is_more(opened, name, path, tuned, key):
    tuned("outbox page", 5)
    async with opened() as jet:
        await made(jet, name)
        outbox = added(path, [f"{name}.{{id}}"] * 20, key=key)
        relay = OutboxRelay(jet, outbox, name, by="subject")
        with pytest.raises(js.RequestTimeout, match="still pending; the deadline passed"):
            await relay.flush(timeout=0.0001)
        # What is stored is taken out.
        left = outbox.waiting()
        assert 0 < left == 20 - relay.stored < 20
        assert await relay.flush(timeout=60) == left
        assert outbox.waiting() == 0


class Stopping:
    """A transport on which another task stops a relay before its first event is sent."""

    def __init__(self, transport):
        self._transport = transport
        self.relay = None

    def __getattr__(self, name):
        return getattr(self._transport, name)

    # So that events take the ways below.
    def write(self, *_):
        return False

    async def send(self, *args):
        await self._stopped()
        await self._transport.send(*args)

    async def ask(self, subject, *args, **options):
        if not subject.startswith("$JS.API"):
            await self._stopped()
        return await self._transport.ask(subject, *args, **options)

    async def _stopped(self):
        relay, self.relay = self.relay, None
        if relay is not None:
            stopping = Signal()
            with hooked("relay: stopping", lambda _: stopping.set()):
                spawn(relay.stop, "stopping")
                assert await stopping.sleep(Deadline.after(30))


@KEYS
async def test_a_relay_ends_in_the_middle_of_what_waits(opened, name, path, tuned, key):
    tuned("outbox page", 5)
    async with opened() as jet:
        await made(jet, name)
        outbox = added(path, [f"{name}.{{id}}"] * 20, key=key)
        transport = Stopping(api_of(jet).transport)
        relay = OutboxRelay(js.JetStream(transport, timeout=20), outbox, name, by="subject")
        transport.relay = relay
        await relay.start()
        await relay.wait(timeout=60)
        assert outbox.waiting() == 20 - relay.stored
        assert relay.stored == (5 if key is None else 1)


@KEYS
async def test_stopped_flush_reports_it(opened, name, path, tuned, key):
    tuned("outbox page", 5)
    async with opened() as jet:
        await made(jet, name)
        outbox = added(path, [f"{name}.{{id}}"] * 20, key=key)
        transport = Stopping(api_of(jet).transport)
        relay = OutboxRelay(js.JetStream(transport, timeout=20), outbox, name, by="id")
        transport.relay = relay
        with pytest.raises(js.TwinstreamError, match="still pending; the relay was stopped before"):
            await relay.flush(timeout=60)
        # What is stored is taken out, and the outbox is free for another relay.
        assert outbox.waiting() == 20 - relay.stored
        assert relay.stored == (5 if key is None else 1)
        other = OutboxRelay(jet, SqliteOutbox(path), name, by="id")
        assert await other.flush(timeout=60) == 20 - relay.stored
        assert outbox.waiting() == 0


async def test_flushes_at_the_same_time_wait_for_each_other(opened, name, path):
    async with opened() as jet:
        stream = await made(jet, name)
        relay = OutboxRelay(jet, added(path, [f"{name}.{n}" for n in range(20)]), name, by="id")
        counts = await together(*[relay.flush] * 4)
        assert (sorted(counts), relay.stored) == ([0, 0, 0, 20], 20)
        assert len(await stored(stream)) == 20


async def test_a_stop_before_a_flush_has_no_effect(opened, name, path):
    async with opened() as jet:
        await made(jet, name)
        outbox = added(path, [f"{name}.1"])
        relay = OutboxRelay(jet, outbox, name, by="subject")
        await relay.stop()
        assert await relay.flush(timeout=60) == 1
        assert outbox.waiting() == 0


async def test_relay_works_in_the_background(opened, name, path):
    async with opened() as jet:
        stream = await made(jet, name)
        outbox = added(path, [])
        async with OutboxRelay(jet, outbox, name, by="id", poll=0.02) as relay:
            for number in range(3):
                added(path, [f"{name}.{number}"])
                relay.wake()

                async def there(number=number):
                    return (await stream.info()).state.messages > number

                await eventually(there)
            with pytest.raises(js.BadArgument, match="was started"):
                await relay.flush()
            with pytest.raises(js.BadArgument, match="already"):
                await relay.start()
        assert outbox.waiting() == 0


@BY
async def test_subject_that_the_stream_got_in_between_is_no_error(opened, name, path, by):
    async with opened() as jet:
        stream = await made(jet, name)
        outbox = added(path, [f"{name}.1"])
        relay = OutboxRelay(jet, outbox, name, by=by)
        assert await relay.flush(timeout=60) == 1
        await stream.change(lambda found: evolve(found, subjects=[f"{name}.>", f"{name}-new.>"]))
        added(path, [f"{name}-new.1", f"{name}-no.1"])
        with pytest.raises(js.PublishFailures, match=f"{name}-no.1: stream") as caught:
            await relay.flush(timeout=60)
        assert (relay.stored, caught.value.count) == (2, 1)
        assert await relay.flush(timeout=60) == 0
        assert [event.subject for event, _ in outbox.refused()] == [f"{name}-no.1"]


async def test_one_relay_at_a_time(opened, name, path):
    async with opened() as jet:
        await made(jet, name)
        outbox = added(path, [f"{name}.1"])
        other = SqliteOutbox(path)
        assert other.claim()
        reports = []
        relay = OutboxRelay(jet, outbox, name, by="id", poll=0.01, on_report=reports.append)
        await eventually(in_vain, relay, "another relay works")
        assert "another relay" in str(reports[0])
        other.release()
        assert await relay.flush(timeout=60) == 1
        with pytest.raises(js.BadArgument, match="not claimed"):
            outbox.pending(1)


@BY
async def test_what_cannot_be_stored_is_put_by(opened, name, path, by):
    async with opened() as jet:
        await made(jet, name, max_msg_size=400)
        outbox = added(path, [f"{name}.1"], key="a")
        with closing(sqlite3.connect(path)) as db, db:
            outbox.add(db, f"{name}.2", b"x" * 600, key="a")
            outbox.add(db, f"{name}.3", b"behind it", key="a")
            outbox.add(db, f"{name}-no.4", b"no such subject", key="b")
            outbox.add(db, f"{name}.5", b"free")
        reports = []
        relay = OutboxRelay(jet, outbox, name, by=by, on_report=reports.append)
        assert await relay.flush(timeout=60) == 2
        assert relay.refused == 2
        assert [report.refused for report in reports] == [True, True]
        (large, why), (strange, where) = outbox.refused()
        assert "exceeds" in why
        assert f"stream {name} has no such subject" in where
        assert "refused" in str(reports[0])
        outbox.drop(large.number)
        outbox.retry(strange.number)
        assert await relay.flush(timeout=60) == 1
        assert [event.number for event, _ in outbox.refused()] == [strange.number]


DAMAGED = {
    "headers": ["{", "[" * 100_000, "7", '[["a"]]', '[["a", 7]]', '[["a b", "c"]]', b"[]"],
    "subject": ["", "a b", "a.*", b"bytes", b"a\xff"],
    "id": ["", "a\nb", b"bytes"],
    "data": ["text", 7],
    "key": [b"bytes"],
}


@BY
async def test_damaged_rows_are_refused_and_the_rest_is_stored(opened, name, path, by):
    async with opened() as jet:
        stream = await made(jet, name)
        cases = [(column, value) for column, values in DAMAGED.items() for value in values]
        outbox = added(path, [f"{name}.{number}" for number in range(len(cases) + 1)])
        added(path, [f"{name}.text"])
        with closing(sqlite3.connect(path)) as db, db:
            for number, (column, value) in enumerate(cases, 1):
                db.execute(f"UPDATE outbox SET {column} = ? WHERE number = ?", (value, number))
            # Text that is not UTF-8.
            where = "WHERE number = ?"
            db.execute(f"UPDATE outbox SET subject = CAST(x'ff' AS TEXT) {where}", (len(cases),))
        reports = []
        relay = OutboxRelay(jet, outbox, name, by=by, on_report=reports.append)
        assert await relay.flush(timeout=60) == 2
        assert relay.refused == len(reports) == len(cases)
        assert all(report.refused for report in reports)
        refused = outbox.refused()
        assert [event.number for event, _ in refused] == list(range(1, len(cases) + 1))
        for event, why in refused:
            assert why.startswith("damaged in the outbox: ")
            outbox.drop(event.number)
        assert outbox.waiting() == 0
        assert len(await stored(stream)) == 2


async def test_an_id_of_a_stranger_does_not_end_the_relay(opened, server, name, path):
    async with opened() as jet:
        await made(jet, name)
        forged = OddMessage(b"NATS/1.0\r\nNats-Msg-Id: \xff\r\n\r\n")
        publish_raw(server.port, f"{name}.1", forged)
        outbox = added(path, [f"{name}.1", f"{name}.2"])
        relay = OutboxRelay(jet, outbox, name, by="subject", on_report=lambda _: None)
        assert await relay.flush(timeout=60) == 1
        ((_, why),) = outbox.refused()
        assert "with the id" in why


@pytest.mark.parametrize("floor", [-5, 2**62, "text"])
async def test_a_damaged_floor_lets_the_whole_stream_be_searched(opened, name, path, floor):
    async with opened() as jet:
        stream = await made(jet, name, duplicate_window=timedelta(seconds=1))
        outbox = added(path, [f"{name}.1"])
        outbox.claim()
        (event,) = outbox.pending(1)
        await jet.publish(event.subject, event.data, msg_id=event.id)
        outbox.set_floor(f"{name}@{(await stream.info()).created}", floor)
        outbox.release()

        async def forgotten():
            return not (await jet.publish(f"{name}.x", msg_id="marker")).duplicate

        await jet.publish(f"{name}.x", msg_id="marker")
        await eventually(forgotten)
        assert await OutboxRelay(jet, outbox, name, by="id", timeout=0.2).flush(timeout=60) == 1
        assert [message.subject for message in await stored(stream)].count(f"{name}.1") == 1


@BY
async def test_denied_subjects_do_not_keep_off_what_is_behind_them(
    server_factory, name, path, by, tuned
):
    tuned("outbox page", 3)
    server = server_factory(
        f"""authorization {{ users: [{{ user: u, password: p,
            permissions: {{ publish: {{ deny: ["{name}.no.>"] }} }} }}] }}"""
    )
    url = server.url.replace("nats://", "nats://u:p@")
    async with js.connect(url) as connection:
        jet = connection.jetstream(timeout=10)
        stream = await made(jet, name)
        outbox = added(path, [f"{name}.no.{number}" for number in range(7)])
        added(path, [f"{name}.no.7"], key="a")
        added(path, [f"{name}.behind.1"], key="a")
        added(path, [f"{name}.yes.1", f"{name}.yes.2"], key="b")
        # With no time for a second round.
        relay = OutboxRelay(jet, outbox, name, by=by, poll=60)
        with pytest.raises(js.RequestTimeout, match="Permissions Violation"):
            await relay.flush(timeout=50)
        assert [message.subject for message in await stored(stream)] == [
            f"{name}.yes.1",
            f"{name}.yes.2",
        ]
        assert (outbox.waiting(), relay.refused) == (9, 0)


async def test_taken_subject_is_reported(opened, name, path):
    async with opened() as jet:
        await made(jet, name)
        await jet.publish(f"{name}.1", b"of somebody else")
        outbox = added(path, [f"{name}.1"], id="mine")
        relay = OutboxRelay(jet, outbox, name, by="subject")
        with pytest.raises(js.PublishFailures, match="a unique subject"):
            await relay.flush(timeout=60)
        ((_, why),) = outbox.refused()
        assert why == (
            f"{name}.1: sequence 1 of {name} has it, with the id none; this message's id is"
            " mine. Give each message a unique subject"
        )


@pytest.mark.parametrize(
    ("by", "settings", "words"),
    [
        ("subject", {"max_age": timedelta(hours=1)}, "max_age"),
        ("subject", {"retention": "workqueue"}, "retention"),
        ("id", {"duplicate_window": timedelta(seconds=19)}, "duplicate_window to 20 s or more"),
        ("id", {"max_msgs_per_subject": 1}, "subject of its own"),
        ("id", {"storage": "memory"}, "storage"),
    ],
)
async def test_the_settings_are_checked_first(opened, name, path, by, settings, words):
    async with opened() as jet:
        stream = await made(jet, name, **settings)
        outbox = added(path, [f"{name}.1"])
        relay = OutboxRelay(jet, outbox, name, by=by)
        with pytest.raises(UnsuitableSettings, match=words):
            await relay.flush(timeout=60)
        with pytest.raises(UnsuitableSettings, match=words):
            await relay.start()
        assert (await stream.info()).state.messages == 0
        assert outbox.waiting() == 1
        with pytest.raises(js.BadArgument, match="by must be"):
            OutboxRelay(jet, outbox, name, by="luck")


async def test_a_missing_stream_is_waited_for(opened, name, path):
    async with opened() as jet:
        outbox = added(path, [f"{name}.1"])
        reports = []

        async def make(report):
            reports.append(report)

        relay = OutboxRelay(jet, outbox, name, by="id", poll=0.01, on_report=reports.append)

        async def tries_again():
            reports.clear()
            return await in_vain(relay, "stream not found") and len(reports) > 1

        await eventually(tries_again)
        await made(jet, name)
        assert await relay.flush(timeout=60) == 1


async def test_what_was_stored_before_is_found_beyond_the_window(opened, name, path):
    async with opened() as jet:
        stream = await made(jet, name, duplicate_window=timedelta(seconds=3))
        outbox = added(path, [f"{name}.{number}" for number in range(4)])
        relay = OutboxRelay(jet, outbox, name, by="id", timeout=0.7)

        # A relay that stored two events and ended before it took them out.
        outbox.claim()
        for event in outbox.pending(2):
            await jet.publish(event.subject, event.data, msg_id=event.id)
        info = await stream.info()
        outbox.set_floor(f"{name}@{info.created}", 0)
        outbox.release()

        async def forgotten():
            ack = await jet.publish(f"{name}.x", msg_id="marker")
            return not ack.duplicate

        assert not (await jet.publish(f"{name}.x", msg_id="marker")).duplicate
        await eventually(forgotten)
        assert await relay.flush(timeout=60) == 4
        messages = await stored(stream)
        events = [message for message in messages if not message.subject.endswith(".x")]
        assert [message.data for message in events] == [
            f"{name}.{number}".encode() for number in range(4)
        ]


async def test_what_was_stored_and_refused_later_is_not_stored_again(opened, name, path):
    async with opened() as jet:
        stream = await made(jet, name, duplicate_window=timedelta(seconds=1))
        outbox = added(path, [f"{name}.1"])

        # The answer was lost, and the stream had lost the subject when the event was sent again.
        outbox.claim()
        (event,) = outbox.pending(1)
        await jet.publish(event.subject, event.data, msg_id=event.id)
        outbox.set_floor(f"{name}@{(await stream.info()).created}", 0)
        outbox.refuse(event.number, "no such subject")
        outbox.release()
        relay = OutboxRelay(jet, outbox, name, by="id", timeout=0.2)
        assert await relay.flush(timeout=60) == 1

        async def forgotten():
            return not (await jet.publish(f"{name}.x", msg_id=event.id)).duplicate

        await eventually(forgotten)
        outbox.retry(event.number)
        assert await relay.flush(timeout=60) == 0
        assert [message.subject for message in await stored(stream)] == [f"{name}.1", f"{name}.x"]


async def test_possible_gap_in_the_events_is_reported(opened, name, path):
    async with opened() as jet:
        stream = await made(jet, name)
        outbox = added(path, [f"{name}.1"])
        for _ in range(3):
            await jet.publish(f"{name}.x")
        outbox.claim()
        outbox.set_floor(f"{name}@{(await stream.info()).created}", 1)
        outbox.release()
        await stream.purge(keep=1)
        with pytest.raises(js.OutcomeUnknown, match="from 3 on, but those from 2"):
            await OutboxRelay(jet, outbox, name, by="id").flush(timeout=60)


async def test_a_locked_database_is_waited_for(opened, name, path, tuned):
    tuned("outbox busy", 0.01)
    async with opened() as jet:
        await made(jet, name)
        outbox = added(path, [f"{name}.1"])
        reports = []
        with closing(sqlite3.connect(path, isolation_level=None)) as db:
            db.execute("BEGIN EXCLUSIVE")
            relay = OutboxRelay(jet, outbox, name, by="id", poll=0.01, on_report=reports.append)
            await eventually(in_vain, relay, "cannot be used now: database is locked")
            db.execute("COMMIT")
            await relay.start()

            async def stored_one():
                return relay.stored == 1

            await eventually(stored_one)
            reports.clear()
            db.execute("BEGIN EXCLUSIVE")

            async def told():
                return any("database is locked" in str(report) for report in reports)

            await eventually(told)
            outbox.add(db, f"{name}.2")
            db.execute("COMMIT")

            async def stored_two():
                return relay.stored == 2

            await eventually(stored_two)
            await relay.stop()
        assert not any(report.ended for report in reports)


def test_a_locked_database_is_not_kept_open(path, tuned):
    outbox = added(path, [])
    tuned("outbox busy", 0.01)
    # By another process: SQLite itself keeps files open that its own process has locked.
    lock = (
        "import sqlite3, sys; db = sqlite3.connect(sys.argv[1], isolation_level=None);"
        "db.execute('BEGIN EXCLUSIVE'); print(flush=True); sys.stdin.read()"
    )
    with Popen([sys.executable, "-c", lock, path], stdin=PIPE, stdout=PIPE) as other:
        assert other.stdout.readline() == b"\n"
        with pytest.raises(sqlite3.OperationalError, match="locked") as caught:
            outbox.waiting()
        # The error, which keeps what its traceback refers to, is still there.
        assert open_files(Path(path)) == [], caught
        other.stdin.close()


@pytest.mark.parametrize("waited", [True, False])
async def test_error_that_ends_a_relay_is_reported(opened, name, path, waited, unlogged):
    async with opened() as jet:
        await made(jet, name)
        outbox = added(path, [f"{name}.1"])
        reports = []
        relay = OutboxRelay(jet, outbox, name, by="subject", poll=0.01, on_report=reports.append)
        relays = [relay]
        with starts() as tasks:
            await relay.start()

        async def stored_one():
            return relays[0].stored == 1

        del relay
        await eventually(stored_one)
        with closing(sqlite3.connect(path)) as db, db:
            db.execute("DROP TABLE outbox")
        if waited:
            with pytest.raises(sqlite3.OperationalError, match="no such table"):
                await relays[0].wait(timeout=30)
        else:
            assert await tasks["twinstream-outboxrelay"].join(Deadline.after(30))
            with pytest.warns(RuntimeWarning, match=f"to {name} ended with .*no such table"):
                let_go(relays)
        (report,) = reports
        assert report.ended
        assert "the relay has ended: OperationalError('no such table" in str(report)


async def test_an_outbox_needs_a_file(path):
    for bad in ("", ":memory:"):
        with pytest.raises(js.BadArgument, match="path of a file"):
            SqliteOutbox(bad)
    for wrong in (Path(":memory:"), None, 5):
        with pytest.raises(js.BadArgument, match="path"):
            SqliteOutbox(wrong)
    with pytest.raises(js.BadArgument, match="table must be"):
        SqliteOutbox(path, table="a b")
    outbox = added(Path(path), [])
    with closing(sqlite3.connect(path)) as db:
        for subject, options in (
            ("a b", {}),
            ("a", {"headers": {"a:b": "c"}}),
            ("a", {"headers": [("a", "b")]}),
            ("a", {"headers": {"a": 1}}),
            ("a", {"id": ""}),
        ):
            with pytest.raises(js.BadArgument):
                outbox.add(db, subject, **options)
        for data in (5, [1], "text"):
            with pytest.raises(js.BadArgument, match="must be bytes"):
                outbox.add(db, "a", data)
    assert outbox.waiting() == 0
    assert repr(outbox) == f"<SqliteOutbox {path} outbox>"


@pytest.mark.parametrize("id", [" a", "a ", " ", ""])
async def test_an_id_that_the_server_would_change_is_refused_when_it_is_added(path, id):
    outbox = added(path, [])
    with closing(sqlite3.connect(path)) as db, db:
        with pytest.raises(js.BadArgument, match=r"id must not be(gin| empty)"):
            outbox.add(db, "s", id=id)
        assert outbox.waiting() == 0


async def test_refused_events_come_out_of_the_block_of_a_relay(opened, name, path):
    async with opened() as jet:
        await made(jet, name)
        outbox = added(path, [f"{name}-no.1"])

        async def refused():
            return outbox.refused()

        async def relayed(error=None):
            async with OutboxRelay(jet, outbox, name, by="id", poll=0.02):
                await eventually(refused)
                if error is not None:
                    raise error

        with pytest.raises(js.PublishFailures, match="has no such subject"):
            await relayed()
        outbox.retry(outbox.refused()[0][0].number)
        with pytest.raises(LookupError) as caught:
            await relayed(LookupError())
        assert ["has no such subject" in note for note in caught.value.__notes__] == [True]
