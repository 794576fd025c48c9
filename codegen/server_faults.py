"""Generate the page of the server's faults from `twinstream.core.server_faults.table`.

python codegen/server_faults.py            write docs/server-faults.md
python codegen/server_faults.py --check    print a diff and exit with 1 if the page is stale
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from freshness import keep_fresh
from twinstream.core.server_faults.table import FAULTS, Fault

PAGE = Path(__file__).resolve().parent.parent / "docs" / "server-faults.md"

HEAD = """\
# Faults of the server

<!-- Generated from src/twinstream/core/server_faults/table.py by codegen/server_faults.py. -->

What nats-server does wrong, in which versions it was seen, what the SDK does about it, and when
that may be removed. Programs need not know any of it. A feature that older servers lack is no
fault, and is not listed here.
"""
COLUMNS = ("fault", "versions", "what the SDK does", "test", "may go")


def text() -> str:
    """Return the text of the page."""
    return "\n".join((HEAD, *_lines())).rstrip("\n") + "\n"


def _lines() -> Iterator[str]:
    for question, faults in FAULTS.items():
        yield from (f"## {question}", "", _row(COLUMNS), _row(["---"] * len(COLUMNS)))
        yield from map(_fault, faults)
        yield ""


def _fault(fault: Fault) -> str:
    return _row((fault.happens, fault.versions, fault.done, f"`{fault.test}`", fault.goes))


def _row(cells: tuple[str, ...] | list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def main(arguments: list[str]) -> int:
    """Write or check the page, and return the exit code."""
    return 0 if keep_fresh(PAGE, text(), check=arguments == ["--check"]) else 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
