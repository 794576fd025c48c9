"""The order in which to try the addresses that a host name resolves to.

Source: ADR-11, and RFC 8305 for alternating address families.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import Any, TypeVar

__all__ = ["Shuffle", "resolvable", "spread"]

Shuffle = Callable[[list[Any]], object]
"""A function that shuffles a list in place."""

A = TypeVar("A", bound="tuple[Any, ...]")


def resolvable(host: str) -> str | bytes:
    """Return a host for `getaddrinfo`: an IPv4 address as bytes, anything else as text.

    For bytes, Python does not import the IDNA codec. Names stay text, because an application may
    have replaced `getaddrinfo` with a function that expects text.
    """
    return host.encode() if host.isascii() and host.replace(".", "").isdigit() else host


def spread(found: Sequence[A], shuffle: Shuffle | None) -> list[A]:
    """Return the addresses found by `getaddrinfo` in the order in which to try them.

    Without `shuffle` this is the resolver's order. Otherwise the addresses of each family are
    shuffled, so that clients spread over the servers with this name. Address families alternate, so
    that a family without a route causes only one failed attempt in a row. The family of the
    resolver's first address stays first.
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
