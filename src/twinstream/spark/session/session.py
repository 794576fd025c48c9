"""Start a local Spark session with settings for the source: loopback only, UTC, little logging."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from twinstream.spark.errors import SparkSourceError
from twinstream.spark.session.java import ensure
from twinstream.spark.session.worker_python import worker_python

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["LOCAL_MASTER", "SETTINGS", "local_session", "pipeline_java"]

LOCAL_MASTER: Final = "local[*,4]"
"""The default master: all cores of this machine, and up to four attempts per task.

Without the second number, Spark's local mode does not retry tasks. Then a restart of the server
during a read would end the query.
"""

SETTINGS: Final[Mapping[str, str]] = {
    # By default, Spark listens on the first external interface.
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # By default, Spark keeps data of the last 1,000 executions, jobs and stages for the UI, even if
    # the UI is disabled. In a query that runs for days, the data fills the memory of the driver.
    "spark.sql.ui.retainedExecutions": "20",
    "spark.ui.retainedJobs": "20",
    "spark.ui.retainedStages": "20",
    "spark.ui.retainedTasks": "200",
    # Timestamps of messages are instants, which every machine should show and cast in the same way.
    "spark.sql.session.timeZone": "UTC",
    # With the default of 200 partitions, small jobs would wait for empty tasks.
    "spark.sql.shuffle.partitions": "8",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # The sink identifies a row by its content and the number of its task. With adaptive execution,
    # a repeated micro-batch may assign the rows to other tasks.
    "spark.sql.adaptive.streaming.stateless.enabled": "false",
}
"""Settings of a local session that differ from Spark's defaults."""


def local_session(
    app_name: str = "twinstream",
    *,
    master: str = LOCAL_MASTER,
    settings: Mapping[str, str] | None = None,
) -> SparkSession:
    """Return the active Spark session, or start a local session that can read `jetstream`.

    The source is registered in the session; see `register`.
    Starting a session takes about five seconds. It sets the environment variable `JAVA_HOME` (see
    `java`). Three other variables are set if they
    have no value: `PYSPARK_PYTHON` and `PYSPARK_DRIVER_PYTHON`, so that workers run on this
    interpreter, and `SPARK_LOCAL_IP`.

    Args:
        app_name: the name of a new session.
        master: the master of a new session, by default all cores of this machine.
        settings: settings of a new session, which override `SETTINGS`.

    Raises:
        JavaNotFound: if there is no Java that Spark can run on.
        SparkSourceError: if `SPARK_REMOTE` is set, which selects Spark Connect.
    """
    from pyspark.sql import SparkSession

    from twinstream.spark.data_source import register

    active = SparkSession.getActiveSession()
    if active is not None:
        register(active)
        return active
    if remote := os.environ.get("SPARK_REMOTE"):
        raise SparkSourceError(
            f"SPARK_REMOTE is set to {remote!r}, which selects Spark Connect; unset it for a local"
            " session, or create one with SparkSession.builder.remote(…).getOrCreate()"
        )
    _prepare_environment(master)
    builder = SparkSession.Builder().master(master).appName(app_name)
    for name, value in {**SETTINGS, **_java(_logging()), **(settings or {})}.items():
        builder = builder.config(name, value)
    found = builder.getOrCreate()
    register(found)
    return found


def pipeline_java() -> dict[str, str]:
    """Return settings for a session in which only Python processes handle messages.

    The Java process of such a session only plans queries. Optimizing compilation and parallel
    garbage collection would cost more time than they save.
    """
    return _java(_logging(), "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")


def _java(*options: str) -> dict[str, str]:
    return {"spark.driver.extraJavaOptions": " ".join(options)}


def _logging() -> str:
    """Return the Java option for a logging configuration that shows only errors."""
    file = Path(__file__).with_name("log4j2.properties").as_uri()
    return f"-Dlog4j2.configurationFile={file}"


def _prepare_environment(master: str) -> None:
    os.environ["JAVA_HOME"] = str(ensure())
    # Spark starts workers with PYSPARK_PYTHON. The default is the `python3` on PATH, which may lack
    # pyarrow and this package. Spark starts the process that looks up sources with
    # PYSPARK_DRIVER_PYTHON. The program that `worker_python` writes exists only on this machine, so
    # workers on other machines cannot use it.
    python = worker_python()
    workers = python if master.startswith("local") else sys.executable
    os.environ.setdefault("PYSPARK_PYTHON", workers)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", python)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
