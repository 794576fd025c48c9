"""Find rows whose subject belongs to no stream before they are sent.

The server's response to an unknown subject is the same as during a leader election. So a writer
would retry such a row for half a minute, in each of Spark's attempts.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from twinstream.core.wire.subject_match import pattern_of
from twinstream.errors import NoStream, StreamNotFound, TwinstreamError
from twinstream.spark.errors import SchemaError

if TYPE_CHECKING:
    from js_sync import JetStream
    from twinstream.models import StreamConfig

__all__ = ["KnownSubjects"]

#: Timeout of each request in seconds; without a response the rows are sent unchecked.
_PATIENCE: Final = 5.0


class KnownSubjects:
    """The subjects of the streams that a task writes to.

    Batches of rows are checked with one expression over their column ``subject``, and requests are
    sent only for subjects that are not known. ``config`` is the configuration of the only stream,
    if known; ``default`` is the subject of rows without one.
    """

    def __init__(self, jet: JetStream, config: StreamConfig | None, default: str | None) -> None:
        self._jet: Final = jet
        self._default: Final = default
        self._known: list[str] | None = []
        if config is not None:
            self._add(config)

    def check(self, rows: pa.RecordBatch) -> None:
        """Raise `SchemaError` if a row's subject belongs to no stream."""
        subjects = self._subjects(rows)
        before: str | None = None
        while (subject := self._stranger(subjects)) is not None:
            if subject == before:  # its stream has changed in the meantime
                self._known = None
                return
            before = subject
            self._look_up(subject)

    def _subjects(self, rows: pa.RecordBatch) -> pa.Array:
        if "subject" not in rows.schema.names:
            return pa.array([self._default], pa.string())
        column = rows.column("subject")
        return column if self._default is None else column.fill_null(self._default)

    def _stranger(self, subjects: pa.Array) -> str | None:
        """Return the first subject that is not known, or None."""
        if self._known is None:
            return None
        if not self._known:
            unknown = subjects
        else:
            try:
                takes = pc.match_substring_regex(subjects, f"^(?s:{'|'.join(self._known)})$")
            except pa.ArrowInvalid:  # too many subjects for one expression
                self._known = None
                return None
            unknown = subjects.filter(pc.invert(takes))
        found = unknown.filter(unknown.is_valid())
        return str(found[0].as_py()) if len(found) else None

    def _look_up(self, subject: str) -> None:
        """Look up the stream of a subject; raises `SchemaError` if there is none.

        If this cannot be found out, checking is turned off: there may be no permission for the
        request, or the account may map the subject to another one.
        """
        try:
            name = self._jet.stream_name_by_subject(subject, timeout=_PATIENCE)
            self._add(self._jet.get_stream(name, timeout=_PATIENCE).config)
        except StreamNotFound:
            self._probe(subject)
            self._known = None
        except TwinstreamError:
            self._known = None

    def _add(self, config: StreamConfig) -> None:
        if self._known is not None:
            filters = config.subjects or [str(config.name)]
            self._known += [pattern_of(each).decode() for each in filters]

    def _probe(self, subject: str) -> None:
        """Send a request to the subject itself; a stream responds without storing anything."""
        try:
            self._jet.publish(subject, b"", expected_stream=uuid.uuid4().hex, timeout=_PATIENCE)
        except NoStream as error:
            raise SchemaError(
                f"a row has the subject {subject!r}, which belongs to no stream: create a stream"
                " with it, or correct the rows"
            ) from error
        except TwinstreamError:
            pass
