"""`twinstream kv get`, `put` and other commands for the keys of a bucket."""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Final

import click

from twinstream.cli.confirm import check_what, sure, whole_bucket_option, yes_option
from twinstream.cli.failures import NotThere
from twinstream.cli.kv.view import entry_as_json, show_entries
from twinstream.cli.message.message_view import printable
from twinstream.cli.message.payloads import argument, standard_input
from twinstream.cli.message.start_position import Moment
from twinstream.cli.option_types import SEQUENCE, Life
from twinstream.cli.screen import (
    counted,
    notes,
    print_json,
    print_text,
    shown_time,
    to_terminal,
    write_bytes,
)
from twinstream.cli.target import Target, json_option, server_options
from twinstream.records.publish_request import Ttl

if TYPE_CHECKING:
    from js_sync import KeyValue

_TTL: Final = click.option(
    "--ttl", type=Life(), metavar="DURATION", help="How long it lives (server 2.11)."
)


@contextmanager
def opened(target: Target, bucket: str) -> Generator[KeyValue[bytes]]:
    """Within the block, the bucket, on a connection of its own."""
    with target.connect() as nc:
        yield target.jetstream(nc).get_key_value(bucket)


def _value(text: str | None) -> bytes:
    """Return the bytes of an argument; without an argument, or with `-`, read standard input."""
    if text is None or text == "-":
        return b"".join(standard_input(threading.Event()))
    return argument(text)


def print_revision(bucket: str, key: str, revision: int, as_json: bool) -> None:
    """Print the new revision of a key."""
    if as_json:
        print_json({"bucket": bucket, "key": key, "revision": revision})
    else:
        print_text(f"{key} is at revision {revision}")


@click.command(short_help="Print the value of a key.")
@click.argument("bucket")
@click.argument("key")
@click.option("--revision", type=SEQUENCE, help="Print this older revision.")
@click.option("--at", type=Moment("revision"), metavar="MOMENT", help="The value at this moment.")
@click.option("--raw", is_flag=True, help="The bytes of the value, also on a terminal.")
@json_option
@server_options
def get(
    target: Target,
    bucket: str,
    key: str,
    revision: int | None,
    at: int | datetime | None,
    raw: bool,
    as_json: bool,
) -> None:
    """Print the value of KEY in BUCKET. The exit code is 3 if KEY has no value.

    --at takes a revision of the bucket, an age such as 2h, a time of day such as 14:05, or a time
    in RFC 3339. It is refused if the bucket does not hold its whole state at this moment.

    Into a file or a pipe, exactly the bytes of the value are written. On a terminal, control
    characters are escaped and a newline follows, unless --raw is given. The revision and its time
    are shown above it, on standard error.
    """
    if revision is not None and at is not None:
        raise click.UsageError("give --revision or --at, not both")
    with opened(target, bucket) as found:
        if at is None:
            entry = found.get(key, revision=revision)
        elif key not in (then := found.at(at, key)):
            raise NotThere(f"bucket {bucket} had no key {key!r} then, at revision {then.revision}")
        else:
            entry = then[key]
    if as_json:
        print_json(entry_as_json(entry))
    elif raw or not to_terminal():
        write_bytes(entry.value or b"")
    else:
        head = f"{bucket}/{key} at revision {entry.revision}, {shown_time(entry.created)}"
        notes().print(head, style="dim", soft_wrap=True)
        print_text(printable(entry.value or b""))


@click.command(short_help="Store a value.")
@click.argument("bucket")
@click.argument("key")
@click.argument("value", required=False)
@_TTL
@json_option
@server_options
def put(
    target: Target, bucket: str, key: str, value: str | None, ttl: Ttl | None, as_json: bool
) -> None:
    """Store VALUE, or standard input, as the value of KEY in BUCKET."""
    data = _value(value)
    with opened(target, bucket) as found:
        print_revision(bucket, key, found.put(key, data, ttl=ttl), as_json)


@click.command(short_help="Store a value if the key has none.")
@click.argument("bucket")
@click.argument("key")
@click.argument("value", required=False)
@_TTL
@json_option
@server_options
def create(
    target: Target, bucket: str, key: str, value: str | None, ttl: Ttl | None, as_json: bool
) -> None:
    """Store VALUE, or standard input, unless KEY already has a value in BUCKET."""
    data = _value(value)
    with opened(target, bucket) as found:
        print_revision(bucket, key, found.create(key, data, ttl=ttl), as_json)


