"""Events: typed rows for every kind, unknown kinds kept, broken ones told."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa

from twinstream.spark.decode import fields
from twinstream.spark.decode.event import Event
from twinstream.spark.decode.events import EVENT_COLUMNS, EventDecoder
from twinstream.spark.decode.generated.events import EVENTS, MAX_DELIVER
from twinstream.spark.decode.sql_names import sql_name

ROOT = Path(__file__).resolve().parents[3]
TIME = "2024-05-01T10:00:00.123456789Z"


def sample(event: Event) -> dict[str, object]:
    """An event with a value for every member that must be there."""
    values: dict[str, object] = {"type": event.type, "id": "I", "timestamp": TIME}
    plain = {"string": "x", "bigint": 7, "boolean": True, "timestamp": TIME, "double": 1.5}
    for each in event.columns:
        if fields.is_required(each) and each.name not in values:
            name = sql_name(each.type)
            values[each.name] = [] if name.startswith("array") else plain.get(name, {})
    return values


def test_every_kind_has_its_column() -> None:
    assert len(EVENTS) == 24
    assert EVENT_COLUMNS.names == ["kind", *(event.kind for event in EVENTS.values())]
    for event in EVENTS.values():
        prefix = "$JS.EVENT.METRIC." if ".metric." in event.type else "$JS.EVENT.ADVISORY."
        assert event.subject.startswith(prefix)
        assert {"type", "id", "timestamp"} <= {each.name for each in event.columns}


def test_all_kinds_in_one_block() -> None:
    wanted = list(EVENTS.values()) * 3
    payloads = [json.dumps(sample(event)).encode() for event in wanted]
    found = EventDecoder().decode(pa.array(payloads, pa.binary()))
    assert found.misfits == {}
    assert found.kinds == [event.kind for event in wanted]
    for kind, column in found.columns.items():
        rows = column.to_pylist()
        assert [row is not None for row in rows] == [event.kind == kind for event in wanted]
        row = next(filter(None, rows))
        assert row["timestamp"].isoformat() == "2024-05-01T10:00:00.123456+00:00"


def test_unknown_events_are_kept_and_broken_events_reported() -> None:
    good = sample(MAX_DELIVER)
    later = {"type": "io.nats.jetstream.advisory.v9.new_thing", "x": 1}
    payloads: list[object] = [
        good,
        {**good, "later": [1]},
        later,
        {**good, "stream_seq": "seven"},
        {"id": "no type"},
        {"type": 7},
    ]
    raw = [json.dumps(each).encode() for each in payloads] + [b"nope"]
    found = EventDecoder().decode(pa.array(raw, pa.binary()))
    assert found.kinds == ["max_deliver"] * 2 + ["new_thing", "max_deliver", None, None, None]
    assert found.misfits[3] == "stream_seq: expected an integer, got text 'seven'"
    assert found.misfits[4] == "type: required member is missing"
    assert found.misfits[5] == "type: expected text, got 7"
    assert found.misfits[6].startswith("not JSON")
    assert sorted(found.misfits) == [3, 4, 5, 6]
    extras = found.extras.to_pylist()
    assert json.loads(extras[1]) == {"later": [1]}
    assert json.loads(extras[2]) == later
    rows = found.columns["max_deliver"].to_pylist()
    assert [row is not None for row in rows] == [True, True] + [False] * 5


def test_generated_types_are_fresh() -> None:
    command = [sys.executable, "codegen/event_types.py", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
