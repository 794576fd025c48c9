"""Buckets and conditions for several scenarios of key-value stores."""

from __future__ import annotations

from datetime import timedelta

from twinstream.models import KeyValueConfig

__all__ = ["bucket", "listed", "renewed", "state", "summary"]


async def bucket(jet, name, **settings):
    """Return a new bucket in memory."""
    settings = {"storage": "memory", **settings}
    if isinstance(settings.get("limit_marker_ttl"), int):
        settings["limit_marker_ttl"] = timedelta(seconds=settings["limit_marker_ttl"])
    return await jet.create_key_value(KeyValueConfig(bucket=name, **settings))


def summary(entry):
    """Return key, operation and value of an entry."""
    return (entry.key, entry.operation.value, entry.value)


async def state(watch):
    """Return the initial values of a watch."""
    found = [summary(entry) async for entry in watch.initial()]
    assert watch.is_current
    return found


async def renewed(watch, generation):
    """Return the initial values of a watch after its bucket was re-created."""
    found = []
    while not (watch.generation == generation and watch.is_current):
        entry = await watch.next(timeout=0.5)
        if entry is not None and watch.generation == generation:
            found.append((entry.key, entry.revision))
    return found


async def listed(keys):
    """Return the keys in order of their names."""
    return sorted([each async for each in keys])
