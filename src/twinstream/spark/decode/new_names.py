"""Give the members of JSON messages the names that their columns have now.

Old producers still write a member under the name that its column had before.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Final, cast

import pyarrow as pa
import pyarrow.compute as pc

from twinstream.spark.decode.column_mismatch import ColumnMismatch
from twinstream.spark.decode.json_text import parse, to_json

__all__ = ["NewNames"]

# The end of a name that contains an escape. Any of the searched names can be written in this way.
_ESCAPED: Final = r'\\.(?:[^"\\]|\\.)*"[ \t\r\n]*:'


class NewNames:
    """The new names of members, by their old names.

    A member moves to its new name if the message has no member of that name. Otherwise it stays as
    it is, so that no value is lost, and the decoder finds no column for it. Of several old names of
    one member, the first counts.
    """

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names: Final = dict(names)
        texts = [re.escape(json.dumps(old, ensure_ascii=False)) for old in names]
        self._old: Final = "|".join([*texts, _ESCAPED])

    def apply(self, payloads: pa.Array) -> pa.Array:
        """Return the payloads with new names. A payload that is no JSON object stays as it is."""
        places: list[int] = pc.indices_nonzero(
            pc.match_substring_regex(payloads, self._old)
        ).to_pylist()
        if not places:
            return payloads
        found = payloads.to_pylist()
        for at in places:
            found[at] = self._renamed(found[at])
        return pa.array(found, payloads.type)

    def _renamed(self, payload: bytes) -> bytes:
        try:
            value = parse(payload)
            if not isinstance(value, dict):
                return payload
            members = cast(dict[str, object], value)
            new = self._new_of(members)
            return to_json({new.get(name, name): each for name, each in members.items()}).encode()
        except ColumnMismatch:
            return payload  # the decoder gives the reason

    def _new_of(self, members: Mapping[str, object]) -> dict[str, str]:
        """Return the new names of those members that move, by their old names."""
        found: dict[str, str] = {}
        for old, new in self._names.items():
            if old in members and new not in members and new not in found.values():
                found[old] = new
        return found
