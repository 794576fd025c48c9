"""The stream sequences for which a server stores messages but does not return them."""

from __future__ import annotations

from typing import Final

HIDDEN_FROM: Final = 1 << 62
"""The first stream sequence whose message the server does not return.

The file store of servers 2.11 to 2.15 acknowledges and counts messages from this sequence on, but
returns none of them, because it uses bit 62 of a sequence as a flag.
"""
