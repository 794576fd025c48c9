"""Editors complete the public names of each object and no others, by jedi, as in Jupyter."""

from __future__ import annotations

from pathlib import Path

import jedi
import pytest

SOURCE = Path(__file__).resolve().parents[1] / "src"

MESSAGE = (
    "ack data double_ack headers in_progress is_acknowledged is_late json metadata nak"
    " num_delivered payload payload_error reply seq subject term text time time_left"
)

# How to come by an object, and all that editors offer of it.
OBJECTS: dict[str, tuple[str, str]] = {
    "connection": (
        "",
        "close drain events flush is_closed is_connected jetstream observe publish request"
        " server_info stats subscribe",
    ),
    "message": (
        "consumer = await nc.jetstream().get_consumer('S', 'c')\n"
        "async with consumer.messages() as messages:\n"
        "    async for message in messages:",
        MESSAGE,
    ),
    "messages": (
        "consumer = await nc.jetstream().get_consumer('S', 'c')\n"
        "async with consumer.messages() as messages:",
        "buffered close drain is_ended late next",
    ),
    "consuming": (
        "consumer = await nc.jetstream().get_consumer('S', 'c')\n"
        "async with consumer.consume(print) as consuming:",
        "drain error handled is_running messages run start stop wait",
    ),
    "worker": (
        "from js_async.workers import Worker\n"
        "async with Worker(nc.jetstream(), 'S', 'c', print) as worker:",
        "error handled in_hand is_running rejected retried run start stop wait waiting",
    ),
    "processing": (
        "from js_async.exactly_once import Processing\n"
        "jet = nc.jetstream()\n"
        "async with Processing(jet, 'S', 'c', print, into='R', by='id') as processing:",
        "done drain error is_running repeated run start stop stored wait",
    ),
    "writer": (
        "from js_async.exactly_once import SubjectWriter\nwriter = SubjectWriter(nc.jetstream())",
        "insert update upsert",
    ),
    "ordered_message": (
        "stream = await nc.jetstream().get_stream('S')\n"
        "async with stream.ordered() as messages:\n"
        "    async for ordered_message in messages:",
        MESSAGE,
    ),
    "subscription": (
        "async with nc.subscribe('s') as subscription:",
        "buffered close drain dropped is_closed is_ended next subject",
    ),
    "pushed": (
        "stream = await nc.jetstream().get_stream('S')\n"
        "async with stream.push_messages('c') as pushed:",
        "buffered close consumer_name drain is_ended next",
    ),
    "ordered": (
        "stream = await nc.jetstream().get_stream('S')\nasync with stream.ordered() as ordered:",
        "buffered close consumer_name drain fetch info is_current is_ended next position resets"
        " scanned",
    ),
    "events": (
        "async with nc.jetstream().events() as events:",
        "buffered close dropped is_ended next subjects",
    ),
    "happened": ("happened = nc.events()\nif happened:", "next"),
    "lease": (
        "from js_async.coordination import Coordination\n"
        "coordination = Coordination(nc.jetstream(), 'L')\n"
        "async with coordination.lock('a').acquire() as lease:",
        "check is_held lost name number release remaining seq token wait_lost",
    ),
    "outcomes": ("async with nc.jetstream().publish_many([]) as outcomes:", "close in_flight"),
    "store": (
        "store = await nc.jetstream().get_object_store('S')\nif store:",
        "add_bucket_link add_link bucket cached_status change delete get get_bytes get_file info"
        " list put put_file seal status stream_name sweep update_meta watch",
    ),
    "reader": (
        "store = await nc.jetstream().get_object_store('S')\nasync with store.get('a') as reader:",
        "close info read read_all",
    ),
    "watch": (
        "store = await nc.jetstream().get_object_store('S')\nasync with store.watch() as watch:",
        "buffered close generation initial is_current is_ended next revision",
    ),
    "publisher": (
        "async with nc.jetstream().publisher() as publisher:",
        "close flush in_flight send",
    ),
    "relay": (
        "from js_async.outbox import OutboxRelay\n"
        "async with OutboxRelay(nc.jetstream(), None, 'S', by='id') as relay:",
        "error flush is_running refused run start stop stored wait wake",
    ),
    "bucket": (
        "bucket = await nc.jetstream().get_key_value('B')\nif bucket:",
        "at bucket cached cached_status change create delete delete_many diff entry get get_many"
        " history keys purge purge_deletes put put_many revert status stream_name typed update"
        " watch with_codecs",
    ),
    "watching": (
        "bucket = await nc.jetstream().get_key_value('B')\nasync with bucket.watch() as watching:",
        "buffered close generation initial is_current is_ended next revision",
    ),
    "cache": (
        "bucket = await nc.jetstream().get_key_value('B')\nasync with bucket.cached() as cache:",
        "bucket close create delete entry get is_current items keys purge put revision update"
        " values",
    ),
    "counters": (
        "from js_async.counters import Counters\ncounters = Counters(nc.jetstream(), 'S')\n"
        "if counters:",
        "add get list reset stream_name",
    ),
    "schedules": (
        "from js_async.schedules import Schedules\nschedules = Schedules(nc.jetstream(), 'S')\n"
        "if schedules:",
        "add cancel finish get list stream_name",
    ),
    "health": (
        "from js_async.health import check_health\n"
        "health = await check_health(nc.jetstream())\nif health:",
        "consumers findings is_well streams",
    ),
    "copy": (
        "from js_async.backup import backup_stream\n"
        "copy = await backup_stream(nc.jetstream(), 'S', 'f')\nif copy:",
        "config members path sha256 size state stream_name",
    ),
    "stream": (
        "stream = await nc.jetstream().get_stream('S')\nif stream:",
        "bind_consumer cached_info change consumer_names consumers create_consumer"
        " create_or_update_consumer delete delete_consumer delete_message get_consumer"
        " get_last_message get_message get_next_message info name ordered purge push_messages"
        " read replicas seal snapshot subjects typed update_consumer",
    ),
}


