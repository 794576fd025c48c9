"""An outbox in a SQLite database, next to the data that its events are about."""

from __future__ import annotations

import json
import os
import re
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from typing import Final

from js_async.backup.disk import make_private
from twinstream.core.exactly_once.outbox import OutboxEvent
from twinstream.core.publish.request import check_data, check_message_id
from twinstream.core.wire.header_names import MSG_ID
from twinstream.core.wire.headers import HeaderValues, encode_headers, header_pairs
from twinstream.core.wire.subjects import check_subject
from twinstream.errors import BadArgument

__all__ = ["SqliteOutbox"]

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# How long a call waits for another connection's transaction (seconds).
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
    """Pending events in a table of a SQLite database.

    `add` writes within a transaction of the user: the event is stored if and only if the rest of
    the transaction is. A relay uses a connection of its own. The tables are created by `create`, or
    by the first relay. The lock file `<path>.<table>.relay`, an empty SQLite database, prevents a
    second relay from working at the same time.
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
        """Create the tables unless they exist."""
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
        """Add an event within the transaction of `db`; it is sent after the commit.

        Args:
            db: Connection with the transaction.
            subject: Subject; `{id}` in it is replaced by the event's id.
            data: Payload.
            key: Events of the same key are stored in the order in which they were added.
            id: Message id, by default a random one.
            headers: Headers.

        Raises:
            BadArgument: No server would accept the message.
            sqlite3.Error: The database failed.
        """
        if id is None:
            id = str(db.execute("SELECT lower(hex(randomblob(16)))").fetchone()[0])
        check_message_id(id, "id")
        subject = subject.replace("{id}", id)
        check_subject(subject)
        check_data(subject, data)
        pairs = tuple(header_pairs(headers or {}))
        encode_headers({MSG_ID: id, **dict(pairs)})
        row = (id, key, subject, json.dumps(pairs) if pairs else None, bytes(data))
        text = f"INSERT INTO {self._table} (id, key, subject, headers, data) VALUES (?, ?, ?, ?, ?)"
        number = db.execute(text, row).lastrowid
        return OutboxEvent(
            number=number or 0, id=id, subject=subject, data=row[4], headers=pairs, key=key
        )

    def waiting(self) -> int:
        """Return the number of events that are not stored yet, including refused ones."""
        with closing(self._connect()) as db:
            return int(db.execute(f"SELECT count(*) FROM {self._table}").fetchone()[0])

    def refused(self) -> list[tuple[OutboxEvent, str]]:
        """Return the events that cannot be stored, each with the reason."""
        with closing(self._connect()) as db:
            text = f"SELECT {_COLUMNS}, refused FROM {self._table} WHERE refused IS NOT NULL"
            rows = db.execute(f"{text} ORDER BY number").fetchall()
        return [(_event(row[:6]), str(row[6])) for row in rows]

    def retry(self, number: int) -> None:
        """Send a refused event again, after the reason for the refusal is resolved."""
        self._change(f"UPDATE {self._table} SET refused = NULL WHERE number = ?", number)

    def drop(self, number: int) -> None:
        """Discard a refused event; events of its key behind it are sent then."""
        self._change(f"DELETE FROM {self._table} WHERE number = ? AND refused IS NOT NULL", number)

    def _change(self, text: str, number: int) -> None:
        with closing(self._connect()) as db, db:
            db.execute(text, (number,))

    def _connect(self) -> sqlite3.Connection:
        make_private(self._path)
        # The relay makes one call at a time, but possibly in different threads.
        db = sqlite3.connect(self._path, timeout=_BUSY, check_same_thread=False)
        try:
            with db:
                self.create(db)
        except BaseException:
            db.close()
            raise
        return db

    # ---- for the relay

    def claim(self) -> bool:
        """Claim the outbox for this relay, until `release` or the end of the process."""
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
        try:
            self._own = self._connect()
        except BaseException:
            lock.close()
            raise
        self._lock = lock
        return True

    def release(self) -> None:
        """Allow another relay to work."""
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
        """Return the first pending events with numbers above `after`, in order."""
        text = f"""
            SELECT {_COLUMNS} FROM {self._table}
            WHERE number > ? AND refused IS NULL AND (key IS NULL OR key NOT IN
            (SELECT key FROM {self._table} WHERE refused IS NOT NULL AND key IS NOT NULL))
            ORDER BY number LIMIT ?"""
        return [_event(row) for row in self._db.execute(text, (after, limit)).fetchall()]

    def pending_ids(self) -> dict[str, int]:
        """Return the numbers of all pending events, including refused ones, by message id."""
        text = f"SELECT id, number FROM {self._table}"
        return {str(id): int(number) for id, number in self._db.execute(text).fetchall()}

    def done(self, numbers: Iterable[int]) -> None:
        """Remove events that are stored."""
        with self._db as db:
            text = f"DELETE FROM {self._table} WHERE number = ?"
            db.executemany(text, [(number,) for number in numbers])

    def refuse(self, number: int, reason: str) -> None:
        """Set an event aside that cannot be stored."""
        with self._db as db:
            text = f"UPDATE {self._table} SET refused = ? WHERE number = ?"
            db.execute(text, (reason, number))

    def floor(self, stream: str) -> int | None:
        """Return the value of `set_floor` for a stream, or None."""
        text = f"SELECT seq FROM {self._table}_floor WHERE stream = ?"
        row = self._db.execute(text, (stream,)).fetchone()
        return None if row is None else int(row[0])

    def set_floor(self, stream: str, seq: int) -> None:
        """Store the sequence up to which a stream contains none of the pending events."""
        with self._db as db:
            text = f"INSERT OR REPLACE INTO {self._table}_floor (stream, seq) VALUES (?, ?)"
            db.execute(text, (stream, seq))


_COLUMNS: Final = "number, id, subject, data, headers, key"
_Row = tuple[int, str, str, bytes, str | None, str | None]


def _event(row: _Row) -> OutboxEvent:
    number, id, subject, data, headers, key = row
    pairs = tuple((name, value) for name, value in json.loads(headers)) if headers else ()
    return OutboxEvent(number=number, id=id, subject=subject, data=data, headers=pairs, key=key)
