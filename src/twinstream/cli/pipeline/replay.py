"""`twinstream pipeline replay`: land a range of sequences again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from attrs import asdict

from twinstream.cli.confirm import sure, yes_option
from twinstream.cli.option_types import SEQUENCE
from twinstream.cli.pipeline.options import config_options, pick, spark_of
from twinstream.cli.screen import counted, notes, print_json, print_text, progress
from twinstream.cli.target import json_option

if TYPE_CHECKING:
    from twinstream.spark.pipeline import PipelineConfig


@click.command(short_help="Land a range of sequences again.")
@config_options
@click.option("--source", metavar="NAME", help="The source; not needed if there is only one.")
@click.option(
    "--from", "low", type=SEQUENCE, required=True, metavar="SEQ", help="The first sequence."
)
@click.option("--to", "high", type=SEQUENCE, metavar="SEQ", help="The last; by default the end.")
@yes_option
@json_option
def replay(
    config: PipelineConfig,
    source: str | None,
    low: int,
    high: int | None,
    yes: bool,
    as_json: bool,
) -> None:
    """Land the batches that contain the sequences again from the stream, and replace their rows.

    Use this command for messages that became dead letters because of a wrong schema, or for damaged
    files. A batch is refused if the stream no longer has its messages. Meanwhile, a running
    pipeline lands no batches. A second replay changes nothing.
    """
    from twinstream.spark.landing.lock import refuse_busy
    from twinstream.spark.pipeline.maintenance.replay import batches_of
    from twinstream.spark.pipeline.maintenance.replay import replay as replay_batches
    from twinstream.spark.pipeline.settings.folders import Folders

    if high is not None and high < low:
        raise click.BadParameter(f"is {high}, below --from {low}", param_hint="--to")
    chosen = pick(config, source)
    end = None if high is None else high + 1
    due = batches_of(config, chosen, low, end)
    if not yes:
        first, last = due[0], due[-1]
        what = f"{counted(len(due), 'batch')} of {chosen.name}"
        sure(f"Land {what}, sequences {first.start:,} to {last.end - 1:,}, again?", yes=yes)
    refuse_busy(Folders.of(config.path).maintenance, config.path)  # before Spark starts
    with spark_of(config) as spark, progress(notes(), shown=not as_json) as display:
        task = display.add_task("batches", total=len(due))
        done = replay_batches(spark, config, chosen, low, end, tell=lambda _: display.advance(task))
    if as_json:
        print_json({"source": chosen.name, "batches": [asdict(each) for each in done]})
        return
    messages = sum(each.messages for each in done)
    dead = sum(each.dead_letters for each in done)
    print_text(
        f"landed {counted(messages, 'message')} in {counted(len(done), 'batch')} again,"
        f" {counted(dead, 'dead letter')}"
    )
