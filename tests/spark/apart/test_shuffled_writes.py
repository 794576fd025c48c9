"""Writes behind a shuffle whose tasks die: by exceptions, and with the JVM of their executor.

A repeated task reads the blocks of a shuffle in another order. There are four plans before the
sink, in turn: `repartition`, a sort, a join and a streaming aggregation. `make soak` runs 20 rounds
of each mode and of each way to die.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from js_sync import Stream
from tests.soak import LONG, rounds, state
from tests.spark.lives import Life
from tests.spark.shuffled_writes import ROWS
from twinstream.testing import NatsServer

SOON = timedelta(milliseconds=100)

MODES: dict[str, dict[str, Any]] = {
    "none": {},
    "msgId": {"duplicate_window": timedelta(hours=1)},
    "insert": {"duplicate_window": SOON},
    "ledger": {"duplicate_window": SOON, "allow_atomic": True},
}

SHOWN = list(MODES) if LONG else ["msgId", "ledger"]
"""A look at the two modes whose promise depends on what a repeat does.

All of them in a long run.
"""
WAYS = ["executor", "error"] if LONG else ["executor"]

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("mode", SHOWN)
def test_soak_rows_behind_a_shuffle(
    mode: str,
    way: str,
    server: NatsServer,
    make_stream: Callable[..., Stream],
    fill: Callable[..., None],
    tmp_path: Path,
) -> None:
    source, target = make_stream(), make_stream(**MODES[mode])
    # The last row ends the time windows of all others.
    fill(source, list(range(ROWS + 1)))
    seed, wanted = random.randrange(2**32), rounds(2, 20)
    arguments = [server.url, source.name, target.name, str(tmp_path), mode, way]
    life = Life("shuffled_writes.py", *arguments, str(wanted), str(seed), log=tmp_path / "log")
    try:
        assert life.wait(300.0 + 100 * wanted) == 0, (
            life.said,
            (tmp_path / "log").read_text()[-3000:],
        )
        life.wait_for_all()
    finally:
        life.end()
    assert len(life.said) == wanted
    seen = [ids_of(target, number) for number in range(wanted)]
    for said, found in zip(life.said, seen, strict=True):
        state(
            f"{mode}, {way}, {said.strip()}: {ROWS - len(found)} of {ROWS} lost,"
            f" {found.total() - len(found)} stored again (seed {seed})"
        )
    assert len(list(tmp_path.glob("*.died"))) == wanted, "a task died in each round"
    for found in seen:
        assert set(found) == set(range(ROWS)), "rows were lost"
        assert found.total() == ROWS or mode == "none", "rows were stored again"


def ids_of(target: Stream, number: int) -> Counter[int]:
    """Return how often each id of a round is stored, read to an end that is known to be one."""
    read = target.read(subjects=f"{target.name.lower()}.{number}.*")
    found = Counter(int(each.data) for each in read)
    assert read.report.is_complete
    return found
