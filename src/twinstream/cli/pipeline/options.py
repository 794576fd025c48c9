"""Shared code of the pipeline commands: reading the pipeline's file, and starting Spark."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Generator
from contextlib import contextmanager, nullcontext
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from twinstream.cli.failures import Failure
from twinstream.cli.option_types import SEQUENCE
from twinstream.cli.pipeline.spark_stderr import SparkStderr
from twinstream.cli.screen import alerts
from twinstream.cli.target import SERVER_VARIABLES, server_before

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from twinstream.spark.pipeline import PipelineConfig, SourceConfig


def config_options(command: Callable[..., object]) -> Callable[..., object]:
    """Add the options `--config` and `--server` to a command.

    The command gets the content of the pipeline's file as `config`.
    """

    @functools.wraps(command)
    def with_config(*args: Any, **options: Any) -> object:
        server = options.pop("server") or server_before(click.get_current_context())
        config = load(options.pop("config_file"), server)
        return command(*args, config=config, **options)

    decorated: Callable[..., object] = with_config
    for option in (
        click.option(
            "--server",
            "-s",
            metavar="URL",
            help="Address of the server, instead of the one in the file; without either,"
            f" {SERVER_VARIABLES[0]} is used.",
        ),
        click.option(
            "--config",
            "-c",
            "config_file",
            required=True,
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            help="The pipeline's TOML file.",
        ),
    ):
        decorated = option(decorated)
    return decorated


source_option = click.option(
    "--source", metavar="NAME", help="The source; not needed if there is only one."
)
"""The option for one source of the pipeline, which `pick` takes."""


def range_options(
    *, needs_first: bool = False
) -> Callable[[Callable[..., object]], Callable[..., object]]:
    """Return a decorator that adds `--from` and `--to`, a range of sequences, to a command.

    The command gets `low` and `high`. With `needs_first`, `--from` is required; else it is 1.
    """
    first: dict[str, Any] = {"required": True} if needs_first else {"default": 1}
    low = click.option(
        "--from", "low", type=SEQUENCE, metavar="SEQ", help="The first sequence.", **first
    )
    high = click.option(
        "--to", "high", type=SEQUENCE, metavar="SEQ", help="The last; by default the end."
    )
    return lambda command: low(high(command))


def end_of_range(low: int, high: int | None) -> int | None:
    """Return the sequence after the last one of a range; None if the range has no end."""
    if high is None:
        return None
    if high < low:
        raise click.BadParameter(f"is {high}, below --from {low}", param_hint="--to")
    return high + 1


def load(file: Path, server: str | None) -> PipelineConfig:
    """Return the content of a pipeline's file. An error in the file is a usage error (exit code 2).

    `server` replaces the address of the server in the file. If both are missing, the address is
    that in `TWINSTREAM_URL` or `NATS_URL`. Raises `Failure` if `pyarrow` is missing.
    """
    if find_spec("pyarrow") is None:
        raise Failure(
            "a pipeline needs pyarrow, which is not installed; install Twinstream with its extra"
            " lake and, to let Spark run the tasks, with spark and java (in a clone: pip install"
            " '.[lake]' or '.[lake,spark,java]')"
        )
    from twinstream.spark.errors import ConfigError
    from twinstream.spark.pipeline import read_config

    fallback = next((os.environ[name] for name in SERVER_VARIABLES if os.environ.get(name)), None)
    try:
        return read_config(file, server=server, default_server=fallback)
    except ConfigError as error:
        raise click.UsageError(str(error)) from error


def pick(config: PipelineConfig, name: str | None) -> SourceConfig:
    """Return the source called `name`; for None, the only source of the file.

    Raises a usage error for another name, or for None if the file has several sources.
    """
    names = [each.name for each in config.sources]
    if name is None:
        if len(names) > 1:
            raise click.UsageError(f"choose a source with --source: {', '.join(names)}")
        return config.sources[0]
    if name not in names:
        raise click.BadParameter(
            f"{name!r} is not one of {', '.join(names)}", param_hint="--source"
        )
    return config.source(name)


def note_turn(config: PipelineConfig) -> None:
    """Print which command this one waits for, if another one works on the tables now."""
    from twinstream.spark.pipeline.settings.folders import Folders
    from twinstream.spark.pipeline.tables.table_lock import TableLock

    user = TableLock(Folders.of(config.path)).user()
    if user is not None:
        alerts().print(f"waiting until {user} has ended")


@contextmanager
def spark_of(config: PipelineConfig, *, verbose: bool = False) -> Generator[SparkSession | None]:
    """Start Spark with the settings of the file, and stop it at the end of the block.

    If the file names the local engine, Spark is not started, and the value is `None`.

    Spark prints a traceback for each failure, although the command reports failures itself. So
    without `verbose`, the output of Spark's processes is written to a file. Its name is printed
    if the command fails. If the process already has a Spark session, that one is used, and it is
    not stopped. Raises `Failure` if `pyspark` is missing.
    """
    if config.engine == "local":
        yield None
        return
    if find_spec("pyspark") is None:
        raise Failure(
            'a pipeline with engine = "spark", which is the default, needs pyspark, which is not'
            ' installed: set engine = "local" in its file, or install Twinstream with its extras'
            " spark and java (in a clone: pip install '.[spark,java]')"
        )
    from pyspark.sql import SparkSession

    from twinstream.spark.session.session import local_session, pipeline_java

    own = SparkSession.getActiveSession() is None
    settings = {**pipeline_java(), **config.settings}
    with SparkStderr() if own and not verbose else nullcontext() as words:
        with words.taken() if words is not None else nullcontext():
            spark = local_session(
                f"twinstream pipeline {config.name}", master=config.master, settings=settings
            )
        if words is not None:
            spark.sparkContext.setLogLevel("OFF")
        try:
            yield spark
        finally:
            if own:
                _stop(spark)


def _stop(spark: SparkSession) -> None:
    from twinstream.spark.pipeline.run_errors import spark_is_gone

    try:
        spark.stop()
    except Exception as error:
        if not spark_is_gone(error):  # if Spark crashed, the error of the block reports it
            raise
