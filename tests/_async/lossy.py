"""A connection that loses selected messages: a request in flight, or its response."""

from __future__ import annotations

import json

import js_async as js
from js_async.client.requests import Answer
from js_async.runtime.concurrency import Signal
from twinstream.errors import ConnectionLost

__all__ = ["Lossy"]

# What a leader of former times responds if it lacks messages, or has one of its own in flight.
_REFUSALS = {
    "behind": (10071, "wrong last sequence: 0"),
    "in flight": (10164, "wrong last sequence"),
    "incomplete": (10176, "atomic publish batch is incomplete"),
}


def _refusal(kind):
    """Return the frame of a refusal."""
    code, text = _REFUSALS[kind]
    error = {"code": 400, "err_code": code, "description": text}
    body = json.dumps({"error": error, "stream": "S", "seq": 0}).encode() + b"\r\n"
    return b"inbox", b"", 0, body


class _Replies:
    """The replies of a connection. Each publish takes the path on which it can be lost."""

    def __init__(self, transport, lossy):
        self._transport = transport
        self._lossy = lossy

    def __getattr__(self, name):
        return getattr(self._transport.replies, name)

    def write(self, *_, **__):
        return None

    async def send(self, subject, headers, payload, deadline, fits=None, signal=None):
        if signal is not None:  # Messages of a batch.
            replies = self._transport.replies
            return await replies.send(subject, headers, payload, deadline, fits, signal)
        losses = self._lossy.losses
        loss = losses.pop(0) if losses else ""
        replies = self._transport.replies
        if not loss:
            return await replies.send(subject, headers, payload, deadline, fits)
        if loss != "request":
            sent = await replies.send(subject, headers, payload, deadline, fits)
            await replies.wait(sent, deadline)
            replies.forget(sent)
        if callable(loss):
            await loss()
        lost = Answer(subject, b"lost", Signal(), fits)
        lost.error = ConnectionLost("the answer was lost by the test")
        lost.signal.set()
        return lost


class Lossy:
    """A connection that loses selected publishes, or the responses to them.

    `losses` has a word for each later publish: `request` (the server does not receive the message),
    `answer` (the server stores it, and the response is lost), `behind` or `in flight` (the server
    stores it, but the refusal of a former leader is received first), or "" for no loss. With `lost
    behind` and `lost in flight`, the server does not receive the message that is refused. A word
    may be replaced by a function, which runs before the response is lost and may return a word.

    Requests to the API of JetStream are never lost; `api` has their subjects. `outdated` has the
    frames that replace the next responses with a stored message, as a former leader sends them.
    """

    def __init__(self, transport):
        self._transport = transport
        self.replies = _Replies(transport, self)
        self.losses = []
        self.api = []
        self.outdated = []
        self.asked = 0

    def __getattr__(self, name):
        return getattr(self._transport, name)

    def jetstream(self, **options):
        return js.JetStream(self, **options)

    async def ask(self, subject, headers, payload, deadline, **options):
        if subject.startswith("$JS.API"):
            self.api.append(subject)
            if self.outdated and ".STREAM.MSG.GET." in subject:
                return self.outdated.pop(0)
            return await self._transport.ask(subject, headers, payload, deadline, **options)
        self.asked += 1
        loss = self.losses.pop(0) if self.losses else ""
        if loss == "request":
            raise ConnectionLost(f"{subject}: lost by the test")
        if isinstance(loss, str) and loss.startswith("lost "):
            return _refusal(loss.removeprefix("lost "))
        frame = await self._transport.ask(subject, headers, payload, deadline, **options)
        if callable(loss):
            loss = await loss() or "answer"
        if loss in _REFUSALS:
            return _refusal(loss)
        if loss:
            raise ConnectionLost(f"{subject}: the answer was lost by the test")
        return frame