@click.command(short_help="Replace the value of a given revision.")
@click.argument("bucket")
@click.argument("key")
@click.argument("value")
@click.argument("revision", type=SEQUENCE)
@json_option
@server_options
def update(target: Target, bucket: str, key: str, value: str, revision: int, as_json: bool) -> None:
    """Store VALUE (- is standard input) if KEY of BUCKET is still at REVISION."""
    data = _value(value)
    with opened(target, bucket) as found:
        print_revision(bucket, key, found.update(key, data, revision), as_json)


@click.command("del", short_help="Delete keys, or a bucket.")
@click.argument("bucket")
@click.argument("keys", metavar="[KEY]...", nargs=-1)
@whole_bucket_option
@yes_option
@json_option
@server_options
def delete(
    target: Target, bucket: str, keys: tuple[str, ...], whole: bool, yes: bool, as_json: bool
) -> None:
    """Delete each KEY of BUCKET and leave markers. With --bucket, delete the bucket.

    Several keys, and keys with the wildcards * and >, are deleted if they have a value.
    """
    check_what(keys[0] if keys else None, whole=whole, argument="KEY")
    if not keys:
        with target.connect() as nc:
            jet = target.jetstream(nc)
            values = counted(jet.get_key_value(bucket).status().values, "value")
            sure(f"Delete the bucket {bucket} ({values})?", yes=yes)
            jet.delete_key_value(bucket)
        if as_json:
            print_json({"bucket": bucket, "deleted": True})
        else:
            print_text(f"deleted bucket {bucket}")
        return
    with opened(target, bucket) as found:
        sure(f"Delete {' '.join(keys)} of {bucket}?", yes=yes)
        if _is_one(keys):
            print_revision(bucket, keys[0], found.delete(keys[0]), as_json)
        else:
            _print_count(bucket, "deleted", found.delete_many(keys), as_json)


def _is_one(keys: tuple[str, ...]) -> bool:
    """Return whether the arguments are one key without wildcards."""
    return len(keys) == 1 and not {"*", ">"}.intersection(keys[0].split("."))


def _print_count(bucket: str, done: str, count: int, as_json: bool) -> None:
    if as_json:
        print_json({"bucket": bucket, done: count})
    else:
        print_text(f"{done} {counted(count, 'key')} of {bucket}")


@click.command(short_help="Delete keys with their history.")
@click.argument("bucket")
@click.argument("keys", metavar="[KEY]...", nargs=-1)
@click.option("--all", "every", is_flag=True, help="All keys that have a value.")
@click.option(
    "--ttl", type=Life(), metavar="DURATION", help="How long the marker stays (server 2.11)."
)
@yes_option
@json_option
@server_options
def purge(
    target: Target,
    bucket: str,
    keys: tuple[str, ...],
    every: bool,
    ttl: Ttl | None,
    yes: bool,
    as_json: bool,
) -> None:
    """Remove all revisions of each KEY from BUCKET and leave markers.

    Several keys, and keys with the wildcards * and >, are purged if they have a value.
    """
    if bool(keys) is every:
        raise click.UsageError("give a KEY, or --all")
    with opened(target, bucket) as found:
        if keys and _is_one(keys):
            sure(f"Purge {keys[0]} of {bucket}?", yes=yes)
            print_revision(bucket, keys[0], found.purge(keys[0], ttl=ttl), as_json)
            return
        what = "all keys" if every else " ".join(keys)
        sure(f"Purge {what} of {bucket}?", yes=yes)
        count = found.delete_many(keys or ">", purge=True, ttl=ttl)
    _print_count(bucket, "purged", count, as_json)


@click.command(short_help="Show the revisions of a key.")
@click.argument("bucket")
@click.argument("key")
@json_option
@server_options
def history(target: Target, bucket: str, key: str, as_json: bool) -> None:
    """Show the kept revisions of KEY in BUCKET, oldest first.

    The exit code is 3 if KEY has no revisions.
    """
    with opened(target, bucket) as found:
        entries = found.history(key)
    if as_json:
        for entry in entries:
            print_json(entry_as_json(entry))
    else:
        show_entries(entries)
