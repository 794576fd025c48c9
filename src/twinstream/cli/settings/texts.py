"""Settings that several options or texts make up together: metadata and placement."""

from __future__ import annotations

from collections.abc import Iterable

import click

from twinstream.models import Placement


def pairs(texts: Iterable[str]) -> dict[str, str]:
    """Return the texts `NAME=VALUE` of `--metadata`. Raises a usage error for other texts."""
    found = [text.partition("=") for text in texts]
    for name, equals, _ in found:
        if not (name and equals):
            raise click.BadParameter("write it like NAME=VALUE", param_hint="--metadata")
    return {name: value for name, _, value in found}


def placement(cluster: str | None, tags: Iterable[str]) -> Placement | None:
    """Return where a stream should be; None without a cluster and without tags."""
    wanted = list(tags)
    return Placement(cluster=cluster, tags=wanted or None) if cluster or wanted else None
