"""Convert stored messages to entries, with the codecs of a bucket's handle."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Generic, TypeVar, cast

from twinstream.core.kv.codecs import Codecs, named_error
from twinstream.core.read.direct_get import from_plain, plain_start
from twinstream.core.read.page import StoredPage
from twinstream.core.read.stream_message import StreamMessage
from twinstream.core.wire.protocol import Frame
from twinstream.records.entry import Entry, KeyValueOperation, entry_of, operation_of, size_of
from twinstream.records.headers import NO_HEADERS, Headers

__all__ = ["EntryMaker"]

V = TypeVar("V")
_PUT: Final = KeyValueOperation.PUT


class EntryMaker(Generic[V]):
    """A factory of the entries of one bucket handle.

    `stored` is the prefix of the stored subjects. `stream` is the name of the bucket's stream.
    """

    def __init__(self, bucket: str, stream: str, stored: str, codecs: Codecs[V]) -> None:
        self._bucket: Final = bucket
        self._skip: Final = len(stored)
        self._stored: Final = stored
        self._codecs: Final = codecs
        self._is_plain: Final = codecs.key is None and codecs.value is None
        self._start: Final = plain_start(stream, stored)

    def of_direct(self, frame: Frame, key: str) -> Entry[V] | None:
        """Return the entry in the response to a direct get of the stored key `key`.

        Return None for a status, for a message with headers, and if another stream, such as a
        mirror, replied. The caller then parses the response in full.
        """
        found = from_plain(frame, self._start + key.encode())
        if found is None:
            return None
        data, seq, time = found
        if not self._is_plain:
            return self.make(self._stored + key, data, NO_HEADERS, seq, time, None, True)
        at = (seq, _PUT, time, len(data), NO_HEADERS, None)
        return entry_of((self._bucket, key, data, *at, key, data, None))

    def of_stored(self, message: StreamMessage) -> Entry[V]:
        """Return the entry of a message that was read without a consumer.

        If a codec fails, its error is stored as the entry's `error`.
        """
        subject, time = message.subject, message.time.ns
        return self.make(subject, message.data, message.headers, message.seq, time, None, True)

    def of_page(self, page: StoredPage) -> Iterator[Entry[V]]:
        """Yield the entries of a page whose times are numbers; see `make` for errors of codecs."""
        rows = zip(page.subjects, page.payloads, page.headers, page.seqs, page.times, strict=True)
        for name, data, block, seq, time in rows:
            subject = name.decode("utf-8", "surrogateescape")
            headers = Headers.parse(block) if block else NO_HEADERS
            yield self.make(subject, data, headers, seq, cast("int", time), None, True)

    def values_by_key(self, page: StoredPage) -> dict[str, Entry[V]]:
        """Return the entries of a page that are values, by key, ordered by their revisions.

        An entry whose key a codec cannot decode has its stored key, or its stored subject if
        another entry has this key.
        """
        found: dict[str, Entry[V]] = {}
        broken: list[Entry[V]] = []
        for entry in self.of_page(page):
            if entry.error is not None and entry.is_value:
                broken.append(entry)
            elif entry.is_value:
                found[entry.key] = entry
        if not broken:
            return found
        for entry in broken:
            taken = entry.key in found
            found[f"{self._stored}{entry.key}" if taken else entry.key] = entry
        return dict(sorted(found.items(), key=lambda item: item[1].revision))

    def key(self, subject: str) -> str:
        """Return the key of a stored subject, or the stored key if the codec cannot decode it."""
        raw = subject[self._skip :] if subject.startswith(self._stored) else subject
        if self._is_plain:
            return raw
        try:
            return self._codecs.decode_key(raw)
        except Exception:
            # Codecs are user code, so they may raise any exception.
            return raw

    def make(
        self,
        subject: str,
        data: bytes,
        headers: Headers,
        seq: int,
        timestamp_ns: int,
        pending: int | None,
        has_value: bool,
    ) -> Entry[V]:
        """Return an entry. If a codec fails, its error is stored as the entry's `error`.

        `seq` and `timestamp_ns` are those of the stored message. `pending` is the number of
        revisions that follow in a watch, None outside of watches. `has_value` is false if only
        headers were delivered.
        """
        raw = subject[self._skip :] if subject.startswith(self._stored) else subject
        bucket = self._bucket
        if self._is_plain and has_value and not headers:
            # Fast path for most entries. Without codecs, values are bytes.
            at = (seq, _PUT, timestamp_ns, len(data), headers, pending)
            return entry_of((bucket, raw, data, *at, raw, data, None))
        operation = operation_of(headers) if headers else _PUT
        key, value, error = self._decoded(raw, data, has_value and operation is _PUT, seq)
        size = len(data) if has_value else size_of(headers, data)
        at = (seq, operation, timestamp_ns, size, headers, pending)
        return entry_of((bucket, key, value, *at, raw, data, error))

    def _decoded(
        self, raw: str, data: bytes, has_value: bool, revision: int
    ) -> tuple[str, V | None, Exception | None]:
        """Return key, value and None; if a codec fails, the key, None and the error.

        The key is the stored one if the codec cannot decode it.
        """
        if self._is_plain:
            return raw, cast("V", data) if has_value else None, None
        key = raw
        try:
            key = self._codecs.decode_key(raw)
            return key, self._codecs.decode_value(data) if has_value else None, None
        except Exception as refused:
            # Codecs are user code, so they may raise any exception.
            named = named_error(refused, self._bucket, raw, revision)
            named.__cause__ = refused.__cause__
            return key, None, named
