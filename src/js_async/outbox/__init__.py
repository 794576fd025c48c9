"""The outbox: events of a database transaction, each of which a relay stores in a stream once.

A program adds its events to a `SqliteOutbox`, or another `OutboxStore`, within its own database
transaction. An `OutboxRelay` stores them in a stream, and repeats this until the stream has
confirmed it.
"""

from __future__ import annotations

from js_async.outbox.relay import OutboxRelay
from js_async.outbox.sqlite_outbox import SqliteOutbox
from js_async.outbox.store import OutboxStore
from twinstream.core.exactly_once.outbox import OutboxEvent, OutboxReport
from twinstream.errors import SubjectTaken, UnsuitableSettings
from twinstream.records.guarantee_gap import GuaranteeGap

__all__ = [
    "GuaranteeGap",
    "OutboxEvent",
    "OutboxRelay",
    "OutboxReport",
    "OutboxStore",
    "SqliteOutbox",
    "SubjectTaken",
    "UnsuitableSettings",
]
