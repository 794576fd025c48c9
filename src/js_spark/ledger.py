"""Write exactly once, without a limit in time: atomic batches led by a fenced ledger entry.

Theory of operation
-------------------
Each partition of a write has a subject of its own in the stream, its ledger. Rows go out in
atomic batches: the server stores all messages of a batch or none. The first message of every
batch is a ledger entry ``{batch, rows, hash}``: how many rows of this micro-batch are stored once
the atomic batch is, and the hash of them all. It is published with the sequence of the entry
before it as ``Nats-Expected-Last-Subject-Sequence``, so it is stored only by whoever knows the
newest entry.

An attempt first reads the last entry from the leader. If it is of the same micro-batch, the rows
that it counts are skipped, and their hash must be the one in the entry: a query that gives other
rows or another order on a repeat is found out, so that the two are not mixed. If the entry is of a
later micro-batch, the checkpoint is an old one. A zombie attempt that goes on writing after a newer
one began finds that the fence has moved, and stores nothing.

An atomic batch that has no answer, or whose leader is lost, is sent again behind the same fence. If
a batch is refused there, the ledger is read: the rows that its entry counts are stored, by an
earlier try or by a zombie that is ahead, perhaps by several batches. If the attempt's own rows up
to there have the hash of the entry, it goes on behind it.

The promise lasts as long as the newest entry of each ledger: limits by age or size, purges and
deletes that remove it open the door again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Final

from js_core.errors import JetStreamError, MessageNotFound, TwinstreamError, WrongLastSequence
from js_core.subject_match import matcher
from js_models.error_codes import BATCH_DISABLED
from js_spark.errors import LedgerError, SchemaError
from js_spark.fenced_batch import FencedBatch, may_be_sent_again
from js_spark.ledger_entry import Entry
from js_spark.passing import Patience, through
from js_spark.sink_options import SinkOptions
from js_spark.sink_report import JetStreamCommit
from js_spark.sink_rows import OutMessage
from js_spark.task_identity import TaskIdentity

if TYPE_CHECKING:
    from js_sync import Connection, Stream

__all__ = ["CHUNK", "LedgerWriter"]

#: Rows in one atomic batch. The server takes 1,000 messages, the ledger entry is one of them.
CHUNK: Final = 999

#: An attempt may wait for an answer for one of so many parts of the time for an atomic batch: the
#: answer may be lost with a leader, and there must be time to send the batch again.
_SHARE: Final = 3

#: After so many attempts a row for another stream is likelier than a lost leader. It is only a
#: suspicion, because an account may map subjects on their way into the stream.
_SUSPICIOUS: Final = 3


class LedgerWriter:
    """Writes the rows of one task."""

    def __init__(
        self, nc: Connection, stream: Stream, options: SinkOptions, identity: TaskIdentity
    ) -> None:
        self._nc: Final = nc
        self._stream: Final = stream
        self._options: Final = options
        self._identity: Final = identity
        self._subject: Final = f"{options.ledger_subject}.{identity.write}.{identity.partition}"
        self._hash: Final = hashlib.sha256()

    def write(self, rows: Iterator[OutMessage]) -> JetStreamCommit:
        """Store the rows that no earlier attempt stored.

        Raises `LedgerError` when the rows are not those of the earlier attempt, when the
        checkpoint is older than the ledger, or when another attempt writes other rows meanwhile.
        """
        entry = self._last()
        if entry.batch > self._identity.batch:
            raise LedgerError(
                f"{self._subject}: the ledger is at batch {entry.batch}, this is batch"
                f" {self._identity.batch}: the checkpoint is an old one, or a copy"
            )
        present = 0
        if entry.batch == self._identity.batch:
            present = entry.rows
            self._skip(rows, entry)
        count = self._go_on(rows, entry, present)
        return JetStreamCommit(count - present, present)

    def _go_on(self, rows: Iterator[OutMessage], entry: Entry, count: int) -> int:
        """Store what follows the first ``count`` rows behind an entry; return how many all are."""
        ahead: Entry | None = None
        while chunk := list(islice(rows, CHUNK)):
            count += len(chunk)
            for row in chunk:
                self._digest(row)
            planned = Entry(self._identity.batch, count, self._hash.hexdigest())
            if ahead is None:
                ahead = self._store(planned, entry.seq, chunk)
            # Another attempt is ahead: the rows that it stored must be those of this one.
            if ahead.rows <= count:
                self._compare(ahead, planned)
                entry, ahead = ahead, None
        if ahead is not None:
            self._compare(ahead, Entry(self._identity.batch, count, self._hash.hexdigest()))
        return count

    def _compare(self, found: Entry, planned: Entry) -> None:
        if not found.says_as(planned):
            raise LedgerError(
                f"{self._subject}: another attempt of the same task wrote other rows meanwhile:"
                f" {found.rows} are stored, which are not the first rows of this attempt"
            )

    def _last(self) -> Entry:
        """Read the newest entry, from the leader."""
        try:
            message = through(
                lambda: self._stream.get_last_message(self._subject), self._options.ack_timeout
            )
        except MessageNotFound:
            return Entry()
        return Entry.from_json(message.data, message.seq, self._subject)

    def _skip(self, rows: Iterator[OutMessage], entry: Entry) -> None:
        skipped = 0
        for row in islice(rows, entry.rows):
            self._digest(row)
            skipped += 1
        if skipped < entry.rows or self._hash.hexdigest() != entry.hash:
            raise LedgerError(
                f"{self._subject}: the {entry.rows} rows that an earlier attempt of batch"
                f" {entry.batch} stored are not the first rows of this attempt. The query gives"
                " other rows or another order on a repeat (a shuffle, rand(), current_timestamp());"
                " use idempotence=msgId with idColumn instead"
            )

    def _digest(self, row: OutMessage) -> None:
        headers = json.dumps(row.headers, sort_keys=True) if row.headers else ""
        head = f"{len(row.subject)}:{row.subject}{headers}{row.ttl}:{len(row.data)}:"
        self._hash.update(head.encode("utf-8", "surrogatepass") + row.data)

    def _store(self, entry: Entry, before: int, rows: list[OutMessage]) -> Entry:
        """Store an entry and its rows, all or nothing; return the newest entry of the ledger."""
        batch = FencedBatch(self._stream.name, self._subject, entry, before, rows)
        patience = Patience(self._options.ack_timeout)
        tries = 0
        while True:
            tries += 1
            try:
                return batch.send(self._nc, self._options.ack_timeout / _SHARE)
            except WrongLastSequence as error:
                found = self._last()
                if found.seq != before:
                    # An earlier try, or an attempt of the task that is not quite dead yet.
                    return found
                patience.spend(error)  # the batch that came first is being stored just now
            except TwinstreamError as error:
                if tries == _SUSPICIOUS or _is_of_another(error):
                    self._refuse_strangers(rows)
                if not may_be_sent_again(error):
                    raise
                patience.spend(error)

    def _refuse_strangers(self, rows: list[OutMessage]) -> None:
        """Raise when a row is for another stream: the server calls such a batch incomplete."""
        takes = matcher(self._stream.config.subjects or [self._stream.name])
        for row in rows:
            if takes is not None and not takes(row.subject.encode()):
                raise SchemaError(
                    f"a row has the subject {row.subject!r}, which stream {self._stream.name} does"
                    " not have; with idempotence=ledger all rows go into one stream"
                )


def _is_of_another(error: TwinstreamError) -> bool:
    """Tell whether another stream answered, that of the last row: this one takes batches."""
    return isinstance(error, JetStreamError) and error.err_code == BATCH_DISABLED
