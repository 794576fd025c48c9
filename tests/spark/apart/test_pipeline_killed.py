"""kill -9 of the driver, of Java and of the processes of tasks, at random points of a landing.

Whatever is killed and when, each message is in its table once, for readers that know nothing of
Spark. `make soak` runs 20 rounds, with the victims in turn; both kinds of tables are landed and
killed together.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path

import pytest

from js_sync import Stream
from tests.soak import LONG, rounds, state
from tests.spark.lives import Life
from tests.spark.pipelines import SINKS, counted, write_config
from twinstream.spark.pipeline import read_config
from twinstream.spark.pipeline.maintenance.verify import verify
from twinstream.testing import NatsServer

MESSAGES = rounds(1200, 2000)

KILLED = {"spark": ["all", "driver", "java", "worker"], "local": ["all", "driver", "task"]}
"""What is killed, by the engine. The driver plans itself, so Spark has no planners."""

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc")


@pytest.fixture
def stream(make_stream: Callable[..., Stream]) -> Stream:
    return make_stream()


@pytest.fixture
def engine() -> str:
    return "spark"


@pytest.fixture
def files(server: NatsServer, stream: Stream, tmp_path: Path, engine: str) -> list[Path]:
    """A pipeline for each kind of table, over one stream."""
    return pipelines(server, stream, tmp_path, engine)


def pipelines(
    server: NatsServer, stream: Stream, parent: Path, engine: str = "spark"
) -> list[Path]:
    found: list[Path] = []
    for sink in SINKS:
        folder = parent / sink
        folder.mkdir(parents=True)
        source = f'stream = "{stream.name}"\nname = "orders"\ntable = "orders"\nformat = "json"\n'
        source += 'schema = "order.json"\nmax_messages = 400\noptions = {minPartitions = 2}'
        file = write_config(folder, sink, server.url, source, engine=engine)
        # On a busy machine Spark gives up on Python processes that need more than ten seconds.
        file.write_text(file.read_text().replace("most = 3", "most = 30"))
        found.append(file)
    return found


@pytest.fixture
def begin(files: list[Path], tmp_path: Path) -> Iterator[Callable[..., Life]]:
    """Begins lives of the program that lands; what is left of them ends with the test."""
    lives: list[Life] = []

    def start(chosen: list[Path] = files) -> Life:
        log = tmp_path / f"life-{len(lives)}.log"
        lives.append(Life("land_all.py", *map(str, chosen), log=log))
        return lives[-1]

    yield start
    for each in lives:
        each.end()


@pytest.mark.parametrize("engine", KILLED)
def test_soak_killed_landings_are_exact(
    engine: str,
    files: list[Path],
    begin: Callable[[], Life],
    stream: Stream,
    fill: Callable[..., None],
    tmp_path: Path,
) -> None:
    seed = random.randrange(2**32)
    dice = random.Random(seed)
    turns = cycle(dice.sample(KILLED[engine], len(KILLED[engine])))
    kills: Counter[str] = Counter()
    wanted, expected = rounds(1, 20), 0
    for number in range(wanted + 1):
        if not number or LONG:
            payloads = [b"broken" if at % 100 == 7 else {"id": at} for at in range(MESSAGES)]
            fill(stream, payloads)
            expected += MESSAGES
        life = begin()
        if number == wanted:
            break
        killed = end_early(life, next(turns), dice)
        kills.update(killed)
        seen = {sink: rows_of(tmp_path / sink / "lake", sink) for sink in SINKS}
        state(f"round {number} (seed {seed}): killed {killed}; rows, distinct: {seen}")
        assert all(rows == distinct <= expected for rows, distinct in seen.values()), seen
    finish(life, files, expected)
    state(f"{wanted} rounds a sink: {expected} messages, rows and sequences are the same; {kills}")


@pytest.mark.skipif(not LONG, reason="the long form alone: Spark starts twice a round")
def test_soak_killed_at_the_first_batch(
    server: NatsServer,
    stream: Stream,
    begin: Callable[..., Life],
    fill: Callable[..., None],
    tmp_path: Path,
) -> None:
    """Rounds with state go on from a batch; here each begins in folders of its own."""
    seed = random.randrange(2**32)
    dice = random.Random(seed)
    turns = cycle(["all", "driver", "java"])
    fill(stream, [{"id": at} for at in range(MESSAGES)])
    unfinished, wanted = 0, rounds(1, 20)
    for number in range(wanted):
        files = pipelines(server, stream, tmp_path / str(number))
        life = begin(files)
        life.until("Started")
        life.live_on(dice.uniform(0, 1))
        killed = life.kill(next(turns), dice)
        life.end()
        left = list((tmp_path / str(number)).rglob("plan/000000000.json"))
        unfinished += len(left)
        state(f"round {number} (seed {seed}): killed {killed}; plans: {len(left)}")
        finish(begin(files), files, MESSAGES)
    state(f"{wanted} rounds a sink: {MESSAGES} messages each time; {unfinished} plans")


def finish(life: Life, files: list[Path], expected: int) -> None:
    """Let a life come to its end; then each message is in its table once."""
    assert life.wait() == 0, life.said
    life.wait_for_all()
    for sink, file in zip(SINKS, files, strict=True):
        assert rows_of(file.parent / "lake", sink) == (expected, expected)
        (verdict,) = verify(read_config(file))
        assert (verdict.problems, verdict.rows, verdict.held) == ([], expected, expected)


def end_early(life: Life, victim: str, dice: random.Random) -> list[str]:
    """Kill some time after a source or a batch has begun; return what was killed.

    The end of a task does not end the program: some are killed, then it goes on.
    """
    life.until(dice.choice(["Started", "Landed"]))
    killed: list[str] = []
    for _ in range(3 if victim in {"worker", "task"} else 1):
        life.live_on(dice.uniform(0, 2))  # any moment will do: nothing is waited for
        killed += life.kill(victim, dice)
    if victim in {"worker", "task"}:
        assert life.wait() == 0, life.said
    elif victim == "java":
        # Noticed, unless it had just finished.
        done = life.wait() == 0
        assert done is life.said[-1].startswith("done"), life.said
    return killed


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
