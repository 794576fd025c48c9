"""Locks, semaphores, rate limits, run-once work and leader election, based on a stream.

Programs that share only a server use it to take turns. `Coordination` is the root object. All state
is in one stream (server 2.11).
"""

from __future__ import annotations

from js_async.coordination.coordination import Coordination, HeldSlot
from js_async.coordination.leader import Leader
from js_async.coordination.lease import Lease
from js_async.coordination.lock import Lock, Semaphore
from js_async.coordination.once import Once, OnceResult
from js_async.coordination.rate_limiter import Permit, RateLimiter
from twinstream.core.coordination.lease_record import SlotRecord
from twinstream.errors import LeaseLost, UnsuitableSettings
from twinstream.records.guarantee_gap import GuaranteeGap

__all__ = [
    "Coordination",
    "GuaranteeGap",
    "HeldSlot",
    "Leader",
    "Lease",
    "LeaseLost",
    "Lock",
    "Once",
    "OnceResult",
    "Permit",
    "RateLimiter",
    "Semaphore",
    "SlotRecord",
    "UnsuitableSettings",
]
