"""`twinstream pipeline letters`: count dead letters, land them again, publish them."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import click
from attrs import asdict

from twinstream.cli.confirm import sure, yes_option
from twinstream.cli.failures import Failure, arguments_judged
from twinstream.cli.pipeline.options import (
    config_options,
    end_of_range,
    note_turn,
    pick,
    range_options,
    source_option,
    spark_of,
)
from twinstream.cli.screen import (
    alerts,
    counted,
    notes,
    plain_table,
    print_json,
    print_table,
    print_text,
    progress,
    shown_time,
)
from twinstream.cli.target import json_option
from twinstream.cli.value_text import rfc3339
from twinstream.core.wire.subjects import check_subject

if TYPE_CHECKING:
    from twinstream.lake.entry import BatchEntry
    from twinstream.spark.pipeline import PipelineConfig, SourceConfig
    from twinstream.spark.pipeline.letters.summary import LettersSummary

# The maximum number of sequences that an error lists.
_SHOWN: Final = 20


@click.command(short_help="Count dead letters by reason.")
@config_options
@click.option("--source", metavar="NAME", help="Only letters of this source.")
@json_option
def count(config: PipelineConfig, source: str | None, as_json: bool) -> None:
    """Show how many messages do not match their schema: by reason, with the first and the last.

    Reasons are shown without the values that differ between messages. The command reads only the
    tables and needs no server.
    """
    from twinstream.spark.pipeline.letters.summary import letters_of

    chosen = config.sources if source is None else (pick(config, source),)
    found = [letters_of(config, each) for each in chosen]
    if as_json:
        print_json({"sources": [_as_json(each) for each in found]})
    else:
        _show(found)
    for each in found:
        if each.is_interrupted:
            alerts().print(
                f"{each.source}: a replay of dead letters is not finished, so some of them are in"
                " their tables already; the next twinstream pipeline run finishes it"
            )


def _as_json(summary: LettersSummary) -> dict[str, Any]:
    """Return the summary of a source as a JSON object."""
    return {
        "source": summary.source,
        "letters": summary.letters,
        "reasons": [
            {
                name: rfc3339(value) if isinstance(value, datetime) else value
                for name, value in asdict(each).items()
            }
            for each in summary.reasons
        ],
        "interrupted": summary.is_interrupted,
    }


def _show(found: list[LettersSummary]) -> None:
    """Print a table with a line for each reason of each source."""
    numbers = ("letters", "first", "last")
    table = plain_table(
        "source", "letters", "reason", "first", "at", "last", "until", numbers=numbers
    )
    for summary in found:
        for each in summary.reasons:
            table.add_row(
                summary.source,
                f"{each.count:,}",
                each.reason,
                each.first_seq,
                shown_time(each.first_time),
                each.last_seq,
                shown_time(each.last_time),
            )
    print_table(table, "no dead letters")


@click.command(short_help="Land dead letters again from their files.")
@config_options
@source_option
@range_options()
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
    """Land the dead letters of all batches again, or of those that contain the sequences.

    Use this command after a change of the schema. It reads the letters from their table, so the
    stream need not have the messages. Letters that fit now move to their tables, exactly once;
    the others stay, with the reason of now. Meanwhile, a running pipeline lands no batches. A
    second replay changes nothing.
    """
    from twinstream.spark.pipeline.letters.letters_report import LettersReport
    from twinstream.spark.pipeline.letters.replay import replay_letters

    chosen, due, end = _chosen(config, source, low, high)
    letters = sum(each.dead_letters for each in due)
    what = f"{counted(letters, 'dead letter')} of {counted(len(due), 'batch')} of {chosen.name}"
    sure(f"Land {what} again?", yes=yes or not due)
    if due:
        note_turn(config)
        with spark_of(config) as spark, progress(notes(), shown=not as_json) as display:
            task = display.add_task("batches", total=len(due))
            done = replay_letters(
                spark, config, chosen, low, end, tell=lambda more: display.advance(task, more)
            )
    else:
        done = LettersReport(source=chosen.name, letters=0, left=0, batches=[])
    if as_json:
        print_json({**asdict(done), "landed": done.landed})
        return
    print_text(f"landed {counted(done.landed, 'dead letter')} again, {done.left:,} left")


@click.command(short_help="Publish dead letters to a subject.")
@click.argument("subject")
@config_options
@source_option
@range_options()
@yes_option
@json_option
def publish(
    config: PipelineConfig,
    subject: str,
    source: str | None,
    low: int,
    high: int | None,
    yes: bool,
    as_json: bool,
) -> None:
    """Publish the dead letters of all batches, or of those that contain the sequences, to SUBJECT.

    The payload is that of the message; headers have its stream, sequence and reason. The stream of
    SUBJECT confirms each letter. A second run within its duplicate window stores no letter twice.
    Letters that it refuses, for example because they are too large, are named at the end.
    The letters stay in their table. Meanwhile, a running pipeline lands no batches.
    """
    from twinstream.spark.pipeline.letters.publish import publish_letters

    with arguments_judged():
        check_subject(subject)
    chosen, due, end = _chosen(config, source, low, high)
    letters = sum(each.dead_letters for each in due)
    sure(f"Publish {counted(letters, 'dead letter')} to {subject}?", yes=yes or not due)
    note_turn(config)
    with progress(notes(), shown=not as_json) as display:
        task = display.add_task("letters", total=letters)
        done = publish_letters(
            config,
            chosen,
            subject,
            low,
            end,
            tell=lambda number: display.update(task, completed=number),
        )
    if as_json:
        print_json(asdict(done))
    else:
        print_text(
            f"published {counted(done.published, 'dead letter')} to {subject} (stream"
            f" {done.stream}), which had {done.repeated:,} already; it recognizes repeated ones for"
            f" {done.window:g} s"
        )
    if done.refused:
        shown = ", ".join(map(str, done.refused[:_SHOWN]))
        more = ", …" if len(done.refused) > _SHOWN else ""
        raise Failure(
            f"{counted(len(done.refused), 'dead letter')} of {chosen.name} could not be published,"
            f" of sequence {shown}{more}; the reason of the first: {done.reason}"
        )


def _chosen(
    config: PipelineConfig, source: str | None, low: int, high: int | None
) -> tuple[SourceConfig, list[BatchEntry], int | None]:
    """Return the source, its batches with letters in a range, and the end of the range."""
    from twinstream.spark.pipeline.letters.replay import batches_with_letters
    from twinstream.spark.pipeline.settings.folders import Folders
    from twinstream.spark.pipeline.state.source_state import journal_of

    end = end_of_range(low, high)
    chosen = pick(config, source)
    if chosen.format == "raw":
        raise click.UsageError(f"source {chosen.name} is raw, so it has no dead letters")
    entries = journal_of(Folders.of(config.path), chosen).entries()
    return chosen, batches_with_letters(entries, low, end), end
