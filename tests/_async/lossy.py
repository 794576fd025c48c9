"""A connection that loses selected messages: a request in flight, or its response."""

from __future__ import annotations

import js_async as js
from twinstream.errors import ConnectionLost

__all__ = ["Lossy"]


class Lossy:
    """A connection whose requests with a payload subject can get lost, one by one.

    `losses` holds a word for each request to come: `request` (the server never sees it),
    `answer` (the server does, the program does not see the answer), or anything else for none.
    Requests to the API of JetStream pass; `api` has their subjects.
    """

    def __init__(self, transport):
        self._transport = transport
        self.losses = []
        self.api = []
        self.asked = 0

    def __getattr__(self, name):
        return getattr(self._transport, name)

    def jetstream(self, **options):
        return js.JetStream(self, **options)

    async def ask(self, subject, headers, payload, deadline, **options):
        if subject.startswith("$JS.API"):
            self.api.append(subject)
            return await self._transport.ask(subject, headers, payload, deadline, **options)
        self.asked += 1
        loss = self.losses.pop(0) if self.losses else ""
        if loss == "request":
            raise ConnectionLost(f"{subject}: lost by the test")
        frame = await self._transport.ask(subject, headers, payload, deadline, **options)
        if callable(loss):
            await loss()
        if loss:
            raise ConnectionLost(f"{subject}: the answer was lost by the test")
        return frame
