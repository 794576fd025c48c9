"""Convert JSON objects to maps of strings with Arrow, without Python objects for their members."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["TEXT_MAP", "text_maps"]

TEXT_MAP: Final = pa.map_(pa.string(), pa.string())

_TEXT: Final = r'"[^"\\\x00-\x1f]*"'
# A non-empty object whose values are strings. The object has no escapes, and no spaces outside
# strings. So the text between two strings is either `:` or a comma.
_SIMPLE: Final = rf"^\{{{_TEXT}:{_TEXT}(?:,{_TEXT}:{_TEXT})*\}}$"


# Objects with this text may have the name `:` after another member. `_split` would take the quotes
# around that colon for the end of a name and the beginning of its value.
_COLON: Final = ',":":'


def text_maps(texts: Sequence[str]) -> tuple[pa.Array, list[int]]:
    """Return the maps of the simple texts, and the positions of the other texts.

    Simple are texts that match `_SIMPLE` and have no `_COLON`.

    If an object has the same name twice, return no maps and the positions of all texts.
    """
    objects = pa.array(texts, pa.string())
    simple = pc.match_substring_regex(objects, _SIMPLE)
    colons = pc.match_substring(objects, _COLON)
    if pc.any(colons).as_py():
        simple = pc.and_(simple, pc.invert(colons))
    if not pc.all(simple).as_py():
        objects = objects.filter(simple)
    both = _split(objects)
    at = _steps(len(both.values) // 2)
    names, values = both.values.take(at), both.values.take(pc.add(at, 1))
    if _is_twice(names, pc.list_parent_indices(both).take(at)):
        return pa.nulls(0, TEXT_MAP), [*range(len(texts))]
    maps = pa.MapArray.from_arrays(pc.divide(both.offsets, 2), names, values)
    return maps, pc.indices_nonzero(pc.invert(simple)).to_pylist()


def _split(objects: pa.Array) -> pa.ListArray:
    """Return a list for each object, in which names and values alternate."""
    inner = pc.utf8_slice_codeunits(objects, 2, -2)  # the text between the first and last quote
    return pc.split_pattern(pc.replace_substring(inner, '":"', '","'), '","')


def _steps(size: int) -> pa.Array:
    """Return the first `size` even numbers: 0, 2, 4 and so on."""
    twos = pa.repeat(pa.scalar(2, pa.int64()), size)
    return pc.subtract(pc.cumulative_sum(twos), 2)


def _is_twice(names: pa.Array, owners: pa.Array) -> bool:
    """Return whether an object has the same name twice.

    `owners` has the position of the object to which each name belongs.
    """
    known = names.dictionary_encode()
    marks = pc.add(pc.multiply(owners, len(known.dictionary)), known.indices)
    return bool(pc.count_distinct(marks).as_py() != len(names))
