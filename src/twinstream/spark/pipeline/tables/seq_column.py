"""Find the column with the sequence of the message among the columns of a table."""

from __future__ import annotations

from itertools import product
from typing import Final

import pyarrow as pa

from twinstream.spark.source.columns import MessageColumns

__all__ = ["seq_column"]

# The columns of messages and of a bucket's changes. Names without an underscore come last, because
# members of a payload may have them.
_POSSIBLE: Final = [
    MessageColumns.of(value_format, is_bucket=is_bucket)
    for value_format, is_bucket in product(("json", "raw"), (False, True))
]


def seq_column(columns: pa.Schema) -> str:
    """Return the name of the column with the sequence, or with the revision, in a table."""
    names = {*columns.names}
    return next(e.seq for e in _POSSIBLE if {e.subject, e.seq, e.time} <= names)
