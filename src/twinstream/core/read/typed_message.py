"""Messages read by a typed stream."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, cast

from twinstream.core.read.snapshot import Snapshot
from twinstream.core.read.stream_message import StreamMessage
from twinstream.core.wire.payload import Unread
from twinstream.errors.payload import PayloadError

if TYPE_CHECKING:
    from twinstream.core.payloads.payloads import Payloads

__all__ = ["typed_message", "typed_snapshot"]

T = TypeVar("T")


class TypedStreamMessage(StreamMessage[T]):
    """A `StreamMessage` of a typed stream. `payload` is decoded at its first use."""

    __slots__ = ("_found", "_payloads")

    _payloads: Payloads[T]
    _found: Any

    @property
    def payload(self) -> T:
        """The value of the payload. Raises `PayloadError` if it does not fit the type."""
        found = self._found
        if found is Unread:
            found = self._payloads.stored(self)
            object.__setattr__(self, "_found", found)
        if isinstance(found, PayloadError):
            raise found.with_traceback(None)
        return cast("T", found)


def typed_message(message: StreamMessage[Any], payloads: Payloads[T]) -> StreamMessage[T]:
    """Return a message with the payloads of a typed stream."""
    made: TypedStreamMessage[T] = TypedStreamMessage(
        stream_name=message.stream_name,
        subject=message.subject,
        seq=message.seq,
        time=message.time,
        data=message.data,
        headers=message.headers,
    )
    object.__setattr__(made, "_payloads", payloads)
    object.__setattr__(made, "_found", Unread)
    return made


def typed_snapshot(snapshot: Snapshot[Any], payloads: Payloads[T]) -> Snapshot[T]:
    """Return a snapshot with the payloads of a typed stream."""
    typed = {subject: typed_message(each, payloads) for subject, each in snapshot.items()}
    return Snapshot(snapshot.stream_name, snapshot.seq, typed)
