"""The errors of the protocol."""

from __future__ import annotations

from twinstream.errors import TwinstreamError

__all__ = ["JournalError"]


class JournalError(TwinstreamError):
    """Raised if a journal cannot be read, or if files of the tables are damaged or do not match it.

    This includes rows of another writer in a table, and folders of a table that are not batches.
    """
