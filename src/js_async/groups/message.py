"""The messages of partitioned consumer groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from js_async import Message
from js_async.extension import frame_of, with_subject
from twinstream.core.wire.payload import P, Unread

if TYPE_CHECKING:
    from twinstream.core.groups.floors import Place

__all__ = ["GroupMessage", "copy_of", "group_message", "note_copy", "partition_of"]


class GroupMessage(Message[P]):
    """A `Message` of a consumer group.

    `subject` is the subject without the partition, as it was published. `metadata` contains the
    names of the member's consumer and of its stream (`source_stream_name` of the group).
    `GroupMessage[Order]` has a `payload` of type `Order`.
    """

    __slots__ = ("_copy", "_partition", "_payload", "_place")

    _partition: bytes
    _payload: Any
    # In an elastic group: the place of the message's source, and its sequence there.
    _copy: tuple[Place, int] | None
    # The place of a message that the server may have copied again; otherwise None.
    _place: Place | None

    @property
    def partition(self) -> int:
        """The number of the partition, from 0."""
        return int(self._partition)


def group_message(message: Message[Any]) -> GroupMessage[Any]:
    """Return a received message as a `GroupMessage`, without the partition in its subject."""
    if isinstance(message, GroupMessage):
        return message
    token, _, subject = frame_of(message)[0].partition(b".")
    made: GroupMessage[Any] = with_subject(message, subject, GroupMessage)
    made._partition, made._payload = token, Unread
    made._copy = made._place = None
    return made


def partition_of(message: GroupMessage) -> bytes:
    """Return the partition as it is in the subject of the stored message."""
    return message._partition


def copy_of(message: GroupMessage) -> tuple[Place, int] | None:
    """Return the place of a message's source and its sequence there, as `note_copy` set them."""
    return message._copy


def note_copy(message: GroupMessage, place: Place, origin: int, *, again: bool) -> None:
    """Record the place of a message's source, and its sequence `origin` there.

    `again` is true if the server may have copied the message again.
    """
    message._copy = (place, origin)
    message._place = place if again else None
