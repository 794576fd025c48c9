"""Convert stored messages to entries, with the codecs of a handle."""

from __future__ import annotations

from typing import Final, Generic, TypeVar

from twinstream.core.kv.codecs import Codecs
from twinstream.core.kv.entry import Entry, KeyValueOperation, operation_of, size_of
from twinstream.core.read.stream_message import StreamMessage
from twinstream.core.wire.headers import Headers

__all__ = ["EntryMaker"]

V = TypeVar("V")
_PUT: Final = KeyValueOperation.PUT


class EntryMaker(Generic[V]):
    """Creates the entries of one handle. `stored` is the prefix of the stored subjects."""

    def __init__(self, bucket: str, stored: str, codecs: Codecs[V]) -> None:
        self._bucket: Final = bucket
        self._skip: Final = len(stored)
        self._stored: Final = stored
        self._codecs: Final = codecs
        self._is_plain: Final = codecs.key is None and codecs.value is None

    def of_stored(self, message: StreamMessage, *, tolerant: bool = False) -> Entry[V]:
        """Return the entry of a message that was read without a consumer.

        Errors of a codec are raised; with `tolerant`, they become the entry's `error`.
        """
        subject, time = message.subject, message.time.ns
        entry = self.make(subject, message.data, message.headers, message.seq, time, None, True)
        if entry.error is not None and not tolerant:
            raise entry.error
        return entry

    def key(self, subject: str) -> str:
        """Return the key of a stored subject, or the stored key if no codec can decode it."""
        raw = subject[self._skip :] if subject.startswith(self._stored) else subject
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
        """Return an entry. `has_value` is False if only headers were delivered."""
        key = raw = subject[self._skip :] if subject.startswith(self._stored) else subject
        operation = operation_of(headers) if headers else _PUT
        value: V | None = None
        error: Exception | None = None
        reads = has_value and operation is _PUT
        if self._is_plain:
            if reads:
                # Without codecs V is bytes.
                value = data  # type: ignore[assignment]
        else:
            try:
                key = self._codecs.decode_key(raw)
                if reads:
                    value = self._codecs.decode_value(data)
            except Exception as refused:
                # Codecs are user code, so they may raise any exception.
                key, value, error = raw, None, refused
        return Entry(
            bucket=self._bucket,
            key=key,
            value=value,
            revision=seq,
            operation=operation,
            timestamp_ns=timestamp_ns,
            size=len(data) if has_value else size_of(headers, data),
            headers=headers,
            pending=pending,
            raw_key=raw,
            raw_value=data,
            error=error,
        )
