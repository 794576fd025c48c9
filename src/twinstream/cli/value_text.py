"""Format settings, sizes and durations as text for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, cast

from twinstream.models import Model, encode

_UNITS: Final = (("d", 86400), ("h", 3600), ("m", 60))


def as_text(value: object) -> str:
    """Return the value of one setting as text; an empty string if it is not set."""
    match value:
        case None | "":
            return ""
        case bool():
            return "yes" if value else "no"
        case timedelta():
            return in_time(value)
        case datetime():
            return value.isoformat(" ", "seconds")
        case str() | int() | float():
            return str(value)
        case Mapping():
            items = cast("Mapping[str, object]", value).items()
            return ", ".join(f"{name}={as_text(item)}" for name, item in items)
        case Model():
            return as_text(encode(value))
        case Sequence():
            return ", ".join(as_text(item) for item in cast("Sequence[object]", value))
        case _:
            return str(value)


def in_bytes(count: int) -> str:
    """Return a size with a binary unit: ``in_bytes(1536) == "1.5 KiB"``."""
    size = float(count)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if size < 1024 or unit == "TiB":
            break
        size /= 1024
    return f"{size:,.0f} B" if unit == "B" else f"{size:,.1f} {unit}"


def in_time(length: timedelta) -> str:
    """Return a duration with its units: ``in_time(timedelta(seconds=5400)) == "1h30m"``."""
    left = abs(length.total_seconds())
    parts: list[str] = []
    for unit, seconds in _UNITS:
        whole, left = divmod(left, seconds)
        if whole:
            parts.append(f"{whole:g}{unit}")
    if left or not parts:
        parts.append(f"{left:g}s")
    return ("-" if length < timedelta(0) else "") + "".join(parts)
