"""`twinstream pipeline run`: land streams as tables, once or continuously."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from attrs import evolve

from twinstream.cli.failures import Failure, needs_its_reader
from twinstream.cli.interrupts import asked_to_stop
from twinstream.cli.option_types import Seconds
from twinstream.cli.pipeline.options import config_options, spark_of
from twinstream.cli.pipeline.progress_output import Board, JsonLines, Lines, Watcher
from twinstream.cli.screen import notes, results
from twinstream.cli.target import json_option

if TYPE_CHECKING:
    from twinstream.spark.pipeline import PipelineConfig
    from twinstream.spark.pipeline.pipeline_events import Happening


@click.command(short_help="Land streams as tables, once or continuously.")
@config_options
@click.option("--once", is_flag=True, help="Land the current messages of the streams, then end.")
@click.option(
    "--every",
    type=Seconds(min=0, min_open=True),
    metavar="DURATION",
    help="Interval between batches, such as 60s; by default 10s.",
)
@click.option(
    "--accept-stream",
    is_flag=True,
    help="Continue with a re-created stream that is a copy of the landed one.",
)
@click.option(
    "--accept-subjects",
    is_flag=True,
    help="Continue after the landed sequences if a source's subjects have changed.",
)
@click.option("--verbose", "-v", is_flag=True, help="Show Spark's own messages.")
@json_option
def run(
    config: PipelineConfig,
    once: bool,
    every: float | None,
    accept_stream: bool,
    accept_subjects: bool,
    verbose: bool,
    as_json: bool,
) -> None:
    """Land the streams that a file names as Parquet, Delta or Iceberg tables, exactly once.

    Continues where the last run ended, even after a crash. Without --once the command runs until
    Ctrl-C or SIGTERM, and ends between two batches. A failed source is restarted after a pause that
    doubles each time. If its error is permanent, the source ends, the other sources continue, and
    the exit code is 1. With --json there is one line for each event.

    \b
    twinstream pipeline run --config orders.toml --once
    twinstream pipeline run --config orders.toml --every 60s
    """  # noqa: D301  # click needs the backspace character
    if once and every:
        raise click.UsageError("give --once or --every, not both")
    if every:
        config = evolve(config, every=every)
    from twinstream.spark.landing.lock import refuse_busy
    from twinstream.spark.pipeline.settings.folders import Folders

    refuse_busy(Folders.of(config.path).lock, config.path)  # before Spark starts
    from twinstream.spark.pipeline.pipeline_events import Failed
    from twinstream.spark.pipeline.runner import run as run_pipeline

    if config.engine == "spark" and notes().is_terminal:
        notes().print("Spark is starting …")  # takes some seconds
    # Handle Ctrl-C during the start, because an interrupted start leaves a Java process running.
    # Handle it again after the start, because Spark replaces the signal handler.
    with (
        asked_to_stop("waiting until Spark has started") as early,
        spark_of(config, verbose=verbose) as spark,
        asked_to_stop("finishing the current batches") as asked,
    ):
        if early.is_set():
            asked.set()
        watcher = _watcher(config, as_json=as_json)
        ended: list[Failed] = []

        def tell(happening: Happening) -> None:
            watcher.hear(happening)
            if isinstance(happening, Failed) and happening.retry_in is None:
                ended.append(happening)

        with watcher, needs_its_reader("the pipeline ended"):
            run_pipeline(
                spark,
                config,
                once=once,
                accept_stream=accept_stream,
                accept_subjects=accept_subjects,
                tell=tell,
                asked=asked,
            )
        if ended:
            text = "\n".join(f"source {each.source}: {each.error}" for each in ended)
            raise Failure(text, kind=ended[0].kind, err_code=ended[0].err_code)


def _watcher(config: PipelineConfig, *, as_json: bool) -> Watcher:
    if as_json:
        return JsonLines()
    console = results()
    return Board(config, console) if console.is_terminal else Lines(console)
