"""Making entries of stored messages, with the codecs of a handle."""

from __future__ import annotations

from typing import Final, Generic, TypeVar

from js_core.headers import Headers
from js_core.kv_codecs import Codecs
from js_core.kv_entry import Entry, KeyValueOperation, operation_of, size_of
from js_core.stream_message import StreamMessage
from js_models import Timestamp

__all__ = ["EntryMaker"]

V = TypeVar("V")
_NONE: Final = Headers()
_PUT: Final = KeyValueOperation.PUT


class EntryMaker(Generic[V]):
    """Makes the entries of one handle; `stored` is what the subjects of its keys begin with."""

    def __init__(self, bucket: str, stored: str, codecs: Codecs[V]) -> None:
        self._bucket: Final = bucket
        self._skip: Final = len(stored)
        self._stored: Final = stored
        self._codecs: Final = codecs
        self._is_plain: Final = codecs.key is None and codecs.value is None

    def of_stored(self, message: StreamMessage, *, tolerant: bool = False) -> Entry[V]:
        """Return the entry of a message that was read without a consumer.

        What codecs raise is raised here too, unless `tolerant`: then it is the entry's `error`.
        """
        entry = self.make(message.subject, message.data, message.headers, message.seq, message.time)
        if entry.error is not None and not tolerant:
            raise entry.error
        return entry

    def make(
        self,
        subject: str,
        data: bytes,
        headers: Headers | None,
        seq: int,
        created: Timestamp,
        pending: int | None = None,
        *,
        has_value: bool = True,
    ) -> Entry[V]:
        """Return an entry; `has_value` is off where only headers were delivered."""
        stored = self._stored
        key = raw = subject[self._skip :] if subject.startswith(stored) else subject
        headers = headers or _NONE
        operation = operation_of(headers)
        value: V | None = None
        error: Exception | None = None
        reads = has_value and operation is _PUT
        if self._is_plain:
            value = data if reads else None  # type: ignore[assignment]  # without codecs V is bytes
        else:
            try:
                key = self._codecs.decode_key(raw)
                value = self._codecs.decode_value(data) if reads else None
            except Exception as refused:
                # Codecs are the program's own, and raise what they like.
                key, error = raw, refused
        return Entry(
            bucket=self._bucket,
            key=key,
            value=value,
            revision=seq,
            operation=operation,
            created=created,
            size=len(data) if has_value else size_of(headers, data),
            headers=headers,
            pending=pending,
            raw_key=raw,
            raw_value=data,
            error=error,
        )
