"""Classify status messages of pull requests: one table for fetch, next, messages, ordered reads.

Source: nats-server 2.11 to 2.15 and ADR-37 ("Status handling"). Texts contain numbers, and their
case has changed over time. So a row matches by its code and by the start of the lower-cased text.
The first matching row counts. A row with an empty text is the last one of its code and matches all
other texts.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Final

from attrs import frozen

from twinstream.core.wire.headers import parse_status
from twinstream.core.wire.protocol import Frame
from twinstream.models.digits import natural
from twinstream.records.headers import Headers

__all__ = ["Kind", "Status", "is_status", "is_unserved", "read_status"]

_NO_RESPONDERS: Final = 503
PENDING_MESSAGES: Final = "Nats-Pending-Messages"
PENDING_BYTES: Final = "Nats-Pending-Bytes"
LAST_CONSUMER: Final = "Nats-Last-Consumer"
LAST_STREAM: Final = "Nats-Last-Stream"


class Kind(Enum):
    """The meaning of a status, which determines how the pull engine reacts."""

    HEARTBEAT = auto()
    """An idle heartbeat: the server is alive, and the request continues."""
    FLOW_CONTROL = auto()
    """The server requests a flow control response for a push consumer; the delivery continues."""
    NO_MESSAGES = auto()
    """No (more) messages are available now."""
    EXPIRED = auto()
    """The request expired."""
    COMPLETED = auto()
    """The batch is complete."""
    TOO_BIG = auto()
    """The next message does not fit into the remaining bytes."""
    REFUSED = auto()
    """The request exceeds a limit of the consumer; a retry would be refused as well."""
    BUSY = auto()
    """The consumer has too many waiting requests or too many unacknowledged messages.

    A later retry may succeed."""
    INTERRUPTED = auto()
    """The leader changed, the consumer moves or the server is shutting down; retry."""
    UNPINNED = auto()
    """Another client holds the pin of the priority group."""
    NO_RESPONDERS = auto()
    """The consumer does not exist, or has no leader at the moment."""
    DELETED = auto()
    """The consumer was deleted."""
    NOT_PULL = auto()
    """The consumer is a push consumer."""
    BAD_REQUEST = auto()
    """The server rejects the request as invalid."""
    UNKNOWN = auto()
    """A status that this release does not know. It is treated as the end of the request."""


_TABLE: Final[tuple[tuple[int, str, Kind], ...]] = (
    (100, "flowcontrol", Kind.FLOW_CONTROL),
    (100, "", Kind.HEARTBEAT),
    (400, "", Kind.BAD_REQUEST),
    (404, "", Kind.NO_MESSAGES),
    (408, "requests pending", Kind.NO_MESSAGES),
    (408, "message size exceeds maxbytes", Kind.TOO_BIG),
    (408, "", Kind.EXPIRED),
    (409, "message size exceeds maxbytes", Kind.TOO_BIG),
    (409, "batch completed", Kind.COMPLETED),
    (409, "batch-completed", Kind.COMPLETED),
    (409, "exceeded maxrequest", Kind.REFUSED),
    (409, "exceeded maxwaiting", Kind.BUSY),
    (409, "exceeded maxackpending", Kind.BUSY),
    (409, "leadership change", Kind.INTERRUPTED),
    (409, "consumer migration", Kind.INTERRUPTED),
    (409, "server shutdown", Kind.INTERRUPTED),
    (409, "consumer deleted", Kind.DELETED),
    (409, "consumer is push", Kind.NOT_PULL),
    (412, "", Kind.BAD_REQUEST),
    (423, "", Kind.UNPINNED),
    (_NO_RESPONDERS, "", Kind.NO_RESPONDERS),
)


@frozen
class Status:
    """A parsed status message.

    `token` is the last token of its subject, which identifies the request. `pending_messages` and
    `pending_bytes` are the number of requested messages and bytes that the server did not send;
    they are None if the status has no such headers. A heartbeat reports the number of messages that
    the consumer has delivered (`last_consumer`) and the stream sequence up to which it has scanned
    the stream (`last_stream`).
    """

    kind: Kind
    code: int
    text: str
    token: bytes
    pending_messages: int | None = None
    pending_bytes: int | None = None
    last_consumer: int | None = None
    last_stream: int | None = None

    @property
    def ends(self) -> bool:
        """Whether the status ends the request."""
        return self.kind not in {Kind.HEARTBEAT, Kind.FLOW_CONTROL}

    def __str__(self) -> str:
        return f"{self.code} {self.text}".strip()


def classify(code: int, text: str) -> Kind:
    """Return the meaning of a status with this code and text."""
    lower = text.lower()
    for row_code, start, kind in _TABLE:
        if row_code == code and lower.startswith(start):
            return kind
    return Kind.UNKNOWN


def is_status(frame: Frame) -> bool:
    """Return whether a frame is a status message, by its first header line and reply subject.

    A publisher may send a message whose first header line looks like a status. When a consumer
    delivers that message, it has a reply subject. Only one kind of status has a reply subject, the
    flow control request.
    """
    header_size = frame[2]
    # A blank and the code follow "NATS/1.0", which is 8 bytes. Without a code, CR follows.
    if header_size <= 8 or frame[3][8] != 32:
        return False
    code, text = parse_status(frame[3])
    return code != 0 and (not frame[1] or classify(code, text) is Kind.FLOW_CONTROL)


def is_unserved(frame: Frame) -> bool:
    """Return whether the reply to a request is the server's 503 "no responders"."""
    return frame[2] > 0 and parse_status(frame[3])[0] == _NO_RESPONDERS


def read_status(frame: Frame) -> Status:
    """Parse a frame for which `is_status` is true."""
    subject, _, header_size, body = frame
    block = body[:header_size]
    code, text = parse_status(block)
    token = subject[subject.rfind(b".") + 1 :]
    if block.find(b"Nats-Pending-") < 0 and block.find(b"Nats-Last-") < 0:
        return Status(classify(code, text), code, text, token)
    headers = Headers.parse(block)
    return Status(
        classify(code, text),
        code,
        text,
        token,
        natural(headers.get(PENDING_MESSAGES)),
        natural(headers.get(PENDING_BYTES)),
        natural(headers.get(LAST_CONSUMER)),
        natural(headers.get(LAST_STREAM)),
    )
