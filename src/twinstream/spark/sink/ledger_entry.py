"""The ledger entry: the first message of an atomic batch, which records the rows of the batch."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from typing import Any

from attrs import frozen

from twinstream.core.wire.response import read_json
from twinstream.spark.errors import LedgerError
from twinstream.spark.sink.row_key import KEY_SIZE

__all__ = ["Entry"]


@frozen
class Entry:
    """An entry of a ledger. `seq` is its sequence, or 0 if the entry is not stored."""

    batch: int = -1
    """The number of the micro-batch."""
    rows: int = 0
    """The number of rows of the micro-batch that are stored up to this entry."""
    keys: bytes = b""
    """The concatenated keys of the rows in the entry's atomic batch."""
    first: int = 0
    """The sequence of the micro-batch's first entry, or 0 if this entry is the first."""
    seq: int = 0

    @property
    def begins(self) -> int:
        """The sequence of the first entry of the micro-batch."""
        return self.first or self.seq

    def each_key(self) -> list[bytes]:
        """Return the key of each row in the entry's atomic batch."""
        return [self.keys[at : at + KEY_SIZE] for at in range(0, len(self.keys), KEY_SIZE)]

    def to_json(self) -> bytes:
        """Return the JSON text that is the payload of the entry."""
        keys = b64encode(self.keys).decode()
        members = {"batch": self.batch, "rows": self.rows, "first": self.first, "keys": keys}
        return json.dumps(members).encode()

    @classmethod
    def from_json(cls, payload: bytes, seq: int, subject: str) -> Entry:
        """Return the entry that a message contains. Raises `LedgerError` if it is no entry."""
        try:
            members: Any = read_json(payload)
            batch, rows = int(members["batch"]), int(members["rows"])
            # Entries of earlier releases lack these two members.
            keys, first = b64decode(members.get("keys", "")), int(members.get("first", 0))
        except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
            raise LedgerError(
                f"{subject} has a message that is no ledger entry (sequence {seq}); set"
                " ledgerSubject to a subject that no other application publishes to"
            ) from error
        return cls(batch, rows, keys, first, seq)
