"""The search for message ids in a range of a stream."""

from __future__ import annotations

from collections.abc import Callable

from js_async.api.api import Api
from js_async.read.stream_range import open_range
from js_async.stream import Stream, known_info
from twinstream.core.read.range_read import RangeRead
from twinstream.core.read.read_request import Via
from twinstream.records.header_names import MSG_ID
from twinstream.records.headers import Headers

__all__ = ["stored_ids"]


async def stored_ids(
    api: Api,
    stream: Stream,
    start: int,
    end: int,
    is_wanted: Callable[[str], bool],
    timeout: float,
) -> dict[str, int]:
    """Return the message ids of the stream for which `is_wanted` is true, with their sequences.

    The search covers the sequences from `start` up to, but not including, `end`. The result is
    complete even if replicas lag behind. The search fails after `timeout` seconds without progress.
    """
    found: dict[str, int] = {}
    if end <= start:
        return found
    via: Via = "direct" if known_info(stream).config.allow_direct else "consumer"
    reader = open_range(api, stream.name, RangeRead(start, end), via, (), timeout=timeout)
    try:
        while (page := await reader.next_page()) is not None:
            for seq, block in zip(page.seqs, page.headers, strict=True):
                id = Headers.parse(block).get(MSG_ID) if block else None
                if id is not None and is_wanted(id):
                    found.setdefault(id, seq)
    finally:
        await reader.close()
    return found
