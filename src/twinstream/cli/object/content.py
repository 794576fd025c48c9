"""`twinstream object put`, `get`, `del`, `info`, `ls` and `watch`.

They work on objects; `del`, `info` and `ls` also on whole object stores.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from twinstream.cli.confirm import check_what, sure, whole_bucket_option, yes_option
from twinstream.cli.failures import Failure
from twinstream.cli.interrupts import asked_to_stop, ended_as_by_ctrl_c
from twinstream.cli.listing_gaps import note_undescribed, undescribed
from twinstream.cli.names import names_option, print_names
from twinstream.cli.object.view import (
    UNREADABLE,
    info_members,
    kind_of,
    show_info,
    show_infos,
    show_status,
    status_members,
)
from twinstream.cli.option_types import Bytes
from twinstream.cli.screen import (
    alerts,
    counted,
    notes,
    plain_table,
    print_json,
    print_none,
    print_text,
    results,
    shown_time,
    transfer,
)
from twinstream.cli.target import Target, json_option, server_options
from twinstream.cli.value_text import Size, in_bytes

if TYPE_CHECKING:
    from js_sync import JetStream, ObjectStore, ObjectWatch
    from twinstream.core.object_store.chunks import ObjectProgress
    from twinstream.models import ObjectInfo

# The maximum seconds of a wait for a change, so that Ctrl-C takes effect soon.
_TURN = 0.25


@click.command(short_help="Store a file.")
@click.argument("bucket")
@click.argument(
    "file",
    metavar="FILE",
    required=False,
    type=click.Path(exists=True, dir_okay=False, allow_dash=True),
)
@click.option("--name", metavar="NAME", help="The object's name; by default that of the file.")
@click.option("--description", metavar="TEXT", help="What the object is.")
@click.option(
    "--header", "-H", "headers", multiple=True, metavar="NAME:VALUE", help="A header to keep."
)
@click.option("--metadata", multiple=True, metavar="KEY=VALUE", help="A text to keep.")
@click.option("--chunk-size", type=Bytes(), metavar="SIZE", help="Bytes per message; 128 KiB.")
@click.option("--progress/--no-progress", default=True, help="Show the progress.")
@yes_option
@json_option
@server_options
def put(
    target: Target,
    bucket: str,
    file: str | None,
    name: str | None,
    description: str | None,
    headers: tuple[str, ...],
    metadata: tuple[str, ...],
    chunk_size: int | None,
    progress: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Store FILE in BUCKET. The FILE - is standard input, which needs a --name.

    An existing object of this name is replaced once the new one is stored completely. With the
    FILE -, this needs --yes.

    \b
    twinstream object put FILES report.pdf --yes
    tar c src | twinstream object put FILES - --name src.tar --yes
    """  # noqa: D301  # click needs the backspace character
    from js_sync import ObjectMeta

    if file is None:
        raise click.UsageError("Missing argument 'FILE'. For standard input, give - with a --name.")
    is_input = file == "-"
    if is_input and name is None:
        raise click.UsageError("standard input needs a --name")
    meta = ObjectMeta(
        name or Path(file).name,
        description=description,
        headers=_grouped(headers) or None,
        metadata=dict(_pair(text, "=", "--metadata") for text in metadata) or None,
        chunk_size=chunk_size,
    )
    size = None if is_input else Path(file).stat().st_size
    with (
        ended_as_by_ctrl_c(),
        target.connect() as nc,
        transfer(notes(), shown=progress and not as_json) as display,
    ):
        store = target.jetstream(nc).get_object_store(bucket)
        if not yes:
            _ask_to_replace(store, meta.name, is_input=is_input)
        task = display.add_task(f"put {meta.name}", total=size)

        def show(step: ObjectProgress) -> None:
            display.update(task, completed=step.transferred)

        if is_input:
            made = store.put(meta, sys.stdin.buffer, on_progress=show)
        else:
            made = store.put_file(file, name=meta, on_progress=show)
        display.update(task, visible=False)
    if as_json:
        print_json(info_members(made))
    else:
        print_text(f"{bucket}: {made.name}, {in_bytes(made.size or 0)}, {made.digest}")


