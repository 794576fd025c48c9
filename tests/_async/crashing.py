"""A process that crashes at a chosen step: earlier steps keep their effect, later steps fail.

Steps are the messages that the process sends (publishes, acknowledgements, requests of any kind)
and the changes of its outbox. The process crashes before a step, which then has no effect, or after
it, so that the step has its effect but the process does not learn of it.
"""

from __future__ import annotations

import js_async as js
from js_async.client.requests import PendingRequests

__all__ = ["Crashed", "Crashing", "CrashingStore", "Fate"]


class Crashed(js.ConnectionClosed):
    """The process has crashed."""


class Fate:
    """The step at which a process crashes, before or after the step. The step 0 means never."""

    def __init__(self, step=0, after=False):
        self.left = step
        self.after = after
        self.dead = False
        self.steps = 0

    def before(self):
        self.steps += 1
        self.left -= 1
        if self.dead or (self.left == 0 and not self.after):
            self.dead = True
            raise Crashed("dead, by the test")

    def done(self):
        if self.dead or (self.left == 0 and self.after):
            self.dead = True
            raise Crashed("dead, by the test")


class Crashing:
    """The transport of a process that crashes."""

    def __init__(self, transport, fate):
        self._transport = transport
        self._fate = fate
        self.replies = PendingRequests(self)

    def __getattr__(self, name):
        return getattr(self._transport, name)

    @property
    def is_closed(self):
        return self._fate.dead or self._transport.is_closed

    def closed_error(self):
        return Crashed("dead, by the test") if self._fate.dead else self._transport.closed_error()

    async def ask(self, subject, headers, payload, deadline, **options):
        return await self.replies.ask(subject, headers, payload, deadline, **options)

    def write(self, *_):
        return False

    def write_command(self, _):
        return False

    async def send(self, *parts):
        self._fate.before()
        await self._transport.send(*parts)
        self._fate.done()


class CrashingStore:
    """The outbox of a process that crashes."""

    def __init__(self, store, fate):
        self._store = store
        self._fate = fate

    def __getattr__(self, name):
        return getattr(self._store, name)

    def release(self):
        """Release the outbox, also after a crash, as the end of a process does."""
        self._store.release()

    def done(self, numbers):
        self._fate.before()
        self._store.done(numbers)
        self._fate.done()

    def set_floor(self, stream, seq):
        self._fate.before()
        self._store.set_floor(stream, seq)
        self._fate.done()
