"""Decode JSON payloads to typed columns: vectorized, or one by one where that fails.

Arrow's JSON reader parses a block of messages at once. It is strict enough, but it refuses the
whole block because of one unusual message. In this case the decoder finds the unusual messages and
decodes them one by one. Arrow parses the rest of the block.

If many messages are unusual because of the same member, for example a member without a column, the
decoder learns the name of the member. It cuts the member out of the text of the block and of later
blocks, and converts it separately. Members whose type Arrow cannot handle are always cut.

For a message that does not match its schema, the result has a reason instead of a row. No message
is dropped, and no value is guessed. The vectorized decoder and the decoder for single messages give
the same result; they differ only in speed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, cast

import pyarrow as pa
from attrs import field, frozen

from twinstream.spark.decode import fields
from twinstream.spark.decode.arrow_json import ArrowJson, member_names
from twinstream.spark.decode.block_refused import BlockRefused
from twinstream.spark.decode.column_mismatch import ColumnMismatch, Extras
from twinstream.spark.decode.convert import converter
from twinstream.spark.decode.cut_members import can_cut
from twinstream.spark.decode.json_text import parse, to_json
from twinstream.spark.decode.shapes import is_plain

__all__ = ["Decoded", "JsonDecoder"]

# The number of messages in a window. If too many messages of a large block are unusual, the block
# is split into windows, which are decoded separately.
_WINDOW: Final = 2048

# The number of parts into which a window is split if its unusual messages cannot be found.
_PIECES: Final = 8

# If the reader refuses a part of at most this many messages, all are decoded one by one.
_SMALL: Final = 8

# The decoder learns names if more than one in this many messages is unusual.
_DENSE: Final = 32

# The maximum number of messages that are set aside together if hardly any message parses.
_LONGEST_SKIP: Final = 256

# A block of more than `_WINDOW` messages is split into windows after this many refusals.
_ROUNDS: Final = 4

# The number of messages in which the decoder searches for names to learn.
_SAMPLES: Final = 4

# The maximum number of names to learn. The limit is needed because a producer may use arbitrary
# values, such as IDs, as names.
_MOST_LEARNED: Final = 32


@frozen
class Decoded:
    """A decoded block of messages.

    `rows` is a struct array, with null for each message that does not match the schema. For each
    message, `extras` has the JSON text of the members without a column, or null. `misfits` maps
    the position of each message that does not match the schema to the reason.
    """

    rows: pa.Array
    extras: pa.Array
    misfits: dict[int, str] = field(factory=dict[int, str])


class JsonDecoder:
    """A decoder of JSON payloads to the given columns.

    With `lenient`, text columns accept any value as JSON text. Without `keep_extras`, members
    without a column are ignored. Arrow can then parse messages with such members.
    """

    def __init__(
        self, columns: pa.StructType, *, lenient: bool = False, keep_extras: bool = True
    ) -> None:
        self._convert = converter(columns, lenient=lenient)
        self._type = fields.bare(columns)
        self._columns: Final[dict[str, pa.Field]] = {spec.name: spec for spec in columns}
        self._lenient: Final = lenient
        self._keep_extras: Final = keep_extras
        others = [spec.name for spec in columns if not is_plain(spec)]
        self._strict: Final = keep_extras or bool(others)
        self._cuts = self._add_containers(others)
        self._fast = self._fast_path() if all(map(can_cut, self._cuts)) else None

    def decode(self, payloads: pa.Array) -> Decoded:
        """Decode a block of payloads.

        A payload that does not match the schema raises no error; see `Decoded`.
        """
        if self._fast is None or not len(payloads):
            return self.one_by_one(payloads)
        return self._decode_block(payloads)

    def _decode_parts(self, payloads: pa.Array, size: int) -> Decoded:
        """Decode a block in parts of `size` messages, so that fewer messages share a refusal."""
        parts: list[Decoded] = []
        misfits: dict[int, str] = {}
        for start in range(0, len(payloads), size):
            part = self._decode_block(payloads.slice(start, size))
            parts.append(part)
            misfits.update((start + at, reason) for at, reason in part.misfits.items())
        return Decoded(
            pa.concat_arrays([part.rows for part in parts]),
            pa.concat_arrays([part.extras for part in parts]),
            misfits,
        )

    def _decode_block(self, payloads: pa.Array) -> Decoded:
        """Decode a block or a part of a block.

        Messages that Arrow can parse are decoded together, the others one by one.
        """
        sieve, large = _Sieve(len(payloads)), len(payloads) > _WINDOW
        may_learn = True
        while sieve.candidates:
            assert self._fast is not None
            try:
                found = self._fast.decode(sieve.remaining(payloads))
            except BlockRefused as refused:
                if len(payloads) <= _SMALL:
                    break
                sieve.set_aside(refused)
                # Without the rows that Arrow refused, only smaller parts bring the search further.
                is_stuck = not refused.rows
                is_slow = large and (refused.first or sieve.rounds > _ROUNDS)
            else:
                is_stuck = is_slow = False
                if sieve.passed():
                    return self._merge(payloads, Decoded(*found), sieve)
            if may_learn and (is_stuck or sieve.is_coarse):
                may_learn = False
                if self._learn(payloads.take(sieve.samples())):
                    sieve = _Sieve(len(payloads))
                    continue
            if is_stuck or is_slow:
                return self._decode_parts(
                    payloads, _WINDOW if large else -(-len(payloads) // _PIECES)
                )
        return self.one_by_one(payloads)

    def _merge(self, payloads: pa.Array, usual: Decoded, sieve: _Sieve) -> Decoded:
        """Decode the messages that were set aside, and put all rows into the order of the block."""
        if not sieve.aside:
            return usual
        others = self.one_by_one(payloads.take(pa.array(sieve.aside)))
        places = [*sieve.candidates, *sieve.aside]
        order: list[int] = sorted(range(len(places)), key=lambda at: places[at])
        return Decoded(
            pa.concat_arrays([usual.rows, others.rows]).take(pa.array(order)),
            pa.concat_arrays([usual.extras, others.extras]).take(pa.array(order)),
            {sieve.aside[at]: reason for at, reason in others.misfits.items()},
        )

    def one_by_one(self, payloads: pa.Array) -> Decoded:
        """Decode each payload alone, without Arrow's reader. `decode` gives the same result."""
        rows: list[object] = []
        extras: list[str | None] = []
        misfits: dict[int, str] = {}
        texts: list[bytes] = payloads.to_pylist()
        for at, payload in enumerate(texts):
            row, extra = None, None
            try:
                row, extra = self._decode_one(payload)
            except ColumnMismatch as error:
                misfits[at] = str(error)
            rows.append(row)
            extras.append(extra)
        return Decoded(pa.array(rows, self._type), pa.array(extras, pa.string()), misfits)

    def _decode_one(self, payload: bytes) -> tuple[object, str | None]:
        value = parse(payload)
        if value is None:
            raise ColumnMismatch("the message: expected an object, got null")
        found: Extras = {}
        row = self._convert(value, found)
        return row, to_json(found) if found and self._keep_extras else None

    def _fast_path(self) -> ArrowJson:
        return ArrowJson(
            [*self._columns.values()],
            self._cuts,
            lenient=self._lenient,
            strict=self._strict,
            keep_extras=self._keep_extras,
        )

    def _add_containers(self, names: Sequence[str]) -> list[str]:
        """Return the names of members to cut: `names`, and the columns that contain such a name.

        The cutter finds a name at all depths. If a column of type struct has a member with one of
        the names, the whole column must be cut.
        """
        found = list(dict.fromkeys(names))
        for name in found:  # the loop body appends to this list
            found.extend(
                spec.name
                for spec in self._columns.values()
                if spec.name not in found and name in member_names(spec.type)
            )
        return found

    def _learn(self, samples: pa.Array) -> bool:
        """Find unusual members in some messages, and cut members with their names from now on.

        Return whether the set of members to cut has changed.
        """
        names = {name for payload in samples.to_pylist() for name in self._unusual_members(payload)}
        cuts = self._add_containers([*self._cuts, *sorted(names)])
        finds_nothing = len(cuts) == len(self._cuts)
        finds_too_many = len(cuts) > len(self._columns) + _MOST_LEARNED
        if finds_nothing or finds_too_many or not all(map(can_cut, cuts)):
            return False
        self._cuts = cuts
        self._fast = self._fast_path()
        return True

    def _unusual_members(self, payload: bytes) -> list[str]:
        """Return the names of members for which Arrow's reader refuses a message.

        Members that cannot be cut are omitted. The list is empty if the message does not match the
        schema, because a cut would not help.
        """
        if self._fast is None or _accepts(self._fast, payload):
            return []
        try:
            value = parse(payload)
            self._convert(value, {})  # raises an error if the message does not match the schema
            return [
                name
                for name, each in cast(dict[str, object], value or {}).items()
                if name not in self._cuts and can_cut(name) and self._is_unusual(name, each)
            ]
        except ColumnMismatch:
            return []

    def _is_unusual(self, name: str, value: object) -> bool:
        if name not in self._columns:
            return self._strict
        alone = ArrowJson([self._columns[name]], strict=self._strict)
        return not _accepts(alone, to_json({name: value}).encode())


