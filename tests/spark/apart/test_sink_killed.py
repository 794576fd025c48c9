"""kill -9 of the driver, of Java and of Python workers while streams are copied by the sink.

One program copies a stream in several modes at once. What was killed begins again with its
checkpoints; then each mode must have kept its promise. `make soak` runs 10 rounds of all modes,
with the victims in turn.
"""

from __future__ import annotations

import json
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from js_sync import Stream
from tests.soak import LONG, rounds, state
from tests.spark.lives import VICTIMS, Life
from twinstream.testing import NatsServer

MESSAGES = rounds(8000, 20_000)
SOON = timedelta(milliseconds=100)

MODES: dict[str, dict[str, Any]] = {
    "none": {},
    "msgId": {"duplicate_window": timedelta(hours=6)},
    "insert": {"duplicate_window": SOON},
    "ledger": {"duplicate_window": SOON, "allow_atomic": True},
}
"""What a copy needs of its stream. Message ids are remembered for longer than any round takes."""

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc")


@pytest.fixture
def targets(make_stream: Callable[..., Stream]) -> dict[str, Stream]:
    """A stream for each mode; two modes are enough for a look."""
    modes = MODES if LONG else ["ledger", random.choice(["none", "msgId", "insert"])]
    return {mode: make_stream(**MODES[mode]) for mode in modes}


@pytest.fixture
def begin(
    server: NatsServer,
    source: Stream,
    targets: dict[str, Stream],
    tmp_path: Path,
) -> Iterator[Callable[[], Life]]:
    """Begins lives of the program that copies; what is left of them ends with the test."""
    lives: list[Life] = []
    names = [f"{mode}={stream.name}" for mode, stream in targets.items()]

    def start() -> Life:
        log = tmp_path / f"life-{len(lives)}.log"
        folder = str(tmp_path / "checkpoints")
        lives.append(Life("copy_all.py", server.url, source.name, folder, *names, log=log))
        return lives[-1]

    yield start
    for each in lives:
        each.end()


@pytest.fixture
def source(make_stream: Callable[..., Stream]) -> Stream:
    return make_stream()


def test_soak_killed_copies_are_as_promised(
    source: Stream,
    targets: dict[str, Stream],
    begin: Callable[[], Life],
    fill: Callable[..., None],
) -> None:
    seed = random.randrange(2**32)
    dice = random.Random(seed)
    turns = cycle(dice.sample(VICTIMS, len(VICTIMS)))
    kills: Counter[str] = Counter()
    wanted, expected = rounds(1, 10), 0
    for number in range(wanted + 1):
        if not number or LONG:
            fill(source, [{"id": at} for at in range(expected, expected + MESSAGES)])
            expected += MESSAGES
        life = begin()
        if number == wanted:
            break
        killed = end_early(life, next(turns), dice)
        kills.update(killed)
        seen = {mode: stored(stream) for mode, stream in targets.items()}
        state(f"round {number} (seed {seed}): killed {killed}; rows, distinct: {seen}")
        assert all(seen[mode][0] == seen[mode][1] for mode in seen if mode != "none"), seen
    assert life.wait() == 0, life.said
    life.wait_for_all()
    seen = {mode: stored(stream) for mode, stream in targets.items()}
    state(f"{wanted} rounds: {expected} messages; rows, distinct: {seen}; killed {kills}")
    for mode, (rows, distinct) in seen.items():
        assert distinct == expected, f"{mode} has lost some"
        assert rows == expected or mode == "none", f"{mode} has doubled some"


def end_early(life: Life, victim: str, dice: random.Random) -> list[str]:
    """Kill some time after a query or a batch; return what was killed."""
    life.until(dice.choice(["Started", "Stored"]))
    killed: list[str] = []
    for _ in range(3 if victim in {"worker", "planner"} else 1):
        life.live_on(dice.uniform(0, 2))  # any moment will do: nothing is waited for
        killed += life.kill(victim, dice)
    if victim in {"worker", "planner"}:
        assert life.wait() == 0, life.said
    else:
        life.wait()
    return killed


def stored(stream: Stream) -> tuple[int, int]:
    """Rows and distinct ids of a copy, read to an end that is known to be one."""
    found = stream.read(subjects=f"{stream.name.lower()}.n.*")
    ids = Counter(json.loads(each.data)["id"] for each in found)
    assert found.report.is_complete
    return ids.total(), len(ids)
