"""Operations on whole Arrow columns of bytes. pyarrow is imported on first use.

An operation that requires values of the same form raises `NotUniform` for other values.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "NotUniform",
    "ascending",
    "behind",
    "between",
    "blank",
    "fields",
    "halves",
    "lengths",
    "number",
    "parts_of",
    "plus",
    "require",
]

# The end of a slice that reaches to the end of any value.
_END: Final = 1 << 30


@lru_cache(64)
def _whole(value: int) -> pa.Scalar:
    """Return a number as an Arrow scalar of type int64.

    If Arrow had to infer the type, that would take longer than most operations: for each inference
    pyarrow tries to import modules that may not be installed.
    """
    import pyarrow as pa

    return pa.scalar(value, pa.int64())


class NotUniform(Exception):
    """The values do not all have the same form."""


def require(truth: pa.Array) -> None:
    """Raise `NotUniform` unless all values are true."""
    import pyarrow.compute as pc

    if not pc.all(truth, min_count=0).as_py():
        raise NotUniform


def parts_of(data: bytes, start: int, end: int, by: bytes) -> tuple[pa.Array, pa.Array, pa.Array]:
    """Split `data[start:end]` at `by`.

    Return three columns: the parts, and the offsets in `data` at which they start and end.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    offsets = pa.py_buffer(struct.pack("=ii", start, end))
    whole = pa.Array.from_buffers(pa.binary(), 1, [None, offsets, pa.py_buffer(data)])
    parts = pc.split_pattern(whole, by).values
    size = lengths(parts)
    ends = pc.cumulative_sum(plus(size, len(by)), start=_whole(start - len(by)))
    return parts, pc.subtract(ends, size), ends


def between(data: bytes, *edges: pa.Array) -> list[pa.Array]:
    """Return one column of bytes for each pair of adjacent edges.

    An edge is a column of offsets into `data`, with one offset for each message. Raises
    `NotUniform` if an offset is outside `data`, or if it is below the previous edge of the same
    message or the last edge of the previous message.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    flat = pa.concat_arrays(edges).take(_turned(len(edges), len(edges[0])))
    # Arrow does not check whether offsets are in order and within the bytes.
    require(pc.less_equal(flat[:-1], flat[1:]))
    if flat[0].as_py() < 0 or flat[-1].as_py() > len(data):
        raise NotUniform
    offsets = flat.cast(pa.int32()).buffers()[1]
    values = pa.Array.from_buffers(pa.binary(), len(flat) - 1, [None, offsets, pa.py_buffer(data)])
    return [_every(values, len(edges), at) for at in range(len(edges) - 1)]


def _every(values: pa.Array, step: int, start: int) -> pa.Array:
    """Return `values[start::step]`.

    Such a slice is avoided, because pyarrow before 21 needs numpy for it.
    """
    import pyarrow.compute as pc

    count = len(range(start, len(values), step))
    index = pc.multiply(_Counting.up_to(count), _whole(step))
    return values.take(pc.add(index, _whole(start)))


def _turned(rows: int, columns: int) -> pa.Array:
    """Return the indices that transpose a table whose rows are stored one after the other."""
    import pyarrow.compute as pc

    index = _Counting.up_to(rows * columns)
    column = pc.divide(index, _whole(rows))
    row = pc.subtract(index, pc.multiply(column, _whole(rows)))
    return pc.add(pc.multiply(row, _whole(columns)), column)


class _Counting:
    """A cache of the numbers from 0 up. Creating them takes longer than using them."""

    _kept: pa.Array | None = None

    @classmethod
    def up_to(cls, count: int) -> pa.Array:
        import pyarrow as pa

        if cls._kept is None or len(cls._kept) < count:
            cls._kept = pa.array(range(count), pa.int64())
        return cls._kept[:count]


def fields(
    values: pa.Array, by: bytes, least: int, most: int, pick: Sequence[int] | None = None
) -> list[pa.Array]:
    """Split each value at `by`; return a column for each part, or for the positions in `pick`.

    Raises `NotUniform` unless all values have the same number of parts, from `least` to `most`.
    """
    import pyarrow.compute as pc

    found = pc.split_pattern(values, by)
    counts = pc.list_value_length(found)
    count = counts[0].as_py()
    if not least <= count <= most:
        raise NotUniform
    require(pc.equal(counts, _whole(count)))
    parts = found.values
    return [_every(parts, count, at) for at in (range(count) if pick is None else pick)]


def halves(values: pa.Array, by: bytes, *, last: bool = False) -> tuple[pa.Array, pa.Array]:
    """Split each value at the first `by`, or at the last one if `last` is true.

    Raises `NotUniform` if a value does not contain `by`.
    """
    import pyarrow.compute as pc

    parts = pc.split_pattern(values, by, max_splits=1, reverse=last).values
    if len(parts) != 2 * len(values):
        raise NotUniform
    return _every(parts, 2, 0), _every(parts, 2, 1)


def behind(values: pa.Array, start: bytes) -> pa.Array:
    """Return the values without the prefix `start`; raises `NotUniform` if a value lacks it."""
    import pyarrow.compute as pc

    require(pc.starts_with(values, start))
    return pc.binary_slice(values, len(start), _END)


def number(values: pa.Array) -> pa.Array:
    """Return decimal text as integers; raises `ArrowInvalid` for other text."""
    import pyarrow as pa

    return values.cast(pa.string()).cast(pa.int64())


def plus(values: pa.Array, more: int) -> pa.Array:
    """Return the values with `more` added to each."""
    import pyarrow.compute as pc

    return pc.add(values, _whole(more))


def lengths(values: pa.Array) -> pa.Array:
    """Return the lengths of the values in bytes."""
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.binary_length(values).cast(pa.int64())


def ascending(values: pa.Array) -> pa.Array:
    """Return the values. Raises `NotUniform` unless they are strictly increasing."""
    import pyarrow.compute as pc

    require(pc.less(values[:-1], values[1:]))
    return values


def blank(count: int) -> pa.Array:
    """Return a column of `count` empty values."""
    import pyarrow as pa

    offsets = pa.py_buffer(bytes(4 * (count + 1)))
    return pa.Array.from_buffers(pa.binary(), count, [None, offsets, pa.py_buffer(b"")])
