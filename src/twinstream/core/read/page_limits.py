"""Limits of the pages in which a stream is read."""

from __future__ import annotations

from typing import Final

__all__ = ["PAGE_BYTES", "PAGE_MESSAGES"]

#: Messages of one page at most. Direct get reaches most of its speed at some thousands per page,
#: and a page of 200-byte messages is much smaller than ``PAGE_BYTES``.
PAGE_MESSAGES: Final = 20_000

#: Bytes of one page at most (subjects, headers and payloads as the server counts them).
#: By default, a page may fill the server's whole pending limit (64 MiB), at which the server
#: disconnects a client that reads slowly; a quarter of this limit is safe.
PAGE_BYTES: Final = 16 * 1024 * 1024
