"""Buckets and conditions for several scenarios of key-value stores."""

from __future__ import annotations

from datetime import timedelta

from twinstream.models import KeyValueConfig

__all__ = ["bucket", "listed", "state", "summary"]


async def bucket(jet, name, **settings):
    """Return a new bucket in memory."""
    settings = {"storage": "memory", **settings}
    if isinstance(settings.get("limit_marker_ttl"), int):
        settings["limit_marker_ttl"] = timedelta(seconds=settings["limit_marker_ttl"])
    return await jet.create_key_value(KeyValueConfig(bucket=name, **settings))


def summary(entry):
    """Return key, operation and value of an entry; None for the end of the initial values."""
    return entry and (entry.key, entry.operation.value, entry.value)


async def state(watch):
    """Return the entries that a watch delivers before it has caught up."""
    found = []
    while (entry := await watch.next(20)) is not None:
        found.append(summary(entry))
    return found


async def listed(keys):
    """Return the keys in order of their names."""
    return sorted([each async for each in keys])
