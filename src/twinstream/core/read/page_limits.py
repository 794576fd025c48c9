"""How much of a stream is asked for at once, where it is read in pages."""

from __future__ import annotations

from typing import Final

__all__ = ["PAGE_BYTES", "PAGE_MESSAGES"]

#: Messages asked for in one page. Direct get reaches most of its speed at some thousands a page,
#: and a page of 200-byte messages stays well inside ``PAGE_BYTES``.
PAGE_MESSAGES: Final = 20_000

#: Upper bound of one page in bytes (subjects, headers and payloads as the server counts them).
#: The server's own default is the whole of its pending limit (64 MiB), at which it drops a client
#: that reads slowly; a quarter of that leaves room.
PAGE_BYTES: Final = 16 * 1024 * 1024
