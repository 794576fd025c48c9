"""Decode advisories and metrics to one struct column for each kind of event.

In each row the column of the event's kind has a value, and the columns of all other kinds are null.
So one read gives typed rows of every kind. An event of an unknown type is no error. Its row has the
kind, and the whole document as text in the extras.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pyarrow as pa
from attrs import frozen

from twinstream.spark.decode import fields
from twinstream.spark.decode.decode import Decoded, JsonDecoder
from twinstream.spark.decode.event import Event
from twinstream.spark.decode.generated.events import EVENTS

__all__ = ["EVENT_COLUMNS", "EventDecoder", "EventRows"]

EVENT_COLUMNS: Final = pa.schema(
    [
        fields.optional("kind", fields.STRING, "Last part of the event's type."),
        *(
            fields.optional(event.kind, event.columns, f"Events of type {event.type}.")
            for event in EVENTS.values()
        ),
    ]
)
"""The kind of an event, and one column for each kind."""


@frozen
class EventRows:
    """A decoded block of events.

    `kinds` has the kind of each event, or `None` for a payload without a type. `columns` has
    a struct array for each known kind that occurred. Each array has an item for every event, which
    is null for events of other kinds. `extras` has the JSON text of the members without a column,
    or null. `misfits` maps the position of each payload that does not match to the reason.
    """

    kinds: list[str | None]
    columns: Mapping[str, pa.Array]
    extras: pa.Array
    misfits: dict[int, str]


class EventDecoder:
    """A decoder of events of all kinds."""

    def __init__(self) -> None:
        self._type = JsonDecoder(
            fields.record(fields.optional("type", fields.STRING)), keep_extras=False
        )
        self._decoders: dict[str, JsonDecoder] = {}

    def decode(self, payloads: pa.Array) -> EventRows:
        """Decode a block of payloads.

        A payload that does not match its type raises no error; see `EventRows`.
        """
        types, misfits = self._types(payloads)
        kinds: list[str | None] = [None if t is None else t.rpartition(".")[2] for t in types]
        extras: list[str | None] = [None] * len(payloads)
        places: dict[str, list[int]] = {}
        for at, name in enumerate(types):
            if name is None:
                continue
            if name in EVENTS:
                places.setdefault(name, []).append(at)
            else:
                extras[at] = payloads[at].as_py().decode()
        columns: dict[str, pa.Array] = {}
        for name, where in places.items():
            event = EVENTS[name]
            decoded = self._decoder(event).decode(payloads.take(pa.array(where, pa.int64())))
            columns[event.kind] = _spread(decoded, where, len(payloads))
            misfits.update((where[at], reason) for at, reason in decoded.misfits.items())
            for at, extra in zip(where, decoded.extras.to_pylist(), strict=True):
                extras[at] = extra
        return EventRows(kinds, columns, pa.array(extras, pa.string()), misfits)

    def _types(self, payloads: pa.Array) -> tuple[list[str | None], dict[int, str]]:
        decoded = self._type.decode(payloads)
        types: list[str | None] = decoded.rows.flatten()[0].to_pylist()
        misfits = dict(decoded.misfits)
        for at, name in enumerate(types):
            if name is None and at not in misfits:
                misfits[at] = "type: required member is missing"
        return types, misfits

    def _decoder(self, event: Event) -> JsonDecoder:
        found = self._decoders.get(event.type)
        if found is None:
            found = self._decoders[event.type] = JsonDecoder(event.columns)
        return found


def _spread(decoded: Decoded, where: list[int], size: int) -> pa.Array:
    """Return an array of length `size` with the rows at the positions `where`.

    Other items, and the items of misfits, are null.
    """
    rank: list[int | None] = [None] * size
    for at, place in enumerate(where):
        if at not in decoded.misfits:
            rank[place] = at
    return decoded.rows.take(pa.array(rank, pa.int64()))
