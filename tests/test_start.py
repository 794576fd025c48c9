"""The modules that a program loads until its first message, in both twins, without timing.

The programs are those of `python -m tests.bench.first_message`, which measures the time.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from js_sync import JetStream, connect
from tests.soak import LONGEST
from tests.unhurried import UNHURRIED
from twinstream.models import ConsumerConfig, StreamConfig
from twinstream.testing import NatsServer

PROGRAMS = Path(__file__).parent / "bench" / "first_message" / "programs"
TWINS = ("js_sync", "js_async")
OURS = ("js_sync", "js_async", "twinstream")

# Each takes milliseconds to import. What asyncio itself imports is not counted.
SLOW = {
    "cattrs",
    "concurrent.futures.thread",
    "dataclasses",
    "difflib",
    "encodings.idna",
    "hashlib",
    "ipaddress",
    "logging",
    "pickle",
    "random",
    "secrets",
    "ssl",
    "urllib.parse",
}

# Of both twins: what a program uses that does more than publish, fetch and acknowledge.
FEATURES = {
    "publish.pipeline",
    "client.connection_events",
    "coordination.coordination",
    "consume.advisories",
    "api.listing",
    "consume.buffer",
    "consume.messages",
    "consume.ordered",
    "consume.ordered_buffer",
    "publish.publish_many",
    "publish.publisher",
    "api.replicas",
    "client.subscription",
    "workers.worker",
}
ENGINES = {
    "twinstream.core.read.arrow_columns",
    "twinstream.core.publish.atomic_batch",
    "twinstream.core.read.bulk_page",
    "twinstream.core.workers.dead_letter",
    "twinstream.core.publish.fast_ingest",
    "twinstream.core.coordination.lease_engine",
    "twinstream.core.consume.pull_engine",
    "twinstream.core.read.range_read",
    "twinstream.models.validation",
}

MOST_MODULES = 150
"""Modules of this project that a program loads which publishes, fetches and acknowledges."""

MOST_CLASSES = 60
"""Classes that attrs makes for such a program. Each takes about 0.3 ms, to compile its methods."""

# Runs a program in the same process, with what the loop imports first. Prints the modules that it
# loaded, and the classes that attrs made in those of this project.
REPORT = """
import sys
if sys.argv[1].endswith("async.py"):
    import asyncio
before = set(sys.modules)
del sys.argv[0]
exec(compile(open(sys.argv[0]).read(), sys.argv[0], "exec"))
loaded = sorted(set(sys.modules) - before)
import json
made = [
    f"{name}.{each}"
    for name in loaded if name.startswith(("js_", "twinstream"))
    for each, value in vars(sys.modules[name]).items()
    if "__attrs_attrs__" in getattr(value, "__dict__", ()) and value.__module__ == name
]
print(json.dumps([loaded, made]))
"""


def run(program: str, *arguments: str) -> Any:
    command = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def server() -> Iterator[NatsServer]:
    with NatsServer(start_timeout=300) as running:
        yield running


@pytest.fixture
def jet(server: NatsServer) -> Iterator[JetStream]:
    with connect(server.url, **UNHURRIED) as nc:
        yield nc.jetstream()


def ours(loaded: list[str]) -> list[str]:
    return [name for name in loaded if name.partition(".")[0] in OURS]


@pytest.mark.parametrize("twin", TWINS)
def test_an_import_loads_the_names_alone(twin: str) -> None:
    program = f"import sys, json; import {twin}; print(json.dumps(sorted(sys.modules)))"
    assert ours(run(program)) == sorted(
        [
            "twinstream",
            "twinstream.core",
            "twinstream.core.lazy_imports",
            twin,
            f"{twin}._index",
        ]
    )


@pytest.mark.parametrize("twin", TWINS)
def test_a_first_message_loads_what_it_needs(twin: str, jet: JetStream, server: NatsServer) -> None:
    name = f"bound-{twin}"
    stream = jet.create_stream(StreamConfig(name=name, subjects=[name]))
    consumer = stream.create_consumer(ConsumerConfig(durable_name="first"))
    program = str(PROGRAMS / f"bound_{twin}.py")
    loaded, made = run(REPORT, program, server.url, name, name, "first")
    assert SLOW.isdisjoint(loaded), SLOW.intersection(loaded)
    unused = {f"{twin}.{feature}" for feature in FEATURES} | ENGINES
    assert unused.isdisjoint(loaded), unused.intersection(loaded)
    generated = {each for each in loaded if each.startswith("twinstream.models.generated.")}
    # Of the acknowledgement, and what its module needs.
    assert generated == {
        f"twinstream.models.generated.{each}" for each in ("api", "api.message", "common")
    }
    assert len(ours(loaded)) <= MOST_MODULES
    assert "twinstream.core.client.options.ConnectOptions" in made
    assert len(made) <= MOST_CLASSES, made
    assert consumer.info().ack_floor.stream_seq == 1


@pytest.mark.parametrize("twin", TWINS)
def test_program_that_creates_its_stream_loads_what_it_needs(
    twin: str, jet: JetStream, server: NatsServer
) -> None:
    name = f"made-{twin}"
    program = str(PROGRAMS / f"made_{twin}.py")
    loaded, _ = run(REPORT, program, server.url, name, name, "first")
    assert SLOW.isdisjoint(loaded), SLOW.intersection(loaded)
    unused = {f"{twin}.{feature}" for feature in FEATURES} | ENGINES
    assert unused.isdisjoint(loaded), unused.intersection(loaded)
    assert not [each for each in loaded if each.startswith("twinstream.models.generated.advisory")]
    assert jet.get_consumer(name, "first").cached_info.ack_floor.stream_seq == 1


def test_the_command_line_lists_streams_with_what_it_needs(server: NatsServer) -> None:
    program = (
        "import sys, json; from twinstream.cli.main import main\n"
        f"sys.argv = ['twinstream', 'stream', 'ls', '--json', '-s', {server.url!r}]\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code\n"
        "print(json.dumps(sorted(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    loaded = json.loads(done.stdout.splitlines()[-1])
    assert {"cattrs", "rich.progress", "js_async"}.isdisjoint(loaded)
