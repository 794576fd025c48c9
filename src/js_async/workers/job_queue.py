"""The messages in a worker: queued, waiting for a retry, or being handled."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Final

from js_async import Message
from js_async.runtime.concurrency import Lock, Signal
from js_async.workers.jobs import Job, JobsHere
from twinstream.core.deadline import NEVER, monotonic
from twinstream.core.workers.work_queue import WorkQueue

__all__ = ["JobQueue"]


class JobQueue:
    """A queue of messages with keys. Messages with the same key are handled one after the other.

    One task or thread adds messages, others take them. Finished messages are remembered for a
    while, so that a redelivery of one of them is recognised. `room` is the maximum number of
    messages. `key_of` returns the key of a message from the message and its number.
    """

    def __init__(self, room: int, key_of: Callable[[Message, int], Hashable]) -> None:
        self._room: Final = room
        self._key_of: Final = key_of
        self._queue: Final[WorkQueue[Job]] = WorkQueue()
        self._here: Final = JobsHere(room)
        self._lock: Final = Lock()
        self._filled: Final = Signal()
        self._emptied: Final = Signal()
        self._count = 0
        self.is_closed = False
        """Whether no more messages are added or taken."""

    @property
    def in_hand(self) -> int:
        """Number of messages that are being handled."""
        return self._queue.in_hand

    @property
    def waiting(self) -> int:
        """Number of messages that wait for their handler, or for a retry."""
        return self._queue.waiting

    def close(self) -> None:
        """Let `has_room` return False, and `take` return None."""
        self.is_closed = True
        self._filled.set()
        self._emptied.set()

    async def clear(self) -> list[Job]:
        """Remove and return the waiting messages."""
        async with self._lock:
            return self._queue.clear()

    # ---- adding messages

    async def has_room(self) -> bool:
        """Wait until there is space for a message; return False if the queue is closed."""
        while not self.is_closed:
            self._emptied.clear()
            if len(self._queue) < self._room:
                return True
            if not self.is_closed:
                await self._emptied.sleep(NEVER)
        return False

    async def earlier(self, message: Message) -> tuple[Job | None, bool]:
        """Look for an earlier delivery of a redelivered message.

        Return the earlier delivery if it is waiting or being handled, otherwise None; and whether
        an earlier delivery is finished. The caller resets `is_claimed` of the former.
        """
        async with self._lock:
            return self._here.claimed(message), self._here.is_over(message)

    async def add(self, message: Message) -> None:
        """Add a message."""
        self._count += 1
        key = self._key_of(message, self._count)
        async with self._lock:
            self._queue.put(key, self._here.add(message))
        self._filled.set()

    # ---- handling messages

    async def take(self) -> tuple[Hashable, Job] | None:
        """Return a message that may be handled now, with its key, or None if the queue is closed.

        The caller has to call `done` or `again` for the message.
        """
        while True:
            # The signal is cleared before the queue is checked, so that no new message is missed.
            self._filled.clear()
            if self.is_closed:
                self._filled.set()
                return None
            async with self._lock:
                if self.is_closed:
                    continue
                taken = self._queue.take(monotonic())
                wake_at = self._queue.wake_at
                more = self._queue.has_free
            if more:
                # Wake up another handler task or thread, because this one has cleared the signal.
                self._filled.set()
            if taken is not None:
                return taken
            await self._filled.sleep(NEVER.earlier(wake_at))

    async def leaves_late(self, job: Job) -> bool:
        """Return whether a message is late, so that its redelivery is handled instead of it.

        Another task or thread may have found the job for this redelivery: then the job counts.
        """
        if job.tries or not job.message.is_late:
            return False
        async with self._lock:
            # Ask once more: the progress of the message may have been reported meanwhile.
            if job.is_claimed or not job.message.is_late:
                return False
            self._here.done(job)
            return True

    async def done(self, key: Hashable, job: Job) -> None:
        """Record that a message is no longer in the worker."""
        async with self._lock:
            self._here.done(job)
            self._queue.done(key)
        self._notify()

    async def again(self, key: Hashable, job: Job, delay: float) -> None:
        """Queue a message again, as the first of its key, to be handled after `delay` seconds."""
        async with self._lock:
            job.tries += 1
            self._queue.again(key, job, monotonic() + delay)
        self._notify()

    def _notify(self) -> None:
        self._filled.set()
        self._emptied.set()
