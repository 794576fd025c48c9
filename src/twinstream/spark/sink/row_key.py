"""The key of a row: a hash of everything that is published for it.

Spark repeats tasks. If a repeated task reads a shuffle, it gets the same rows in another order. So
a row is identified by its content and not by its position.
"""

from __future__ import annotations

import json
from collections import Counter
from hashlib import blake2b
from typing import Final

from twinstream.spark.sink.rows import OutMessage
from twinstream.spark.sink.task_identity import TaskIdentity

__all__ = ["KEY_SIZE", "RowIds", "row_key"]

KEY_SIZE: Final = 12
"""The size of a key in bytes.

Among 10 million rows with different contents, the probability that two have the same key is below 1
in 10**15.
"""


def row_key(row: OutMessage) -> bytes:
    """Return the hash of a row's subject, headers, TTL and data."""
    subject = row.subject.encode()
    if row.headers is None and row.ttl is None:  # most rows
        # A subject is not empty and contains no space. So the hashed text does not begin with a
        # space, and cannot be equal to the text that is hashed below.
        return blake2b(b"%b %b" % (subject, row.data), digest_size=KEY_SIZE).digest()
    rest = json.dumps([row.headers, row.ttl], sort_keys=True).encode()
    return blake2b(b" %b %b %b" % (rest, subject, row.data), digest_size=KEY_SIZE).digest()


class RowIds:
    """A generator of the message IDs of one task's rows.

    The set of IDs does not depend on the order of the rows. Equal rows of the task are numbered, so
    that their IDs differ. An ID contains the identity of the task, because other tasks may have
    equal rows. This object needs about 80 bytes of memory per row.
    """

    def __init__(self, identity: TaskIdentity) -> None:
        self._identity: Final = identity
        self._prefix = ""
        self._seen: Final[set[bytes]] = set()
        self._repeated: Final[Counter[bytes]] = Counter()

    def next_id(self, row: OutMessage) -> str:
        """Return the message ID of the next row.

        Raises `OptionError` as `TaskIdentity.check` does.
        """
        if not self._prefix:
            self._prefix = self._identity.prefix()
        key = row_key(row)
        if key not in self._seen:
            self._seen.add(key)
            return f"{self._prefix}{key.hex()}-0"
        self._repeated[key] += 1
        return f"{self._prefix}{key.hex()}-{self._repeated[key]}"
