"""What both streams and consumers look like once a server has stored them."""

from __future__ import annotations

from typing import Any

from twinstream.models._go_time import go_time_text
from twinstream.models._settings import Settings
from twinstream.models.version import Version

LEVELS: tuple[tuple[Version, int], ...] = (
    ((2, 15, 0), 5),
    ((2, 14, 0), 4),
    ((2, 12, 5), 3),
    ((2, 12, 0), 2),
    ((2, 11, 0), 1),
)
"""The API level that servers from a version on have."""


def api_level(version: Version) -> int:
    """Return the API level of a server."""
    return next(level for since, level in LEVELS if version >= since)


OWN_KEYS = ("_nats.level", "_nats.req.level", "_nats.ver")
"""Metadata that the server writes itself, whatever stands there."""

METADATA_MAX_BYTES = 128 * 1024

OWN_BYTES = len("_nats.req.level") + 1
"""What the server has added when it counts."""


def metadata_bytes(metadata: dict[str, str] | None, *, own: bool = False) -> int:
    """Return the size of metadata, with or without the server's own keys."""
    pairs = [(key, text) for key, text in (metadata or {}).items() if own or key not in OWN_KEYS]
    return sum(len(key.encode()) + len(text.encode()) for key, text in pairs)


def stored_metadata(given: dict[str, str] | None, version: Version, level: int) -> dict[str, str]:
    """Return metadata with the server's own keys; ``level`` is what the settings need."""
    from twinstream.models.version import ANY_PATCH

    metadata = dict(given or {})
    metadata["_nats.level"] = str(api_level(version))
    metadata["_nats.req.level"] = str(level)
    if version[2] != ANY_PATCH:
        metadata["_nats.ver"] = ".".join(str(part) for part in version)
    return metadata


def put(out: dict[str, Any], settings: Settings, *members: str) -> None:
    """Copy the members that are not zero; the server leaves zeros out."""
    for member in members:
        value = settings[member]
        if value:
            out[member] = go_time_text(value) if member.endswith(("_time", "_until")) else value
