"""The page of log records: the logger, level, text and reason of each."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections import defaultdict
from pathlib import Path
from typing import Final

import attrs
from codegen.site.entries import members
from codegen.site.markdown import code, page, plain, table

import twinstream.core
from twinstream.core.log.report import Report

__all__ = ["log_record_page", "log_records"]

_GUIDE: Final = Path(__file__).parents[2] / "docs" / "logging.md"
_ROW: Final = re.compile(r"^\| `(twinstream\.\w+)` \| (\w+) \| `(\w+)` \| (.*) \|$", re.MULTILINE)
_ABOUT: Final = (
    "Each record that the SDK writes to `logging`, by the class of its report. Names in braces"
    " stand for values. Before the text are the stream and the consumer, if they are known."
    " [Logging](../logging.md) shows how to use them."
)


def log_records() -> dict[str, type[Report]]:
    """Return the classes of reports by their names, sorted."""
    for each in pkgutil.walk_packages(twinstream.core.__path__, "twinstream.core."):
        importlib.import_module(each.name)
    importlib.import_module("twinstream.spark.pipeline.pipeline_events")
    found: dict[str, type[Report]] = {}
    pending: list[type[Report]] = [Report]
    while pending:
        for cls in pending.pop().__subclasses__():
            pending.append(cls)
            if "__slots__" not in vars(cls) or attrs.has(cls):
                found[cls.__name__] = cls
    return dict(sorted(found.items()))


def records_of_guide() -> dict[str, list[tuple[str, str, str]]]:
    """Return logger, level and text of the records of each class, as the guide has them.

    A test compares the table of the guide with the classes.
    """
    found: dict[str, list[tuple[str, str, str]]] = defaultdict(list)
    for logger, level, name, text in _ROW.findall(_GUIDE.read_text("utf-8")):
        found[name].append((logger, level, text))
    return found


def log_record_page() -> str:
    """Return the text of the page."""
    written = records_of_guide()
    classes = {name: cls for name, cls in log_records().items() if name in written}
    return page(
        "Log records", _ABOUT, *(_section(cls, written[name]) for name, cls in classes.items())
    )


def _section(cls: type[Report], written: list[tuple[str, str, str]]) -> str:
    records = [(code(logger), level, code(text)) for logger, level, text in written]
    # The first sentence of the class is above the values already.
    about = " ".join((inspect.getdoc(cls) or "").split())
    docs = {each.name: each.doc for each in members(cls) if not about.startswith(each.doc)}
    values = "".join(
        f"- {code(each.name)}, {_kind(each.type)}{_meaning(docs.get(each.name, ''))}\n"
        for each in attrs.fields(cls)  # type: ignore[arg-type]
    )
    doc = "\n\n".join(plain(each) for each in (inspect.getdoc(cls) or "").split("\n\n"))
    return f"## {cls.__name__}\n\n{doc}\n\n{table(('logger', 'level', 'text'), records)}{values}\n"


def _meaning(doc: str) -> str:
    return f": {plain(doc)}" if doc else ""


def _kind(annotation: object) -> str:
    return code(annotation if isinstance(annotation, str) else getattr(annotation, "__name__", ""))
