"""Targets without I/O: the parser at any split, and everything that reads what it hands over."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from tests.fuzz.grammar import Grammar
from twinstream.core.client.handshake import ServerInfo, read_denied, server_error
from twinstream.core.client.server_pool import ServerPool, parse_servers
from twinstream.core.consume.metadata import parse_ack_reply
from twinstream.core.read.direct_get import from_direct
from twinstream.core.read.multi_last import MultiAnswer
from twinstream.core.read.page import DirectAnswer, PullAnswer, StoredPage
from twinstream.core.read.range_read import RangeRead
from twinstream.core.wire.fast import AckReader
from twinstream.core.wire.headers import encode_headers, parse_status
from twinstream.core.wire.protocol import Frame, Info, Parser, Refusal
from twinstream.core.wire.pub_ack import is_pub_ack, read_pub_ack
from twinstream.core.wire.response import read_answer
from twinstream.core.wire.status import is_status, is_unserved, read_status
from twinstream.errors import ProtocolError, TwinstreamError
from twinstream.models import (
    ConsumerInfoResponse,
    DecodeError,
    StreamInfoResponse,
    decode,
)
from twinstream.records.headers import Headers

__all__ = ["TARGETS", "Finding"]

ALLOWED: Final = (TwinstreamError, DecodeError)


class Finding(AssertionError):
    """An input that breaks a promise; the text holds it, so that it can become a test."""


class _Sinks(Mapping[bytes, Any]):
    """Takes the messages of every subscription but one, whose messages are strays."""

    def __init__(self) -> None:
        self.frames: list[Frame] = []

    def get(self, sid: Any, default: Any = None) -> Any:
        return None if sid == b"77" else self.frames.append

    def __getitem__(self, sid: bytes) -> Any:
        raise KeyError(sid)

    def __iter__(self) -> Any:
        return iter(())

    def __len__(self) -> int:
        return 0


def _parsed(pieces: list[bytes]) -> tuple[list[Frame], list[Any], bool]:
    """Return the frames, the events, and whether the bytes were refused."""
    sinks, events = _Sinks(), list[Any]()
    parser = Parser(sinks)
    try:
        for piece in pieces:
            events += parser.feed(piece)[1]
    except ProtocolError:
        return sinks.frames, events, True
    return sinks.frames, events, False


def parser_target(grammar: Grammar) -> None:
    """Parse an input whole and in pieces: the same messages and events, or the same refusal."""
    data = grammar.stream()
    pieces = list(grammar.pieces(data))
    try:
        whole, parts = _parsed([data]), _parsed(pieces)
    except Exception as error:
        raise Finding(f"{error!r} from {data!r} in pieces {pieces!r}") from error
    same = whole[0] == parts[0] and whole[2] == parts[2]
    if not same or (not whole[2] and whole[1] != parts[1]):
        raise Finding(f"pieces {pieces!r} are parsed otherwise than the whole {data!r}")
    for event in whole[1]:
        _judge_event(event, data)


def _judge_event(event: Any, data: bytes) -> None:
    try:
        if isinstance(event, Info):
            info = ServerInfo.read(event.values)
            pool = ServerPool(parse_servers("nats://127.0.0.1:4222"), None)
            pool.discover(info.connect_urls, pool.round()[0])
            assert len(info.version_numbers) == 3
        elif isinstance(event, Refusal):
            str(server_error(event.text))
            read_denied(event.text)
    except ALLOWED:
        pass
    except Exception as error:
        raise Finding(f"{error!r} from the event {event!r} of {data!r}") from error


def _frame(grammar: Grammar) -> Frame:
    """Return a message as the parser hands it over, odd in any part."""
    random = grammar.random
    headers = grammar.headers() if random.random() < 0.7 else b""
    if headers and random.random() < 0.4:
        headers = grammar.mutated(headers)
    payload = grammar.payload()
    if random.random() < 0.3:
        payload = grammar.mutated(payload)
    subject, reply = (random.choice(_WORDS) for _ in range(2))
    return subject, reply, len(headers), headers + payload + b"\r\n"


_WORDS: Final = (
    b"",
    b"_INBOX.abc.1",
    b"orders.new",
    b"\xff",
    b"$JS.ACK.S.c.1.2.3.1700000000000000000.4",
    b"$JS.ACK.S.c.1.2.3.x.4",
    b"$JS.ACK.S.c.1.%b.3.4.5" % (b"9" * 5000),
    b"$JS.ACK.S.c.-1.\xd9\xa1.3.4.5",
)


def _headers(frame: Frame) -> None:
    block = frame[3][: frame[2]]
    headers = Headers.parse(block)
    assert headers == Headers.parse(block)
    parse_status(block)
    try:
        encode_headers(headers)
    except TwinstreamError:
        pass


def _status(frame: Frame) -> None:
    is_unserved(frame)
    if is_status(frame):
        str(read_status(frame))


def _direct_page(frame: Frame) -> None:
    page = StoredPage()
    DirectAnswer(frame[0], b"S", RangeRead(1, 10), page).take([frame])
    _messages(page)


def _pulled_page(frame: Frame) -> None:
    page = StoredPage()
    PullAnswer(b"1", RangeRead(1, 10), page, 5).take([frame])
    _messages(page)


def _many_page(frame: Frame) -> None:
    page = StoredPage()
    MultiAnswer(frame[0], b"S", page).take([frame])
    _messages(page)


def _messages(page: StoredPage) -> None:
    for at in range(len(page.seqs)):
        page.message(at, "S")


def _answer(frame: Frame) -> None:
    members = read_answer(frame[3][frame[2] : -2], "$JS.API.STREAM.INFO.S")
    for kind in (StreamInfoResponse, ConsumerInfoResponse):
        try:
            decode(members, kind)
        except DecodeError:
            pass
    decode(frame[3][frame[2] : -2])


READERS: Final[tuple[Callable[[Frame], object], ...]] = (
    _headers,
    _status,
    _direct_page,
    _pulled_page,
    _many_page,
    _answer,
    lambda frame: parse_ack_reply(frame[1]),
    lambda frame: read_pub_ack(frame, "orders.new"),
    lambda frame: AckReader().read(frame, "orders.new"),
    lambda frame: is_pub_ack(frame) and AckReader().is_strange(frame, "S", None),
    lambda frame: from_direct(frame, "orders.new"),
)


def reader_target(grammar: Grammar) -> None:
    """Give one odd message to everything that reads messages: an answer, or an error of ours."""
    frame = _frame(grammar)
    for read in READERS:
        try:
            read(frame)
        except ALLOWED:
            pass
        except Exception as error:
            raise Finding(f"{error!r} from {read} of {frame!r}") from error


TARGETS: Final[Mapping[str, Callable[[Grammar], None]]] = {
    "parser": parser_target,
    "readers": reader_target,
}
