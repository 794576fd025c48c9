"""Where the next leader should be: the body of a request to step down.

Source: nats-server 2.11 to 2.15, `jsClusteredStreamLeaderStepDownRequest` and its kin.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from twinstream.errors import BadArgument

__all__ = ["placement_of", "step_down_body"]


def placement_of(preferred: str | None, cluster: str | None, tags: Sequence[str]) -> dict[str, Any]:
    """Return a placement with what is given, empty where nothing is; raises `BadArgument`."""
    if isinstance(tags, str):
        raise BadArgument(f"tags must be a list of tags, got the text {tags!r}")
    found: dict[str, Any] = {}
    for name, value in (("preferred", preferred), ("cluster", cluster)):
        if value is not None and not value:
            raise BadArgument(f"{name} may not be empty: leave it out for any")
        if value is not None:
            found[name] = value
    if tags:
        found["tags"] = list(tags)
    return found


def step_down_body(
    preferred: str | None, cluster: str | None, tags: Sequence[str]
) -> dict[str, Any] | None:
    """Return the body of a request to step down, None for any other leader."""
    wanted = placement_of(preferred, cluster, tags)
    return {"placement": wanted} if wanted else None
