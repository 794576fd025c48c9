"""Batch reads of a bucket: the driver lists the keys, and tasks read them.

Theory of operation
-------------------
A bucket replaces revisions. With a history of 1, a write to a key removes the key's message from
the stream and appends a new message. If a key is written before a task reads its range, its new
revision is after the last range. So tasks that only read ranges would miss the key.

Therefore the driver first takes a snapshot: a list of the keys and of the last revision of each
key, as of one revision of the bucket. A task gets some of the keys, and reads the range of their
revisions. If a revision is no longer stored, its key was written or purged since, or the revision
has expired. The task then requests the current revision of the key. So each key of the snapshot
gives one row: its revision in the snapshot if that revision is still stored, otherwise its current
revision. A key without any revision gives no row.

A read of the history gives all stored revisions of the ranges instead. If a key's revision in the
snapshot was removed, the key's older revisions were removed too. Then the task adds the current
revision.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from twinstream.spark.bucket.key_range import KeyRange, Keys, ranges_of_history, ranges_of_keys
from twinstream.spark.bucket.read_task import read_keys
from twinstream.spark.errors import OptionError
from twinstream.spark.source.batcher import Batcher
from twinstream.spark.source.driver_client import Leader
from twinstream.spark.source.options import SourceOptions
from twinstream.spark.source.plan import SequenceRange, read_way
from twinstream.spark.source.reader import JetStreamReader

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["BucketReader"]


class BucketReader(JetStreamReader):
    """The reader of the keys that a bucket has when Spark plans the query.

    Without `history`, the only possible end is `latest`, because a bucket does not keep the
    values of all keys as of an earlier revision. Raises `OptionError` for any other end.
    """

    def __init__(self, options: SourceOptions, schema: pa.Schema) -> None:
        super().__init__(options, schema)
        end = options.end
        self._ends = end is not None and not end.asks_for("latest")
        assert options.bucket is not None
        self._history = options.bucket.history
        if end is not None and self._ends and not self._history:
            raise OptionError(
                end.option,
                "needs history=true: a bucket does not keep the values of all keys as of an earlier"
                " revision",
            )

    def _plan(self, leader: Leader) -> list[SequenceRange]:
        """Request the keys from the leader of the bucket's stream, and return the ranges to read.

        With an end, the rows are the stored revisions before the end. A later revision must not
        replace a removed revision, so the ranges are those of a plain read of the stream.
        """
        return super()._plan(leader) if self._ends else [*self._key_ranges(leader)]

    def _batches(self, part: SequenceRange) -> Iterator[pa.RecordBatch]:
        if not isinstance(part, KeyRange):
            return super()._batches(part)
        return read_keys(self._options, Batcher(self._options, self._schema), part)

    def _key_ranges(self, leader: Leader) -> list[KeyRange]:
        options = self._options
        (state,) = leader.states()
        start = self._start(state, leader)
        snapshot, by_subject = leader.last_seqs(state.name)
        keys, way = Keys.of(by_subject, start), read_way(options, state)
        if not self._history:
            return ranges_of_keys(options, state, keys, way)
        start = max(start, state.first)
        return ranges_of_history(options, state, keys, start, snapshot + 1, way)
