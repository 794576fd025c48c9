"""Find delete markers: messages that record the deletion of a key or subject.

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
from twinstream.records.entry import KeyValueOperation, marker_of, may_be_marker, operation_of
from twinstream.records.headers import Headers

__all__ = ["key_markers_in", "markers_in"]

_VERSION: Final = b"NATS/1.0"
_PUT: Final = KeyValueOperation.PUT

# The value of the header `KV-Operation` for each operation. The server's own markers do not have
# the header; the value for purges is used for them.
_WORDS: Final[Mapping[KeyValueOperation, str]] = {
    KeyValueOperation.DELETE: "DEL",
    KeyValueOperation.PURGE: "PURGE",
    KeyValueOperation.EXPIRED: "PURGE",
}


def markers_in(page: ArrowPage, positions: Iterable[int]) -> dict[int, str]:
    """Return the operation, `DEL` or `PURGE`, of each marker, by position in the page.

    Only messages at the given positions are examined. A message with a payload is no marker.
    """
    empty = pc.equal(pc.binary_length(page.payloads), 0)
    if not pc.any(empty).as_py():
        return {}
    found: dict[int, str] = {}
    for at in positions:
        if empty[at].as_py():
            operation = _marker_of(page.headers[at].as_py())
            if operation is not None:
                found[at] = _WORDS[operation]
    return found


def key_markers_in(page: ArrowPage) -> dict[int, str]:
    """Return the operation of each marker in a page of a bucket, by position.

    An operation is the name of a `KeyValueOperation`: `DELETE`, `PURGE` or `EXPIRED`.
    """
    if not pc.max(pc.binary_length(page.headers)).as_py():
        return {}
    found: dict[int, str] = {}
    for at, block in enumerate(page.headers.to_pylist()):
        if may_be_marker(block) and block.startswith(_VERSION):
            operation = operation_of(Headers.parse(block))
            if operation is not _PUT:
                found[at] = operation.name
    return found


def _marker_of(block: bytes) -> KeyValueOperation | None:
    return marker_of(Headers.parse(block)) if block.startswith(_VERSION) else None
