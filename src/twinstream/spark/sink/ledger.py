"""Write rows exactly once, without a time limit, in atomic batches that begin with a ledger entry.

Theory of operation
-------------------

Each partition of a write has its own subject in the stream, its ledger. Rows are published in
atomic batches: the server stores all messages of a batch or none. The first message of every batch
is a ledger entry `{batch, rows, first, keys}`. `batch` is the number of the micro-batch, and
`rows` is the number of the micro-batch's rows that are stored up to this entry. `first` is the
sequence of the micro-batch's first entry. `keys` are the keys of the rows that are stored with
the entry. The entry is published with the sequence of the previous entry as
`Nats-Expected-Last-Subject-Sequence`. So only an attempt that knows the newest entry can store
the next entry.

An attempt first reads the newest entry from the leader. If that entry belongs to the same
micro-batch, the keys of all entries of the micro-batch identify the stored rows. The attempt skips
these rows in any order, because a repeated task gets its rows in another order after a shuffle. The
attempt stores no row until it has skipped all stored rows. If a stored row is not among its rows,
the attempt fails. So if a query returns other rows on a repeat, this is detected before rows of two
different results are stored. If the newest entry belongs to a later micro-batch, the checkpoint is
out of date.

If an atomic batch gets no response, or the stream's leader is lost, the batch is sent again with
the same expected sequence. If the server refuses that sequence, the batch was already stored, or
another attempt of the task has stored rows. In the second case, the writer reads the new entries
and skips their rows too. So two attempts that run at the same time store each row once, in any
order of the rows.

The guarantee holds as long as the stream keeps the entries of each ledger. It ends if limits by age
or size, purges or deletes remove the newest entry. If older entries of a micro-batch were removed,
a repeated attempt cannot know which rows are stored, and fails.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from attrs import evolve

from js_sync.stream import known_info
from twinstream.core.wire.subject_match import matcher
from twinstream.errors import JetStreamError, MessageNotFound, TwinstreamError, WrongLastSequence
from twinstream.errors.transient import is_transient
from twinstream.models.error_codes import BATCH_DISABLED
from twinstream.spark.client.retry import Patience, through
from twinstream.spark.errors import LedgerError, SchemaError
from twinstream.spark.sink.fenced_batch import FencedBatch
from twinstream.spark.sink.ledger_entry import Entry
from twinstream.spark.sink.options import SinkOptions
from twinstream.spark.sink.report import JetStreamCommit
from twinstream.spark.sink.row_key import KEY_SIZE, row_key
from twinstream.spark.sink.row_queue import Keyed, RowQueue
from twinstream.spark.sink.rows import OutMessage
from twinstream.spark.sink.task_identity import TaskIdentity

if TYPE_CHECKING:
    from js_sync import Connection, Stream
    from twinstream.models import StreamConfig

__all__ = ["CHUNK", "LedgerWriter"]

CHUNK: Final = 999
"""The most rows in one atomic batch.

