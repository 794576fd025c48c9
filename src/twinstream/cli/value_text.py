"""Format settings, sizes, times and durations as text for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, cast

from attrs import frozen

from twinstream.models import Model, Timestamp, encode

_UNITS: Final = (("d", 86400), ("h", 3600), ("m", 60))

UNLIMITED: Final = "unlimited"
"""The word of the command for a limit that does not exist."""

_SIZES: Final = frozenset({"max_bytes", "max_msg_size", "max_value_size", "max_chunk_size"})

# The settings that limit something. A value below 1 means that there is no limit.
_LIMITS: Final = frozenset(
    {
        *_SIZES,
        "max_msgs",
        "max_msgs_per_subject",
        "max_age",
        "max_consumers",
        "max_deliver",
        "max_ack_pending",
        "ttl",
    }
)


@frozen
class Size:
    """A number of bytes, which is shown with a unit."""

    count: int


def setting(name: str, value: object) -> str | int | float | Size | datetime | timedelta:
    """Return the value of a setting for a page; an empty string if it is not set.

    Limits that do not exist become `unlimited`.
    """
    match value:
        case bool():
            return as_text(value)
        case timedelta() if name in _LIMITS and value <= timedelta(0):
            return UNLIMITED
        case int() if name in _LIMITS and value <= 0:
            return UNLIMITED
        case int() if name in _SIZES:
            return Size(value)
        case int() | float() | datetime() | timedelta():
            return value
        case _:
            return as_text(value)


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
            return rfc3339(value)
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
    """Return a size with a binary unit: `in_bytes(1536) == "1.5 KiB"`."""
    size = float(count)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if size < 1024 or unit == "TiB":
            break
        size /= 1024
    return f"{size:,.0f} B" if unit == "B" else f"{size:,.1f} {unit}"


def in_time(length: timedelta) -> str:
    """Return a duration with its units: `in_time(timedelta(seconds=5400)) == "1h30m"`."""
    remaining = abs(length.total_seconds())
    parts: list[str] = []
    for unit, seconds in _UNITS:
        whole, remaining = divmod(remaining, seconds)
        if whole:
            parts.append(f"{whole:g}{unit}")
    if remaining or not parts:
        parts.append(f"{remaining:g}s")
    return ("-" if length < timedelta(0) else "") + "".join(parts)


def ago(time: datetime, now: datetime) -> str:
    """Return the distance of a time from now, in its largest unit: `3m ago`, `in 2d`."""
    seconds = (now - time).total_seconds()
    distance = abs(seconds)
    for unit, length in (*_UNITS, ("s", 1)):
        if distance >= length:
            text = f"{int(distance // length):,}{unit}"
            return f"{text} ago" if seconds > 0 else f"in {text}"
    return "now"


def local_time(time: datetime) -> str:
    """Return a time in the zone of this machine, to the second, with the offset of the zone."""
    try:
        return time.astimezone().isoformat(" ", "seconds")
    except (OverflowError, OSError):  # beyond what the machine can convert
        return rfc3339(time)


def rfc3339(time: datetime) -> str:
    """Return a time in RFC 3339, in UTC, with all digits that it has."""
    is_utc = isinstance(time, Timestamp) and not time.utcoffset()
    return Timestamp.of(time if is_utc else time.astimezone(UTC)).rfc3339()
