"""The key of a row: a hash of everything that is published for it.

Spark repeats tasks. A repeated task that reads a shuffle gets the same rows in another order, so
the position of a row does not identify it. Its content does.
"""

from __future__ import annotations

import json
from collections import Counter
from hashlib import blake2b
from typing import Final

from twinstream.spark.sink.rows import OutMessage
from twinstream.spark.sink.task_identity import TaskIdentity

__all__ = ["KEY_SIZE", "RowIds", "row_key"]

#: Bytes of a key. Among 10 million rows, the probability of two equal keys is 1 to 10**15.
KEY_SIZE: Final = 12


def row_key(row: OutMessage) -> bytes:
    """Return the hash of a row's subject, headers, TTL and data."""
    subject = row.subject.encode()
    if row.headers is None and row.ttl is None:  # most rows
        # A subject is not empty and has no space, so this text cannot equal a text of the other
        # rows, which begins with a space.
        return blake2b(b"%b %b" % (subject, row.data), digest_size=KEY_SIZE).digest()
    rest = json.dumps([row.headers, row.ttl], sort_keys=True).encode()
    return blake2b(b" %b %b %b" % (rest, subject, row.data), digest_size=KEY_SIZE).digest()


class RowIds:
    """The message IDs of one task's rows. They do not depend on the order of the rows.

    Equal rows of the task are numbered, so that each has another ID. The ID contains the task,
    because several tasks may have equal rows. This object needs about 80 bytes of memory per row.
    """

    def __init__(self, identity: TaskIdentity) -> None:
        self._identity: Final = identity
        self._prefix = ""
        self._seen: Final[set[bytes]] = set()
        self._repeated: Final[Counter[bytes]] = Counter()

    def next_id(self, row: OutMessage) -> str:
        """Return the message ID of the next row. Raises the errors of `TaskIdentity.check`."""
        if not self._prefix:
            self._prefix = self._identity.prefix()
        key = row_key(row)
        if key not in self._seen:
            self._seen.add(key)
            return f"{self._prefix}{key.hex()}-0"
        self._repeated[key] += 1
        return f"{self._prefix}{key.hex()}-{self._repeated[key]}"
