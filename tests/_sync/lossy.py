# Generated from tests/_async/lossy.py by codegen/twin.py. Edit that file instead.
"""A link that loses what it is told to lose: the request on its way, or the answer."""

from __future__ import annotations

import js_sync as js
from twinstream.errors import ConnectionLost

__all__ = ["Lossy"]


class Lossy:
    """A connection whose requests with a payload subject can get lost, one by one.

    `losses` holds a word for each request to come: `request` (the server never sees it),
    `answer` (the server does, the program does not see the answer), or anything else for none.
    Requests to the API of JetStream pass.
    """

    def __init__(self, connection):
        self._session = connection._session
        self.losses = []
        self.asked = 0

    def __getattr__(self, name):
        return getattr(self._session, name)

    def jetstream(self, **options):
        return js.JetStream(self, **options)

    def ask(self, subject, headers, payload, deadline, **options):
        if subject.startswith("$JS.API"):
            return self._session.ask(subject, headers, payload, deadline, **options)
        self.asked += 1
        loss = self.losses.pop(0) if self.losses else ""
        if loss == "request":
            raise ConnectionLost(f"{subject}: lost by the test")
        frame = self._session.ask(subject, headers, payload, deadline, **options)
        if callable(loss):
            loss()
        if loss:
            raise ConnectionLost(f"{subject}: the answer was lost by the test")
        return frame
