"""A program that uses secrets in every way, with all that Spark can write down written down.

`secrets_job.py FOLDER WAY=URL…`: a way is `password`, `token` or `nkey`, then `-env` for
a pipeline that names the variable which holds the secret, or `-inline` for the secret as an
option. Everything that is left behind is below FOLDER, or in the output.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from attrs import evolve, frozen

from tests.spark.patience import finished
from twinstream.cli.groups import twinstream
from twinstream.spark.errors import SparkSourceError
from twinstream.spark.pipeline import read_config
from twinstream.spark.pipeline.runner import run
from twinstream.spark.session.session import local_session
from twinstream.spark.sink.options import SinkOptions
from twinstream.spark.source.options import SourceOptions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@frozen
class Way:
    """How a pipeline's file and an option give one kind of secret."""

    variable: str
    nats: str
    option: str
    beside: dict[str, str]


WAYS: Final = {
    "password": Way(
        "NATS_CANARY_PASSWORD",
        'user = "reader"\npassword_env = "NATS_CANARY_PASSWORD"',
        "nats.password",
        {"nats.user": "reader"},
    ),
    "token": Way("NATS_CANARY_TOKEN", 'token_env = "NATS_CANARY_TOKEN"', "nats.token", {}),
    "nkey": Way(
        "NATS_CANARY_SEED", 'nkey_seed_env = "NATS_CANARY_SEED"', "nats.secretNkeySeed", {}
    ),
}

LOGGING: Final = """\
rootLogger.level = info
rootLogger.appenderRef.file.ref = file
appender.file.type = File
appender.file.name = file
appender.file.fileName = {folder}/spark.log
appender.file.layout.type = JsonTemplateLayout
appender.file.layout.eventTemplateUri = classpath:org/apache/spark/SparkLayout.json
"""


def main(folder: Path, *tasks: str) -> None:
    spark = session(folder)
    for task in tasks:
        way, url = task.split("=", 1)
        kind, how = way.split("-")
        use = by_reference if how == "env" else inline
        use(spark, WAYS[kind], url, folder / way)
    spark.stop()


def session(folder: Path) -> SparkSession:
    logging, events = folder / "log4j2.properties", folder / "events"
    logging.write_text(LOGGING.format(folder=folder))
    events.mkdir()
    settings = {
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={logging.as_uri()}",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": events.as_uri(),
        "spark.eventLog.compress": "false",
        "spark.log.structuredLogging.enabled": "true",
        "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    }
    return local_session("secrets", master="local[2,4]", settings=settings)


def pipeline(folder: Path, url: str, nats: str) -> str:
    folder.mkdir()
    file = folder / "orders.toml"
    file.write_text(
        f'path = "lake"\n[nats]\nservers = "{url}"\n{nats}\n[restart]\nmost = 1\nfirst = "10ms"\n'
        '[[source]]\nstream = "S"\ncommit = "bookmark"\n'
    )
    return str(file)


def by_reference(spark: SparkSession, way: Way, url: str, folder: Path) -> None:
    """The whole pipeline as a command, then with a wrong secret."""
    file = pipeline(folder, url, way.nats)
    page = str(folder / "report.html")
    command("run", "--config", file, "--once", "--json")
    command("report", "--config", file, "--output", page)
    right = os.environ[way.variable]
    os.environ[way.variable] = "wrong-" + right
    try:
        command("run", "--config", file, "--once", "--json")
    finally:
        os.environ[way.variable] = right
    command("spec", "--config", file, "--output", str(folder / "project"))


def command(*arguments: str) -> None:
    try:
        twinstream(["pipeline", *arguments], prog_name="twinstream")
    except SystemExit as end:
        print("exit code", end.code, flush=True)


def inline(spark: SparkSession, way: Way, url: str, folder: Path) -> None:
    """The pipeline inside a program, a read and a write, and plans of all kinds."""
    secret = os.environ[way.variable]
    given = {"nats.servers": url, "stream": "S", **way.beside, way.option: secret}
    (source, *_) = (config := read_config(pipeline(folder, url, ""))).sources
    own = evolve(source, options={**source.options, **given})
    failed = run(spark, evolve(config, sources=(own,)), once=True, tell=print)
    print(own, failed, SourceOptions.parse(given), SinkOptions.parse(given), flush=True)
    rows = spark.read.format("jetstream").options(**given).load()
    rows.explain("extended")
    rows.selectExpr("'s.copy' AS subject", "data").write.format("jetstream").options(**given).mode(
        "append"
    ).save()
    text = ", ".join(f"`{name}` '{value}'" for name, value in given.items())
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW v USING jetstream OPTIONS ({text})")
    print(spark.sql("EXPLAIN EXTENDED SELECT count(*) FROM v").collect()[0][0], flush=True)
    print(spark.sql("SELECT count(*) FROM v").collect(), flush=True)
    streamed(spark, given, folder)
    wrong = {**given, way.option: "wrong-" + secret}
    try:
        spark.read.format("jetstream").options(**wrong).load().collect()
    except Exception as error:  # whatever Spark makes of it, its text is what counts here
        print("refused:", error, flush=True)
    try:
        SourceOptions.parse({**given, "nats.servers": f"nats://u:{secret}@h"})
    except SparkSourceError as error:
        print("refused:", error, flush=True)


def streamed(spark: SparkSession, given: dict[str, str], folder: Path) -> None:
    writer = (
        spark.readStream.format("jetstream")
        .options(**given, startingOffsets="earliest")
        .load()
        .writeStream.format("parquet")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
    )
    query = finished(lambda: writer.start(str(folder / "copied")))
    query.explain(extended=True)
    print(query.recentProgress, query.exception(), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
