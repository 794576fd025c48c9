"""The lines of the guide that add tracing to `examples/worker.py`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import js_sync
from js_sync.workers import DeadLetters
from tests._sync.flow import eventually
from tests.examples import ROOT, blocks
from tests.otel.collector import Collector
from tests.soak import LONGEST
from tests.test_worker_example import WORKER, send, stopped, working
from tests.unhurried import UNHURRIED
from twinstream.testing import NatsServer


def with_added(program: str, change: str) -> tuple[str, int]:
    """Return the program with the added lines of a change, and their number.

    Each added line follows the line before it in the change, which the program has once.
    """
    added, before = 0, ""
    for line in change.splitlines():
        if line.startswith("+"):
            assert program.count(f"{before}\n") == 1
            program = program.replace(f"{before}\n", f"{before}\n{line[1:]}\n")
            added += 1
        before = line[1:]
    return program, added


def test_the_worker_is_traced_after_a_change_of_few_lines(
    server_factory: Callable[[], NatsServer], environment: dict[str, str], tmp_path: Path
) -> None:
    [change] = blocks(ROOT / "docs" / "tracing.md", "diff")
    changed, added = with_added(WORKER.read_text("utf-8"), change)
    assert 1 <= added <= 5
    program = tmp_path / "worker.py"
    program.write_text(changed)
    with (
        Collector() as collector,
        server_factory() as server,
        js_sync.connect(server.url, **UNHURRIED) as nc,
    ):
        jet = nc.jetstream(timeout=30)
        jet.create_stream(js_sync.StreamConfig(name="ORDERS", subjects=["orders.>"]))
        endpoint = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url}
        with working(program, server, environment | endpoint) as process:
            assert process.stdout is not None
            send(jet, {"number": 1, "item": "tea"}, b"no order")
            assert process.stdout.readline() == "packed 1 x tea\n"
            letters = DeadLetters(jet, "ORDERS")
            eventually(lambda: list(letters.letters()), patience=LONGEST)
            assert stopped(process) == ["1 packed, 1 given up"]
        spans = {each.name: each for each in collector.spans}
        handled = [each for each in collector.spans if each.name == "process ORDERS"]
        outcomes = {
            found.value.string_value
            for each in handled
            for found in each.attributes
            if found.key == "nats.handler.outcome"
        }
        assert outcomes == {"acknowledged", "given up"}
        parcel = next(each for each in collector.spans if each.name == "publish")
        assert parcel.parent_span_id in {each.span_id for each in handled}
        assert {"ack ORDERS", "term ORDERS"} <= spans.keys()
