"""What packages above the client may import beside its public names and `runtime`.

Such a package is built on a `JetStream`: its functions and constructors take one as their first
argument, and its constructors send no request. `counters` is the smallest example. This module has
at most 12 names; a name is added here only if a package needs what no public name offers.

- `api_of` returns the `Api` of a `JetStream`.
- `Api` sends requests (`call`, `call_raw`, `call_through`, `ask`), builds their subjects
  (`subjects`), checks the version of the server (`require`), and starts the deadline of a call
  (`deadline`). Its `transport` is the connection below: mailboxes, and messages without a response.
- `Answer` is the response to one of several requests in flight (`api.transport.replies`).
"""

from __future__ import annotations

from js_async.api.api import Api
from js_async.client.requests import Answer
from js_async.jetstream import api_of

__all__ = ["Answer", "Api", "api_of"]
