"""One page of stored messages, parsed from the frames that answer a range request.

A page may hold many messages, so it stores them as columns of undecoded bytes. Text and times are
decoded later, in bulk, and only on access.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final

from attrs import field, frozen

from twinstream.core.consume.metadata import parse_ack_reply
from twinstream.core.read.arrow_page import ArrowPage
from twinstream.core.read.range_read import RangeRead
from twinstream.core.read.stream_message import StreamMessage
from twinstream.core.wire.headers import parse_status
from twinstream.core.wire.protocol import Frame
from twinstream.core.wire.status import Kind, Status, is_status, read_status
from twinstream.errors import InvalidResponse
from twinstream.models import Timestamp
from twinstream.records.headers import NO_HEADERS, Headers

__all__ = [
    "MIRROR_ANSWERED",
    "DirectAnswer",
    "PageEnd",
    "PullAnswer",
    "StoredPage",
    "answering",
    "direct_tail",
    "is_from",
    "ns_of",
    "stored_headers",
    "time_of",
    "utc_ns",
]

# Lines that the server appends to the stored headers in a direct get response (ADR-31), in order.
# Stored headers may have lines with the same names (those of a republished message do), so
# `direct_tail` searches for the last `_TAIL_START`. The values of the server's lines cannot contain
# this text, since stream names and subjects have no blanks.
_TAIL: Final = re.compile(
    rb"Nats-Stream: [^\r]*\r\nNats-Subject: ([^\r]*)\r\nNats-Sequence: (\d{1,20})\r\n"
    rb"Nats-Time-Stamp: ([^\r]*)\r\n(Nats-Num-Pending: \d+\r\n)?"
    rb"(?:Nats-Last-Sequence: \d+\r\n)?\r\n"
)
_TAIL_START: Final = b"Nats-Stream: "
_NO_HEADERS: Final = b"NATS/1.0\r\n"
_UTC: Final = re.compile(rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?Z")
_EPOCH: Final = datetime(1970, 1, 1)


def direct_tail(body: bytes, header_size: int) -> re.Match[bytes] | None:
    """Match the lines that the server appended to the headers; return None if there are none.

    The groups are subject, sequence, time and pending. The match also distinguishes a stored
    message from a status. The first header line alone does not, because a publisher may send
    headers that begin like a status, and some servers store them.

    A server accepts any bytes as headers from a publisher. In a response, it replaces the last two
    bytes, usually the empty line, by its own lines. If the stored headers do not end with an empty
    line, the server's first line begins in the middle of a line. So the match may begin there as
    well.
    """
    start = body.rfind(_TAIL_START, 0, header_size)
    found = _TAIL.match(body, start) if start >= 0 else None
    return found if found is not None and found.end() == header_size else None


def is_from(found: re.Match[bytes], stream: bytes) -> bool:
    """Return whether `stream` itself, and not a mirror, sent a response.

    `found` is the response's match of `direct_tail`. A mirror may also reply to direct gets for its
    origin, with its own name in the response. It may lack messages of the origin, because it begins
    later, filters, lags or removes messages sooner. It may also have messages that the origin has
    removed.
    """
    return found.string.startswith(b"Nats-Stream: %b\r\n" % stream, found.start())


def answering(found: re.Match[bytes]) -> bytes:
    """Return the name of the stream that sent a response, from its match of `direct_tail`."""
    return found[0][len(_TAIL_START) : found[0].index(b"\r")]


def time_of(text: bytes, where: str) -> Timestamp:
    """Parse the time at which a message was stored.

    Raises `InvalidResponse` for an invalid time; `where` is the start of its text.
    """
    try:
        return Timestamp.parse(text.decode())
    except ValueError as error:
        raise InvalidResponse(f"{where}: a stored message has an invalid time: {error}") from error


def ns_of(text: bytes, where: str) -> int:
    """Return the time at which a message was stored, in nanoseconds since 1970.

    Raises `InvalidResponse` for an invalid time; `where` is the start of its text. For a time in
    UTC, the call takes a third of the time of `time_of`.
    """
    found = _UTC.fullmatch(text)
    return (found and utc_ns(*found.groups())) or time_of(text, where).ns


def utc_ns(time: bytes, fraction: bytes | None) -> int | None:
    """Return the nanoseconds since 1970 of a time in UTC, None if the time is invalid.

    `time` ends with the seconds. `fraction` has the decimal places of the seconds, None if there
    are none.
    """
    try:
        whole = datetime.fromisoformat(time.decode()) - _EPOCH
    except ValueError:
        return None
    seconds = whole.days * 86_400 + whole.seconds
    return seconds * 1_000_000_000 + (int(fraction.ljust(9, b"0")) if fraction else 0)


def stored_headers(found: re.Match[bytes]) -> bytes:
    """Return the header block as stored, without the matched lines; empty if there are no headers.

    The returned block ends with a line end, even if the stored one does not.
    """
    block = found.string[: found.start()]
    if not block.endswith(b"\r\n"):
        block += b"\r\n"
    return block if block != _NO_HEADERS else b""


@frozen
class StoredPage:
    """Messages in the order of their sequences, as parallel lists.

    `headers` holds the stored header block without its last empty line, empty for a message without
    headers. `times` holds the values sent by the server: RFC 3339 text (bytes) from direct get,
    nanoseconds since 1970 (int) from a consumer; a page contains one kind.
    """

    seqs: list[int] = field(factory=list[int])
    subjects: list[bytes] = field(factory=list[bytes])
    times: list[bytes | int] = field(factory=list["bytes | int"])
    headers: list[bytes] = field(factory=list[bytes])
    payloads: list[bytes] = field(factory=list[bytes])
    blocks: list[ArrowPage] = field(factory=list["ArrowPage"])
    """The messages before those in the lists, if the page was read in bulk."""

    def __len__(self) -> int:
        return sum(map(len, self.blocks)) + len(self.seqs)

    def add_stored(self, stored: Mapping[str, Any]) -> None:
        """Add a message in the leader's JSON format. Raises `InvalidResponse` if it is invalid."""
        try:
            seq, time = int(stored["seq"]), str(stored["time"]).encode()
            subject = str(stored["subject"]).encode("utf-8", "surrogateescape")
            block = b64decode(stored.get("hdrs") or "", validate=True)
            payload = b64decode(stored.get("data") or "", validate=True)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise InvalidResponse(f"not a stored message: {error!r} in {stored!r:.80}") from error
        self.seqs.append(seq)
        self.subjects.append(subject)
        self.times.append(time)
        self.headers.append(block.removesuffix(b"\r\n"))
        self.payloads.append(payload)

    @property
    def first_seq(self) -> int:
        """The sequence of the first message; the page must have one."""
        return int(self.blocks[0].seqs[0].as_py()) if self.blocks else self.seqs[0]

    @property
    def last_seq(self) -> int:
        """The sequence of the last message; the page must have one."""
        return self.seqs[-1] if self.seqs else int(self.blocks[-1].seqs[-1].as_py())

    @property
    def has_gaps(self) -> bool:
        """Whether sequences between the first and the last message are missing."""
        size = len(self)
        return size > 0 and self.last_seq - self.first_seq >= size

    def listed(self) -> StoredPage:
        """Return a page with the same messages, all of them in the lists and none in `blocks`."""
        if not self.blocks:
            return self
        import pyarrow as pa

        page = ArrowPage.of(self)
        return StoredPage(
            seqs=page.seqs.to_pylist(),
            subjects=page.subjects.to_pylist(),
            times=page.times.cast(pa.int64()).to_pylist(),
            headers=page.headers.to_pylist(),
            payloads=page.payloads.to_pylist(),
        )

    def message(self, at: int, stream: str) -> StreamMessage:
        """Return the message at index `at`; raises `InvalidResponse` for an invalid time."""
        time = self.times[at]
        return StreamMessage(
            stream_name=stream,
            subject=self.subjects[at].decode("utf-8", "surrogateescape"),
            seq=self.seqs[at],
            time=Timestamp.from_ns(time) if isinstance(time, int) else time_of(time, stream),
            data=self.payloads[at],
            headers=Headers.parse(self.headers[at]) if self.headers[at] else NO_HEADERS,
        )


