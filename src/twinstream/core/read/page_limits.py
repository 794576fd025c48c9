"""Limits of the pages in which a stream is read."""

from __future__ import annotations

from typing import Final

__all__ = ["PAGE_BYTES", "PAGE_MESSAGES"]

PAGE_MESSAGES: Final = 20_000
"""Maximum number of messages of one page.

Direct get is almost at its full speed with some thousands of messages per page. A page of 20,000
messages of 200 bytes is much smaller than `PAGE_BYTES`.
"""

PAGE_BYTES: Final = 16 * 1024 * 1024
"""Maximum bytes of one page (subjects, headers and payloads as the server counts them).

Without a limit in the request, a page may fill the server's pending limit (64 MiB by default), at
which the server disconnects a client that reads slowly. A quarter of this limit is safe.
"""
