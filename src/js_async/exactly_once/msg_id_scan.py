"""The search for message ids in a range of a stream."""

from __future__ import annotations

from collections.abc import Callable

from js_async import StreamRead
from twinstream.records.header_names import MSG_ID

__all__ = ["stored_ids"]


async def stored_ids(read: StreamRead, is_wanted: Callable[[str], bool]) -> dict[str, int]:
    """Return the message ids for which `is_wanted` is true, with their sequences.

    `read` is a read of the range in which to search. The result is complete even if replicas lag
    behind.
    """
    found: dict[str, int] = {}
    async with read:
        async for message in read:
            id = message.headers.get(MSG_ID)
            if id is not None and is_wanted(id):
                found.setdefault(id, message.seq)
    return found
