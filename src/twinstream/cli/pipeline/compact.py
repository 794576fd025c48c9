"""``twinstream pipeline compact``: join the small files of tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from attrs import asdict

from twinstream.cli.pipeline.options import config_options, parse_size
from twinstream.cli.screen import plain_table, print_json, results
from twinstream.cli.target import json_option

if TYPE_CHECKING:
    from twinstream.spark.pipeline import PipelineConfig


@click.command(short_help="Join the small files of the tables.")
@config_options
@click.option("--size", default="128m", show_default=True, help="Maximum size of a joined file.")
@json_option
def compact(config: PipelineConfig, size: str, as_json: bool) -> None:
    """Join the small files of small batches, in one commit for each table.

    Meanwhile, a running pipeline lands no batches; queries can still read the tables. `vacuum`
    removes the old files later.
    """
    from twinstream.spark.pipeline.maintenance.compact import compact as compact_tables

    done = list(compact_tables(config, target=parse_size(size, "--size")))
    if as_json:
        print_json({"tables": [asdict(each) for each in done]})
        return
    table = plain_table("table", "files before", "after", numbers=("files before", "after"))
    for each in done:
        table.add_row(each.table, f"{each.before:,}", f"{each.after:,}")
    results().print(table if done else "there are no tables yet")
