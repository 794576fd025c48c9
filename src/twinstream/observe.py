"""Observers of connections: write one by overriding the methods of `Observer`.

Both twins use the same classes. Pass observers as `connect(observers=[...])`.
"""

from __future__ import annotations

from twinstream.core.observe.events import Received, Redelivered
from twinstream.core.observe.gauge import Gauge
from twinstream.core.observe.observer import Observer
from twinstream.core.observe.operation import Operation, OperationKind

__all__ = ["Gauge", "Observer", "Operation", "OperationKind", "Received", "Redelivered"]