@frozen
class PageEnd:
    """The end of a page. `more` is true if the server reported more messages after it."""

    more: bool = False
    failure: str = ""
    """Why the page failed; empty if it succeeded."""
    missing: bool = False
    """Whether there were no responders: no stream, no consumer, or no leader."""
    mirror: bool = False
    """Whether a mirror replied instead of the stream."""


MIRROR_ANSWERED: Final = "a mirror replied instead of the stream"


class DirectAnswer:
    """The response to one direct get batch of `stream`. Its messages are added to `page`.

    It arrives on the subject `reply`. Frames of other subjects, such as those of an abandoned page,
    are ignored. `matches` selects messages by subject, for filters that the server cannot apply.
    """

    def __init__(
        self,
        reply: bytes,
        stream: bytes,
        read: RangeRead,
        page: StoredPage,
        matches: Callable[[bytes], object] | None = None,
    ) -> None:
        self._reply: Final = reply
        self._stream: Final = stream
        self._read: Final = read
        self._page: Final = page
        self._matches: Final = matches

    def take_bulk(self, found: ArrowPage) -> PageEnd | None:
        """Add messages read in bulk. Return None, because a status always ends a direct get."""
        self._page.blocks.append(found.accepted(self._read))
        return None

    def take(self, frames: list[Frame]) -> PageEnd | None:
        """Process frames; return the end of the page, or None if it has not arrived.

        Raises `InvalidResponse` for a frame that is neither a message of a batch nor a status.
        Servers before 2.11, which do not support batches, send such frames.
        """
        accept, page, matches = self._read.accept, self._page, self._matches
        for subject, _, header_size, body in frames:
            if subject != self._reply:
                continue
            found = direct_tail(body, header_size)
            # In a status, a blank and the code follow "NATS/1.0".
            if found is None and header_size > 8 and body[8] == 32:
                return _direct_end(body[:header_size])
            if found is None or found[4] is None:
                raise InvalidResponse(f"not a reply to a direct get batch: {body[:header_size]!r}")
            if not is_from(found, self._stream):
                return PageEnd(failure=MIRROR_ANSWERED, mirror=True)
            seq = int(found[2])
            if accept(seq) and (matches is None or matches(found[1])):
                page.seqs.append(seq)
                page.subjects.append(found[1])
                page.times.append(found[3])
                page.headers.append(stored_headers(found))
                page.payloads.append(body[header_size:-2])
        return None


