"""Workers: call a handler for each message, with retries and dead letters.

A `Worker` acknowledges a message when its handler returns. If the handler raises an error, the
message is retried as `Retry` or `TryLater` says. After the last attempt, or after `Reject`, it is
given up; `DeadLetters` keep a copy of it, which can be read, replayed or discarded later.
"""

from __future__ import annotations

from js_async.workers.dead_letters import DeadLetters
from js_async.workers.worker import Worker
from twinstream.core.exactly_once.processing import Reject
from twinstream.core.workers.dead_letter import DeadLetter
from twinstream.core.workers.reports import HandlerFailed, WorkReport
from twinstream.core.workers.retry import Retry, TryLater

__all__ = [
    "DeadLetter",
    "DeadLetters",
    "HandlerFailed",
    "Reject",
    "Retry",
    "TryLater",
    "WorkReport",
    "Worker",
]
