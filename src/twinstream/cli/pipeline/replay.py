"""`twinstream pipeline replay`: land a range of sequences again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from attrs import asdict

from twinstream.cli.confirm import sure, yes_option
from twinstream.cli.pipeline.options import (
    config_options,
    end_of_range,
    note_turn,
    pick,
    range_options,
    source_option,
    spark_of,
)
from twinstream.cli.screen import counted, notes, print_json, print_text, progress
from twinstream.cli.target import json_option

if TYPE_CHECKING:
    from twinstream.spark.pipeline import PipelineConfig


@click.command(short_help="Land a range of sequences again.")
@config_options
@source_option
@range_options(needs_first=True)
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
    from twinstream.spark.pipeline.maintenance.replay import batches_of
    from twinstream.spark.pipeline.maintenance.replay import replay as replay_batches

    end = end_of_range(low, high)
    chosen = pick(config, source)
    due = batches_of(config, chosen, low, end)
    if not yes:
        first, last = due[0], due[-1]
        what = f"{counted(len(due), 'batch')} of {chosen.name}"
        sure(f"Land {what}, sequences {first.start:,} to {last.end - 1:,}, again?", yes=yes)
    note_turn(config)
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