def _direct_end(block: bytes) -> PageEnd:
    code, text = parse_status(block)
    if code == 204:
        return PageEnd(more=Headers.parse(block).get("Nats-Num-Pending", "0") != "0")
    if code == 404:
        return PageEnd()
    return PageEnd(failure=f"{code} {text}".strip(), missing=code == 503)


class PullAnswer:
    """The response to one pull. Its messages are added to `page`.

    `token` identifies the statuses of the pull. `batch` is the number of requested messages.
    `matches` selects messages by subject, for filters that the server cannot apply.
    """

    def __init__(
        self,
        token: bytes,
        read: RangeRead,
        page: StoredPage,
        batch: int,
        matches: Callable[[bytes], object] | None = None,
    ) -> None:
        self._token: Final = token
        self._read: Final = read
        self._page: Final = page
        self._left = batch
        self._matches: Final = matches

    def take_bulk(self, found: ArrowPage) -> PageEnd | None:
        """Add messages read in bulk; return the end of the page, or None if more are expected."""
        self._left -= len(found)
        self._page.blocks.append(found.accepted(self._read))
        return None if self._left else PageEnd(more=found.pending > 0)

    def take(self, frames: list[Frame]) -> PageEnd | None:
        """Process frames; return the end of the page, or None if it has not arrived.

        No status follows a full batch. The pending count of its last message shows whether the
        consumer has more messages. Raises `InvalidResponse` for a frame that is neither a delivery
        nor a status.
        """
        for frame in frames:
            if is_status(frame):
                status = read_status(frame)
                if status.token == self._token and status.ends:
                    return _pull_end(status)
                continue
            pending = self._add_message(frame)
            if not self._left:
                return PageEnd(more=pending > 0)
        return None

    def _add_message(self, frame: Frame) -> int:
        """Add a message to the page if it is in the range and matches; return the pending count.

        Raises `InvalidResponse` if the reply subject is not that of a delivery.
        """
        subject, reply, header_size, body = frame
        metadata = parse_ack_reply(reply)
        if metadata is None:
            raise InvalidResponse(f"not a delivery of a consumer: {subject!r} with reply {reply!r}")
        self._left -= 1
        matches = self._matches
        if self._read.accept(metadata.stream_seq) and (matches is None or matches(subject)):
            page = self._page
            page.seqs.append(metadata.stream_seq)
            page.subjects.append(subject)
            page.times.append(metadata.timestamp_ns)
            page.headers.append(body[:header_size].removesuffix(b"\r\n"))
            page.payloads.append(body[header_size:-2])
        return metadata.num_pending


def _pull_end(status: Status) -> PageEnd:
    match status.kind:
        case Kind.NO_MESSAGES | Kind.EXPIRED:
            return PageEnd()
        case Kind.COMPLETED | Kind.TOO_BIG:
            return PageEnd(more=True)
        case kind:
            missing = kind in {Kind.NO_RESPONDERS, Kind.DELETED}
            return PageEnd(failure=str(status), missing=missing)
