"""The page of the server's error codes: text, cause, remedy and class of each."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any

from codegen.schemas import FOLDER
from codegen.site.markdown import code, page, plain, rows
from codegen.site.setting_rules import all_rules

__all__ = ["error_code_page", "error_codes"]

_ABOUT = (
    "What servers answer to requests and publishes, by number. The text of a `JetStreamError` ends"
    " with the number in brackets, and `err_code` has it. Names in braces stand for values. The"
    " [classes](errors.rst) have what programs catch."
)
_AGAIN = {
    "request": "Send the same request again after a pause; publishers of the SDK do so.",
    "batch": "Send the whole batch again after a pause.",
}


def error_codes() -> list[dict[str, Any]]:
    """Return the rows of the table of error codes, each with its `remedy`."""
    found: list[dict[str, Any]] = json.loads((FOLDER / "errors.json").read_text())["errors"]
    fixes: dict[int, dict[str, None]] = defaultdict(dict)
    for _, _, verdict in all_rules():
        fixes[verdict.err_code][verdict.fix] = None
    return [{**row, "remedy": _remedy(row, list(fixes[row["err_code"]]))} for row in found]


def _remedy(row: dict[str, Any], fixes: list[str]) -> str:
    own = row.get("x-remedy") or row.get("x-advice", "")
    own = own[:1].upper() + own[1:]
    again = _AGAIN.get(row.get("x-transient", ""), "")
    return own or again or " ".join(fixes)


def error_code_page() -> str:
    """Return the text of the page."""
    rules: dict[int, dict[str, str]] = defaultdict(dict)
    for _, _, verdict in all_rules():
        rules[verdict.err_code][verdict.rule] = verdict.text
    sections = [_section(row, rules[row["err_code"]]) for row in error_codes()]
    return page("Error codes of the server", _ABOUT, *sections)


def _section(row: dict[str, Any], rules: dict[str, str]) -> str:
    number = row["err_code"]
    cls = row.get("x-class", "JetStreamError")
    text = row.get("x-text", "")
    found = ", ".join(f"{code(text)} ({code(rule)})" for rule, text in rules.items())
    known = {
        "text": code(text) if text else "the reason alone",
        "cause": plain(row["description"]),
        "remedy": plain(row["remedy"]),
        "class": f"{{py:exc}}`~twinstream.errors.{cls}`, status {row['code']},"
        f" `twinstream.models.error_codes.{row['name']}`",
        "found by validation": found,
    }
    title = plain(text.partition(" / ")[0] or row["description"].rstrip("."))
    entries = "".join(_entry(each) for each in (str(number), *text.split(" / ")))
    return f"{entries}(error-{number})=\n## {number}: {title}\n\n{rows(known.items())}"


def _entry(text: str) -> str:
    """Return an entry of the index, by which the search finds a number or a whole text."""
    words = text.partition("{")[0].strip(" :")
    return f"```{{index}} single: {words}\n```\n" if words else ""
