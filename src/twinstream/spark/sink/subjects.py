"""Find rows whose subject belongs to no stream, before the rows are sent.

The server's response to a message with such a subject is the same as during a leader election. So
without this check, a writer would retry such a row for half a minute in each attempt of the task.
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

# The timeout of each request in seconds. After a timeout, the rows are sent unchecked.
_PATIENCE: Final = 5.0


class KnownSubjects:
    """The subjects of the streams to which a task writes.

    A batch of rows is checked with one expression over its column `subject`. Requests are sent
    only for subjects that match no known stream. `config` is the configuration of the stream that
    the options name, or `None`. `default` is the subject of rows without a subject, or
    `None`.
    """

    def __init__(self, jet: JetStream, config: StreamConfig | None, default: str | None) -> None:
        self._jet: Final = jet
        self._default: Final = default
        self._known: list[str] | None = []
        if config is not None:
            self._add(config)

    def check(self, rows: pa.RecordBatch) -> None:
        """Raise `SchemaError` if a row has a subject that certainly belongs to no stream."""
        subjects = self._subjects(rows)
        before: str | None = None
        while (subject := self._unknown(subjects)) is not None:
            if subject == before:  # the stream lost the subject after the lookup
                self._known = None
                return
            before = subject
            self._look_up(subject)

    def _subjects(self, rows: pa.RecordBatch) -> pa.Array:
        if "subject" not in rows.schema.names:
            return pa.array([self._default], pa.string())
        column = rows.column("subject")
        return column if self._default is None else column.fill_null(self._default)

    def _unknown(self, subjects: pa.Array) -> str | None:
        """Return the first subject that is not known.

        Return `None` if all are known, or if checks are turned off.
        """
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
        """Look up the stream of a subject, and add the subjects of the stream to the known ones.

        Raises `SchemaError` if there is no such stream. If that is uncertain, all further checks
        are turned off. For example, the client may have no permission for the request, or the
        account may map the subject to another subject.
        """
        try:
            name = self._jet.stream_name_by_subject(subject, timeout=_PATIENCE)
            self._add(self._jet.bind_stream(name).info(timeout=_PATIENCE).config)
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
        """Publish a message with this subject, and raise `SchemaError` if no stream responds.

        The message names a stream that does not exist as the expected stream, so no stream stores
        the message.
        """
        try:
            self._jet.publish(subject, b"", expected_stream=uuid.uuid4().hex, timeout=_PATIENCE)
        except NoStream as error:
            raise SchemaError(
                f"a row has the subject {subject!r}, which belongs to no stream: create a stream"
                " with it, or correct the rows"
            ) from error
        except TwinstreamError:
            pass
