"""A transport that runs an action before or after a selected request."""

from __future__ import annotations

import re

import js_async as js

__all__ = ["Disturbed"]


class Disturbed:
    """A transport that runs two actions once, around the first matching request.

    All requests are passed on. `before` is called before the request is sent, `after` after its
    response has arrived. `requests` has the subjects of all requests.
    """

    def __init__(self, transport, pattern="$^", *, before=None, after=None):
        self._transport = transport
        self.requests = []
        self.expect(pattern, before=before, after=after)

    def expect(self, pattern, *, before=None, after=None):
        """Run the actions at the next request that matches."""
        self._pattern = re.compile(pattern)
        self._acts = [before, after]

    def __getattr__(self, name):
        return getattr(self._transport, name)

    def jetstream(self, **options):
        return js.JetStream(self, **options)

    async def ask(self, subject, headers, payload, *args, **options):
        self.requests.append(subject)
        text = f"{subject} {payload.decode(errors='replace')}"
        before = after = None
        if self._acts and self._pattern.search(text):
            (before, after), self._acts = self._acts, []
        if before is not None:
            await before()
        frame = await self._transport.ask(subject, headers, payload, *args, **options)
        if after is not None:
            await after()
        return frame
