"""Spark's Python processes run on the installed PySpark, which is compiled, not on its zip."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark
import pytest

from twinstream.spark.session.worker_python import worker_python

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HOME = Path(pyspark.__file__).parent


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("SPARK_HOME", raising=False)
    return tmp_path


def test_only_the_zip_is_removed_from_the_path() -> None:
    code = "import os, sys; print(sys.prefix, os.environ['PYTHONPATH'], sep='|')"
    archive = f"{HOME}/python/lib/pyspark.zip"
    for paths, left in (
        (f"{archive}:/other:/more", "/other:/more"),
        (f"{archive}:/other:{archive}:{archive}", "/other"),
        (f"/other:{archive}.zip", f"/other:{archive}.zip"),
        ("", ""),
    ):
        done = subprocess.run(
            [worker_python(), "-c", code],
            env=os.environ | {"PYTHONPATH": paths},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.strip().split("|") == [sys.prefix, left]


def test_another_spark_keeps_its_zip(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    assert worker_python() == sys.executable


def test_the_program_is_written_once(cache: Path) -> None:
    assert worker_python() == worker_python()
    assert [file.name for file in (cache / "twinstream").iterdir()] == [Path(worker_python()).name]


def test_workers_start_without_this_package_too(tmp_path: Path) -> None:
    missing = tmp_path / "missing" / "twinstream"
    missing.mkdir(parents=True)
    (missing / "__init__.py").write_text("raise ModuleNotFoundError")
    done = subprocess.run(
        [worker_python(), "-m", "pyspark.daemon", "pyspark.worker"],
        env=os.environ | {"PYTHONPATH": str(missing.parent)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    # The number of the port at which Spark asks for workers. It ends as its input has ended.
    assert len(done.stdout) == 4, done.stderr
    assert not done.stderr


def test_workers_share_loaded_modules(spark: SparkSession) -> None:
    def loaded(rows: Iterator[object]) -> Iterator[tuple[bool, int]]:
        import gc
        import sys

        yield from (
            ("twinstream.spark.data_source" in sys.modules, gc.get_freeze_count()) for _ in rows
        )

    ((has_source, frozen),) = spark.sparkContext.parallelize([1], 1).mapPartitions(loaded).collect()
    assert has_source
    assert frozen


def test_workers_run_on_the_program(spark: SparkSession) -> None:
    def origins(rows: Iterator[object]) -> Iterator[list[str]]:
        import sys

        import pyspark as found

        yield from ([str(found.__file__), *sys.path] for _ in rows)

    (seen,) = spark.sparkContext.parallelize([1], 1).mapPartitions(origins).collect()
    assert seen[0] == pyspark.__file__
    assert [each for each in seen if "pyspark.zip" in each] == []
    # Sources that Spark finds by itself run on the other one.
    assert os.environ["PYSPARK_DRIVER_PYTHON"] == os.environ["PYSPARK_PYTHON"]
