"""The progress reports (+WPI) of a stream's messages, as the server receives them."""

from __future__ import annotations

from collections import Counter
from contextlib import asynccontextmanager

import js_async as js

__all__ = ["Reports", "reports_of"]


class Reports:
    """The acknowledgements of a stream, from the moment of the subscription."""

    def __init__(self, acks, name):
        self._acks = acks
        self._name = name
        self._counts = Counter()

    async def wait(self, messages, times=2):
        """Wait until the progress of so many messages was reported so often."""
        while sum(count >= times for count in self._counts.values()) < messages:
            ack = await self._acks.next(timeout=60)
            assert ack is not None, self._counts
            if ack.data == b"+WPI" and f".{self._name}." in ack.subject:
                self._counts[ack.subject] += 1


@asynccontextmanager
async def reports_of(server, name):
    """Collect the progress reports of a stream until the block ends."""
    async with js.connect(server.url) as connection:
        async with connection.subscribe("$JS.ACK.>") as acks:
            yield Reports(acks, name)
