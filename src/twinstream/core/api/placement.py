"""The body of a step-down request, which may name the preferred next leader.

Source: nats-server 2.11 to 2.15, `jsClusteredStreamLeaderStepDownRequest` and similar handlers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from twinstream.errors import BadArgument

__all__ = ["placement_of", "step_down_body"]


def placement_of(preferred: str | None, cluster: str | None, tags: Sequence[str]) -> dict[str, Any]:
    """Return a placement with the given values; it is empty if none is given.

    Raises `BadArgument` for an empty value, or if `tags` is a string.
    """
    if isinstance(tags, str):
        raise BadArgument(f"tags must be a list of tags, got the text {tags!r}")
    found: dict[str, Any] = {}
    for name, value in (("preferred", preferred), ("cluster", cluster)):
        if value is not None and not value:
            raise BadArgument(f"{name} must not be empty: omit it for any")
        if value is not None:
            found[name] = value
    if tags:
        found["tags"] = list(tags)
    return found


def step_down_body(
    preferred: str | None, cluster: str | None, tags: Sequence[str]
) -> dict[str, Any] | None:
    """Return the body of a step-down request, or None if no argument is given."""
    wanted = placement_of(preferred, cluster, tags)
    return {"placement": wanted} if wanted else None
