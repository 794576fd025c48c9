"""Read the keys of one range, also those that were written again since the read was planned."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
from attrs import evolve

from twinstream.core.read.arrow_page import ArrowPage
from twinstream.core.read.multi_last import chunks
from twinstream.core.read.page_limits import PAGE_BYTES
from twinstream.spark.bucket.key_range import KeyRange
from twinstream.spark.source.batcher import Batcher
from twinstream.spark.source.driver_client import Leader
from twinstream.spark.source.options import SourceOptions
from twinstream.spark.source.range_task import read_pages, refuse_other

__all__ = ["read_keys"]


def read_keys(options: SourceOptions, batcher: Batcher, part: KeyRange) -> Iterator[pa.RecordBatch]:
    """Yield the rows of the keys of a range. Raises `DataLossError` for another bucket."""
    with Leader(options) as leader:
        for page in _pages(options, part, leader):
            if len(page):
                yield batcher.build(page, part.stream)
        (state,) = leader.states()
        refuse_other(state, part)


def _pages(options: SourceOptions, part: KeyRange, leader: Leader) -> Iterator[ArrowPage]:
    keys, history = part.keys, options.bucket is not None and options.bucket.history
    planned = pa.array(list(keys), pa.uint64())
    # Nothing that is missing in the range is lost: it is looked up below.
    for page in read_pages(evolve(options, fail_on_data_loss=False), part):
        found = pc.is_in(page.seqs.cast(pa.uint64()), value_set=planned)
        for seq in page.seqs.filter(found).to_pylist():
            del keys[seq]
        yield page if history else page.where(found)
    if not keys:
        return
    subjects = pa.array(list(keys.values()), pa.binary())
    for filters in _in_parts(sorted(map(_filter_of, keys.values())), leader):
        page = ArrowPage.of(leader.last_messages(part.stream, filters))
        moved = pc.is_in(page.subjects, value_set=subjects)
        if history:
            # An older revision that is still there is a row of a range.
            moved = pc.and_(moved, pc.greater_equal(page.seqs, part.end))
        yield page.where(moved)


def _in_parts(filters: list[str], leader: Leader) -> Iterator[tuple[str, ...]]:
    """Yield filters whose messages together have a moderate size."""
    (state,) = leader.states()
    most = max(1, int(PAGE_BYTES / max(1.0, state.mean_size)))
    for at in range(0, len(filters), most):
        yield from chunks(filters[at : at + most])


def _filter_of(subject: bytes) -> str:
    """Return a filter that matches a subject; requests are text, subjects may be any bytes."""
    try:
        return subject.decode()
    except UnicodeDecodeError:
        return ".".join(_token_of(each) for each in subject.split(b"."))


def _token_of(token: bytes) -> str:
    try:
        return token.decode()
    except UnicodeDecodeError:
        return "*"
