"""kill -9 of the whole driver, Java and workers included, at random points of a landing.

Whatever the moment, each message is in its table once, for readers that know nothing of Spark.
`make soak` runs 20 rounds; both kinds of tables are landed and killed together.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO

import pytest

from js_spark.pipeline import read_config
from js_spark.pipeline.verify import verify
from js_sync import Stream
from js_testing import NatsServer
from tests.soak import rounds, state
from tests.spark.pipelines import SINKS, counted, write_config

ROOT = Path(__file__).parents[2]
MESSAGES = 2000


@pytest.fixture
def stream(make_stream: Callable[..., Stream]) -> Stream:
    return make_stream()


@pytest.fixture
def files(server: NatsServer, stream: Stream, tmp_path: Path) -> list[Path]:
    """A pipeline for each kind of table, over one stream."""
    found: list[Path] = []
    for sink in SINKS:
        folder = tmp_path / sink
        folder.mkdir()
        source = f'stream = "{stream.name}"\nname = "orders"\ntable = "orders"\nformat = "json"\n'
        source += 'schema = "order.json"\nmax_messages = 400\noptions = {minPartitions = 2}'
        file = write_config(folder, sink, server.url, source)
        # On a busy machine Spark gives up on Python processes that need more than ten seconds.
        file.write_text(file.read_text().replace("most = 3", "most = 30"))
        found.append(file)
    return found


def test_soak_killed_landings_are_exact(
    files: list[Path], stream: Stream, fill: Callable[..., None], tmp_path: Path
) -> None:
    seed = random.randrange(2**32)
    dice = random.Random(seed)
    kills = rounds(1, 20)
    expected = 0
    for number in range(kills + 1):
        if not number or rounds(0, 1):
            payloads = [b"broken" if at % 100 == 7 else {"id": at} for at in range(MESSAGES)]
            fill(stream, payloads)
            expected += MESSAGES
        program = start(files, tmp_path / f"round-{number}.log")
        try:
            if number == kills:
                told, _ = program.communicate(timeout=500)
                assert program.returncode == 0, told
                break
            moment = killed(program, dice)
        finally:
            kill(program)
        seen = {sink: rows_of(tmp_path / sink / "lake", sink) for sink in SINKS}
        state(f"round {number} (seed {seed}): killed {moment}; rows, distinct: {seen}")
        assert all(rows == distinct <= expected for rows, distinct in seen.values()), seen
    for sink, file in zip(SINKS, files, strict=True):
        assert rows_of(tmp_path / sink / "lake", sink) == (expected, expected)
        (verdict,) = verify(read_config(file))
        assert (verdict.problems, verdict.rows, verdict.held) == ([], expected, expected)
    state(f"{kills} kills a sink: {expected} messages, rows and sequences are the same")


def start(files: list[Path], log: Path) -> subprocess.Popen[str]:
    command = [sys.executable, str(ROOT / "tests" / "spark" / "land_all.py"), *map(str, files)]
    with log.open("w") as errors:
        return subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,  # a group of its own: one kill ends Java and workers too
        )


def killed(program: subprocess.Popen[str], dice: random.Random) -> str:
    """Kill the group some time after a batch has begun; return when."""
    assert program.stdout is not None
    begun = await_line(program.stdout, dice.choice(["Started", "Landed"]))
    pause = dice.uniform(0, 2)
    time.sleep(pause)  # any moment will do: nothing is waited for
    kill(program)
    return f"{pause:.2f} s after {begun!r}"


def await_line(lines: IO[str], word: str) -> str:
    for line in lines:
        if line.startswith(word):
            return line.strip()
    raise AssertionError(f"the program ended before it said {word!r}; its errors are in its log")


def kill(program: subprocess.Popen[str]) -> None:
    try:
        os.killpg(program.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    program.wait(60)
    if program.stdout is not None:
        program.stdout.close()


def rows_of(lake: Path, sink: str) -> tuple[int, int]:
    """Rows and distinct sequences over the table and the dead letters."""
    rows = distinct = 0
    for table in (lake / "orders", lake / "dead_letters" / "source=orders"):
        if sink == "parquet" and not table.exists():
            continue
        if sink == "delta" and not (table / "_delta_log").exists():
            continue
        found = counted(table, sink)
        rows, distinct = rows + found[0], distinct + found[1]
    return rows, distinct
