"""Where a read starts and ends: words, or a sequence for each stream.

The text is that of Spark's Kafka source: ``earliest``, ``latest``, or a JSON object that gives a
sequence for every stream, where -2 stands for the earliest and -1 for the latest.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final, Literal, TypeAlias, cast

from attrs import field, frozen

from js_spark.errors import OptionError
from js_spark.stream_state import StreamState

__all__ = ["Bound"]

_Word: TypeAlias = Literal["earliest", "latest"]
_NUMBERS: Final[Mapping[int, _Word]] = {-2: "earliest", -1: "latest"}


@frozen
class Bound:
    """One end of a read: a word for all streams, or a word or sequence for each."""

    option: str
    word: _Word | None = None
    by_stream: Mapping[str, int | _Word] = field(factory=dict[str, "int | _Word"])

    @classmethod
    def parse(cls, option: str, text: str, streams: tuple[str, ...]) -> Bound:
        """Read an option. Raises `OptionError` when it is neither a word nor names each stream."""
        if text.lower() in {"earliest", "latest"}:
            return cls(option, word=cast(_Word, text.lower()))
        try:
            value: object = json.loads(text)
        except ValueError:
            value = None
        if not isinstance(value, dict):
            raise OptionError(
                option, f'must be earliest, latest or a JSON object as {{"S": 1}}, got {text!r}'
            )
        given = cast(dict[str, object], value)
        for name in given.keys() ^ set(streams):
            state = "not read" if name in given else "missing"
            raise OptionError(option, f"stream {name!r} is {state}; give one sequence a stream")
        return cls(option, by_stream={name: _place(option, name, at) for name, at in given.items()})

    def resolve(self, state: StreamState) -> int:
        """Return the sequence: inclusive as a start, exclusive as an end."""
        place = self.word or self.by_stream[state.name]
        if place == "earliest":
            return state.first
        return state.next if place == "latest" else place

    @property
    def is_explicit(self) -> bool:
        """Tell whether somebody gave sequences, so that what lies there was promised."""
        return self.word is None


def _place(option: str, name: str, value: object) -> int | _Word:
    if isinstance(value, int) and not isinstance(value, bool):
        if value in _NUMBERS:
            return _NUMBERS[value]
        if value >= 1:
            return value
    raise OptionError(
        option,
        f"stream {name!r}: must be a sequence from 1 up, -2 (earliest) or -1 (latest),"
        f" got {value!r}",
    )
