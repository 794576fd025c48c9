"""Print objects and object stores for people, or convert them to JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from twinstream.cli.screen import plain_table, results
from twinstream.cli.table import Page
from twinstream.cli.value_text import Size, setting

if TYPE_CHECKING:
    from twinstream.core.object_store.config import ObjectStoreStatus
    from twinstream.models import ObjectInfo

__all__ = [
    "UNREADABLE",
    "info_members",
    "kind_of",
    "show_info",
    "show_infos",
    "show_status",
    "status_members",
]

UNREADABLE: Final = "unreadable"
"""The kind of an object whose metadata cannot be read."""


def status_members(status: ObjectStoreStatus) -> dict[str, Any]:
    """Return the settings and the size of a store, and whether it is sealed, as a JSON object."""
    from twinstream.models import encode

    return {**encode(status.config), "size": status.size, "sealed": status.is_sealed}


def show_status(status: ObjectStoreStatus) -> None:
    """Print the settings and the size of a store, and whether it is sealed."""
    from twinstream.models import encode

    shown = {**encode(status.config), "size": Size(status.size), "sealed": status.is_sealed}
    if status.config.ttl is not None:
        shown["ttl"] = status.config.ttl
    _rows(shown)


def info_members(info: ObjectInfo) -> dict[str, Any]:
    """Return the metadata of an object as a JSON object."""
    from twinstream.models import encode

    return encode(info)


def kind_of(info: ObjectInfo) -> str:
    """Return "deleted", "unreadable" or "link to ..."; an empty string for other objects."""
    if info.deleted:
        return "deleted"
    if info.unknown.get("error"):
        return UNREADABLE
    link = info.options.link if info.options is not None else None
    if link is None:
        return ""
    return f"link to {link.bucket}" if link.name is None else f"link to {link.bucket}/{link.name}"


def show_info(info: ObjectInfo) -> None:
    """Print the metadata of an object."""
    _rows(
        {
            "bucket": info.bucket,
            "name": info.name,
            "kind": kind_of(info),
            "description": info.description,
            "size": Size(info.size or 0),
            "chunks": info.chunks,
            "digest": info.digest,
            "stored": info.mtime,
            "revision": info.revision,
            "headers": {name: ", ".join(each) for name, each in (info.headers or {}).items()},
            "metadata": info.metadata,
        }
    )


def show_infos(infos: list[ObjectInfo]) -> None:
    """Print a table of objects."""
    table = plain_table("object", "size", "stored", "kind", numbers=("size",))
    for info in infos:
        size = None if kind_of(info) == UNREADABLE else Size(info.size or 0)
        table.add_row(info.name, size, info.mtime, kind_of(info))
    results().print(table)


def _rows(values: Mapping[str, object]) -> None:
    page = Page()
    for name, value in values.items():
        shown = value if isinstance(value, Size) else setting(name, value)
        page.add_row(name.replace("_", " "), shown)
    results().print(page)
