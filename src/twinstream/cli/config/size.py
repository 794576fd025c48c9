"""`twinstream size`: calculate the storage size of messages in a stream."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import click
from attrs import asdict

from twinstream.cli.config.sizing import Estimate, Planned, calculated, measured
from twinstream.cli.message.payloads import parse_headers
from twinstream.cli.option_types import Bytes
from twinstream.cli.screen import counted, print_json, results
from twinstream.cli.table import Page
from twinstream.cli.target import Target, json_option, server_options
from twinstream.cli.value_text import Size
from twinstream.core.wire.subjects import check_subject

if TYPE_CHECKING:
    from js_sync import Stream

_WHOLE = click.IntRange(min=0)
# How many subjects of a stream are measured.
_SAMPLE = 1_000


@click.command(short_help="Calculate the size of messages in a stream.")
@click.option("--subject", default="", metavar="TEXT", help="A typical subject.")
@click.option("--payload", type=Bytes(min=0), metavar="SIZE", help="Size of a typical payload.")
@click.option(
    "--header", "-H", "headers", multiple=True, metavar="'NAME: VALUE'", help="A typical header."
)
@click.option("--live", "stream", metavar="STREAM", help="Take the average of this stream instead.")
@click.option("--messages", type=_WHOLE, metavar="N", help="Number of messages.")
@click.option("--subjects", type=_WHOLE, metavar="N", help="Number of different subjects.")
@click.option("--max-bytes", type=Bytes(), metavar="SIZE", help="How many messages fit in this?")
@click.option("--storage", type=click.Choice(["file", "memory"]), help="[default: file]")
@click.option("--replicas", type=click.IntRange(1, 5), help="Copies in a cluster.  [default: 1]")
@json_option
@server_options
def size(
    target: Target,
    subject: str,
    payload: int | None,
    headers: tuple[str, ...],
    stream: str | None,
    messages: int | None,
    subjects: int | None,
    max_bytes: int | None,
    storage: str | None,
    replicas: int | None,
    as_json: bool,
) -> None:
    """Calculate the size of messages as the server counts it for max_bytes.

    Describe a typical message with --subject, --payload and --header, which needs no server. Or use
    the average message of an existing stream with --live. Compression makes files smaller, and
    indexes make them slightly larger; neither counts for max_bytes. The server keeps an index of
    the subjects in memory: with --subjects, or --live, its approximate size is shown.
    """
    if (payload is None) == (stream is None):
        raise click.UsageError("give one of --payload (and --subject), or --live STREAM")
    if stream is not None and (subject or headers or storage):
        raise click.UsageError("--live knows subjects, headers and storage; leave them out")
    planned = Planned(messages=messages, max_bytes=max_bytes, replicas=replicas, subjects=subjects)
    if stream is not None:
        with target.connect() as nc:
            jet = target.jetstream(nc)
            found = jet.get_stream(stream)
            estimate = measured(found.info(), planned, _letters(found))
    else:
        if subject:
            check_subject(subject)
        pairs = parse_headers(headers)
        estimate = calculated(subject, payload or 0, pairs, storage or "file", planned)
    if as_json:
        print_json(asdict(estimate))
    else:
        _show(estimate)


def _letters(stream: Stream) -> float:
    """Return the average length of the first subjects of a stream; 0 without subjects."""
    lengths = [len(subject.encode()) for subject, _ in islice(stream.subjects(), _SAMPLE)]
    return sum(lengths) / len(lengths) if lengths else 0.0


def _show(estimate: Estimate) -> None:
    """Print an estimate as a table, without the figures that are unknown."""
    table = Page()
    table.add_row("a message", Size(round(estimate.message)))
    if estimate.overhead is not None:
        table.add_row("  of it beside payload and headers", Size(estimate.overhead))
    table.add_row(counted(estimate.messages, "message"), Size(estimate.bytes))
    if estimate.replicas > 1:
        total = Size(estimate.total)
        table.add_row(f"on {estimate.replicas} servers together", total)
    if estimate.fitting is not None:
        table.add_row("messages that fit in max_bytes", estimate.fitting)
    if estimate.index is not None:
        subjects = counted(estimate.subjects or 0, "subject")
        table.add_row(f"memory for the index of {subjects}, about", Size(estimate.index))
    if estimate.bytes_a_day is not None:
        table.add_row("growth a day at the rate so far", Size(estimate.bytes_a_day))
    if estimate.bytes_at_max_age is not None:
        table.add_row("size when max_age is reached", Size(estimate.bytes_at_max_age))
    results().print(table)
