"""Print entries and buckets for people, or convert them to JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from twinstream.cli.message.message_view import payload, printable
from twinstream.cli.screen import plain_table, results
from twinstream.cli.table import Page
from twinstream.cli.value_text import UNLIMITED, Size, setting
from twinstream.models import encode

if TYPE_CHECKING:
    from twinstream.core.kv.status import KeyValueStatus
    from twinstream.records.entry import Entry

__all__ = ["bucket_as_json", "entry_as_json", "show_bucket", "show_entries"]


def entry_as_json(entry: Entry[bytes], *, has_value: bool = True) -> dict[str, object]:
    """Return an entry as a JSON object.

    `value` is the value as text if it is UTF-8; any other value is in `value_base64`. Without
    `has_value`, the value is omitted.
    """
    shown: dict[str, object] = {
        "bucket": entry.bucket,
        "key": entry.key,
        "revision": entry.revision,
        "operation": entry.operation.value,
        "time_ns": entry.timestamp_ns,
        "size": entry.size,
    }
    if has_value and entry.value is not None:
        found = payload(entry.value)
        shown |= {name.replace("data", "value"): value for name, value in found.items()}
    return shown


def show_entries(entries: list[Entry[bytes]]) -> None:
    """Print a table of entries."""
    numbers = ("revision", "size")
    table = plain_table("key", "revision", "operation", "time", "size", "value", numbers=numbers)
    for entry in entries:
        table.add_row(
            entry.key,
            entry.revision,
            entry.operation.value,
            entry.created,
            Size(entry.size) if entry.is_value else None,
            None if entry.value is None else printable(entry.value),
        )
    results().print(table)


def bucket_as_json(status: KeyValueStatus) -> dict[str, Any]:
    """Return the settings, the size and the last revision of a bucket as a JSON object."""
    return {
        "config": encode(status.config),
        "values": status.values,
        "bytes": status.bytes,
        "last_revision": status.last_revision,
    }


def show_bucket(status: KeyValueStatus) -> None:
    """Print the settings, the size and the last revision of a bucket."""
    page = Page()
    page.add_row("bucket", status.bucket)
    for name, value in encode(status.config).items():
        if name != "bucket":
            page.add_row(name, setting(name, getattr(status.config, name, value)))
    if status.config.ttl is None:
        page.add_row("ttl", UNLIMITED)
    page.add_row("values", status.values)
    page.add_row("size", Size(status.bytes))
    page.add_row("last revision", status.last_revision)
    results().print(page)
