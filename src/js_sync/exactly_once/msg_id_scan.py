# Generated from src/js_async/exactly_once/msg_id_scan.py by codegen/twin.py. Edit that file instead.
"""Look up which identities a stream holds since a sequence."""

from __future__ import annotations

from collections.abc import Container
from typing import TYPE_CHECKING

from twinstream.core.wire.header_names import MSG_ID
from twinstream.core.wire.headers import Headers

if TYPE_CHECKING:
    from js_sync.jetstream import JetStream
    from js_sync.stream import Stream

__all__ = ["stored_ids"]


def stored_ids(
    jet: JetStream, stream: Stream, start: int, end: int, wanted: Container[str], timeout: float
) -> dict[str, int]:
    """Return the sequence of each wanted identity from `start` up to, not including, `end`.

    Complete, even where replicas lag. `timeout` in seconds is how long it may go without progress.
    """
    found: dict[str, int] = {}
    if end <= start:
        return found
    direct = bool(stream.config.allow_direct)
    reader = jet.range_reader(stream.name, start, end, direct=direct, timeout=timeout)
    try:
        while (page := reader.next_page()) is not None:
            for seq, block in zip(page.seqs, page.headers, strict=True):
                id = Headers.parse(block).get(MSG_ID) if block else None
                if id is not None and id in wanted:
                    found.setdefault(id, seq)
    finally:
        reader.close()
    return found
