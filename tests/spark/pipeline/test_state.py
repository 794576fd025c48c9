"""Where a source begins, the lock of a pipeline, and its folders. No Spark runs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from tests.soak import LONGEST
from twinstream.lake.journal import Journal
from twinstream.lake.local_store import LocalStore
from twinstream.lake.plan import Plan
from twinstream.spark.errors import (
    CheckpointError,
    DataLossError,
    JournalError,
    OptionError,
    PipelineBusy,
    SparkSourceError,
)
from twinstream.spark.landing.batch_folders import batch_folders
from twinstream.spark.landing.lock import locked
from twinstream.spark.pipeline.run_errors import is_lasting, sentence
from twinstream.spark.pipeline.runner import run
from twinstream.spark.pipeline.settings.config import PipelineConfig, SourceConfig
from twinstream.spark.pipeline.start_point import StartPoint, first_origin
from twinstream.spark.pipeline.tables import swap
from twinstream.spark.source.driver_client import Leader
from twinstream.spark.source.options import SourceOptions
from twinstream.spark.source.stream_state import StreamState

SOURCE = SourceConfig(name="orders", stream="ORDERS", table="orders")
OPTIONS = SourceOptions.parse({"nats.servers": "nats://h", "stream": "ORDERS"})
LEADER = Leader(OPTIONS)  # which connects at its first request
STATE = StreamState("ORDERS", first=5, next=21, created="today")


@pytest.mark.parametrize(("start", "seq"), [("earliest", 5), ("latest", 21), (7, 7), (21, 21)])
def test_a_source_decides_where_it_begins(start: str | int, seq: int) -> None:
    origin = first_origin(evolve(SOURCE, start=start), STATE, LEADER)
    assert (origin.seq, origin.stream, origin.created) == (seq, "ORDERS", "today")


def test_a_source_cannot_begin_beyond_the_end() -> None:
    with pytest.raises(OptionError, match="is 22, beyond the end of stream ORDERS"):
        first_origin(evolve(SOURCE, start=22), STATE, LEADER)


def test_another_stream_is_refused(tmp_path: Path) -> None:
    journal = Journal(LocalStore(tmp_path), "orders")
    journal.begin(first_origin(SOURCE, STATE, LEADER))
    journal.planned(Plan(batch=0, start=5, end=6, created="today"))
    with Leader(OPTIONS) as leader:
        assert StartPoint(SOURCE, journal, leader).origin(STATE) == journal.origin()
        other = StartPoint(evolve(SOURCE, stream="B"), journal, leader)
        with pytest.raises(CheckpointError, match="landed stream ORDERS before, now it names B"):
            other.origin(STATE)


def test_a_stream_may_be_created_again_before_its_first_batch(tmp_path: Path) -> None:
    journal = Journal(LocalStore(tmp_path), "orders")
    later = evolve(STATE, first=1, created="tomorrow")
    with Leader(OPTIONS) as leader:
        start = StartPoint(SOURCE, journal, leader)
        assert start.origin(STATE).seq == start.origin(STATE).seq == 5
        assert (start.origin(later).seq, start.origin(later).created) == (1, "tomorrow")
        journal.planned(Plan(batch=0, start=1, end=6, created="tomorrow"))
        assert start.origin(STATE).created == "tomorrow", "it is decided with the first batch"


def test_a_pipeline_on_spark_needs_a_session(tmp_path: Path) -> None:
    config = PipelineConfig(name="p", path=tmp_path, sources=(SOURCE,))
    with pytest.raises(SparkSourceError, match='with engine = "spark" needs a session'):
        run(None, config)
    assert run(None, evolve(config, engine="local", sources=())) == {}


def test_one_process_at_a_time(tmp_path: Path) -> None:
    file = tmp_path / "lock"
    program = f"""
from pathlib import Path
from typing import Any
from twinstream.spark.landing.lock import locked
try:
    with locked(Path({str(file)!r}), Path({str(tmp_path)!r}), "other"):
        print("got it")
except Exception as error:
    print(error)