def _ask_to_replace(store: ObjectStore, name: str, *, is_input: bool) -> None:
    """Ask whether to replace the object `name`, if it exists.

    Raises `Failure` if the user declines, or cannot answer because standard input is the content.
    """
    from js_sync import ObjectNotFound
    from twinstream.errors import InvalidObjectInfo

    try:
        what = _what_it_is(store.info(name))
    except InvalidObjectInfo:
        what = UNREADABLE
    except ObjectNotFound:
        return
    if is_input:
        # The answer would be read from the content.
        raise Failure(
            f"the object {name!r} exists, and standard input is the new content, so it cannot"
            " answer whether to replace it; nothing was done; add --yes to replace it"
        )
    sure(f"Replace {name} ({what})?", yes=False)


def _what_it_is(info: ObjectInfo) -> str:
    return f"{in_bytes(info.size or 0)}, {_time(info)}"


def _time(info: ObjectInfo) -> str:
    return shown_time(info.mtime) if info.mtime is not None else ""


def _grouped(headers: tuple[str, ...]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for text in headers:
        name, value = _pair(text, ":", "--header")
        found.setdefault(name, []).append(value.strip())
    return found


def _pair(text: str, separator: str, option: str) -> tuple[str, str]:
    name, found, value = text.partition(separator)
    if not found or not name:
        raise click.UsageError(f"{option} {text!r} is not of the form NAME{separator}VALUE")
    return name, value


@click.command(short_help="Write an object to a file.")
@click.argument("bucket")
@click.argument("name")
@click.option("--output", "-O", metavar="FILE", help="The file to write; - is standard output.")
@click.option("--resume", is_flag=True, help="Continue an earlier, failed attempt.")
@click.option("--progress/--no-progress", default=True, help="Show the progress.")
@yes_option
@json_option
@server_options
def get(
    target: Target,
    bucket: str,
    name: str,
    output: str | None,
    resume: bool,
    progress: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Write the object NAME of BUCKET to a file with the same name, without its folders.

    The file is created after the content is complete and matches its digest. On standard output,
    the last part of the content is written only then.
    """
    to_output = output == "-"
    if to_output and (resume or as_json):
        raise click.UsageError("standard output takes neither --resume nor --json")
    path = Path(output or Path(name).name)
    if not output and path.name in {"", ".."}:
        raise click.UsageError(f"{name!r} contains no name of a file; add --output FILE")
    if not to_output and path.exists():
        sure(f"Replace the file {path}?", yes=yes)
    with (
        ended_as_by_ctrl_c(),
        target.connect() as nc,
        transfer(notes(), shown=progress and not as_json) as display,
    ):
        store = target.jetstream(nc).get_object_store(bucket)
        task = display.add_task(f"get {name}", total=None)

        def show(step: ObjectProgress) -> None:
            display.update(task, completed=step.transferred, total=step.size)

        if to_output:
            with store.get(name, on_progress=show) as reader:
                for piece in reader:
                    sys.stdout.buffer.write(piece)
                sys.stdout.buffer.flush()
            return
        info = store.get_file(name, path, resume=resume, on_progress=show)
        display.update(task, visible=False)
    if as_json:
        print_json({**info_members(info), "file": str(path)})
    else:
        print_text(f"{path}: {in_bytes(info.size or 0)}, {info.digest}")


@click.command("del", short_help="Delete an object, or a whole store.")
@click.argument("bucket")
@click.argument("name", required=False)
@whole_bucket_option
@yes_option
@json_option
@server_options
def delete(
    target: Target, bucket: str, name: str | None, whole: bool, yes: bool, as_json: bool
) -> None:
    """Delete the object NAME of BUCKET; with --bucket, the store BUCKET with all its objects."""
    check_what(name, whole=whole, argument="NAME")
    with target.connect() as nc:
        jet = target.jetstream(nc)
        store = jet.get_object_store(bucket)
        if name is None:
            sure(f"Delete {bucket} ({in_bytes(store.status().size)})?", yes=yes)
            jet.delete_object_store(bucket)
        else:
            sure(f"Delete {name}{_size_of(store, name)} of {bucket}?", yes=yes)
            store.delete(name)
    if as_json:
        print_json({"bucket": bucket, "name": name, "deleted": True})
    else:
        print_text(f"deleted {name or bucket}")


def _size_of(store: ObjectStore, name: str) -> str:
    """Return the size of an object in parentheses, or "" if there is no such object."""
    from js_sync import ObjectNotFound
    from twinstream.errors import InvalidObjectInfo, ObjectDeleted

    try:
        return f" ({in_bytes(store.info(name).size or 0)})"
    except InvalidObjectInfo:
        return f" ({UNREADABLE})"
    except ObjectDeleted:
        raise
    except ObjectNotFound:
        # `delete` raises this error, unless it finds metadata with an invalid subject.
        return ""


@click.command(short_help="Describe an object, or a store.")
@click.argument("bucket", required=False)
@click.argument("name", required=False)
@json_option
@server_options
def info(target: Target, bucket: str | None, name: str | None, as_json: bool) -> None:
    """Describe the object NAME of BUCKET, the store BUCKET, or all stores."""
    with target.connect() as nc:
        jet = target.jetstream(nc)
        if bucket is None:
            _list_stores(jet, names=False, as_json=as_json)
        elif name is None:
            status = jet.get_object_store(bucket).status()
            print_json(status_members(status)) if as_json else show_status(status)
        else:
            found = jet.get_object_store(bucket).info(name)
            print_json(info_members(found)) if as_json else show_info(found)


@click.command(short_help="List objects, or stores.")
@click.argument("bucket", required=False)
@names_option
@click.option("--deleted", is_flag=True, help="Also deleted objects.")
@json_option
@server_options
def ls(target: Target, bucket: str | None, names: bool, deleted: bool, as_json: bool) -> None:
    """List the objects of BUCKET, or all object stores."""
    with target.connect() as nc:
        jet = target.jetstream(nc)
        if bucket is None:
            _list_stores(jet, names=names, as_json=as_json)
            return
        found = list(jet.get_object_store(bucket).list(deleted=deleted))
    found.sort(key=lambda each: each.name)
    if as_json:
        for each in found:
            print_json(info_members(each))
    elif names:
        print_names((each.name for each in found), "name", as_json=False)
    elif found:
        show_infos(found)
    else:
        print_none("no objects")
    damaged = sum(kind_of(each) == UNREADABLE for each in found)
    if damaged:
        alerts().print(
            f"the description of {counted(damaged, 'object')} cannot be read: --json shows why,"
            " `twinstream object del` removes it",
            style="yellow",
            soft_wrap=True,
        )


def _list_stores(jet: JetStream, *, names: bool, as_json: bool) -> None:
    """Print the names of the object stores, or a line for each with its state."""
    listing = jet.object_stores()
    found = sorted(listing, key=lambda status: status.bucket)
    unknown = undescribed(listing)
    if as_json:
        for status in found:
            print_json(status_members(status))
        for name, reason in unknown.items():
            print_json({"config": {"bucket": name}, "undescribed": reason})
        return
    if names:
        print_names((status.bucket for status in found), "bucket", as_json=False)
    elif found:
        table = plain_table("bucket", "size", "description", "state", numbers=("size",))
        for status in found:
            special = "sealed" if status.is_sealed else ""
            if status.mirror_of:
                special = f"mirror of {status.mirror_of}"
            size = Size(status.size)
            table.add_row(status.bucket, size, status.config.description or "", special)
        results().print(table)
    elif not unknown:
        print_none("no object stores")
    note_undescribed(listing)


@click.command(short_help="Show changes as they happen.")
@click.argument("bucket")
@click.option("--updates", is_flag=True, help="Show only later changes.")
@click.option("--count", "-n", type=click.IntRange(min=1), help="Stop after this many.")
@json_option
@server_options
def watch(target: Target, bucket: str, updates: bool, count: int | None, as_json: bool) -> None:
    """Show the objects of BUCKET, and then each change, until Ctrl-C."""
    shown = 0
    with target.connect(keep_trying=True) as nc, asked_to_stop() as stop:
        store = target.jetstream(nc).get_object_store(bucket)
        with store.watch(updates_only=updates) as changes:
            nc.flush()
            notes().print(f"watching {bucket}", style="dim")
            while not stop.is_set() and (count is None or shown < count):
                shown += _show_next(changes, as_json=as_json)


def _show_next(changes: ObjectWatch, *, as_json: bool) -> int:
    """Print the next change of a store; return 1, or 0 if none arrived in `_TURN` seconds.

    Raises `Failure` after the end of the watch.
    """
    from js_sync import IterationEnded

    try:
        found = changes.next(timeout=_TURN)
    except IterationEnded as error:
        raise Failure("the watch has ended") from error
    if found is None:
        return 0
    if as_json:
        print_json(info_members(found))
    else:
        line = f"{_time(found)}  {found.name}  {kind_of(found) or in_bytes(found.size or 0)}"
        print_text(line)
    return 1
