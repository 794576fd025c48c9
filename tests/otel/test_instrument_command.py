"""`opentelemetry-instrument` runs programs of both twins without a change."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.otel.collector import Collector
from tests.soak import LONGEST
from twinstream.otel.conventions import DURATION_BUCKETS
from twinstream.testing import NatsServer

PROGRAMS = {
    "js_sync": """
import os, time
import js_sync
from js_sync.workers import Worker

done = []
with js_sync.connect(os.environ["URL"], name="shop", **UNHURRIED) as nc:
    jet = nc.jetstream()
    jet.create_stream(js_sync.StreamConfig(name="ORDERS", subjects=["orders.>"]))
    jet.publish("orders.1", b"tea")
    worker = Worker(jet, "ORDERS", js_sync.ConsumerConfig(durable_name="packer"), done.append)
    with worker:
        while not worker.handled:
            time.sleep(0.01)
""",
    "js_async": """
import asyncio, os
import js_async
from js_async.workers import Worker

async def pack(message):
    pass

async def main():
    async with js_async.connect(os.environ["URL"], name="shop", **UNHURRIED) as nc:
        jet = nc.jetstream()
        await jet.create_stream(js_async.StreamConfig(name="ORDERS", subjects=["orders.>"]))
        await jet.publish("orders.1", b"tea")
        config = js_async.ConsumerConfig(durable_name="packer")
        async with Worker(jet, "ORDERS", config, pack) as worker:
            while not worker.handled:
                await asyncio.sleep(0.01)

asyncio.run(main())
""",
}
FORKING = {
    "js_sync": """
import os
import js_sync
from opentelemetry import trace

tracer = trace.get_tracer("program")
with js_sync.connect(os.environ["URL"], **UNHURRIED) as nc:
    nc.jetstream().create_stream(js_sync.StreamConfig(name="S", subjects=["s.>"]))
    with tracer.start_as_current_span("parent"):
        child = os.fork()
        if child == 0:
            with js_sync.connect(os.environ["URL"], **UNHURRIED) as own:
                own.jetstream().publish("s.child", b"x")
            trace.get_tracer_provider().force_flush()
            os._exit(0)
        nc.jetstream().publish("s.parent", b"x")
    os.waitpid(child, 0)
""",
    "js_async": """
import asyncio, os
import js_async
from opentelemetry import trace

async def send(subject, config=None):
    async with js_async.connect(os.environ["URL"], **UNHURRIED) as nc:
        if config is not None:
            await nc.jetstream().create_stream(config)
        else:
            await nc.jetstream().publish(subject, b"x")

tracer = trace.get_tracer("program")
asyncio.run(send("", js_async.StreamConfig(name="S", subjects=["s.>"])))
with tracer.start_as_current_span("parent"):
    child = os.fork()
    if child == 0:
        asyncio.run(send("s.child"))
        trace.get_tracer_provider().force_flush()
        os._exit(0)
    asyncio.run(send("s.parent"))
os.waitpid(child, 0)
""",
}


def run(program: str, environment: dict[str, str]) -> None:
    program = program.replace("**UNHURRIED", "connect_timeout=60, request_timeout=60")
    command = [str(Path(sys.executable).parent / "opentelemetry-instrument"), sys.executable, "-c"]
    done = subprocess.run(
        [*command, program], env=environment, capture_output=True, text=True, timeout=LONGEST
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Error" not in done.stderr, done.stderr


@pytest.mark.parametrize("twin", PROGRAMS)
def test_a_plain_program_is_traced(
    twin: str, server_factory: Callable[[], NatsServer], environment: dict[str, str]
) -> None:
    server = server_factory()
    with Collector() as collector:
        run(
            PROGRAMS[twin],
            environment | {"URL": server.url, "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url},
        )
    publish, process, ack = collector.spans
    assert (publish.name, process.name, ack.name) == ("publish", "process ORDERS", "ack ORDERS")
    # The numbers of the kinds in the protocol.
    assert (publish.kind, process.kind, ack.kind) == (4, 5, 3)
    assert len({publish.trace_id, process.trace_id, ack.trace_id}) == 1
    assert (publish.parent_span_id, process.parent_span_id) == (b"", publish.span_id)
    assert [each.span_id for each in process.links] == [publish.span_id]
    assert ack.parent_span_id == process.span_id
    assert collector.schemas == {"https://opentelemetry.io/schemas/1.45.0"}
    found = {each.key: each.value for each in process.attributes}
    assert found["nats.handler.outcome"].string_value == "acknowledged"
    assert found["messaging.consumer.group.name"].string_value == "packer"
    metrics = collector.metrics
    assert {name for name in metrics if name.startswith("messaging.")} == {
        "messaging.client.operation.duration",
        "messaging.client.sent.messages",
        "messaging.client.consumed.messages",
        "messaging.process.duration",
    }
    [point] = metrics["messaging.process.duration"].histogram.data_points
    assert (point.count, tuple(point.explicit_bounds)) == (1, DURATION_BUCKETS)
    [sent] = metrics["messaging.client.sent.messages"].sum.data_points
    assert sent.as_int == 1
    assert not any("orders.1" in str(metric) for metric in metrics.values())


@pytest.mark.parametrize("twin", FORKING)
def test_a_forked_process_has_its_own_spans(
    twin: str, server_factory: Callable[[], NatsServer], environment: dict[str, str]
) -> None:
    server = server_factory()
    with Collector() as collector:
        run(
            FORKING[twin],
            environment | {"URL": server.url, "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url},
        )
    subjects = {
        each.value.string_value
        for span in collector.spans
        for each in span.attributes
        if each.key == "messaging.destination.name"
    }
    assert subjects == {"s.child", "s.parent"}
    # Both are children of the span that was current at the fork.
    assert len({span.parent_span_id for span in collector.spans}) == 1
    assert len({span.span_id for span in collector.spans}) == 2


def test_the_instrumentor_can_be_disabled(
    server_factory: Callable[[], NatsServer], environment: dict[str, str]
) -> None:
    server = server_factory()
    with Collector() as collector:
        more = {"OTEL_PYTHON_DISABLED_INSTRUMENTATIONS": "twinstream", "URL": server.url}
        run(
            PROGRAMS["js_sync"],
            environment | more | {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url},
        )
    assert collector.spans == []


def test_the_entry_point_imports_neither_twin_nor_what_takes_time() -> None:
    program = (
        "import sys, opentelemetry.instrumentation.instrumentor\n"
        "before = set(sys.modules)\n"
        "from twinstream.otel.instrumentor import TwinstreamInstrumentor\n"
        "TwinstreamInstrumentor().instrument()\n"
        "print(*sorted(set(sys.modules) - before))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=LONGEST, check=True
    )
    ours = [each for each in done.stdout.split() if each.startswith("twinstream")]
    assert ours == [
        "twinstream",
        "twinstream.core",
        "twinstream.core.observe",
        "twinstream.core.observe.process_wide",
        "twinstream.otel",
        "twinstream.otel.instrumentor",
    ]
    assert not {"attr", "attrs", "js_sync", "js_async"} & set(done.stdout.split())
