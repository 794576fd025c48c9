"""The start and end of a read: a keyword, or a sequence or a time for each stream.

The syntax is that of Spark's Kafka source. A bound is `earliest`, `latest`, or a JSON object
with a sequence for every stream, where -2 means the earliest and -1 the latest. A bound may also be
a time for all streams, or a JSON object with a time for every stream; see `moment`. Kafka's source
has no times before now, and no `last 100`, the number of messages at the end of each stream.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final, Literal, TypeAlias, cast

from attrs import evolve, field, frozen

from twinstream.core.wire.response import read_json
from twinstream.spark.errors import OptionError
from twinstream.spark.source.moment import Ago, Moment, is_before, parse_moment
from twinstream.spark.source.stream_state import StreamState

__all__ = ["Bound", "SeqAt", "SeqOfLast", "Strategy"]

_Word: TypeAlias = Literal["earliest", "latest"]

Strategy: TypeAlias = Literal["error", "latest"]
"""What a time means if the stream has no message at or after it: an error, or the end of the
stream."""

SeqAt: TypeAlias = Callable[[str, datetime], int | None]
"""A function that returns the sequence of the first message that was stored at or after a time.

Its arguments are the name of the stream and the time. It returns `None` if there is no such
message.
"""

SeqOfLast: TypeAlias = Callable[[StreamState, int], int]
"""A function that returns the sequence of the first of the last messages.

