"""The command: its options and their defaults."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import click

from twinstream.cli.failures import Failure, reported
from twinstream.cli.screen import notes, print_json, results
from twinstream.cli.target import json_option

_ORDERS: Final = Path(__file__).parents[1] / "orders"
MIN_EVENTS: Final = 100


class Reporting(click.Command):
    """A command that reports errors that the user can fix without a traceback."""

    def invoke(self, ctx: click.Context) -> object:
        """Run the command."""
        with reported():
            return super().invoke(ctx)


def _check_spark() -> None:
    """Raise `Failure` if a package for Spark is missing. This is checked before step 1."""
    for package in ("pyspark", "pyarrow"):
        if find_spec(package) is None:
            raise Failure(
                f"landing in Parquet needs {package}, which is not installed; install Twinstream"
                " with its extras spark and java (in a clone: pip install '.[spark,java]'), or"
                " leave the step out with --no-spark"
            )
    from twinstream.spark.session.java import ensure

    ensure()


def _from_here(folder: Path) -> Path:
    """Return the path of a folder; relative if the folder is below the working directory."""
    here = Path.cwd()
    return folder.relative_to(here) if folder.is_relative_to(here) else folder


@click.command(cls=Reporting)
@click.option(
    "--events",
    type=click.IntRange(min=MIN_EVENTS),
    default=20_000,
    show_default=True,
    help="How many order events to publish.",
)
@click.option("--spark/--no-spark", default=True, help="Whether to land Parquet tables.")
@click.option(
    "--report",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("demo-report.html"),
    show_default=True,
    help="The page to write.",
)
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    help="Keep the Parquet tables in this folder, which must be empty or new.",
)
@json_option
def demo(events: int, spark: bool, report: Path, output: Path | None, as_json: bool) -> None:
    """Run all six steps on a real server that is started for the demo. Takes about a minute.

    Checks configurations, publishes order events, consumes them with js_sync and js_async, prints
    the advisories of the server, lands all messages in Parquet with Spark, and compares the
    numbers. Exits with 1 if they differ. Needs the extras cli and server and, for Spark, spark and
    java.
    """
    from examples.demo.scene import Settings
    from examples.demo.story import tell

    if spark:
        _check_spark()
    if output is not None and output.exists() and any(output.iterdir()):
        raise click.BadParameter(f"{output} is not empty", param_hint="--output")
    with TemporaryDirectory(prefix="twinstream-demo-") as scratch:
        settings = Settings(
            events=events,
            spark=spark,
            examples=_from_here(_ORDERS),
            output=output or Path(scratch) / "tables",
            report=report,
        )
        console = notes(markup=True) if as_json else results(markup=True)
        sums = tell(settings, console)
    off = [check.name for check in sums if not check.passed]
    console.print(f"Report: [bold]{report}[/]", soft_wrap=True)
    if as_json:
        sums_found = {
            check.name: {"expected": check.expected, "found": check.found} for check in sums
        }
        print_json({"passed": not off, "sums": sums_found, "report": str(report)})
    if off:
        raise Failure(f"these numbers are wrong: {', '.join(off)}")
    console.print("[bold green]All numbers agree.[/]")
