"""`twinstream pipeline rewrite`: give tables wider types and new names of columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from attrs import asdict

from twinstream.cli.pipeline.options import config_options
from twinstream.cli.screen import plain_table, print_json, print_table
from twinstream.cli.target import json_option

if TYPE_CHECKING:
    from twinstream.spark.pipeline import PipelineConfig


@click.command(short_help="Give tables wider types and new names of columns.")
@config_options
@json_option
def rewrite(config: PipelineConfig, as_json: bool) -> None:
    """Rewrite the tables whose columns have a wider type or another name in the schema now.

    Use this command after a change of the schema, before the next run: an integer of 32 bits
    becomes one of 64, a float a double, and the columns in the key `rename` of a source get their
    new names. All rows are read from the tables, not from the streams; of Iceberg tables, only the
    metadata change. A table changes at once, and queries can read it meanwhile; a running pipeline
    lands no batches. A second rewrite changes nothing. `vacuum` removes the old files later.
    """
    from twinstream.spark.pipeline.maintenance.rewrite import rewrite as rewrite_tables

    done = list(rewrite_tables(config))
    if as_json:
        print_json({"tables": [asdict(each) for each in done]})
        return
    table = plain_table("table", "change")
    for each in done:
        for change in each.changes:
            table.add_row(each.table, change)
    print_table(table, "the tables have the columns of their schemas")
