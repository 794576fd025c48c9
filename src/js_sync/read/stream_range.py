# Generated from src/js_async/read/stream_range.py by codegen/twin.py. Edit that file instead.
"""Readers of ranges of a stream, for the three ways there are."""

from __future__ import annotations

from collections.abc import Sequence

from twinstream.core.read.range_read import RangeRead
from twinstream.core.read.read_request import Via
from js_sync.api.api import Api
from js_sync.read.page_sources import ConsumerPages, DirectPages, LeaderPages
from js_sync.read.range_reader import PageSource, RangeReader

__all__ = ["open_range"]


def open_range(
    api: Api,
    stream: str,
    read: RangeRead,
    via: Via,
    filters: Sequence[str],
    *,
    timeout: float,
    ahead: bool = False,
    bulk: bool = False,
) -> RangeReader:
    """Return a reader of what `read` wants; see `RangeReader`.

    With `bulk` pages come as Arrow arrays where that can be (`StoredPage.blocks`).
    """
    source: PageSource
    if via == "direct":
        source = DirectPages(api, stream, filters, bulk=bulk)
    elif via == "consumer":
        source = ConsumerPages(api, stream, filters, bulk=bulk)
    else:
        source = LeaderPages(api, stream, filters)
    return RangeReader(
        api,
        stream,
        read,
        source,
        filters=filters,
        timeout=timeout,
        ahead=ahead,
        bulk=bulk,
        direct=via == "direct",
    )
