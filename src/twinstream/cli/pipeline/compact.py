"""`twinstream pipeline compact`: join the small files of tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from attrs import asdict

from twinstream.cli.option_types import Bytes
from twinstream.cli.pipeline.options import config_options, note_turn
from twinstream.cli.screen import plain_table, print_json, print_table
from twinstream.cli.target import json_option

if TYPE_CHECKING:
    from twinstream.spark.pipeline import PipelineConfig


@click.command(short_help="Join the small files of the tables and the journal.")
@config_options
@click.option(
    "--size",
    type=Bytes(),
    default="128MB",
    metavar="SIZE",
    show_default=True,
    help="Maximum size of a joined file.",
)
@json_option
def compact(config: PipelineConfig, size: int, as_json: bool) -> None:
    """Join the small files of small batches, in one commit for each table.

    Plans and entries of older batches in the journal are joined, too, a thousand batches in one
    file. A journal with enough of them is listed as `_pipeline/` with the name of its source.

    Meanwhile, a running pipeline lands no batches; queries can still read the tables. `vacuum`
    removes the old files later. Iceberg tables are refused: their catalog or an engine such as
    Spark merges files.
    """
    from twinstream.spark.pipeline.maintenance.compact import compact as compact_tables

    note_turn(config)
    done = list(compact_tables(config, target=size))
    if as_json:
        print_json({"tables": [asdict(each) for each in done]})
        return
    table = plain_table("table", "files before", "after", numbers=("files before", "after"))
    for each in done:
        table.add_row(each.table, each.before, each.after)
    print_table(table, "there are no tables yet")
