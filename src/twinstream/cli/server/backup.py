"""`twinstream backup` and `restore`: copy a stream to a folder, and restore it from there."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from twinstream.cli.interrupts import ended_as_by_ctrl_c
from twinstream.cli.option_types import Bytes
from twinstream.cli.screen import counted, notes, print_json, print_text, transfer
from twinstream.cli.target import Target, json_option, server_options
from twinstream.cli.value_text import in_bytes

if TYPE_CHECKING:
    from rich.progress import Progress

    from js_sync import Connection
    from js_sync.backup import TransferProgress
    from twinstream.models import StreamState

_FOLDER = click.Path(file_okay=False, path_type=Path)
# The maximum seconds that the server may take to verify messages or to build a stream.
# It verifies the messages before a backup, and builds the stream at the end of a restore.
_LONGEST = 3600.0


@click.command(short_help="Copy a stream into a folder.")
@click.argument("stream")
@click.argument("folder", type=_FOLDER)
@click.option(
    "--consumers/--no-consumers",
    default=True,
    show_default=True,
    help="Whether to copy the consumers, too.",
)
@click.option("--check", is_flag=True, help="Let the server verify all messages first.")
@click.option("--overwrite", is_flag=True, help="Replace the backup in FOLDER.")
@click.option(
    "--chunk-size",
    type=Bytes(1024, 1 << 20),
    metavar="SIZE",
    help="How many bytes the server sends ahead.",
)
@json_option
@server_options
def backup(
    target: Target,
    stream: str,
    folder: Path,
    consumers: bool,
    check: bool,
    overwrite: bool,
    chunk_size: int | None,
    as_json: bool,
) -> None:
    """Copy STREAM, with its consumers, into FOLDER.

    FOLDER appears only when the copy is complete. `nats stream restore` can read it, too. The
    checksum is in SHA256SUMS.

    \b
    twinstream backup ORDERS backups/orders
    twinstream restore backups/orders
    """  # noqa: D301  # click needs the backspace character
    from js_sync.backup import backup_stream

    with _connected(target, shown=not as_json) as (nc, display):
        task = display.add_task(f"back up {stream}", total=None)

        def show(step: TransferProgress) -> None:
            # The total is the size of the stream, because the size of the archive is unknown
            # before the end.
            display.update(task, completed=step.unpacked, total=max(step.expected, step.unpacked))

        jet = target.jetstream(nc)
        made = backup_stream(
            jet,
            stream,
            folder,
            consumers=consumers,
            check=check,
            overwrite=overwrite,
            chunk_size=chunk_size or 128 * 1024,
            idle_timeout=_LONGEST if check else max(target.timeout, 60.0),
            on_progress=show,
        )
        display.update(task, completed=1, total=1, visible=False)
    if as_json:
        summary = {"folder": str(folder), "size": made.size, "sha256": made.sha256}
        print_json({"stream_name": stream, **_counts(made.state), **summary})
        return
    size = in_bytes(made.size)
    print_text(f"{stream}: {_words(made.state)}, in {folder} ({size})")


@click.command(short_help="Restore a stream from a folder.")
@click.argument("folder", type=_FOLDER)
@click.option("--replicas", type=click.IntRange(1, 5), help="Copies; as many as before by default.")
@json_option
@server_options
def restore(target: Target, folder: Path, replicas: int | None, as_json: bool) -> None:
    """Restore the stream from its backup in FOLDER, which `nats stream backup` may have created.

    The stream gets its original name, which must not be in use. The backup is checked before
    anything is sent.
    """
    from js_sync.backup import read_backup, restore_stream
    from twinstream.models import evolve

    stored = read_backup(folder)
    config = None if replicas is None else evolve(stored.config, num_replicas=replicas)
    with _connected(target, shown=not as_json) as (nc, display):
        task = display.add_task(f"restore {stored.stream_name}", total=stored.size)

        def show(step: TransferProgress) -> None:
            display.update(task, completed=step.transferred)

        jet = target.jetstream(nc)
        made = restore_stream(jet, folder, config=config, idle_timeout=_LONGEST, on_progress=show)
        display.update(task, visible=False)
    info = made.info() if nc.is_connected else made.cached_info
    assert info is not None
    if as_json:
        print_json({"stream_name": made.name, **_counts(info.state), "folder": str(folder)})
        return
    print_text(f"{made.name}: {_words(info.state)}, from {folder}")


@contextmanager
def _connected(target: Target, *, shown: bool) -> Generator[tuple[Connection, Progress]]:
    """Yield a connection and a progress display.

    A signal raises an error within the block, so that the SDK removes an incomplete transfer.
    """
    with (
        ended_as_by_ctrl_c(),
        target.connect() as nc,
        transfer(notes(), shown=shown) as display,
    ):
        yield nc, display


def _counts(state: StreamState) -> dict[str, int]:
    return {"messages": state.messages, "bytes": state.bytes, "last_seq": state.last_seq}


def _words(state: StreamState) -> str:
    return f"{counted(state.messages, 'message')}, {in_bytes(state.bytes)}"
