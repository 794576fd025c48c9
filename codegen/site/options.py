"""The pages of the options of Spark and of the settings of a pipeline.

Names, kinds and defaults are recorded while the options are read. What an option does, the guides
say in their tables.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Final

from attrs import frozen
from codegen.site.markdown import code, page, rows

from twinstream.spark.client.options_map import OptionsMap
from twinstream.spark.pipeline.settings import toml_config
from twinstream.spark.pipeline.settings.toml_table import TomlTable
from twinstream.spark.sink import options as sink_options
from twinstream.spark.source import options as source_options

__all__ = ["Option", "option_pages", "options"]

_KINDS: Final = {
    "text": "text",
    "integer": "whole number",
    "maybe_integer": "whole number",
    "number": "whole number",
    "duration": "duration such as `500ms`, `30s` or `15m`",
    "seconds": "duration such as `500ms`, `30s` or `15m`",
    "boolean": "`true` or `false`",
    "word": "one of the words",
    "names": "list, separated by commas",
    "texts": "list of texts",
    "table": "table",
    "tables": "tables",
    "value": "text, number or list",
}
_DOCS: Final = Path(__file__).parents[2] / "docs"
# The tables of options. Other tables explain values of one option.
_TABLE: Final = re.compile(r"^\| (?:option|key)\b.*\n\|[ |-]+\n((?:\|.*\n)+)", re.MULTILINE)
_NAME: Final = re.compile(r"`\[*([\w.]+)\]*`")
_PIPELINE: Final = """
path = "lake"
[nats]
servers = "nats://127.0.0.1:4222"
[[source]]
stream = "STREAM"
"""
_TITLES: Final = {
    "spark-read": (
        "Options of the Spark source",
        "Options of `spark.read` and `spark.readStream` with the format `jetstream`. The guide"
        " [Spark](../spark.md) shows their use.",
    ),
    "spark-write": (
        "Options of the Spark sink",
        "Options of `write` and `writeStream` with the format `jetstream`. The guide"
        " [Spark](../spark.md#writing) shows their use.",
    ),
    "pipeline": (
        "Settings of a pipeline",
        "Keys in the TOML file of a pipeline. The guide [pipeline](../pipeline.md) shows files.",
    ),
}


@frozen
class Option:
    """An option: its names, its kind, its default, its words, and what it does."""

    names: tuple[str, ...]
    kind: str
    default: object = None
    words: tuple[str, ...] = ()
    least: int | None = None
    table: str = ""


def option_pages() -> dict[str, str]:
    """Return the texts of the pages by their paths below the folder of the reference."""
    return {
        f"{name}.md": page(*_TITLES[name], *(_section(name, each) for each in found))
        for name, found in options().items()
    }


@cache
def options() -> dict[str, list[Option]]:
    """Return the options by their page, in the order in which they are read."""
    found: dict[str, list[Option]] = {}
    with _recorded(source_options, OptionsMap) as reads:
        source_options.SourceOptions.parse({"nats.servers": "h", "stream": "STREAM"})
        source_options.SourceOptions.parse({"nats.servers": "h", "bucket": "BUCKET"})
    found["spark-read"] = _once(reads)
    with _recorded(sink_options, OptionsMap) as reads:
        sink_options.SinkOptions.parse({"nats.servers": "h", "stream": "STREAM"})
    found["spark-write"] = [each for each in _once(reads) if each.names != ("bucket",)]
    with _recorded(toml_config, TomlTable) as reads, tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "PIPELINE.toml"
        file.write_text(_PIPELINE)
        toml_config.read_config(file)
    found["pipeline"] = _once([each for each in reads if each.names[0] != "servers"])
    return found


def meaning(name: str, option: Option) -> str:
    """Return what the guide says about an option; empty if it says nothing."""
    guide = "pipeline" if name == "pipeline" else "spark"
    is_later = option.table == "source" or name == "spark-write"
    found = [text for names, text in _guide(guide) if option.names[0] in names]
    return "" if not found else found[-1 if is_later else 0]


@contextmanager
def _recorded(module: Any, base: type) -> Iterator[list[Option]]:
    """Return a list to which each option is added that `module` reads from a `base`."""
    found: list[Option] = []
    recorder = type(base.__name__, (base,), dict(_methods(base, found)))
    users = (module, sys.modules[base.__module__])
    for each in users:
        setattr(each, base.__name__, recorder)
    try:
        yield found
    finally:
        for each in users:
            setattr(each, base.__name__, base)


def _methods(base: type, found: list[Option]) -> Iterator[tuple[str, Callable[..., Any]]]:
    depth = [0]
    for kind in _KINDS:
        method = getattr(base, kind, None)
        if method is not None:
            yield kind, _recording(kind, method, found, depth)


def _recording(
    kind: str, method: Callable[..., Any], found: list[Option], depth: list[int]
) -> Callable[..., Any]:
    def read(self: Any, *given: Any, **named: Any) -> Any:
        depth[0] += 1
        try:
            result = method(self, *given, **named)
        finally:
            depth[0] -= 1
        if not depth[0]:
            found.append(_option(kind, given, named, getattr(self, "_where", "")))
        return result

    return read


def _option(kind: str, given: Sequence[Any], named: dict[str, Any], where: str) -> Option:
    words: tuple[str, ...] = ()
    names = tuple(each for each in given if isinstance(each, str))
    default = None
    if kind == "word":
        words, default = given[1], given[1][0]
    elif len(given) > 1 and kind != "maybe_integer" and (kind not in {"text", "names"} or where):
        names, default = (given[0],), given[1]
    table = where.rpartition(": ")[2].split()[0].strip("[]") if ": " in where else ""
    return Option(names, kind, default, words, named.get("least"), table)


def _once(reads: list[Option]) -> list[Option]:
    """Return each option once; of several reads of it, the one that says most."""
    found: dict[str, Option] = {}
    for each in sorted(reads, key=lambda one: one.kind != "text"):
        key = f"{each.table}.{each.names[0]}"
        known = found.get(key)
        if known is None or known.kind == "text" or len(each.names) > len(known.names):
            found[key] = each
    order = {f"{each.table}.{each.names[0]}": None for each in reads}
    return [found[key] for key in order]


def _section(name: str, option: Option) -> str:
    known = {
        "also": ", ".join(map(code, option.names[1:])),
        "table": code(option.table) if option.table else "",
        "kind": _KINDS[option.kind],
        "words": ", ".join(map(code, option.words)),
        "least": "" if option.least is None else str(option.least),
        "default": _default(option),
        "meaning": meaning(name, option),
    }
    return f"## {option.names[0]}\n\n{rows(known.items())}"


def _default(option: Option) -> str:
    if option.default in (None, ""):
        return ""
    unit = "s" if option.kind in {"duration", "seconds"} else ""
    shown = str(option.default).lower() if isinstance(option.default, bool) else option.default
    return code(f"{shown}{unit}")


@cache
def _guide(name: str) -> tuple[tuple[frozenset[str], str], ...]:
    """Return the rows of the tables of a guide: the names in the first cell, and the last cell."""
    text = (_DOCS / f"{name}.md").read_text("utf-8")
    found: list[tuple[frozenset[str], str]] = []
    for table in _TABLE.findall(text):
        for line in table.splitlines():
            first, *_, last = line.strip("| ").split("|")
            found.append((frozenset(_NAME.findall(first)), _linked(last.strip(), name)))
    return tuple(found)


def _linked(cell: str, guide: str) -> str:
    """Return a cell whose links lead from the folder of the reference."""
    cell = re.sub(r"\]\((#[\w-]+)\)", rf"](../{guide}.md\1)", cell)
    return re.sub(r"\]\((?!\.\./)([\w-]+\.md)", r"](../\1", cell)
