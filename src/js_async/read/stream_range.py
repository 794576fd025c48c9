"""Create a reader for a range of a stream, with one of the three page sources."""

from __future__ import annotations

from collections.abc import Sequence

from js_async.api.api import Api
from js_async.read.page_sources import ConsumerPages, DirectPages, LeaderPages
from js_async.read.range_reader import PageSource, RangeReader
from twinstream.core.read.range_read import RangeRead
from twinstream.core.read.read_request import Via

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
    """Return a `RangeReader` that reads the range of `read` by the method `via`.

    With `bulk`, pages contain Arrow arrays where possible (`StoredPage.blocks`). The other
    arguments are those of `RangeReader`.
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
