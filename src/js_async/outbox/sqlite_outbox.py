"""An outbox in the SQLite database of the application."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import sys
from collections.abc import Iterable
from contextlib import closing
from typing import Any, Final, cast

from attrs import evolve

from twinstream.core.exactly_once.outbox import OutboxEvent
from twinstream.core.on_failure import OnFailure
from twinstream.core.publish.request import check_condition, check_data, publish_headers
from twinstream.core.wire.headers import header_pairs
from twinstream.core.wire.subjects import check_subject
from twinstream.disk.safe_files import make_private
from twinstream.errors import BadArgument
from twinstream.records.headers import Headers, HeaderValues
from twinstream.records.publish_request import PublishRequest

__all__ = ["SqliteOutbox"]

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# How long a call waits for a transaction of another database connection (seconds).
_BUSY: Final = 30.0
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS {table} (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    key TEXT,
    subject TEXT NOT NULL,
    headers TEXT,
    data BLOB NOT NULL,
    refused TEXT
)
CREATE TABLE IF NOT EXISTS {table}_floor (stream TEXT PRIMARY KEY, seq INTEGER NOT NULL)
CREATE INDEX IF NOT EXISTS {table}_refused ON {table} (key) WHERE refused IS NOT NULL
"""


class SqliteOutbox:
    """An outbox whose pending events are rows of a table in a SQLite database.

    `add` writes an event within a transaction of the user, so the event is committed or rolled back
    together with the user's data. Relays, and the methods without the parameter `db`, use database
    connections of their own, and create the tables if necessary. The lock file
    `<path>.<table>.relay`, an empty SQLite database, prevents two relays from working at the same
    time.

    Args:
        path: Path of the database file.
        table: Name of the table: letters, digits and `_`.
    """

    def __init__(self, path: str | os.PathLike[str], *, table: str = "outbox") -> None:
        if not isinstance(path, str | os.PathLike):
            raise BadArgument(f"path must be text or a path, got {path!r}")
        path = os.fsdecode(path)
        if not isinstance(table, str) or not _NAME.fullmatch(table):
            raise BadArgument(f"table must be letters, digits and _, got {table!r}")
        if not path or path == ":memory:":
            raise BadArgument("an outbox must outlive the program: give the path of a file")
        self._path: Final = path
        self._table: Final = table
        self._lock: sqlite3.Connection | None = None
        self._own: sqlite3.Connection | None = None

    def __repr__(self) -> str:
        return f"<SqliteOutbox {self._path} {self._table}>"

    # ---- for the user

    def create(self, db: sqlite3.Connection) -> None:
        """Create the tables of the outbox unless they exist.

        Args:
            db: An open connection to the database.
        """
        for statement in _SCHEMA.format(table=self._table).split("\nCREATE")[1:]:
            db.execute(f"CREATE{statement}")

    def add(
        self,
        db: sqlite3.Connection,
        subject: str,
        data: bytes = b"",
        *,
        key: str | None = None,
        id: str | None = None,
        headers: HeaderValues | None = None,
    ) -> OutboxEvent:
        """Add an event within the transaction of `db`. A relay sends it after the commit.

        Args:
            db: Database connection with the transaction.
            subject: Subject of the message; `{id}` in it is replaced by the event's id.
            data: Payload of the message.
            key: Events of the same key are stored in the order in which they were added.
            id: Message id, by default a random one.
            headers: Headers of the message.

        Raises:
            BadArgument: No server would accept the message.
            sqlite3.Error: The database failed.
        """
        if id is None:
            id = str(db.execute("SELECT lower(hex(randomblob(16)))").fetchone()[0])
        check_condition(id, "id")
        subject = subject.replace("{id}", id)
        pairs = tuple(header_pairs(headers or {}))
        _check(PublishRequest(subject, data, headers=headers, msg_id=id))
        pairs = _observed(PublishRequest(subject, data, headers=Headers(pairs), msg_id=id))
        row = (id, key, subject, json.dumps(pairs) if pairs else None, bytes(data))
        text = f"INSERT INTO {self._table} (id, key, subject, headers, data) VALUES (?, ?, ?, ?, ?)"
        number = db.execute(text, row).lastrowid
        return OutboxEvent(
            number=number or 0, id=id, subject=subject, data=row[4], headers=pairs, key=key
        )

    def waiting(self) -> int:
        """Return the number of events in the outbox, including refused ones."""
        with closing(self._connect()) as db:
            return int(db.execute(f"SELECT count(*) FROM {self._table}").fetchone()[0])

    def refused(self) -> list[tuple[OutboxEvent, str]]:
        """Return the refused events, each with the reason why it cannot be stored."""
        with closing(self._connect()) as db:
            text = f"SELECT {_COLUMNS}, refused FROM {self._table} WHERE refused IS NOT NULL"
            rows = db.execute(f"{text} ORDER BY number").fetchall()
        return [(_event(row[:6]), str(row[6])) for row in rows]

    def retry(self, number: int) -> None:
        """Make a refused event pending again. Call this when the reason is resolved.

        Args:
            number: Number of the event.
        """
        self._change(f"UPDATE {self._table} SET refused = NULL WHERE number = ?", number)

    def drop(self, number: int) -> None:
        """Remove a refused event, so that it no longer blocks later events of its key.

        Args:
            number: Number of the event.
        """
        self._change(f"DELETE FROM {self._table} WHERE number = ? AND refused IS NOT NULL", number)

    def _change(self, text: str, number: int) -> None:
        with closing(self._connect()) as db, db:
            db.execute(text, (number,))

    def _connect(self) -> sqlite3.Connection:
        make_private(self._path)
        # Calls of the relay may run in different threads, but only one at a time.
        db = sqlite3.connect(self._path, timeout=_BUSY, check_same_thread=False)
        # Text that is not UTF-8 would end the reading of all rows.
        db.text_factory = _text
        with OnFailure(db.close), db:
            self.create(db)
        return db

    # ---- for the relay

    def claim(self) -> bool:
        """Claim the outbox for this relay, until `release` or the end of the process.

        Return False if another relay has claimed the outbox, else True.
        """
        path = f"{self._path}.{self._table}.relay"
        make_private(path)
        lock = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
        try:
            lock.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError as error:
            lock.close()
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
                raise
            return False
        with OnFailure(lock.close):
            self._own = self._connect()
        self._lock = lock
        return True

    def release(self) -> None:
        """End the claim, so that another relay can claim the outbox."""
        for db in (self._own, self._lock):
            if db is not None:
                db.close()
        self._own = self._lock = None

    @property
    def _db(self) -> sqlite3.Connection:
        if self._own is None:
            raise BadArgument(f"{self!r} is not claimed: only a relay may do this")
        return self._own

    def pending(self, limit: int, after: int = 0) -> list[OutboxEvent]:
        """Return up to `limit` pending events with numbers above `after`, in order of number.

        Refused events, and all events whose key is that of a refused event, are left out.
        """
        text = f"""
            SELECT {_COLUMNS} FROM {self._table}
            WHERE number > ? AND refused IS NULL AND (key IS NULL OR key NOT IN
            (SELECT key FROM {self._table} WHERE refused IS NOT NULL AND key IS NOT NULL))
            ORDER BY number LIMIT ?"""
        return [_event(row) for row in self._db.execute(text, (after, limit)).fetchall()]

    def pending_ids(self) -> dict[str, int]:
        """Return the number of each event in the outbox, including refused ones, by message id."""
        text = f"SELECT id, number FROM {self._table}"
        return {str(id): int(number) for id, number in self._db.execute(text).fetchall()}

    def done(self, numbers: Iterable[int]) -> None:
        """Remove the events with these numbers, because the stream has stored them.

        Args:
            numbers: Numbers of the events.
        """
        with self._db as db:
            text = f"DELETE FROM {self._table} WHERE number = ?"
            db.executemany(text, [(number,) for number in numbers])

    def refuse(self, number: int, reason: str) -> None:
        """Mark an event as refused, with the reason why it cannot be stored.

        Args:
            number: Number of the event.
            reason: Why, in words.
        """
        with self._db as db:
            text = f"UPDATE {self._table} SET refused = ? WHERE number = ?"
            # SQLite does not store a lone surrogate, which a name in the reason may contain.
            db.execute(text, (reason.encode("utf-8", "backslashreplace").decode(), number))

    def floor(self, stream_name: str) -> int | None:
        """Return the floor of a stream (see `OutboxStore`), or None if it was never set.

        A floor that is not a sequence is 0, so that the whole stream is searched.

        Args:
            stream_name: Name of the stream.
        """
        text = f"SELECT seq FROM {self._table}_floor WHERE stream = ?"
        row = self._db.execute(text, (stream_name,)).fetchone()
        if row is None:
            return None
        return row[0] if isinstance(row[0], int) and row[0] > 0 else 0

    def set_floor(self, stream_name: str, seq: int) -> None:
        """Store the floor of a stream (see `OutboxStore`).

        Args:
            stream_name: Name of the stream.
            seq: A sequence up to which no message of the stream is a pending event.
        """
        with self._db as db:
            text = f"INSERT OR REPLACE INTO {self._table}_floor (stream, seq) VALUES (?, ?)"
            db.execute(text, (stream_name, seq))


