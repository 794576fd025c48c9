"""The work of a task: read the keys of one range, even if they were written since planning."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc
from attrs import evolve

from twinstream.core.read.arrow_page import ArrowPage
from twinstream.core.read.multi_last import LARGEST
from twinstream.core.read.page_limits import PAGE_BYTES
from twinstream.spark.bucket.key_range import KeyRange
from twinstream.spark.source.batcher import Batcher
from twinstream.spark.source.driver_client import Leader
from twinstream.spark.source.options import SourceOptions
from twinstream.spark.source.range_task import read_pages, refuse_other

__all__ = ["read_keys"]


def read_keys(options: SourceOptions, batcher: Batcher, part: KeyRange) -> Iterator[pa.RecordBatch]:
    """Yield the rows of the keys of a range.

    Raises `DataLossError` after the last row if the bucket was re-created since planning.
    """
    with Leader(options) as leader:
        for page in _pages(options, part, leader):
            if len(page):
                yield batcher.build(page, part.stream)
        (state,) = leader.states()
        refuse_other(state, part)


def _pages(options: SourceOptions, part: KeyRange, leader: Leader) -> Iterator[ArrowPage]:
    """Yield the planned revisions of a range, and the current revisions of keys that lost theirs.

    A key that was written since planning may have lost its planned revision. With `history`, also
    yield all other revisions of the keys.
    """
    keys, history = part.keys, options.bucket is not None and options.bucket.history
    planned, missing = pa.array(list(keys), pa.uint64()), set(keys)
    # A missing revision is no data loss, because the current revision of its key is requested
    # afterwards.
    for page in read_pages(evolve(options, fail_on_data_loss=False), part):
        missing.difference_update(page.seqs.to_pylist())
        if history:
            yield page
        else:
            yield page.where(pc.is_in(page.seqs.cast(pa.uint64()), value_set=planned))
    if not missing:
        return
    (state,) = leader.states()
    # Limit the number of subjects in a request and the expected size of its response.
    most_keys = max(1, min(LARGEST, int(PAGE_BYTES / max(1.0, state.mean_size))))
    missing_keys = [keys[seq] for seq in sorted(missing)]
    for at in range(0, len(missing_keys), most_keys):
        page = _current_revisions(missing_keys[at : at + most_keys], part, leader)
        if history:
            # Keep only revisions after the range. The pages of the range contained all others.
            last = pa.scalar(part.end - 1, pa.uint64())
            page = page.where(pc.greater(page.seqs.cast(pa.uint64()), last))
        yield page


def _current_revisions(subjects: Sequence[bytes], part: KeyRange, leader: Leader) -> ArrowPage:
    """Return the current revision of each key, in the order of the revisions.

    A key without any revision is omitted.
    """
    filters = sorted({_filter_of(each) for each in subjects})
    page = ArrowPage.of(leader.last_messages(part.stream, filters))
    return page.where(pc.is_in(page.subjects, value_set=pa.array(subjects, pa.binary())))


def _filter_of(subject: bytes) -> str:
    """Return a filter that matches a subject.

    A request is text, but a subject may contain any bytes. A token that is not UTF-8 becomes a
    wildcard, so the filter may also match other subjects.
    """
    try:
        return subject.decode()
    except UnicodeDecodeError:
        return ".".join(_token_of(each) for each in subject.split(b"."))


def _token_of(token: bytes) -> str:
    try:
        return token.decode()
    except UnicodeDecodeError:
        return "*"
