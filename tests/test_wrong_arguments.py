"""Arguments of a wrong type are refused at the call, and the error names the argument."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

import js_sync
from js_sync import JetStream
from js_sync.backup import backup_stream, restore_stream
from js_sync.coordination import Coordination
from js_sync.counters import Counters
from js_sync.exactly_once import Processing, SubjectWriter
from js_sync.fast_ingest import FastIngest
from js_sync.health import check_health
from js_sync.outbox import OutboxRelay, SqliteOutbox
from js_sync.workers import Worker
from tests.unhurried import UNHURRIED
from twinstream.testing import NatsServer

OUTBOX = SqliteOutbox("app.db")

WRONG: dict[str, tuple[str, Any]] = {
    "process an object": (
        "a consumer needs a name",
        lambda jet: Processing(jet, "S", jet.bind_consumer("S", "c"), print, into="S", by="id"),
    ),
    "results into an object": (
        "a stream needs a name",
        lambda jet: Processing(jet, "S", "c", print, into=jet.bind_stream("S"), by="id"),
    ),
    "an order of a processing": (
        "order",
        lambda jet: Processing(jet, "S", "c", print, into="S", by="id", order="key"),
    ),
    "a group of a processing": (
        "priority",
        lambda jet: Processing(jet, "S", "c", print, into="S", by="id", priority="x"),
    ),
    "write to an object": (
        "a stream needs a name",
        lambda jet: SubjectWriter(jet, jet.bind_stream("S")),
    ),
    "relay nothing": ("an outbox", lambda jet: OutboxRelay(jet, None, "S", by="id")),
    "relay a path": ("an outbox", lambda jet: OutboxRelay(jet, "app.db", "S", by="id")),
    "relay by luck": ("by must", lambda jet: OutboxRelay(jet, OUTBOX, "S", by="luck")),
    "letters by name": ("dead_letters", lambda jet: Worker(jet, "S", "c", print, dead_letters="x")),
    "publish a number": ("several requests", lambda jet: jet.publish_many(5)),
    "ingest nothing": ("several requests", lambda jet: FastIngest(jet, "S", None)),
    "a batch by number": ("a batch id", lambda jet: jet.atomic_batch(id=5)),
    "an order in a list": ("order", lambda jet: Worker(jet, "S", "c", print, order=[])),
    "an owner by number": ("owner", lambda jet: Coordination(jet, "OWN", create=True, owner=5)),
    "read numbers": ("subjects", lambda jet: jet.bind_stream("S").read(subjects=5)),
    "a snapshot of a number": ("subjects", lambda jet: jet.bind_stream("S").snapshot(5)),
    "a group by name": ("priority", lambda jet: jet.bind_consumer("S", "c").messages(priority="x")),
    "fetch by name": ("priority", lambda jet: jet.bind_consumer("S", "c").fetch(1, priority="x")),
    "a rank in text": ("rank", lambda _: js_sync.Priority(group="A", rank="1")),
    "keep in text": ("keep", lambda jet: jet.bind_stream("S").purge(keep="1")),
    "keep less than none": ("keep", lambda jet: jet.bind_stream("S").purge(keep=-1)),
    "purge before text": ("before_seq", lambda jet: jet.bind_stream("S").purge(before_seq="3")),
    "a time in text": ("timeout", lambda jet: jet.atomic_batch(timeout="x")),
    "thresholds in text": ("thresholds", lambda jet: check_health(jet, thresholds="x")),
    "kinds by number": ("kinds", lambda jet: jet.events(kinds=5)),
    "a kind by number": ("a kind of event", lambda jet: jet.events(kinds=[5])),
    "backup to a number": ("path", lambda jet: backup_stream(jet, "S", 5)),
    "restore a number": ("path", lambda jet: restore_stream(jet, 5)),
    "a connection as context": ("jet", lambda jet: Counters(js_sync, "S")),
    "a stream as its name": ("stream", lambda jet: Counters(jet, jet.bind_stream("S"))),
    "a short time for a check": (
        "timeout",
        lambda jet: check_health(jet, interval=1, timeout=1),
    ),
    "a pause for ever": ("duration", lambda jet: jet.bind_consumer("S", "c").pause(1e12)),
}


@pytest.mark.parametrize(("named", "call"), WRONG.values(), ids=WRONG)
def test_what_is_of_another_kind_is_refused_at_once(
    server: NatsServer, named: str, call: Any
) -> None:
    with (
        js_sync.connect(server.url, **UNHURRIED) as nc,
        pytest.raises(js_sync.BadArgument, match=rf"{named}.*, got "),
    ):
        call(nc.jetstream())


COUNTS: dict[str, Any] = {
    "processing concurrency": lambda jet, n: Processing(
        jet, "S", "c", print, into="S", by="id", concurrency=n
    ),
    "processing stop_after": lambda jet, n: Processing(
        jet, "S", "c", print, into="S", by="id", stop_after=n
    ),
    "consume concurrency": lambda jet, n: jet.bind_consumer("S", "c").consume(print, concurrency=n),
    "worker concurrency": lambda jet, n: Worker(jet, "S", "c", print, concurrency=n),
    "worker max_messages": lambda jet, n: Worker(jet, "S", "c", print, max_messages=n),
    "events max_buffered": lambda jet, n: jet.events(max_buffered=n),
    "batch max_messages": lambda jet, n: jet.atomic_batch(max_messages=n),
}


@pytest.mark.parametrize("call", COUNTS.values(), ids=COUNTS)
@pytest.mark.parametrize("count", ["2", 2.5, 0, True])
def test_counts_are_whole_numbers(server: NatsServer, call: Any, count: Any) -> None:
    with (
        js_sync.connect(server.url, **UNHURRIED) as nc,
        pytest.raises(js_sync.BadArgument, match="must be a whole number from 1 up, got"),
    ):
        call(nc.jetstream(), count)


@pytest.mark.parametrize("wrong", ["x", 2.5, -1])
def test_thresholds_are_whole_numbers_from_0(server: NatsServer, wrong: Any) -> None:
    with js_sync.connect(server.url, **UNHURRIED) as nc:
        consumer = nc.jetstream().bind_consumer("S", "c")
        with pytest.raises(js_sync.BadArgument, match="threshold_messages must be a whole number"):
            consumer.messages(threshold_messages=wrong)


def test_a_group_of_a_priority_is_text() -> None:
    five: Any = 5
    with pytest.raises(js_sync.BadArgument, match="priority group 5: must be 1 to 16"):
        js_sync.Priority(group=five)


def test_a_prefix_is_text(server: NatsServer) -> None:
    five: Any = 5
    with (
        js_sync.connect(server.url, **UNHURRIED) as nc,
        pytest.raises(js_sync.BadArgument, match="prefix must be text, got 5"),
    ):
        nc.jetstream(prefix=five)


def test_subscriptions_name_what_is_wrong(server: NatsServer) -> None:
    five: Any = 5
    text: Any = "5"
    with js_sync.connect(server.url, **UNHURRIED) as nc:
        for queue in (five, None):
            with pytest.raises(js_sync.BadArgument, match=r"must be text \(leave queue out"):
                nc.subscribe("a", queue=queue)
        with pytest.raises(js_sync.BadArgument, match="max_buffered must be a whole number"):
            nc.subscribe("a", max_buffered=text)


def test_outbox_needs_the_name_of_a_stream(server: NatsServer, tmp_path: Path) -> None:
    outbox = SqliteOutbox(tmp_path / "app.db")
    table: Any = 5
    with pytest.raises(js_sync.BadArgument, match="table must be"):
        SqliteOutbox(tmp_path / "app.db", table=table)
    with js_sync.connect(server.url, **UNHURRIED) as nc:
        jet: JetStream = nc.jetstream()
        stream: Any = jet.bind_stream("S")
        for wrong in (None, stream):
            with pytest.raises(js_sync.BadArgument, match="a stream needs a name"):
                OutboxRelay(jet, outbox, wrong, by="subject")


@pytest.mark.parametrize("until", ["2030-01-01T00:00:00Z", 5, datetime(2030, 1, 1)])
def test_the_end_of_a_pause_is_a_time_with_a_zone(server: NatsServer, until: Any) -> None:
    with (
        js_sync.connect(server.url, **UNHURRIED) as nc,
        pytest.raises(js_sync.BadArgument, match="until"),
    ):
        nc.jetstream().bind_consumer("S", "c").pause(until=until)
