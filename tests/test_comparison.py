"""The table of features is that of the script, and agrees with what is installed here."""

from __future__ import annotations

import sys

from tests.bench.features.__main__ import PAGE, faults, installed, of_this_tree, table
from tests.bench.features.rows import CLIENTS, NO, PACKAGES, ROWS


def test_the_page_has_the_table_of_the_script() -> None:
    assert table() in PAGE.read_text("utf-8")


def test_cells_of_twinstream_and_nats_py_are_proven() -> None:
    [nats_py] = installed(sys.executable, PACKAGES["nats-py"]).values()
    assert nats_py is not None
    names = {"Twinstream": of_this_tree(), "nats-py": set(nats_py["names"])}
    assert faults(names) == []
    # What no name proves is a fault, and so is a name that contradicts.
    swapped = {"Twinstream": names["nats-py"], "nats-py": names["Twinstream"]}
    assert len(faults(swapped)) > 20


def test_rows_are_complete() -> None:
    for row in ROWS:
        assert len(row.cells) == len(CLIENTS), row.title
        assert row.absent or NO not in row.cells, row.title


def test_the_page_says_where_others_are_better() -> None:
    lacking = [row.title for row in ROWS if row.cells[0] is NO]
    assert {"WebSocket", "services with discovery"} <= set(lacking)
