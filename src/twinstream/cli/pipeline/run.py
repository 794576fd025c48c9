"""``twinstream pipeline run``: land streams as tables, once or for good."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from attrs import evolve

from twinstream.cli.failures import Failure, needs_its_reader
from twinstream.cli.interrupts import asked_to_stop
from twinstream.cli.pipeline.board import Board, JsonLines, Lines, Watcher
from twinstream.cli.pipeline.options import config_options, parse_seconds, spark_of
from twinstream.cli.screen import notes, results
from twinstream.cli.target import json_option

if TYPE_CHECKING:
    from twinstream.spark.pipeline import PipelineConfig
    from twinstream.spark.pipeline.happenings import Happening


@click.command(short_help="Land streams as tables, once or for good.")
@config_options
@click.option("--once", is_flag=True, help="Land what the streams hold now, then end.")
@click.option(
    "--every", metavar="TIME", help="How often a batch begins, such as 60s; by default 10s."
)
@click.option(
    "--recover", is_flag=True, help="If a checkpoint is gone, go on where the journal ends."
)
@click.option(
    "--accept-stream",
    is_flag=True,
    help="Go on with a stream that was made again, as a copy of the one that was landed.",
)
@click.option("--verbose", "-v", is_flag=True, help="Let Spark's own messages through.")
@json_option
def run(
    config: PipelineConfig,
    once: bool,
    every: str | None,
    recover: bool,
    accept_stream: bool,
    verbose: bool,
    as_json: bool,
) -> None:
    """Land the streams that a file names as Parquet or Delta tables, exactly once.

    Goes on where the last run ended, however it ended. Without --once it runs until Ctrl-C or
    SIGTERM, and ends between two batches. A source that fails is started again, after a pause that
    doubles each time. If the same error would come again, the source ends for good: the others go
    on, and the exit code is 1. With --json there is one line for each thing that happens.

    \b
    twinstream pipeline run --config orders.toml --once
    twinstream pipeline run --config orders.toml --every 60s
    """  # noqa: D301  # click wants the character
    if once and every:
        raise click.UsageError("give --once or --every, not both")
    if every:
        config = evolve(config, every=parse_seconds(every, "--every"))
    from twinstream.spark.pipeline.happenings import Failed
    from twinstream.spark.pipeline.runner import run as run_pipeline

    if notes().is_terminal:
        notes().print("Spark is starting …")  # some seconds without a sign of life
    # Before and after: a Java process whose start is interrupted is left behind, and Spark takes
    # Ctrl-C for itself when it has started.
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
                recover=recover,
                accept_stream=accept_stream,
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
    return Board(config, console) if console.is_terminal else Lines(notes())
