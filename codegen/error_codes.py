"""Generate `error_codes.py` and `server_errors.py` from `schema/errors.json`."""

from __future__ import annotations

import json
import textwrap
from functools import partial
from typing import Any

from schemas import FOLDER

HEADER = '''"""The error codes of the server, and tables of their properties.

Generated from schema/errors.json by codegen/error_codes.py. Edit that file instead.
"""

from __future__ import annotations

from typing import Final

'''


CLASSES = '''"""The classes of server errors that need no code of their own.

Generated from schema/errors.json by codegen/error_codes.py. Edit that file instead. Applications
import the classes from `twinstream.errors`.
"""

from __future__ import annotations

from twinstream.errors.base import JetStreamError

'''


def classes() -> str:
    """Return the text of `server_errors.py`."""
    spec: dict[str, Any] = json.loads((FOLDER / "errors.json").read_text())
    codes: dict[str, list[int]] = {}
    for row in spec["errors"]:
        codes.setdefault(row.get("x-class", ""), []).append(row["err_code"])
    names = [row["name"] for row in spec["classes"]]
    body = "".join(_class(row, codes[row["name"]]) for row in spec["classes"])
    return f"{CLASSES}__all__ = {sorted(names)}\n\n{body}"


def _class(row: dict[str, Any], codes: list[int]) -> str:
    doc = f"{row['description'].rstrip('.')} ({', '.join(map(str, codes))})."
    wrap = partial(textwrap.fill, width=100, initial_indent="    ", subsequent_indent="    ")
    what = wrap(f"What to do: {row['x-remedy']}")
    return f'class {row["name"]}(JetStreamError):\n    """{doc}\n\n{what}\n    """\n\n\n'


def module() -> str:
    """Return the text of `error_codes.py`."""
    rows: list[dict[str, Any]] = json.loads((FOLDER / "errors.json").read_text())["errors"]
    return (
        HEADER
        + "".join(_constant(row) for row in rows)
        + _table("NAMES", "The name of each error code.", _members(rows, "name"))
        + _table("STATUS", "The HTTP-like `code` of each error code.", _members(rows, "code"))
        + _table(
            "CLASSES",
            "The name of the class in `twinstream.errors` for an error code.",
            _members(rows, "x-class"),
        )
        + _table(
            "ADVICE",
            "What to try, for errors whose text does not contain it.",
            _members(rows, "x-advice"),
        )
        + _table(
            "TRANSIENT",
            "Errors after which a retry may succeed: of the `request`, or of the whole `batch`.",
            _members(rows, "x-transient"),
        )
    )


def _members(rows: list[dict[str, Any]], key: str) -> dict[int, object]:
    return {row["err_code"]: row[key] for row in rows if key in row}


def _constant(row: dict[str, Any]) -> str:
    return f'{row["name"]}: Final = {row["err_code"]}\n"""{row["description"]}"""\n\n'


def _table(name: str, doc: str, rows: dict[int, object]) -> str:
    kind = "int" if name == "STATUS" else "str"
    lines = "".join(f"    {code}: {_literal(value)},\n" for code, value in rows.items())
    return f'{name}: Final[dict[int, {kind}]] = {{\n{lines}}}\n"""{doc}"""\n\n'


def _literal(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)