Its arguments are the state of the stream and the number of messages.
"""

_LAST: Final = re.compile(r"last\s+(\d{1,18})", re.ASCII | re.IGNORECASE)

_NUMBERS: Final[Mapping[int, _Word]] = {-2: "earliest", -1: "latest"}

# The largest bound. The end of a read is exclusive, so it may be one more than the last sequence.
_MOST: Final = 2**64


@frozen
class Bound:
    """The start or end of a read.

    Exactly one attribute is set: `word`, a keyword for all streams; `last`, a number of messages at
    the end of each stream; `by_stream`, a keyword or sequence for each stream; `time`, a time for
    all streams; or `by_time`, a time for each stream. `option` is the option's name for error
    messages. `otherwise` is what a time means after the last message.
    """

    option: str
    word: _Word | None = None
    last: int | None = None
    by_stream: Mapping[str, int | _Word] = field(factory=dict[str, "int | _Word"])
    time: Moment | None = None
    by_time: Mapping[str, Moment] = field(factory=dict[str, Moment])
    otherwise: Strategy = "latest"

    @classmethod
    def parse(cls, option: str, text: str, streams: tuple[str, ...]) -> Bound:
        """Return the bound of an option with a keyword or with sequences.

        Raises `OptionError` if the text is neither a keyword, a number of last messages nor a JSON
        object with a sequence for each stream.
        """
        if text.lower() in {"earliest", "latest"}:
            return cls(option, word=cast(_Word, text.lower()))
        if found := _LAST.fullmatch(text):
            return cls(option, last=int(found[1]))
        wanted = 'earliest, latest, last 100 (messages) or a JSON object as {"S": 1}'
        given = _for_each(option, text, streams, "sequence", wanted)
        return cls(
            option,
            by_stream={name: _sequence_or_word(option, name, at) for name, at in given.items()},
        )

    @classmethod
    def at_time(cls, option: str, text: str, otherwise: Strategy) -> Bound:
        """Return the bound of an option with one time for all streams.

        Raises `OptionError` if the text is no time.
        """
        return cls(option, time=parse_moment(option, text), otherwise=otherwise)

    @classmethod
    def at_times(
        cls, option: str, text: str, streams: tuple[str, ...], otherwise: Strategy
    ) -> Bound:
        """Return the bound of an option with a time for each stream.

        Raises `OptionError` if the text is no JSON object with a time for each stream.
        """
        wanted = 'a JSON object as {"S": 1700000000000}'
        given = _for_each(option, text, streams, "time", wanted)
        times = {name: parse_moment(option, str(at)) for name, at in given.items()}
        return cls(option, by_time=times, otherwise=otherwise)

    def renamed(self, name: str, stream: str) -> Bound:
        """Return a copy in which the name `stream` replaces the name `name`."""
        return evolve(
            self,
            by_stream={stream if each == name else each: at for each, at in self.by_stream.items()},
            by_time={stream if each == name else each: at for each, at in self.by_time.items()},
        )

    def resolve(
        self, state: StreamState, seq_at: SeqAt, seq_of_last: SeqOfLast | None = None
    ) -> int:
        """Return the bound's sequence, which is inclusive for a start and exclusive for an end.

        A time after the last message resolves to the end of the stream if `otherwise` is
        `latest`. If it is `error`, `OptionError` is raised. Without `seq_of_last`, `OptionError` is
        raised for a number of last messages.
        """
        time = self._time_of(state.name)
        if time is not None:
            return self._resolve_time(time, state, seq_at)
        if self.last is not None:
            return self._resolve_last(self.last, state, seq_of_last)
        place = self.word or self.by_stream[state.name]
        if place == "earliest":
            return state.first
        return state.next if place == "latest" else place

    def _resolve_last(self, last: int, state: StreamState, seq_of_last: SeqOfLast | None) -> int:
        if seq_of_last is None:
            raise OptionError(
                self.option,
                f"'last {last}' is for reads by format('jetstream'); a landing begins at earliest,"
                " a sequence or a time",
            )
        return seq_of_last(state, last) if last else state.next

    def _resolve_time(self, moment: Moment, state: StreamState, seq_at: SeqAt) -> int:
        """Return the sequence of the first message at or after `moment`, as `resolve` does."""
        time = moment.before(state.now) if isinstance(moment, Ago) else moment
        seq = seq_at(state.name, time)
        if seq is not None:
            return seq
        if self.otherwise == "error":
            raise OptionError(
                self.option,
                f"stream {state.name} has no message at or after {time.rfc3339()}; give an"
                f" earlier time, or startingOffsetsByTimestampStrategy=latest to begin at its end",
            )
        return state.next

    def refuse_end(self, end: Bound) -> None:
        """Raise `OptionError` for an end before this start, because the read would be empty.

        Sequences are compared with sequences, and times with times. Bounds of different kinds are
        not compared, because that needs the state of the stream.
        """
        for name, low in self.by_stream.items():
            high = end.by_stream.get(name)
            if isinstance(low, int) and isinstance(high, int) and high < low:
                self._refuse(end, name, str(high), str(low))
        for name in sorted({*self.by_time, *end.by_time}) or [""]:
            since, until = self._time_of(name), end._time_of(name)
            if since is not None and until is not None and is_before(until, since):
                self._refuse(end, name, until.rfc3339(), since.rfc3339())

    def _time_of(self, name: str) -> Moment | None:
        return self.by_time.get(name, self.time)

    def _refuse(self, end: Bound, name: str, high: str, low: str) -> None:
        where = f"stream {name}: " if name else ""
        raise OptionError(
            end.option,
            f"{where}{high} is before {self.option}, which is {low}; give a later end, or"
            " an earlier start",
        )

    def asks_for(self, word: _Word) -> bool:
        """Return whether `word` is the bound of at least one stream."""
        return word == self.word or word in self.by_stream.values()

    @property
    def is_fixed(self) -> bool:
        """Whether the bound is a sequence in each stream, so that it never resolves to another."""
        return bool(self.by_stream) and all(isinstance(at, int) for at in self.by_stream.values())

    @property
    def is_explicit(self) -> bool:
        """Whether the option has a sequence or keyword for each stream."""
        return bool(self.by_stream)


def _for_each(
    option: str, text: str, streams: tuple[str, ...], what: str, wanted: str
) -> dict[str, object]:
    """Return the parsed JSON object of an option, which must have a member for each stream.

    Raises `OptionError` for any other text. `what` and `wanted` are parts of the error message.
    """
    if not streams:
        raise OptionError(
            option,
            "is for streams that are named; with subscribePattern give earliest, latest or last 100"
            " as offsets, or one time",
        )
    try:
        value = read_json(text)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise OptionError(option, f"must be {wanted}, got {text!r}")
    given = cast(dict[str, object], value)
    for name in given.keys() ^ set(streams):
        state = "not read" if name in given else "missing"
        raise OptionError(option, f"stream {name!r} is {state}; give one {what} a stream")
    return given


def _sequence_or_word(option: str, name: str, value: object) -> int | _Word:
    """Return a sequence, or the keyword for -1 or -2. Raises `OptionError` for another value."""
    if isinstance(value, int) and not isinstance(value, bool):
        if value in _NUMBERS:
            return _NUMBERS[value]
        if 1 <= value <= _MOST:
            return value
    raise OptionError(
        option,
        f"stream {name!r}: must be a sequence from 1 to 2**64 - 1, -2 (earliest) or -1 (latest),"
        f" got {value!r}",
    )
