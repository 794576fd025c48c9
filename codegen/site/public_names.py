"""The public objects: each once, with all names under which programs import it."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any, Final

from codegen.site.entries import Named

__all__ = ["PACKAGES", "public_objects"]

PACKAGES: Final = (
    "backup",
    "coordination",
    "counters",
    "exactly_once",
    "fast_ingest",
    "groups",
    "health",
    "outbox",
    "schedules",
    "workers",
)
"""The packages above the client, in each twin."""
_SHARED: Final = (
    *("twinstream.errors", "twinstream.models", "twinstream.codecs", "twinstream.observe"),
    *("twinstream.otel", "twinstream.permissions", "twinstream.testing", "twinstream.spark"),
)


def public_objects() -> list[Named]:
    """Return the public objects, in the order of the reference."""
    found: dict[object, Named] = {}
    for module, name, value in _all():
        found.setdefault(_key(module, name, value), {})[f"{module}.{name}"] = value
    return list(found.values())


def _all() -> Iterator[tuple[str, str, Any]]:
    suffixes = ("", *(f".{each}" for each in PACKAGES))
    twins = (f"{twin}{suffix}" for suffix in suffixes for twin in ("js_sync", "js_async"))
    for module in (*twins, *_SHARED):
        package = importlib.import_module(module)
        for name in sorted(package.__all__):
            yield module, name, getattr(package, name)


def _key(module: str, name: str, value: object) -> object:
    """Return what two names of one object have in common."""
    if _is_of_a_twin(value):
        return module.partition("_")[2].partition(".")[2], name
    return id(value) if isinstance(value, type) or callable(value) else name


def _is_of_a_twin(value: object) -> bool:
    return str(getattr(value, "__module__", "")).startswith(("js_sync", "js_async"))
