"""Existing streams and consumers that the server cannot describe now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from twinstream.cli.screen import notes

if TYPE_CHECKING:
    from js_sync import Listing


def undescribed(listing: Listing[Any]) -> dict[str, str]:
    """Return the reasons why the server cannot describe some streams or consumers, by name."""
    silent = dict.fromkeys(listing.missing, "its leader does not answer")
    return {**silent, **{name: f"offline: {why}" for name, why in listing.offline.items()}}


def note_undescribed(listing: Listing[Any]) -> None:
    """Print the names that the list lacks to standard error, each with the reason."""
    for name, reason in undescribed(listing).items():
        notes().print(f"{name} cannot be described: {reason}", style="yellow", soft_wrap=True)
