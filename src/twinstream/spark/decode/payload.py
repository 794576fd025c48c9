"""Decode payloads to columns: one interface for JSON with a schema and for server events."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Protocol

import pyarrow as pa
from attrs import evolve, frozen

from twinstream.spark.decode import fields
from twinstream.spark.decode.decode import JsonDecoder
from twinstream.spark.decode.events import EVENT_COLUMNS, EventDecoder
from twinstream.spark.decode.new_names import NewNames

__all__ = ["EventPayloads", "JsonPayloads", "Payload", "PayloadDecoder"]


@frozen
class Payload:
    """The decoded payloads of one page.

    `types` has the type of each column, and `columns` the arrays of the columns that have
    values. `extras` has the JSON text of the members without a column, or null. `misfits` maps
    the position of each payload that does not match the schema to the reason.
    """

    size: int
    types: Mapping[str, pa.DataType]
    columns: Mapping[str, pa.Array]
    extras: pa.Array
    misfits: Mapping[int, str]

    def column(self, name: str) -> pa.Array:
        """Return a column by its name. All its items are null if no payload has a value."""
        found = self.columns.get(name)
        return pa.nulls(self.size, self.types[name]) if found is None else found

    def without_misfits(self, positions: Container[int]) -> Payload:
        """Return a copy without the misfits at some positions."""
        others = {at: why for at, why in self.misfits.items() if at not in positions}
        return evolve(self, misfits=others)


class PayloadDecoder(Protocol):
    """A decoder of the payloads of a page."""

    def decode(self, payloads: pa.Array) -> Payload:
        """Decode all payloads.

        A payload that does not match the schema raises no error; see `Payload`.
        """
        ...


class JsonPayloads:
    """A decoder of JSON objects with the given members.

    `renames` has the new names of members, by the old names that messages may have.
    """

    def __init__(
        self,
        columns: pa.Schema,
        *,
        lenient: bool,
        keep_extras: bool,
        renames: Mapping[str, str] | None = None,
    ) -> None:
        self._new_names = NewNames(renames) if renames else None
        self._decoder = JsonDecoder(
            fields.record(*columns), lenient=lenient, keep_extras=keep_extras
        )
        self._types = _types(columns)

    def decode(self, payloads: pa.Array) -> Payload:
        """Decode all payloads.

        A payload that does not match the schema raises no error; see `Payload`.
        """
        if self._new_names is not None:
            payloads = self._new_names.apply(payloads)
        found = self._decoder.decode(payloads)
        # `flatten` turns a null row into a null in each column.
        columns = dict(zip(self._types, found.rows.flatten(), strict=True))
        return Payload(len(payloads), self._types, columns, found.extras, found.misfits)


class EventPayloads:
    """A decoder of advisories and metrics."""

    def __init__(self) -> None:
        self._decoder = EventDecoder()
        self._types = _types(EVENT_COLUMNS)

    def decode(self, payloads: pa.Array) -> Payload:
        """Decode all payloads.

        A payload that does not match the schema raises no error; see `Payload`.
        """
        found = self._decoder.decode(payloads)
        kinds = pa.array(found.kinds, pa.string())
        columns = {"kind": kinds, **found.columns}
        return Payload(len(payloads), self._types, columns, found.extras, found.misfits)


def _types(columns: pa.Schema) -> dict[str, pa.DataType]:
    return {each.name: fields.bare(each.type) for each in columns}
