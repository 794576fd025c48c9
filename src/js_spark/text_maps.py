"""Maps of texts from JSON objects, without a Python object for each of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["TEXT_MAP", "text_maps"]

TEXT_MAP: Final = pa.map_(pa.string(), pa.string())

_TEXT: Final = r'"[^"\\\x00-\x1f]*"'
#: An object that has members, all of them texts without escapes, and no blanks between them. So
#: what is between two quotes that do not surround a text is either `:` or a comma.
_SIMPLE: Final = rf"^\{{{_TEXT}:{_TEXT}(?:,{_TEXT}:{_TEXT})*\}}$"


def text_maps(texts: Sequence[str]) -> tuple[pa.Array, list[int]]:
    """Return the maps in JSON texts that are simple objects, and the positions of other texts."""
    objects = pa.array(texts, pa.string())
    simple = pc.match_substring_regex(objects, _SIMPLE)
    if not pc.all(simple).as_py():
        objects = objects.filter(simple)
    maps = _split(objects)
    if _has_twice(maps):
        return maps.slice(0, 0), [*range(len(texts))]
    return maps, pc.indices_nonzero(pc.invert(simple)).to_pylist()


def _split(objects: pa.Array) -> pa.Array:
    inner = pc.utf8_slice_codeunits(objects, 2, -2)  # between the outermost quotes
    both = pc.split_pattern(pc.replace_substring(inner, '":"', '","'), '","')
    names = _steps(len(both.values) // 2)
    return pa.MapArray.from_arrays(
        pc.divide(both.offsets, 2),
        both.values.take(names),
        both.values.take(pc.add(names, 1)),
    )


def _steps(size: int) -> pa.Array:
    """Return 0, 2, 4 and so on."""
    twos = pa.repeat(pa.scalar(2, pa.int64()), size)
    return pc.subtract(pc.cumulative_sum(twos), 2)


def _has_twice(maps: pa.Array) -> bool:
    """Tell whether a map has two members of one name."""
    names = maps.keys.dictionary_encode()
    owners = pc.list_parent_indices(maps.cast(pa.list_(maps.type.field(0))))
    marks = pc.add(pc.multiply(owners, len(names.dictionary)), names.indices)
    return bool(pc.count_distinct(marks).as_py() != len(names))
