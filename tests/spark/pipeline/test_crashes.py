"""A process that dies at any change of a file leaves tables that the next one makes exact.

`make soak` tries every point; otherwise one of each quarter of the work is drawn.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from tests.soak import rounds, state
from tests.spark.pipelines import SINKS

JOBS = ["all", "rewrite"]
ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("sink", SINKS)
@pytest.mark.parametrize("job", JOBS)
def test_soak_death_at_any_change_of_a_file(job: str, sink: str, tmp_path: Path) -> None:
    seed = random.randrange(2**32)
    program = [sys.executable, str(ROOT / "tests" / "spark" / "crash_points.py")]
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [*program, job, sink, str(tmp_path), str(seed), str(rounds(4, 0))],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        timeout=rounds(900, 10_800),
    )
    state(f"seed {seed}: {done.stdout.strip()}")
    assert done.returncode == 0, done.stderr
