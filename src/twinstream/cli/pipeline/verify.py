"""`twinstream pipeline verify`: compare the tables with the stream and the journal."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click
from attrs import asdict
from rich.text import Text

from twinstream.cli.pipeline.options import config_options
from twinstream.cli.screen import alerts, notes, plain_table, print_json, progress, results
from twinstream.cli.target import json_option

if TYPE_CHECKING:
    from twinstream.spark.pipeline import PipelineConfig
    from twinstream.spark.pipeline.maintenance.verify import Verdict


# Arrow's own allocator keeps some 40 MiB more. Arrow reads this variable when it is loaded.
os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")


@click.command(short_help="Compare the tables with the stream.")
@config_options
@json_option
def verify(config: PipelineConfig, as_json: bool) -> None:
    """Check, batch by batch, that every message of the streams is in the tables exactly once.

    Reads the tables, without Spark, and the current sequences of the streams. Messages that were
    removed from their stream after landing cannot be compared. Gaps are sequences that neither the
    tables nor the stream contain. Exits with 1 if anything is missing, duplicated or different from
    the journal.
    """
    from twinstream.spark.pipeline.maintenance.verify import verify as verify_pipeline

    with progress(notes(), shown=not as_json) as display:
        tasks = {each.name: display.add_task(each.name, total=None) for each in config.sources}
        verdicts = list(
            verify_pipeline(
                config,
                lambda name, done, total: display.update(tasks[name], completed=done, total=total),
            )
        )
    passed = all(each.passed for each in verdicts)
    if as_json:
        print_json({"passed": passed, "sources": [asdict(each) for each in verdicts]})
    else:
        _show(verdicts)
    sys.exit(0 if passed else 1)


def _show(verdicts: list[Verdict]) -> None:
    """Print a table with the verdict for each source, and then the problems that were found."""
    numbers = ("batches", "rows", "distinct", "dead letters", "in the stream", "gaps")
    table = plain_table(
        "source", "verdict", "sequences", *numbers, numbers=numbers, names=("source", "verdict")
    )
    for each in verdicts:
        table.add_row(
            each.source,
            Text("well", "green") if each.passed else Text("not well", "red"),
            f"{each.start:,} to {each.end - 1:,}" if each.batches else "none yet",
            each.batches, each.rows, each.distinct, each.dead_letters, each.held, each.gaps,
        )  # fmt: skip
    results().print(table)
    for each in verdicts:
        for problem in each.problems:
            alerts().print(f"{each.source}: {problem}", style="red", soft_wrap=True)
