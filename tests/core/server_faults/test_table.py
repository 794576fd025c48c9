"""The table of the server's faults: its tests exist, and no other code knows the faults."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sources import text_of, tree_of
from twinstream.core.server_faults.table import (
    BATCH_REWRITES,
    FAULTS,
    FULL_SUBJECT,
    PARTIAL_RESTORE,
    PROBED_ID,
    SUBJECT_LISTS,
    Fault,
)

TESTS = Path(__file__).parents[2]
SOURCE = TESTS.parent / "src"
ROWS = [fault for faults in FAULTS.values() for fault in faults]
# Switches by the version of the server for features. Those for faults ask a row of the table.
FEATURES = {
    "js_async/api/api.py": ["version"],
    "js_async/publish/atomic_batch.py": ["_SINCE_END_OF_BATCH"],
    "js_async/read/get_message.py": ["_NO_HDR_SINCE"],
    "js_async/read/page_sources.py": ["_CROSSING_SINCE"],
    "twinstream/core/publish/atomic_batch.py": ["_SINCE", "_SINCE_IDS"],
    "twinstream/core/read/read_request.py": ["DIRECT_SINCE"],
    "twinstream/core/schedules/schedules.py": ["_SINCE_AT", "_SINCE_ALL"],
}
VERSIONS = {"version", "version_numbers", "_version", "server"}


@pytest.mark.parametrize("fault", ROWS, ids=lambda fault: fault.test.partition("::")[2])
def test_the_test_of_each_fault_exists(fault: Fault) -> None:
    path, _, name = fault.test.partition("::")
    text = (TESTS / f"{path}.py").read_text("utf-8")
    assert re.search(rf"^(async )?def {name}\(", text, re.MULTILINE), fault.test


@pytest.mark.parametrize("fault", ROWS, ids=lambda fault: fault.test.partition("::")[2])
def test_each_fault_says_in_which_versions_it_is(fault: Fault) -> None:
    assert bool(fault.spans) != bool(fault.seen)
    assert "|" not in "".join((fault.happens, fault.versions, fault.done, fault.goes))


@pytest.mark.parametrize(
    ("fault", "text", "having", "lacking"),
    [
        (PROBED_ID, "before 2.12.0", [(2, 11, 11)], [(2, 12, 0), (2, 15, 1)]),
        (FULL_SUBJECT, "before 2.14.0", [(2, 12, 8)], [(2, 14, 0), (2, 15, 1)]),
        (SUBJECT_LISTS, "before 2.12.5", [(2, 11, 11), (2, 12, 4)], [(2, 12, 5), (2, 14, 0)]),
        (PARTIAL_RESTORE, "from 2.15.0", [(2, 15, 0), (2, 16, 0)], [(2, 11, 4), (2, 14, 6)]),
        (
            BATCH_REWRITES,
            "before 2.12.12; from 2.14.0 before 2.14.3",
            [(2, 12, 11), (2, 14, 0), (2, 14, 2)],
            [(2, 12, 12), (2, 14, 3), (2, 15, 0)],
        ),
    ],
    ids=["probed id", "full subject", "subject lists", "partial restore", "batch rewrites"],
)
def test_versions_of_a_fault(
    fault: Fault, text: str, having: list[tuple[int, ...]], lacking: list[tuple[int, ...]]
) -> None:
    assert fault.versions == text
    assert all(map(fault.affects, having))
    assert not any(map(fault.affects, lacking))


def others() -> Iterator[tuple[str, Path]]:
    """Yield the source files above the models that are no part of `server_faults`."""
    for folder in ("js_async", "twinstream"):
        for path in sorted((SOURCE / folder).rglob("*.py")):
            name = path.relative_to(SOURCE).as_posix()
            if not name.startswith(("twinstream/core/server_faults/", "twinstream/models/")):
                yield name, path


def test_only_the_table_knows_of_former_leaders() -> None:
    """Twelve files did before there was a table."""
    assert [name for name, path in others() if "former leader" in text_of(path)] == []


def test_only_features_are_switched_by_other_code() -> None:
    """Five files had six switches for faults before there was a table."""
    found = {name: switches(tree_of(path)) for name, path in others()}
    assert {name: names for name, names in found.items() if names} == FEATURES


def switches(tree: ast.Module) -> list[str]:
    """Return the names with which code compares the version of a server, each once."""
    found: dict[str, None] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.Lt, ast.GtE)):
            right = node.comparators[0]
            if last_name(node.left) in VERSIONS and isinstance(right, (ast.Name, ast.Tuple)):
                found[ast.unparse(right)] = None
    return list(found)


def last_name(node: ast.expr) -> str:
    return ast.unparse(node).rpartition(".")[2]
