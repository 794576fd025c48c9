"""Schedules: messages that the server publishes later, once or repeatedly (server 2.12).

`Schedules` stores, lists and removes the schedules of a stream with `allow_msg_schedules`. A
`Schedule` is the times at which the server publishes, for example those of a cron pattern.
"""

from __future__ import annotations

from js_async.schedules.schedules import Schedules
from twinstream.core.schedules.schedules import Schedule, StoredSchedule

__all__ = ["Schedule", "Schedules", "StoredSchedule"]