"""

    def other() -> str:
        done = subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            check=True,
            timeout=LONGEST,
        )
        return done.stdout

    with (
        locked(file, tmp_path, "run of orders"),
        pytest.raises(PipelineBusy, match="'run of orders'"),
    ):
        with locked(file, tmp_path, "verify"):
            pass
    with locked(file, tmp_path, "run of orders"):
        assert "is in use by 'run of orders' (process" in other()
    assert other() == "got it\n"


def test_a_folder_that_is_no_batch_is_named(tmp_path: Path) -> None:
    for name in ("batch_id=10", "batch_id=2"):
        (tmp_path / name).mkdir()
    assert list(batch_folders(tmp_path)) == [2, 10]
    (tmp_path / "batch_id=2.old").mkdir()
    with pytest.raises(JournalError, match=r"batch_id=2\.old is not a batch folder"):
        batch_folders(tmp_path)


@pytest.mark.parametrize("exchange", [swap.exchange, swap.exchange_in_steps])
def test_folders_are_exchanged(tmp_path: Path, exchange: Callable[[Path, Path], None]) -> None:
    for name in ("new", "current"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)
    exchange(tmp_path / "new", tmp_path / "current")
    assert (tmp_path / "current" / "file").read_text() == "new"
    assert (tmp_path / "new" / "file").read_text() == "current"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["current", "new"]


class MortalPath(type(Path())):  # type: ignore[misc]
    """A path whose process dies after some renames of such paths."""

    renames = 0

    def rename(self, target: Any) -> Any:
        if not MortalPath.renames:
            raise KeyboardInterrupt
        MortalPath.renames -= 1
        return super().rename(target)


@pytest.mark.parametrize("renames", range(1, 4))
def test_an_exchange_that_was_interrupted_anywhere_can_be_repeated(
    renames: int, tmp_path: Path
) -> None:
    new, current = tmp_path / "new", tmp_path / "current"
    for folder in (new, current):
        folder.mkdir()
        (folder / "file").write_text(folder.name)
    MortalPath.renames = renames
    with pytest.raises(KeyboardInterrupt):
        swap.exchange_in_steps(MortalPath(new), MortalPath(current))
    swap.finish(current)
    assert [path.name for path in tmp_path.iterdir() if path != new] == ["current"]
    new.mkdir(exist_ok=True)
    (new / "file").write_text("newer")
    swap.exchange_in_steps(new, current)
    assert (current / "file").read_text() == "newer"


def test_an_interrupted_exchange_is_finished(tmp_path: Path) -> None:
    (tmp_path / "_new.current").mkdir()
    swap.finish(tmp_path / "current")
    assert [path.name for path in tmp_path.iterdir()] == ["current"]
    with pytest.raises(OSError, match="No such file"):
        swap.exchange(tmp_path / "none", tmp_path / "current")


def test_transient_errors_are_distinguished_from_permanent_ones() -> None:
    assert is_lasting(DataLossError("x"))
    assert not is_lasting(SparkSourceError("x"))
    assert not is_lasting(ConnectionRefusedError("x"))
    text = (
        "[STREAM_FAILED] Traceback (most recent call last):\n  File x\n"
        "twinstream.spark.errors.DataLossError: stream S: gone; do that\n\n\tat org.apache.spark"
    )
    assert is_lasting(RuntimeError(text))
    assert sentence(RuntimeError(text)) == "stream S: gone; do that"
    passing = RuntimeError("twinstream.errors.ConnectionLost: the link broke\n at x")
    assert (is_lasting(passing), sentence(passing)) == (False, "the link broke")
    full = RuntimeError(
        "An exception was thrown from the Python worker:\n\n  Traceback of Spark's\n"
        "Traceback (most recent call last):\n  File x, line 1, in f\n    write()\n    ~~~~~^^\n"
        "OSError: [Errno 28] No space left on device\n\n\tat org.apache.spark"
    )
    assert sentence(full) == "OSError: [Errno 28] No space left on device"
    assert sentence(RuntimeError("\n first\nsecond")) == "first"
    assert sentence(RuntimeError()) == "RuntimeError"
