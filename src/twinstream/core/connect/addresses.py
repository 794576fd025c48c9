"""The addresses that a host name resolves to: the order in which to try them.

Source: ADR-11, and RFC 8305 for mixing families.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import Any, TypeVar

__all__ = ["Shuffle", "spread"]

Shuffle = Callable[[list[Any]], object]
"""Puts a list into random order."""

A = TypeVar("A", bound="tuple[Any, ...]")


def spread(found: Sequence[A], shuffle: Shuffle | None) -> list[A]:
    """Return what `getaddrinfo` found in the order in which to try it.

    Without `shuffle` that is the resolver's own. Otherwise the addresses of each family are
    shuffled, so that clients spread over the servers behind a name, and families take turns, so
    that one of them that is not routed costs one attempt. The family of the resolver's first
    address stays first.
    """
    if shuffle is None:
        return list(found)
    families: dict[object, list[A]] = {}
    for each in found:
        families.setdefault(each[0], []).append(each)
    for group in families.values():
        shuffle(group)
    turns = zip_longest(*families.values())
    return [each for turn in turns for each in turn if each is not None]
