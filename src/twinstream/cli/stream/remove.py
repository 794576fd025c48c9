"""`twinstream stream rm`, `purge`, `rmm` and `seal`: operations that cannot be undone."""

from __future__ import annotations

import click

from twinstream.cli.confirm import sure, yes_option
from twinstream.cli.escapes import harmless
from twinstream.cli.option_types import SEQUENCE
from twinstream.cli.screen import counted, print_json, print_text
from twinstream.cli.target import Target, json_option, server_options
from twinstream.cli.value_text import in_bytes
from twinstream.models import StreamInfo


@click.command(short_help="Delete a stream with its messages and consumers.")
@click.argument("stream")
@yes_option
@json_option
@server_options
def rm(target: Target, stream: str, yes: bool, as_json: bool) -> None:
    """Delete STREAM with its messages and consumers."""
    with target.connect() as nc:
        jet = target.jetstream(nc)
        sure(f"Delete {_described(jet.bind_stream(stream).info())}?", yes=yes)
        jet.delete_stream(stream)
    if as_json:
        print_json({"stream_name": stream, "deleted": True})
    else:
        print_text(f"deleted {stream}")


@click.command(short_help="Remove messages from a stream.")
@click.argument("stream")
@click.option("--subject", metavar="FILTER", help="Only messages of these subjects.")
@click.option("--before", type=SEQUENCE, metavar="SEQ", help="Only those below SEQ.")
@click.option("--keep", type=SEQUENCE, metavar="N", help="All but the last N.")
@yes_option
@json_option
@server_options
def purge(
    target: Target,
    stream: str,
    subject: str | None,
    before: int | None,
    keep: int | None,
    yes: bool,
    as_json: bool,
) -> None:
    """Remove messages from STREAM: all, or those that the options select.

    The stream and its consumers are kept, and new messages continue the sequence numbers.

    \b
    twinstream stream purge ORDERS --subject 'orders.eu.>' --keep 100
    """  # noqa: D301  # click needs the backspace character
    if before is not None and keep is not None:
        raise click.UsageError("give --before or --keep, not both")
    with target.connect() as nc:
        handle = target.jetstream(nc).bind_stream(stream)
        which = f" that match {subject}" if subject else ""
        bound = f", below {before:,}" if before else f", but the last {keep:,}" if keep else ""
        description = _described(handle.info())
        sure(f"Remove the messages{which}{bound} from {description}?", yes=yes)
        count = handle.purge(subject=subject, before_seq=before, keep=keep)
    if as_json:
        print_json({"stream_name": stream, "purged": count})
    else:
        print_text(f"removed {counted(count, 'message')} from {stream}")


@click.command(short_help="Remove one message from a stream.")
@click.argument("stream")
@click.argument("seq", type=SEQUENCE)
@click.option("--erase", is_flag=True, help="Also overwrite its bytes on disk, which is slow.")
@yes_option
@json_option
@server_options
def rmm(target: Target, stream: str, seq: int, erase: bool, yes: bool, as_json: bool) -> None:
    """Remove the message at sequence SEQ from STREAM.

    The sequence is not used again. To print the message before: twinstream get STREAM --seq SEQ
    """
    with target.connect() as nc:
        handle = target.jetstream(nc).bind_stream(stream)
        if not yes:
            found = handle.get_message(seq)
            which = f"{harmless(found.subject)}, {in_bytes(len(found.data))}"
            sure(f"Remove message {seq:,} of {stream} ({which})?", yes=yes)
        handle.delete_message(seq, erase=erase)
    if as_json:
        print_json({"stream_name": stream, "removed": seq})
    else:
        print_text(f"removed message {seq:,} from {stream}")


@click.command(short_help="Make a stream permanently read-only.")
@click.argument("stream")
@yes_option
@json_option
@server_options
def seal(target: Target, stream: str, yes: bool, as_json: bool) -> None:
    """Make STREAM permanently read-only: nothing can be added or removed, not even by its limits.

    The stream can still be read, and deleted as a whole. Sealing cannot be undone.
    """
    with target.connect() as nc:
        handle = target.jetstream(nc).bind_stream(stream)
        sure(f"Seal {_described(handle.info())}, permanently?", yes=yes)
        handle.seal()
    if as_json:
        print_json({"stream_name": stream, "sealed": True})
    else:
        print_text(f"sealed {stream}")


def _described(info: StreamInfo) -> str:
    state = info.state
    messages = counted(state.messages, "message")
    consumers = counted(state.consumer_count, "consumer")
    return f"{info.config.name} ({messages}, {consumers})"
