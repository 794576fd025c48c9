"""The messages of partitioned consumer groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

from js_async.consume.message import Message

if TYPE_CHECKING:
    from twinstream.core.groups.floors import Place

__all__ = ["GroupMessage", "group_message"]


class GroupMessage(Message):
    """A `Message` of a consumer group.

    `subject` is the subject without the partition, as it was published. `metadata` contains the
    names of the member's consumer and of its stream (see `ConsumerGroup.source`).
    """

    __slots__ = ("_copy", "_partition", "_place")

    _partition: bytes
    # In an elastic group: the place of the message's source, and its sequence there.
    _copy: tuple[Place, int] | None
    # The place of a message that the server may have copied again; otherwise None.
    _place: Place | None

    @property
    def partition(self) -> int:
        """The number of the partition, from 0."""
        return int(self._partition)


def group_message(message: Message) -> GroupMessage:
    """Return a received message as a `GroupMessage`, without the partition in its subject."""
    if isinstance(message, GroupMessage):
        return message
    token, _, subject = message._frame[0].partition(b".")
    made = GroupMessage((subject, *message._frame[1:]), message._delivery)
    made._done = message._done
    made._partition = token
    made._copy = made._place = None
    if hasattr(message, "_told_at"):
        # The time at which the worker has sent `in_progress` while the message waited.
        made._told_at = message._told_at
    return made
