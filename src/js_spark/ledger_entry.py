"""An entry of a ledger: which rows of a micro-batch are stored when the entry is."""

from __future__ import annotations

import json
from typing import Any

from attrs import frozen

from js_core.answers import read_json
from js_spark.errors import LedgerError

__all__ = ["Entry"]


@frozen
class Entry:
    """The newest entry of a ledger; ``seq`` is its sequence, 0 when there is none."""

    batch: int = -1
    rows: int = 0
    hash: str = ""
    seq: int = 0

    def to_json(self) -> bytes:
        """Return the payload of the entry."""
        return json.dumps({"batch": self.batch, "rows": self.rows, "hash": self.hash}).encode()

    @classmethod
    def from_json(cls, payload: bytes, seq: int, subject: str) -> Entry:
        """Read an entry. Raises `LedgerError` for a message of another kind."""
        try:
            members: Any = read_json(payload)
            return cls(int(members["batch"]), int(members["rows"]), str(members["hash"]), seq)
        except (KeyError, TypeError, ValueError) as error:
            raise LedgerError(
                f"{subject} holds a message that is no ledger entry (sequence {seq}); give"
                " ledgerSubject a subject that nobody else publishes to"
            ) from error

    def says_as(self, other: Entry) -> bool:
        """Tell whether both stand for the same rows, wherever they are stored."""
        return (self.batch, self.rows, self.hash) == (other.batch, other.rows, other.hash)
