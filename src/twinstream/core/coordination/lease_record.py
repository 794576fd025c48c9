"""The record in an acquired slot: the holder, its fencing token, and the result of its work.

A record is JSON, so that people can read it with any tool. Unknown members are ignored. A slot
whose message is not a record counts as acquired by another client.
"""

from __future__ import annotations

import base64
import json
from datetime import datetime
from typing import Any, Final, cast

from attrs import frozen

from twinstream.core.read.stream_message import StreamMessage
from twinstream.core.wire.header_text import valid
from twinstream.core.wire.response import read_json
from twinstream.models.digits import natural
from twinstream.records.header_names import TTL
from twinstream.records.headers import Headers

__all__ = ["HELD", "LeaseRecord", "SlotRecord", "read_slot"]

HELD: Final = "held"


@frozen(kw_only=True)
class LeaseRecord:
    """The record that a client writes into a slot."""

    owner: str
    """A name of the holder, for people who read the record."""
    tenure: str
    """A unique name for each attempt to become a holder. It identifies the holder's own records."""
    attempt: int
    """The number of this message of the tenure, counted from 1."""
    token: int = 0
    """The stream sequence of the tenure's first message; 0 in the first message."""
    state: str = HELD
    note: str = ""
    data: bytes = b""
    """The result of the work that the holder did."""

    def encode(self) -> bytes:
        """Return the record as the payload of a message."""
        members: dict[str, Any] = {
            "owner": self.owner,
            "tenure": self.tenure,
            "attempt": self.attempt,
            "token": self.token,
            "state": self.state,
            "note": self.note,
            "data": base64.b64encode(self.data).decode(),
        }
        kept = {name: value for name, value in members.items() if value}
        # A note may be the text of an error, which may contain any character.
        return valid(json.dumps(kept, separators=(",", ":"), ensure_ascii=False)).encode()


@frozen(kw_only=True)
class SlotRecord:
    """The record of an acquired slot, as stored in the stream."""

    subject: str
    """Subject of the slot in the stream."""
    seq: int
    """The stream sequence of the record. Each renewal stores a new record."""
    token: int
    """The fencing token: the stream sequence with which the holder acquired the slot."""
    time: datetime
    """When the record was stored, by the server's clock."""
    ttl: int | None
    """Seconds from `time` after which the server releases the slot; None means never."""
    owner: str
    """Name of the owner, which the program or the client chose."""
    tenure: str
    """Unique name of this acquisition."""
    attempt: int
    """Number of this message of the tenure, counted from 1."""
    state: str
    """Whether the slot is held or was released."""
    note: str
    """Free text of the owner."""
    data: bytes
    """The stored bytes of the record."""


def read_slot(message: StreamMessage) -> SlotRecord:
    """Return the record in a message of a slot.

    If the message has another format, its missing members, such as `tenure`, are empty. A stored
    token that the holder cannot have, because it is not a sequence up to the message's own, counts
    as missing. Otherwise a resource that has seen the token would refuse all later holders.
    """
    members = _members(message.data)
    token = _integer(members.get("token"))
    if not 0 < token <= message.seq:
        token = 0
    return SlotRecord(
        subject=message.subject,
        seq=message.seq,
        token=token or message.seq,
        time=message.time,
        ttl=_ttl(message.headers),
        owner=_text(members.get("owner")),
        tenure=_text(members.get("tenure")),
        attempt=_integer(members.get("attempt")),
        state=_text(members.get("state")) or HELD,
        note=_text(members.get("note")),
        data=_bytes(members.get("data")),
    )


def _members(data: bytes) -> dict[str, Any]:
    try:
        members: Any = read_json(data)
    except ValueError:
        return {}
    return cast("dict[str, Any]", members) if isinstance(members, dict) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _integer(value: object) -> int:
    return value if type(value) is int else 0


def _bytes(value: object) -> bytes:
    try:
        return base64.b64decode(_text(value), validate=True)
    except ValueError:
        # The text is not base64, or not ASCII.
        return b""


def _ttl(headers: Headers) -> int | None:
    return natural(headers.get(TTL))