def looping(name: str, way: str) -> str:
    lines = ["import js_async", "async def main():", f"    async with {way} as nc:"]
    return body(lines, name, 8)


def blocking(name: str, way: str) -> str:
    lines = ["import js_sync", f"with {way} as nc:"]
    plain = body(lines, name, 4).replace("js_async", "js_sync")
    return plain.replace("async with", "with").replace("async for", "for").replace("await ", "")


def body(lines: list[str], name: str, depth: int) -> str:
    steps = OBJECTS[name][0].splitlines()
    lines += [" " * depth + step for step in steps]
    last = len(lines[-1]) - len(lines[-1].lstrip()) + 4
    return "\n".join([*lines, " " * last + ("nc." if name == "connection" else f"{name}.")])


def completed(code: str) -> str:
    """Return the names that jedi offers at the end of a program, without underscores."""
    lines = code.splitlines()
    script = jedi.Script(code, project=jedi.Project(SOURCE))
    found = script.complete(len(lines), len(lines[-1]))
    return " ".join(sorted(each.name for each in found if not each.name.startswith("_")))


@pytest.mark.parametrize("name", OBJECTS)
def test_the_blocking_twin_completes(name: str) -> None:
    assert completed(blocking(name, "js_sync.connect('u')")) == OBJECTS[name][1]


@pytest.mark.parametrize("name", OBJECTS)
def test_the_asyncio_twin_completes(name: str) -> None:
    assert completed(looping(name, "js_async.connect('u')")) == OBJECTS[name][1]


def test_what_is_awaited_completes_as_well() -> None:
    code = "import js_async\nasync def main():\n    nc = await js_async.connect('u')\n    nc."
    assert completed(code) == OBJECTS["connection"][1]
