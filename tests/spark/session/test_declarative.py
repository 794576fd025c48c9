"""Projects of Spark Declarative Pipelines, run by Spark's own program: the rows are the stream."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from js_sync import Stream
from tests.quick_java import QUICK_JAVA
from tests.soak import LONG, LONGEST, rounds
from tests.spark.patience import TOO_LATE
from tests.spark.pipelines import MAX_DELIVER, config_of
from tests.spark.processes import SparkProcess, connect_path, package_folder
from twinstream.spark.errors import ConfigError
from twinstream.spark.pipeline.declarative import write_project
from twinstream.spark.session.java import ensure
from twinstream.spark.session.worker_python import worker_python
from twinstream.testing import NatsServer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Make = Callable[..., Stream]
Fill = Callable[..., None]


# How often a run may fail because the process of a query starts late on a busy machine.
ATTEMPTS = 10


def spark_pipelines(project: Path, *arguments: str, **environment: str) -> str:
    variables = {
        "JAVA_HOME": str(ensure()),
        "PYTHONPATH": connect_path(),
        "PYSPARK_PYTHON": worker_python(),
        "SPARK_LOCAL_IP": "127.0.0.1",
        **QUICK_JAVA,
        **environment,
    }
    for _ in range(ATTEMPTS):
        done = subprocess.run(
            [str(package_folder("pyspark") / "bin" / "spark-pipelines"), *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=project,
            env=os.environ | variables,
            timeout=LONGEST,
            check=False,
        )
        if done.returncode == 0 or TOO_LATE not in done.stdout:
            break
    assert done.returncode == 0, done.stdout[-4000:]
    assert "Run is COMPLETED" in done.stdout
    return done.stdout


def test_soak_a_project_of_a_spec(
    connect: SparkProcess,
    spark: SparkSession,
    server: NatsServer,
    make_stream: Make,
    fill: Fill,
    tmp_path: Path,
) -> None:
    stream = make_stream()
    table = stream.name.lower()
    config = config_of(
        tmp_path,
        "parquet",
        server.url,
        f'stream = "{stream.name}"\nformat = "json"\nschema = "order.json"',
    )
    write_project(config, tmp_path / "project")
    (tmp_path / "order.json").unlink()  # the project has its own
    fill(stream, [b"broken" if at == 25 else {"id": at} for at in range(50)])
    for messages in (50, 60)[: rounds(1, 2)]:
        spark_pipelines(tmp_path / "project", "run", "--remote", f"sc://{connect.found}")
        assert seqs(spark, connect.folder, table, f"{table}_dead_letters") == [
            *range(1, messages + 1)
        ]
        fill(stream, [{"id": at} for at in range(10)])
    letters = spark.read.parquet(f"{connect.folder}/spark-warehouse/{table}_dead_letters")
    assert [(row["_seq"], bytes(row["_raw"])) for row in letters.collect()] == [(26, b"broken")]


def seqs(spark: SparkSession, folder: Path, *tables: str) -> list[int]:
    """Sequences of all tables, as Spark reads its own."""
    return sorted(
        row[0]
        for table in tables
        for row in spark.read.parquet(f"{folder}/spark-warehouse/{table}").select("_seq").collect()
    )


@pytest.mark.skipif(not LONG, reason="the long form alone: each run starts a Spark of its own")
def test_soak_a_project_on_this_machine_alone(
    connect: SparkProcess,
    spark: SparkSession,
    server: NatsServer,
    make_stream: Make,
    fill: Fill,
    tmp_path: Path,
) -> None:
    raw, events = make_stream(), make_stream()
    fill(raw, [b"x"] * 30)
    fill(events, [{**MAX_DELIVER, "stream_seq": at} for at in range(5)])
    config = config_of(
        tmp_path,
        "parquet",
        server.url,
        f'stream = "{raw.name}"\ntable = "raw"\nstart = 11',
        f'stream = "{events.name}"\nformat = "advisory"',
    )
    project = tmp_path / "project"
    write_project(config, project)
    spark_pipelines(project, "dry-run", "--remote", "local[2,4]", SPARK_CONF_DIR="conf")
    for rows in (20, 50):
        spark_pipelines(project, "run", "--remote", "local[2,4]", SPARK_CONF_DIR="conf")
        assert spark.read.parquet(f"{project}/tables/raw").distinct().count() == rows
        kinds = spark.read.parquet(f"{project}/tables/events").select("kind", "_seq").collect()
        assert {row["kind"] for row in kinds} == {"max_deliver"}
        assert sorted(row["_seq"] for row in kinds) == [1, 2, 3, 4, 5]
        fill(raw, [b"y"] * 30)
    assert not (project / "spark-warehouse").exists()


def test_what_spark_would_mix_up_is_refused(tmp_path: Path) -> None:
    sources = ('stream = "EVENTS"\nformat = "raw"', 'stream = "A"\nformat = "advisory"')
    config = config_of(tmp_path, "parquet", "nats://127.0.0.1:4222", *sources)
    with pytest.raises(ConfigError, match="source A: the project has another table 'events'"):
        write_project(config, tmp_path / "project")
    source = 'stream = "A"\nformat = "json"\nschema = "order.json"\nrename = {number = "id"}'
    renaming = config_of(tmp_path, "parquet", "nats://127.0.0.1:4222", source)
    with pytest.raises(ConfigError, match="source A: rename: is not possible in a project"):
        write_project(renaming, tmp_path / "project")
    with pytest.raises(ConfigError, match="folder of another name"):
        write_project(config, tmp_path / "my project")