def _accepts(fast: ArrowJson, payload: bytes) -> bool:
    try:
        fast.decode(pa.array([payload], pa.binary()))
    except BlockRefused:
        return False
    return True


class _Sieve:
    """The search for the messages of a part that Arrow's reader cannot parse.

    `candidates` has the positions of messages for Arrow's reader, and `aside` those of messages
    that were set aside to be decoded one by one. `rounds` counts the refusals.
    """

    def __init__(self, size: int) -> None:
        self.candidates = list(range(size))
        self.aside: list[int] = []
        self.rounds = 0
        self._size = size
        self._parsed = 0  # number of messages, at the start of `candidates`, that Arrow can parse
        self._skip = 1

    def remaining(self, payloads: pa.Array) -> pa.Array:
        """Return the payloads to parse next."""
        if not self.aside:
            return payloads
        return payloads.take(pa.array(self.candidates[self._parsed :], pa.int64()))

    def samples(self) -> pa.Array:
        """Return the positions of a few messages in which to search for unusual members."""
        found = self.aside[:_SAMPLES] or self.candidates[:: max(1, self._size // _SAMPLES)]
        return pa.array(found, pa.int64())

    def set_aside(self, refused: BlockRefused) -> None:
        """Set aside the messages that a refusal names.

        If the refusal names only the first bad message, also set aside the messages after it, up to
        `_skip` messages in all. `_skip` doubles with each refusal, up to `_LONGEST_SKIP`. It begins
        again at 1 if `_PIECES` or more messages before the bad one can be parsed.
        """
        self.rounds += 1
        rows = {self._parsed + row for row in refused.rows}
        if refused.first:
            start = min(rows)
            self._skip = self._skip if start - self._parsed < _PIECES else 1
            rows = set(range(start, min(start + self._skip, len(self.candidates))))
            self._skip = min(2 * self._skip, _LONGEST_SKIP)
            self._parsed = start
        self.aside.extend(self.candidates[row] for row in sorted(rows))
        self.candidates = [each for row, each in enumerate(self.candidates) if row not in rows]
        if self._parsed == len(self.candidates):
            self._parsed = 0

    def passed(self) -> bool:
        """Record that Arrow parsed the messages of `remaining`.

        Return whether they were all candidates. If not, the caller parses all candidates again.
        """
        whole = self._parsed == 0
        self._parsed = 0
        return whole

    @property
    def is_coarse(self) -> bool:
        """Whether so many messages were set aside that a search for unusual members saves time.

        This is true if more than one in `_DENSE` messages was set aside, or if `set_aside` would
        next set aside `_PIECES` or more messages together.
        """
        often = len(self.aside) >= _SAMPLES and len(self.aside) * _DENSE > self._size
        return often or self._skip >= _PIECES
