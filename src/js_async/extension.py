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
- `SubjectWrites` makes writes that depend on the last message of their subject. It confirms with
  the leader what a reply says, keeps the infos of streams with their settings checked, and
  explains why no stream stored a message.
- `Outcomes` is the iterator over the outcomes of many messages.
- `AckInbox` receives the acknowledgements of one publisher.
"""

from __future__ import annotations

from js_async.api.api import Api
from js_async.background.work import BackgroundWork
from js_async.client.requests import Answer
from js_async.consume.buffer import MessageBuffer
from js_async.consume.message import frame_of, is_returned, with_subject
from js_async.consume.messages import buffer_of
from js_async.jetstream import api_of
from js_async.publish.ack_inbox import AckInbox
from js_async.publish.outcomes import Outcomes
from js_async.subject_writes.subject_writes import SubjectWrites

__all__ = [
    "AckInbox",
    "Answer",
    "Api",
    "BackgroundWork",
    "MessageBuffer",
    "Outcomes",
    "SubjectWrites",
    "api_of",
    "buffer_of",
    "frame_of",
    "is_returned",
    "with_subject",
]
