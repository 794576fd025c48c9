"""Write exactly once, without a limit in time: atomic batches led by a fenced ledger entry.

Theory of operation
-------------------
Each partition of a write has a subject of its own in the stream, its ledger. Rows go out in
atomic batches: the server stores all messages of a batch or none. The first message of every
batch is a ledger entry ``{batch, rows, hash}``: how many rows of this micro-batch are stored once
the atomic batch is, and the hash of them all. It is published with the sequence of the entry
before it as ``Nats-Expected-Last-Subject-Sequence``, so it is stored only by whoever knows the
newest entry.

An attempt reads the last entry from the leader first. If it is of the same micro-batch, the rows
that it counts are skipped, and their hash must be that of the entry: a plan that gives other rows
or another order on a repeat is found out instead of mixing both. If it is of a later micro-batch,
the checkpoint is an old one. A zombie attempt that goes on writing after a newer one began meets
a moved fence and stores nothing.

The promise lasts as long as the newest entry of each ledger: limits by age or size, purges and
deletes that remove it open the door again.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from attrs import frozen

from js_core.answers import read_answer
from js_core.errors import MessageNotFound, WrongLastSequence
from js_core.headers import Headers
from js_core.publish import PublishRequest, publish_headers
from js_spark.errors import LedgerError
from js_spark.sink_options import SinkOptions
from js_spark.sink_report import JetStreamCommit
from js_spark.sink_rows import OutMessage
from js_spark.task_identity import TaskIdentity

if TYPE_CHECKING:
    from js_sync import Connection, Stream

__all__ = ["CHUNK", "Entry", "LedgerWriter"]

#: Rows in one atomic batch. The server takes 1,000 messages, the ledger entry is one of them.
CHUNK: Final = 999


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
            members = json.loads(payload)
            return cls(int(members["batch"]), int(members["rows"]), str(members["hash"]), seq)
        except (KeyError, TypeError, ValueError) as error:
            raise LedgerError(
                f"{subject} holds a message that is no ledger entry (sequence {seq}); give"
                " ledgerSubject a subject that nobody else publishes to"
            ) from error


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
        checkpoint is older than the ledger, or when another attempt is writing as well.
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
        count = present
        while chunk := list(islice(rows, CHUNK)):
            count += len(chunk)
            for row in chunk:
                self._digest(row)
            planned = Entry(self._identity.batch, count, self._hash.hexdigest(), entry.seq)
            entry = self._store(planned, chunk)
        return JetStreamCommit(count - present, present)

    def _last(self) -> Entry:
        try:
            message = self._stream.get_last_message(self._subject)
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

    def _store(self, entry: Entry, rows: list[OutMessage]) -> Entry:
        """Store an entry and its rows, all or nothing; return the entry with its sequence."""
        batch = uuid.uuid4().hex
        fence = PublishRequest(
            subject=self._subject,
            data=entry.to_json(),
            headers=_place(batch, 1),
            expected_stream=self._options.stream,
            expected_last_subject_seq=entry.seq,
        )
        try:
            self._ask(fence)
            for number, row in enumerate(rows[:-1], 2):
                request = _request(row, _place(batch, number))
                self._nc.publish(row.subject, row.data, headers=_header_map(request))
            last = _request(rows[-1], {**_place(batch, len(rows) + 1), "Nats-Batch-Commit": "1"})
            answer = self._ask(last)
        except WrongLastSequence as error:
            raise LedgerError(
                f"{self._subject}: another attempt of the same task wrote meanwhile; this one"
                f" stored nothing of its last {len(rows)} rows"
            ) from error
        # The acknowledgement names the last message; the entry is the first of the batch.
        return Entry(entry.batch, entry.rows, entry.hash, int(answer["seq"]) - len(rows))

    def _ask(self, request: PublishRequest) -> dict[str, Any]:
        answer = self._nc.request(
            request.subject,
            request.data,
            headers=_header_map(request),
            timeout=self._options.ack_timeout,
        )
        # A message that is only staged is answered with nothing.
        return read_answer(answer.data, request.subject) if answer.data else {}


def _place(batch: str, number: int) -> dict[str, str]:
    return {"Nats-Batch-Id": batch, "Nats-Batch-Sequence": str(number)}


def _request(row: OutMessage, place: Mapping[str, str]) -> PublishRequest:
    headers: dict[str, Any] = {**(row.headers or {}), **place}
    return PublishRequest(subject=row.subject, data=row.data, headers=headers, ttl=row.ttl)


def _header_map(request: PublishRequest) -> Headers:
    return Headers.parse(publish_headers(request))
