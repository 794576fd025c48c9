"""The errors of the protocol and of its stores."""

from __future__ import annotations

from twinstream.errors import TwinstreamError

__all__ = ["JournalError", "StorageError", "StorageUnusable"]


class JournalError(TwinstreamError):
    """Raised if a journal cannot be read, or if files of the tables are damaged or do not match it.

    This includes rows of another writer in a table, and folders of a table that are not batches.
    """


class StorageError(TwinstreamError):
    """Raised if an object store does not answer, or refuses a request. A retry may help."""


class StorageUnusable(StorageError):
    """Raised if an object store cannot be used with its settings. A retry does not help.

    For example, an environment variable with a key is missing, or the server stores an object over
    another one although the request forbids it.
    """
