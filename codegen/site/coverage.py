"""How much of what is public the reference documents: `python -m codegen.site.coverage`.

It prints what has no description, and a percentage for each kind.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import click
from attrs import frozen
from codegen.schemas import Schemas
from codegen.site.advisories import advisories
from codegen.site.entries import Member, members, shown_signature
from codegen.site.error_codes import error_codes
from codegen.site.error_texts import error_classes, remedy, texts_by_class
from codegen.site.log_records import log_records, records_of_guide
from codegen.site.options import meaning, options
from codegen.site.public_names import public_objects
from codegen.site.raised_texts import raised_texts
from codegen.site.reference import pages
from codegen.site.setting_rules import all_rules
from codegen.site.settings import SETTINGS
from codegen.site.signatures import parameters

from twinstream.cli.groups import twinstream
from twinstream.cli.help.connection_option import ConnectionOption

__all__ = ["Item", "items", "parameter_items", "percentages"]

_ARGUMENTS: Final = re.compile(r"^(?:Args|Attributes):\n((?:    .*\n|\n)+)", re.MULTILINE)
_ARGUMENT: Final = re.compile(r"^    \*{0,2}(\w+)(?: \(.*?\))?:", re.MULTILINE)
_COMMANDS: Final = Path(__file__).parents[2] / "docs" / "command.md"
# Reports that observers receive, and that are not logged.
_NOT_LOGGED: Final = {"Received", "Redelivered"}


@frozen
class Item:
    """One thing that the reference has to describe."""

    kind: str
    name: str
    is_documented: bool


def items() -> list[Item]:
    """Return everything that the reference has to describe."""
    found = pages()
    return [
        *_names(found),
        *_settings(found),
        *_commands(),
        *_options(found),
        *_errors(found),
        *_events(found),
        *_records(found),
    ]


def percentages(found: list[Item]) -> dict[str, float]:
    """Return the percentage that is documented, by kind."""
    all_, good = Counter(), Counter()
    for each in found:
        all_[each.kind] += 1
        good[each.kind] += each.is_documented
    return {kind: 100 * good[kind] / count for kind, count in all_.items()}


def _names(found: dict[str, str]) -> Iterator[Item]:
    entries = "".join(text for path, text in found.items() if path.endswith(".rst"))
    listed = set(
        re.findall(r"(?:^\.\. py:\w+:: |^ {10,})((?:js_|twinstream)[\w.]+)", entries, re.M)
    )
    for named in public_objects():
        for name in named:
            yield Item("names", name, name in listed)
        name, value = next(iter(named.items()))
        doc = inspect.getdoc(value) or ""
        if inspect.isfunction(value):
            yield Item("docstrings", name, bool(doc))
            yield from parameter_items(name, value, doc)
        elif isinstance(value, type):
            yield Item("docstrings", name, bool(doc))
            if shown_signature(value):
                known = {each.name for each in members(value) if each.doc}
                yield from parameter_items(name, value, doc, known)
            for member in members(value):
                yield from _member(f"{name}.{member.name}", member)


def _member(name: str, member: Member) -> Iterator[Item]:
    yield Item("members", name, bool(member.doc))
    if member.function is not None:
        yield from parameter_items(name, member.function, member.doc)


def parameter_items(
    name: str, value: Any, doc: str, known: set[str] | None = None
) -> Iterator[Item]:
    """Yield the parameters of a function or class with this docstring; `known` are described."""
    described = _arguments(doc) | (known or set())
    for each in parameters(value):
        is_described = each.name in described or f"`{each.name}`" in doc
        yield Item("parameters", f"{name} {each.name}", is_described)


def _arguments(doc: str) -> set[str]:
    section = _ARGUMENTS.search(doc + "\n")
    return set(_ARGUMENT.findall(section[1])) if section else set()


def _settings(found: dict[str, str]) -> Iterator[Item]:
    schemas = Schemas().definitions()
    for name, page in SETTINGS.items():
        text = found[f"settings/{name}.md"]
        for record in page.records:
            _, schema = schemas[record]
            for member, one in schema["properties"].items():
                headings = (f"\n## {member}\n", f"\n### {member} of {record}\n")
                is_there = any(each in text for each in headings)
                yield Item("settings", f"{record}.{member}", is_there and bool(one["description"]))
    whole = "".join(text for path, text in found.items() if path.startswith("settings/"))
    for rule in {verdict.rule for _, _, verdict in all_rules()}:
        yield Item("rules of validation", rule, f"`{rule}`" in whole)


def _commands() -> Iterator[Item]:
    page = _COMMANDS.read_text("utf-8")
    yield Item("exit codes", "twinstream", "Exit codes: 0" in page)
    for path, context in _walk("", click.Context(twinstream, info_name="twinstream")):
        command = context.command
        section = page.partition(f"\n### {path}\n")[2].partition("\n### ")[0]
        yield Item("commands", path, bool(section and command.help))
        for option in (each for each in command.params if isinstance(each, click.Option)):
            record = option.get_help_record(context)
            place = page if isinstance(option, ConnectionOption) else section
            if record is not None:
                row = f"| `{record[0].replace('|', '/')}` |"
                yield Item("options of commands", f"{path} {option.name}", row in place)


def _walk(path: str, context: click.Context) -> Iterator[tuple[str, click.Context]]:
    command = context.command
    if not isinstance(command, click.Group):
        yield path, context
        return
    for name in command.list_commands(context):
        inner = command.get_command(context, name)
        assert inner is not None
        if inner.hidden or isinstance(inner, click.Group) or getattr(inner, "example", ""):
            below = click.Context(inner, parent=context, info_name=name)
            yield from _walk(f"{path} {name}".strip(), below)


def _options(found: dict[str, str]) -> Iterator[Item]:
    for name, listed in options().items():
        for each in listed:
            is_there = f"\n## {each.names[0]}\n" in found[f"{name}.md"]
            yield Item("options", f"{name} {each.names[0]}", is_there and bool(meaning(name, each)))


def _errors(found: dict[str, str]) -> Iterator[Item]:
    for full, cls in error_classes().values():
        is_there = re.search(rf"[: ] {re.escape(full)}\b", found["errors.rst"]) is not None
        yield Item("errors", full, is_there and bool(remedy(cls)))
    for row in error_codes():
        number = f"(error-{row['err_code']})=\n"
        whole = number in found["error-codes.md"] and row["description"] and row["remedy"]
        yield Item("error codes", str(row["err_code"]), bool(whole))
    written = texts_by_class()
    for name, texts in raised_texts().items():
        inside = [each for listed in written.values() for each in listed]
        for text in texts if name in error_classes() else ():
            yield Item("texts of errors", f"{name}: {text}", text in inside)


def _events(found: dict[str, str]) -> Iterator[Item]:
    for name, (_, schema) in advisories().items():
        is_there = f"\n## {name}\n" in found["advisories.md"]
        yield Item("advisories", name, is_there and bool(schema["description"]))


def _records(found: dict[str, str]) -> Iterator[Item]:
    written = records_of_guide()
    for name, cls in log_records().items():
        if name not in _NOT_LOGGED:
            is_there = f"\n## {name}\n" in found["log-records.md"] and name in written
            yield Item("log records", name, is_there and bool(inspect.getdoc(cls)))


def main() -> int:
    """Print what is not documented, and the percentages. Return 1 unless all are 100 %."""
    found = items()
    for each in found:
        if not each.is_documented:
            print(f"{each.kind}: {each.name}")
    for kind, part in percentages(found).items():
        count = sum(each.kind == kind for each in found)
        print(f"{part:6.1f} % of {count} {kind}")
    return 0 if all(each.is_documented for each in found) else 1


if __name__ == "__main__":
    sys.exit(main())
