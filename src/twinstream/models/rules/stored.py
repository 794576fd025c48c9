"""Helpers for the settings that a server stores, shared by streams and consumers."""

from __future__ import annotations

from typing import Any

from twinstream.models.files.settings import Settings
from twinstream.models.times.go_time import go_time_text
from twinstream.models.version import Version

LEVELS: tuple[tuple[Version, int], ...] = (
    ((2, 15, 0), 5),
    ((2, 14, 0), 4),
    ((2, 12, 5), 3),
    ((2, 12, 0), 2),
    ((2, 11, 0), 1),
)
"""Pairs of a server version and the API level that begins with it, newest first."""


def api_level(version: Version) -> int:
    """Return the API level of a server of `version`."""
    return next(level for since, level in LEVELS if version >= since)


OWN_KEYS = ("_nats.level", "_nats.req.level", "_nats.ver")
"""The metadata keys that the server sets. It overwrites their values in a request."""

METADATA_MAX_BYTES = 128 * 1024

OWN_BYTES = len("_nats.req.level") + 1
"""The number of metadata bytes that the server adds before it checks the size."""


def metadata_bytes(metadata: dict[str, str] | None, *, own: bool = False) -> int:
    """Return the size of metadata in bytes. Only with `own`, the server's own keys are included."""
    pairs = [(key, text) for key, text in (metadata or {}).items() if own or key not in OWN_KEYS]
    return sum(len(key.encode()) + len(text.encode()) for key, text in pairs)


def stored_metadata(given: dict[str, str] | None, version: Version, level: int) -> dict[str, str]:
    """Return the metadata in a request with the keys that the server adds.

    `level` is the API level that the settings need.
    """
    from twinstream.models.version import ANY_PATCH

    metadata = dict(given or {})
    metadata["_nats.level"] = str(api_level(version))
    metadata["_nats.req.level"] = str(level)
    if version[2] != ANY_PATCH:
        metadata["_nats.ver"] = ".".join(str(part) for part in version)
    return metadata


def put(out: dict[str, Any], settings: Settings, *members: str) -> None:
    """Copy `members` from `settings` to `out`, except zero values, which the server omits.

    Times are converted to the server's notation.
    """
    for member in members:
        value = settings[member]
        if value:
            out[member] = go_time_text(value) if member.endswith(("_time", "_until")) else value
