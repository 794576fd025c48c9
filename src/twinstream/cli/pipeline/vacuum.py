"""`twinstream pipeline vacuum`: remove files that belong to no table any more."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from twinstream.cli.confirm import no_question_in_json, sure
from twinstream.cli.option_types import Seconds
from twinstream.cli.pipeline.options import config_options, note_turn
from twinstream.cli.screen import print_json, print_text
from twinstream.cli.target import json_option
from twinstream.cli.value_text import in_bytes

if TYPE_CHECKING:
    from twinstream.spark.pipeline import PipelineConfig
    from twinstream.spark.pipeline.maintenance.vacuum import Leftover


@click.command(short_help="Remove files that belong to no table any more.")
@config_options
@click.option(
    "--keep",
    type=Seconds(min=0),
    default="7d",
    metavar="DURATION",
    show_default=True,
    help="Keep files replaced within this time.",
)
@click.option("--dry-run", is_flag=True, help="Only show what would be removed.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@json_option
def vacuum(config: PipelineConfig, keep: float, dry_run: bool, yes: bool, as_json: bool) -> None:
    """Remove replaced files and files of attempts that were killed.

    Meanwhile, a running pipeline lands no batches. A query on an older version of a Delta
    or Iceberg table fails if its files are removed, so --keep should be longer than the longest
    query.
    """
    from twinstream.spark.pipeline.maintenance.vacuum import vacuum as vacuum_tables

    no_question_in_json(yes=yes or dry_run, as_json=as_json)
    note_turn(config)
    found = vacuum_tables(config, keep=keep, dry_run=True)
    if not as_json:
        _show(found, config)
    if found and not dry_run:
        sure("Remove them?", yes=yes)
        found = vacuum_tables(config, keep=keep)
        if not as_json:
            print_text(f"removed {in_bytes(sum(each.bytes for each in found))}")
    if as_json:
        print_json(
            {
                "removed": not dry_run,
                "files": [{"path": str(each.path), "bytes": each.bytes} for each in found],
            }
        )


def _show(found: list[Leftover], config: PipelineConfig) -> None:
    for each in found:
        path = str(each.path).removeprefix(f"{config.path}/")
        print_text(f"{path} ({in_bytes(each.bytes)})")
    if not found:
        print_text("nothing is left over")
