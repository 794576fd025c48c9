# Generated from src/js_async/workers/jobs.py by codegen/twin.py. Edit that file instead.
"""What a worker has in its hands: each message once, however often it is delivered meanwhile."""

from __future__ import annotations

from typing import Final

from attrs import define

from twinstream.core.consume.metadata import Metadata
from twinstream.errors import NotAcknowledgeable
from js_sync.consume.message import Message

__all__ = ["Job", "JobsHere", "is_repeated"]

# Sequence and time: a stream that is made anew counts from 1 again.
_Key = tuple[int, int]


@define
class Job:
    """A message, and how often it was tried again since it came here."""

    message: Message
    tries: int = 0
    deliveries: int = 0
    """The newest one of the message, where the server made one since."""

    @property
    def is_over(self) -> bool:
        """Whether the message was acknowledged or terminated, and must not be worked on again."""
        return self.message.is_acknowledged and not self.message._is_returned

    @property
    def attempt(self) -> int:
        """Which attempt this is, over all deliveries; the first one is 1."""
        return self.message.metadata.num_delivered + self.tries


def is_repeated(message: Message) -> bool:
    """Tell whether a message was delivered before."""
    about = _about(message)
    return about is not None and about.num_delivered > 1


def _about(message: Message) -> Metadata | None:
    try:
        return message.metadata
    except NotAcknowledgeable:
        # Its reply subject was rewritten: it cannot be told from others.
        return None


def _key(about: Metadata) -> _Key:
    return about.stream_seq, about.timestamp_ns


class JobsHere:
    """The messages that wait or are worked on, and those just done.

    Not safe between threads: whoever shares it holds a lock.
    """

    def __init__(self, room: int) -> None:
        self._jobs: Final[dict[_Key, Job]] = {}
        # How often a message had been delivered when it was done.
        self._over: Final[dict[_Key, int]] = {}
        # A delivery may wait behind as many in the buffer, and as many in the queue.
        self._most: Final = 2 * room
        self._newest: Metadata | None = None

    def add(self, message: Message) -> Job:
        """Take a message in."""
        job = Job(message)
        about = _about(message)
        if about is not None:
            self._follow(about)
            self._jobs[_key(about)] = job
            self._over.pop(_key(about), None)
        return job

    def done(self, job: Job) -> None:
        """Let go of a message."""
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

    def waiting(self, message: Message) -> Message | None:
        """Return the earlier delivery of a message that is here, and note that it was repeated.

        The server takes a word about any delivery for all of them.
        """
        about = message.metadata
        job = self._jobs.get(_key(about))
        if job is None or job.message._is_returned or job.message.is_acknowledged:
            return None
        # A consumer that was reset, or made anew, counts from 1 again.
        if about.num_delivered <= job.message.metadata.num_delivered:
            return None
        job.deliveries = about.num_delivered
        return job.message

    def is_over(self, message: Message) -> bool:
        """Tell whether a message was done a moment ago.

        It came before the server had heard, or the word was lost.
        """
        about = message.metadata
        self._follow(about)
        job = self._jobs.get(_key(about))
        if job is not None and job.is_over:
            return about.num_delivered > job.message.metadata.num_delivered
        return about.num_delivered > self._over.get(_key(about), about.num_delivered)

    def _follow(self, about: Metadata) -> None:
        """Forget what is over where the consumer was reset, so that all is to be done again."""
        newest, self._newest = self._newest, about
        # It counts its deliveries from 1 then. One that was asked about may be added after that.
        if newest is not None and newest is not about and about.consumer_seq <= newest.consumer_seq:
            self._over.clear()
