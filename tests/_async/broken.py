"""A transport that is killed before or after one of its operations."""

from __future__ import annotations

from functools import partial

import js_async as js
from tests.inside import api_of

__all__ = ["BEFORE", "BEHIND", "Killed", "Mortal", "mortal"]

BEFORE, BEHIND = "before", "behind"


class Killed(BaseException):
    """The process was killed: an exception that no handler catches."""


class Mortal:
    """A transport that passes operations on until one of them kills it.

    Later operations raise `Killed`.
    """

    def __init__(self, transport, at, when):
        self._transport = transport
        self._at = at
        self._when = when
        self.operations = 0

    def __getattr__(self, name):
        return getattr(self._transport, name)

    @property
    def is_dead(self):
        return self.operations > self._at or (self.operations == self._at and self._when == BEFORE)

    async def _live(self, operation, *args):
        self.operations += 1
        if self.operations > self._at:
            raise Killed
        if self.operations == self._at and self._when == BEFORE:
            raise Killed
        answer = await operation(*args)
        if self.operations == self._at:
            self.operations += 1
            raise Killed
        return answer

    # So that requests and acknowledgements take the way on which they can be killed.
    def write(self, *_):
        return False

    def write_command(self, _):
        return False

    async def send(self, *args):
        return await self._live(self._transport.send, *args)

    async def ask(self, *args, **options):
        return await self._live(partial(self._transport.ask, **options), *args)


def mortal(jet, at, when):
    """Return the API over the same connection, and the transport that kills it at an operation."""
    transport = Mortal(api_of(jet).transport, at, when)
    return js.JetStream(transport, timeout=20), transport
