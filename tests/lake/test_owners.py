"""One stream lands into a table."""

from __future__ import annotations

from pathlib import Path

import pytest

from twinstream.lake.errors import JournalError
from twinstream.lake.local_store import LocalStore
from twinstream.lake.owners import claim


def test_a_table_has_one_owner(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    claim(store, "orders", "stream ORDERS")
    claim(store, "orders", "stream ORDERS")
    claim(store, "dead_letters/source=ORDERS", "stream ORDERS")
    with pytest.raises(JournalError, match="stream ORDERS lands into the table orders"):
        claim(store, "orders", "stream OTHERS")