The server accepts 1,000 messages, including the ledger entry.
"""

# The size in bytes of one key in base64, and the size reserved for the headers and all other
# members of a ledger entry.
_KEY_TEXT: Final = KEY_SIZE * 4 // 3
_REST: Final = 600

# The timeout of one try to send an atomic batch is `ackTimeoutMs` divided by this number. If a
# response is lost with the leader, time is left to send the batch again within `ackTimeoutMs`.
_SHARE: Final = 3

# The failed try after which the writer checks the subjects of the rows. After so many tries, a row
# for another stream is a likelier cause than a lost leader. The writer does not check earlier,
# because an account may map subjects to subjects of the stream, and the check refuses such rows.
_SUSPICIOUS: Final = 3


class LedgerWriter:
    """The writer of the rows of one task."""

    def __init__(
        self, nc: Connection, stream: Stream, options: SinkOptions, identity: TaskIdentity
    ) -> None:
        self._nc: Final = nc
        self._stream: Final = stream
        self._options: Final = options
        self._identity: Final = identity
        self._subject: Final = f"{options.ledger_subject}.{identity.write}.{identity.partition}"
        self._chunk: Final = _most_rows(known_info(stream).config, nc.server_info.max_payload)
        self._newest = Entry()
        # The keys of rows that other attempts stored and that have not occurred in the rows of this
        # attempt yet.
        self._stored: Final[Counter[bytes]] = Counter()

    def write(self, rows: Iterator[OutMessage]) -> JetStreamCommit:
        """Store the rows that no other attempt has stored, and return the numbers of rows.

        Raises `LedgerError` if another attempt stored rows that are not among `rows`, if the
        checkpoint is older than the ledger, or if entries of the micro-batch were removed.
        """
        self._follow(self._read_newest())
        waiting = RowQueue()
        count = stored = 0
        try:
            for row in rows:
                count += 1
                keyed = row_key(row), row
                if not self._is_stored(keyed):
                    waiting.put(keyed)
                while len(waiting) >= self._chunk and not self._stored:
                    stored += self._store(waiting)
            while len(waiting) and not self._stored:
                stored += self._store(waiting)
        finally:
            waiting.close()
        self._refuse_other_rows(count)
        return JetStreamCommit(stored, count - stored, self._subject, self._identity.batch)

    def _is_stored(self, row: Keyed) -> bool:
        """Return whether another attempt stored a row, and count the row as matched.

        Each stored row matches only one of several equal rows.
        """
        key, _ = row
        if key not in self._stored:
            return False
        self._stored[key] -= 1
        if not self._stored[key]:
            del self._stored[key]
        return True

    def _follow(self, found: Entry) -> None:
        """Read the entries up to `found`, and record the keys of the rows stored with them.

        Raises `LedgerError` if `found` belongs to a later micro-batch, or if entries are missing.
        """
        if found.batch > self._identity.batch:
            raise LedgerError(
                f"{self._subject}: the ledger is at batch {found.batch}, this is batch"
                f" {self._identity.batch}: the checkpoint is out of date, or a copy"
            )
        if found.batch == self._identity.batch:
            known = self._newest.rows if self._newest.batch == found.batch else 0
            for entry in self._entries(found):
                self._stored.update(entry.each_key())
                known += len(entry.keys) // KEY_SIZE
            if known != found.rows:
                raise LedgerError(
                    f"{self._subject}: entries of batch {found.batch}, which record which of its"
                    f" {found.rows} rows are stored, were removed. Do not delete or purge ledger"
                    " entries, and give the stream no limit that removes them so soon"
                )
        self._newest = found

    def _entries(self, newest: Entry) -> list[Entry]:
        """Read and return the entries of this micro-batch up to `newest`.

        Entries that this writer already knows are omitted.
        """
        start = max(self._newest.seq + 1, newest.begins)
        if start == newest.seq:
            return [newest]
        subject, timeout = self._subject, self._options.ack_timeout

        def read() -> list[Entry]:
            found = self._stream.read(start, newest.seq + 1, subjects=subject, idle_timeout=timeout)
            return [Entry.from_json(each.data, each.seq, subject) for each in found]

        return through(read, timeout)

    def _read_newest(self) -> Entry:
        """Read the newest entry of the ledger from the leader, and return it.

        For an empty ledger, return an `Entry` with the sequence 0.
        """
        try:
            message = through(
                lambda: self._stream.get_last_message(self._subject), self._options.ack_timeout
            )
        except MessageNotFound:
            return Entry()
        return Entry.from_json(message.data, message.seq, self._subject)

    def _refuse_other_rows(self, count: int) -> None:
        others = self._stored.total()
        if others:
            raise LedgerError(
                f"{self._subject}: other attempts of batch {self._identity.batch} stored"
                f" {self._newest.rows} rows, {others} of which are not among the {count} rows of"
                " this attempt. Either the query returns other rows on a repeat (rand(), a sum of"
                " floating-point numbers), or its source has removed messages since, or a repeat"
                " assigns rows to other tasks (a sort, adaptive execution). Use msgId with idColumn"
                " instead"
            )

    def _store(self, waiting: RowQueue) -> int:
        """Store the first rows of the queue, and return their number.

        If another attempt has stored an entry in the meantime, store nothing, remove the rows of
        the other attempt from the queue, and return 0.
        """
        rows, newest, batch = waiting.peek(self._chunk), self._newest, self._identity.batch
        # The first entry of a micro-batch counts its rows from 0.
        continues = newest.batch == batch
        planned = Entry(
            batch=batch,
            rows=len(rows) + (newest.rows if continues else 0),
            keys=b"".join(key for key, _ in rows),
            first=newest.begins if continues else 0,
        )
        found = self._send(planned, newest.seq, [row for _, row in rows])
        is_own = evolve(found, seq=0) == planned  # a planned entry has no sequence yet
        if is_own:
            self._newest = found
            waiting.drop(len(rows))
            return len(rows)
        self._follow(found)
        waiting.sift(lambda row: not self._is_stored(row))
        return 0

    def _send(self, entry: Entry, before: int, rows: list[OutMessage]) -> Entry:
        """Store an entry and its rows atomically, and return the newest entry of the ledger.

        `before` is the sequence of the previous entry. If another attempt has stored an entry
        after the previous one, store nothing and return the other attempt's entry.
        """
        batch = FencedBatch(self._stream.name, self._subject, entry, before, rows)
        patience = Patience(self._options.ack_timeout)
        tries = 0
        while True:
            tries += 1
            try:
                return batch.send(self._nc, self._options.ack_timeout / _SHARE)
            except WrongLastSequence as error:
                found = self._read_newest()
                if found.seq > before:
                    # An earlier try or another attempt stored the entry.
                    return found
                # Either the server is still storing another batch for the ledger, or the replica
                # that responded has just lost the leadership and lacks entries.
                patience.spend(error)
            except TwinstreamError as error:
                if tries == _SUSPICIOUS or _is_of_other_stream(error):
                    self._refuse_other_streams(rows)
                # Retry after transient errors. For example, a new leader may lack messages that
                # were staged on the old one, or open batches of killed attempts may still count
                # towards the server's limit. A retry is safe: if the batch is already stored, the
                # server refuses the expected sequence.
                if not is_transient(error, batch=True):
                    raise
                patience.spend(error)

    def _refuse_other_streams(self, rows: list[OutMessage]) -> None:
        """Raise `SchemaError` if a row has a subject that the stream does not have.

        This check names the row; the server only reports that the whole batch is incomplete.
        """
        takes = matcher(known_info(self._stream).config.subjects or [self._stream.name])
        for row in rows:
            if takes is not None and not takes(row.subject.encode()):
                raise SchemaError(
                    f"a row has the subject {row.subject!r}, which stream {self._stream.name} does"
                    " not have; with idempotence=ledger all rows go into one stream"
                )


def _most_rows(config: StreamConfig, max_payload: int) -> int:
    """Return the maximum number of rows of a batch, so that the entry is not too large.

    The size of the entry is limited by the server's `max_payload` and the stream's
    `max_msg_size`.
    """
    limits = [max_payload, config.max_msg_size or -1]
    most = min(each for each in limits if each > 0)
    return max(1, min(CHUNK, (most - _REST) // _KEY_TEXT))


def _is_of_other_stream(error: TwinstreamError) -> bool:
    """Return whether the error means that the stream of a row has no atomic batches.

    The ledger's stream was checked to allow them, so the row belongs to another stream.
    """
    return isinstance(error, JetStreamError) and error.err_code == BATCH_DISABLED
