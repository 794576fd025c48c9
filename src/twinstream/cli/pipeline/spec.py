"""`twinstream pipeline spec`: write a Spark Declarative Pipelines project for a pipeline."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from twinstream.cli.pipeline.options import config_options
from twinstream.cli.screen import print_json, print_text
from twinstream.cli.target import json_option

if TYPE_CHECKING:
    from twinstream.spark.pipeline import PipelineConfig


@click.command(short_help="Write a Spark Declarative Pipelines project.")
@config_options
@click.option(
    "--output",
    "-o",
    required=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="The project's folder, new or empty.",
)
@json_option
def spec(config: PipelineConfig, output: Path, as_json: bool) -> None:
    """Write a project for `spark-pipelines run` with a streaming table for each stream.

    A second table contains messages that do not match the schema. Advisories are in one table with
    a column for each kind. Bookmarks, purges, and the commands that maintain tables work only with
    tables of `twinstream pipeline run`.
    """
    from twinstream.spark.pipeline.declarative import write_project

    files = write_project(config, output)
    if as_json:
        print_json({"files": [str(file) for file in files]})
        return
    for file in files:
        print_text(str(file))
