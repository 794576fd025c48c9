"""Delete markers: messages without a payload that record the deletion of a key or subject.

A key-value bucket stores a marker for each delete and purge of a key, with the header
`KV-Operation`. If the stream has `subject_delete_marker_ttl`, the server stores a marker with
`Nats-Marker-Reason` when it removes the last message of a subject.

Source: ADR-8, ADR-43.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import pyarrow.compute as pc

from twinstream.core.read.arrow_page import ArrowPage
from twinstream.core.wire.headers import Headers

__all__ = ["markers_in"]

_OPERATION: Final = "KV-Operation"
_REASON: Final = "Nats-Marker-Reason"
_VERSION: Final = b"NATS/1.0"

_OPERATIONS: Final = frozenset({"DEL", "PURGE"})

#: The operation that a key-value bucket reports for each reason of the server.
_REASONS: Final[Mapping[str, str]] = {"MaxAge": "PURGE", "Purge": "PURGE", "Remove": "DEL"}


def markers_in(page: ArrowPage, positions: Iterable[int]) -> dict[int, str]:
    """Return the operation, `DEL` or `PURGE`, of markers at the given positions, by position."""
    empty = pc.equal(pc.binary_length(page.payloads), 0)
    if not pc.any(empty).as_py():
        return {}
    found: dict[int, str] = {}
    for at in positions:
        if empty[at].as_py():
            operation = _operation(page.headers[at].as_py())
            if operation is not None:
                found[at] = operation
    return found


def _operation(block: bytes) -> str | None:
    if not block.startswith(_VERSION):
        return None
    headers = Headers.parse(block)
    operation = headers.get(_OPERATION)
    return operation if operation in _OPERATIONS else _REASONS.get(headers.get(_REASON) or "")
