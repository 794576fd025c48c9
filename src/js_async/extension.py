"""What packages above the client may import beside its public names and `runtime`.

Such a package is built on a `JetStream`: its functions and constructors take one as their first
argument, and its constructors send no request. `counters` is the smallest example. This module has
at most 12 names; a name is added here only if a package needs what no public name offers.

- `api_of` returns the `Api` of a `JetStream`.
- `Api` sends requests (`call`, `call_raw`, `call_through`, `ask`), builds their subjects
  (`subjects`), checks the version of the server (`require`), and starts the deadline of a call
  (`deadline`). Its `transport` is the connection below: mailboxes, and messages without a response.
- `Answer` is the response to one of several requests in flight (`api.transport.replies`).
- `BackgroundWork` is the base class of objects that work in the background.
- `buffer_of` returns the `MessageBuffer` of `consumer.messages()`.
- `MessageBuffer` takes messages one by one, and reports the progress of those in hand.
- `frame_of` returns the undecoded parts of a message.
- `is_returned` returns whether `nak` of a message was called.
- `with_subject` returns a message as an object of a subclass, with another subject.
"""

from __future__ import annotations

from js_async.api.api import Api
from js_async.background.work import BackgroundWork
from js_async.client.requests import Answer
from js_async.consume.buffer import MessageBuffer
from js_async.consume.message import frame_of, is_returned, with_subject
from js_async.consume.messages import buffer_of
from js_async.jetstream import api_of

__all__ = [
    "Answer",
    "Api",
    "BackgroundWork",
    "MessageBuffer",
    "api_of",
    "buffer_of",
    "frame_of",
    "is_returned",
    "with_subject",
]
