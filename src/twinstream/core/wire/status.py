"""What each status of a pull means: one table for fetch, next, messages and ordered reads.

Source: nats-server 2.11 to 2.15 and ADR-37 ("Status handling"). Texts carry numbers and changed
their case over time, so rows match by code and by the start of the lower-cased text. A row
without a text catches what the rows above it with the same code did not.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Final

from attrs import frozen

from twinstream.core.base.digits import natural
from twinstream.core.wire.headers import Headers, parse_status
from twinstream.core.wire.protocol import Frame

__all__ = ["Kind", "Status", "is_status", "is_unserved", "read_status"]

_NO_RESPONDERS: Final = 503
PENDING_MESSAGES: Final = "Nats-Pending-Messages"
PENDING_BYTES: Final = "Nats-Pending-Bytes"
LAST_CONSUMER: Final = "Nats-Last-Consumer"
LAST_STREAM: Final = "Nats-Last-Stream"


class Kind(Enum):
    """How the pull engine reacts."""

    HEARTBEAT = auto()
    """The server is alive; nothing ended."""
    FLOW_CONTROL = auto()
    """A push consumer asks for an answer; nothing ended."""
    NO_MESSAGES = auto()
    """Nothing (more) to deliver now."""
    EXPIRED = auto()
    """The request's time is over."""
    COMPLETED = auto()
    """The batch is full."""
    TOO_BIG = auto()
    """The next message does not fit into the bytes that are left."""
    REFUSED = auto()
    """Beyond a limit of the consumer; the same request will be refused again."""
    BUSY = auto()
    """Too many requests wait at the consumer; later there may be room."""
    INTERRUPTED = auto()
    """The leader moved or the server stops; ask again."""
    UNPINNED = auto()
    """Another client holds the pin of the priority group."""
    NO_RESPONDERS = auto()
    """No such consumer, or no leader just now."""
    DELETED = auto()
    """The consumer is gone."""
    NOT_PULL = auto()
    """The consumer is a push consumer."""
    BAD_REQUEST = auto()
    """The server calls the request wrong."""
    UNKNOWN = auto()
    """A status that this release does not know; it ends the request."""


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
    """One status frame, read.

    `token` is the last token of the subject it came to, which names the request it answers.
    `pending_messages` and `pending_bytes` are what the request had left; None without headers.
    A heartbeat says how many messages the consumer has sent (`last_consumer`) and up to which
    sequence of the stream it has looked for them (`last_stream`).
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
        """Tell whether the request is over."""
        return self.kind not in {Kind.HEARTBEAT, Kind.FLOW_CONTROL}

    def __str__(self) -> str:
        return f"{self.code} {self.text}".strip()


def classify(code: int, text: str) -> Kind:
    """Return the reaction for a code and text."""
    lower = text.lower()
    for row_code, start, kind in _TABLE:
        if row_code == code and lower.startswith(start):
            return kind
    return Kind.UNKNOWN


def is_status(frame: Frame) -> bool:
    """Tell whether a frame is a status: decided by its first line, never by an empty body.

    A delivery has a reply subject, whatever line its publisher began the headers with. Of the
    statuses only the request of flow control has one.
    """
    header_size = frame[2]
    # "NATS/1.0" is 8 bytes; a code follows after a blank, nothing or CR otherwise.
    if header_size <= 8 or frame[3][8] != 32:
        return False
    code, text = parse_status(frame[3])
    return code != 0 and (not frame[1] or classify(code, text) is Kind.FLOW_CONTROL)


def is_unserved(frame: Frame) -> bool:
    """Tell whether the answer to a request is the server's word that nobody serves its subject."""
    return frame[2] > 0 and parse_status(frame[3])[0] == _NO_RESPONDERS


def read_status(frame: Frame) -> Status:
    """Read a frame for which `is_status` holds."""
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
