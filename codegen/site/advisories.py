"""The page of events of servers: advisories and metrics."""

from __future__ import annotations

from typing import Any

from codegen.schemas import Schemas
from codegen.site.markdown import code, page, plain, rows, table

__all__ = ["advisories", "advisory_page"]

_ABOUT = (
    "What servers publish about themselves. [Events](../events.md) shows how a program receives"
    " these: `kinds` of `JetStream.events` takes the names of the headings or the classes, and"
    " `twinstream events --kind` the names."
)


def advisories() -> dict[str, tuple[str, dict[str, Any]]]:
    """Return the class and the schema of each event by its name, sorted."""
    schemas = Schemas()
    names = {cls: kind.rpartition(".")[2] for kind, cls in schemas.types().items()}
    found = {
        names[cls]: (cls, schema)
        for cls, (path, schema) in schemas.definitions().items()
        if path.startswith(("advisory/", "metric/")) and "x-subject" in schema
    }
    return dict(sorted(found.items()))


def advisory_page() -> str:
    """Return the text of the page."""
    return page("Advisories and metrics", _ABOUT, *map(_section, advisories().items()))


def _section(event: tuple[str, tuple[str, dict[str, Any]]]) -> str:
    name, (cls, schema) = event
    members = schema["properties"]
    known = {
        "class": f"{{py:class}}`~twinstream.models.{cls}`",
        "type": code(members["type"]["const"]),
        "subject": code(schema["x-subject"]),
        "server": f"{schema['x-since']} and newer" if "x-since" in schema else "",
    }
    cells = [(code(key), plain(one["description"])) for key, one in members.items()]
    return f"## {name}\n\n{plain(schema['description'])}\n\n{rows(known.items())}" + table(
        ("member", "meaning"), [each for each in cells if each[0] != "`type`"]
    )
