"""Which stream lands into a table: one alone, because all number their batches from 0."""

from __future__ import annotations

from twinstream.lake.errors import JournalError
from twinstream.lake.store import KeyTaken, Store

__all__ = ["claim"]


def claim(store: Store, table: str, owner: str) -> None:
    """Record the owner of a table, before its first batch.

    Raises `JournalError` if another one has recorded itself, even if it has landed nothing yet:
    a batch that it had planned would be taken for landed when the table has one of its number.
    """
    key = f"owners/{table}.json"
    try:
        store.create(key, owner.encode())
    except KeyTaken:
        found = store.get(key)
        if found is not None and found != owner.encode():
            raise JournalError(
                f"{found.decode('utf-8', 'replace')} lands into the table {table}; give another"
                " table, or land into another folder"
            ) from None