def _observed(request: PublishRequest) -> tuple[tuple[str, str], ...]:
    """Return the headers of an event, with those that observers of the whole process add."""
    # An outbox has no connection, so only instrumentation of the process observes it.
    process_wide: Any = sys.modules.get("twinstream.core.observe.process_wide")
    observers = None if process_wide is None else process_wide.process_observers()
    if observers is not None:
        from twinstream.core.observe.publish_context import with_context

        request = with_context(observers, request, "outbox")
    return tuple(header_pairs(request.headers or {}))


_COLUMNS: Final = "number, id, subject, data, headers, key"
_Row = tuple[int, object, object, object, object, object]


def _event(row: _Row) -> OutboxEvent:
    """Return the event of a row, with its `damage` if `add` would not have written the row."""
    number, id, subject, data, headers, key = row
    event = OutboxEvent(
        number=number,
        id=id if isinstance(id, str) else "",
        subject=subject if isinstance(subject, str) else "",
        data=data if isinstance(data, bytes) else b"",
        key=key if isinstance(key, str) else None,
    )
    kinds = {"id": str, "subject": str, "data": bytes, "key": str | None, "headers": str | None}
    values = (id, subject, data, key, headers)
    for (name, kind), value in zip(kinds.items(), values, strict=True):
        if not isinstance(value, kind):
            return evolve(event, damage=f"{name} is {type(value).__name__}")
    try:
        pairs = _pairs(headers)
        _check(PublishRequest(event.subject, event.data, headers=Headers(pairs), msg_id=event.id))
    except (ValueError, RecursionError) as error:
        return evolve(event, damage=str(error))
    return evolve(event, headers=pairs)


def _pairs(headers: object) -> tuple[tuple[str, str], ...]:
    """Return the headers in a row. Raises `ValueError` for other text than `add` writes."""
    found: object = json.loads(headers) if isinstance(headers, str) and headers else []
    if not isinstance(found, list):
        raise BadArgument("headers are not a list")
    return tuple(_pair(each) for each in cast("list[object]", found))


def _pair(found: object) -> tuple[str, str]:
    match found:
        case [str(name), str(value)]:
            return (name, value)
        case _:
            raise BadArgument("a header is not a name with a value")


def _check(request: PublishRequest) -> None:
    """Raise `BadArgument` for a message that no server would accept."""
    check_condition(request.msg_id or "", "id")
    check_subject(request.subject)
    check_data(request.subject, request.data)
    publish_headers(request)


def _text(stored: bytes) -> str:
    return stored.decode("utf-8", "surrogateescape")
