"""What packages above the client may import beside its public names and `runtime`.

Such a package is built on a `JetStream`: its functions and constructors take one as their first
argument, and its constructors send no request. `counters` is the smallest example. This module has
at most 12 names; a name is added here only if a package needs what no public name offers.

- `api_of` returns the `Api` of a `JetStream`.
- `Api` sends requests (`call`, `call_raw`, `call_through`, `ask`), builds their subjects
  (`subjects`), checks the version of the server (`require`), and starts the deadline of a call
  (`deadline`). Its `transport` is the connection below: mailboxes, and messages without a response.
- `Answer` is the response to one of several requests in flight (`api.transport.replies`).
- `BackgroundWork` is the life cycle of an object that works in the background.
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
from js_async.jetstream import api_of
from js_async.publish.ack_inbox import AckInbox
from js_async.publish.outcomes import Outcomes
from js_async.subject_writes.subject_writes import SubjectWrites

__all__ = [
    "AckInbox",
    "Answer",
    "Api",
    "BackgroundWork",
    "Outcomes",
    "SubjectWrites",
    "api_of",
]
