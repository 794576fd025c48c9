"""Messages of partitioned consumer groups."""

from __future__ import annotations

from js_async.consume.message import Message

__all__ = ["GroupMessage", "group_message"]


class GroupMessage(Message):
    """A `Message` of a consumer group.

    `subject` is the published subject, without the partition; `partition` is the number. `metadata`
    names the stream and the consumer of the group.
    """

    __slots__ = ("_partition",)

    _partition: bytes

    @property
    def partition(self) -> int:
        """The number of the partition, from 0."""
        return int(self._partition)


def group_message(message: Message) -> GroupMessage:
    """Return a received message without the first token of its subject, which is the partition."""
    token, _, subject = message._frame[0].partition(b".")
    made = GroupMessage((subject, *message._frame[1:]), message._delivery)
    made._done = message._done
    made._partition = token
    if hasattr(message, "_told_at"):
        # The message waited in the worker, which reported progress meanwhile.
        made._told_at = message._told_at
    return made
