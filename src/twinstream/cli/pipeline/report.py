"""`twinstream pipeline report`: write an HTML report about the landed batches."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from twinstream.cli.pipeline.options import config_options
from twinstream.cli.screen import counted, print_json, print_text
from twinstream.cli.target import json_option

if TYPE_CHECKING:
    from twinstream.spark.pipeline import PipelineConfig


@click.command(short_help="Write a report about the landed batches.")
@config_options
@click.option(
    "--output",
    "-o",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The page to write; by default the pipeline's name with .html.",
)
@json_option
def report(config: PipelineConfig, output: Path | None, as_json: bool) -> None:
    """Write an HTML page: throughput, lag and dead letters over time, and the last batches.

    The page needs neither other files nor a network. The command reads only the journal of the
    pipeline and needs no server.
    """
    from twinstream.cli.pipeline.page import page
    from twinstream.spark.pipeline.settings.folders import Folders
    from twinstream.spark.pipeline.state.source_state import journal_of

    folders = Folders.of(config.path)
    logs = {
        source.name: [
            # A batch without sequences only records that the user accepted a stream or subjects.
            each
            for each in journal_of(folders, source).entries().values()
            if each.end > each.start
        ]
        for source in config.sources
    }
    path = output or Path(f"{config.name}.html")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page(config.name, config.sink, logs), "utf-8")
    batches = sum(map(len, logs.values()))
    if as_json:
        print_json({"report": str(path), "batches": batches})
    else:
        print_text(f"{path}: {counted(batches, 'batch')}")
