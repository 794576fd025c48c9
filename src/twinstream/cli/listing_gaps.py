"""Streams and consumers that the server listed by name, but without their info."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from twinstream.cli.screen import alerts

if TYPE_CHECKING:
    from js_sync.api.listing import Listing


def undescribed(listing: Listing[Any]) -> dict[str, str]:
    """Return the reason for each stream or consumer without info, by name."""
    silent = dict.fromkeys(listing.missing, "its leader does not answer")
    return {**silent, **{name: f"offline: {why}" for name, why in listing.offline.items()}}


def note_undescribed(listing: Listing[Any]) -> None:
    """Print each name without info to standard error, with the reason."""
    for name, reason in undescribed(listing).items():
        alerts().print(f"{name} cannot be described: {reason}", style="yellow", soft_wrap=True)
