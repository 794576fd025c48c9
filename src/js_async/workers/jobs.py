"""The messages in a worker. Redeliveries of the same message are detected."""

from __future__ import annotations

from typing import Final

from attrs import define

from js_async import Message
from js_async.extension import is_returned
from twinstream.core.consume.metadata import Metadata
from twinstream.errors import NotAcknowledgeable

__all__ = ["Job", "JobsHere", "is_repeated"]

# Sequence and time. The sequence is not enough, because a re-created stream begins at 1 again.
_Key = tuple[int, int]


@define
class Job:
    """A message in a worker, with the number of retries since it was received."""

    message: Message
    tries: int = 0
    deliveries: int = 0
    """Delivery count of the last redelivery since the message was received, or 0."""
    is_claimed: bool = False
    """Whether a redelivery is being skipped, because this job counts for it."""

    @property
    def is_over(self) -> bool:
        """Whether the message was acknowledged or terminated, and must not be handled again."""
        return self.message.is_acknowledged and not is_returned(self.message)

    @property
    def attempt(self) -> int:
        """The number of the current attempt, counted from 1 over all deliveries."""
        return self.message.metadata.num_delivered + self.tries


def is_repeated(message: Message) -> bool:
    """Return whether a message was delivered before."""
    about = _about(message)
    return about is not None and about.num_delivered > 1


def _about(message: Message) -> Metadata | None:
    try:
        return message.metadata
    except NotAcknowledgeable:
        # The reply subject was rewritten, so the message cannot be identified.
        return None


def _key(about: Metadata) -> _Key:
    return about.stream_seq, about.timestamp_ns


class JobsHere:
    """The messages that wait or are being handled, and the last finished ones.

    The class is not thread-safe: callers have to hold a lock.
    """

    def __init__(self, room: int) -> None:
        self._jobs: Final[dict[_Key, Job]] = {}
        # Maps finished messages to their delivery count when they were finished.
        self._over: Final[dict[_Key, int]] = {}
        # The number of finished messages to remember. A redelivery may wait behind `room` messages
        # in the buffer and `room` messages in the queue, which are finished before it.
        self._most: Final = 2 * room
        self._newest: Metadata | None = None

    def add(self, message: Message) -> Job:
        """Add a message and return its `Job`."""
        job = Job(message)
        about = _about(message)
        if about is not None:
            self._follow(about)
            self._jobs[_key(about)] = job
            self._over.pop(_key(about), None)
        return job

    def done(self, job: Job) -> None:
        """Record that a message is no longer waiting or being handled."""
        about = _about(job.message)
        if about is None:
            return
        key = _key(about)
        if self._jobs.get(key) is job:
            del self._jobs[key]
        if job.is_over:
            self._over[key] = about.num_delivered
            if len(self._over) > self._most:
                del self._over[next(iter(self._over))]

    def claimed(self, message: Message) -> Job | None:
        """Record a redelivery; return the earlier delivery if it is queued or being handled.

        Returns None otherwise. An acknowledgement of the earlier delivery counts for both
        deliveries.
        """
        about = message.metadata
        job = self._jobs.get(_key(about))
        if job is None or is_returned(job.message) or job.message.is_acknowledged:
            return None
        # If the consumer was reset or re-created, deliveries are counted from 1 again. The message
        # must then be handled again.
        if about.num_delivered <= job.message.metadata.num_delivered:
            return None
        job.deliveries, job.is_claimed = about.num_delivered, True
        return job

    def is_over(self, message: Message) -> bool:
        """Return whether a message is a redelivery of a message that was finished a moment ago.

        The server redelivers such a message if the ack was lost, or had not arrived yet.
        """
        about = message.metadata
        self._follow(about)
        job = self._jobs.get(_key(about))
        if job is not None and job.is_over:
            return about.num_delivered > job.message.metadata.num_delivered
        return about.num_delivered > self._over.get(_key(about), about.num_delivered)

    def _follow(self, about: Metadata) -> None:
        """Forget finished messages if the consumer was reset, so that they are handled again."""
        newest, self._newest = self._newest, about
        # After a reset, the delivery sequence begins again. A second call for the same delivery,
        # by `is_over` and by `add`, is no reset.
        if newest is not None and newest is not about and about.consumer_seq <= newest.consumer_seq:
            self._over.clear()
