"""Bytes that a NATS server, or one that lies, could send: whole frames, and mutations of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import cached_property
from random import Random
from typing import Any, Final

from tests.odd_messages import ODD_MESSAGES

__all__ = ["Grammar"]

SIDS: Final = (b"1", b"2", b"3", b"77", b"", b"x", b"1 1")
SUBJECTS: Final = (
    b"a",
    b"orders.new",
    b"_INBOX.abc.1",
    b"_INBOX.abc.2.77",
    b"$JS.API.STREAM.INFO.S",
    b"\xff\xfe",
    b"a" * 300,
    b"",
)
REPLIES: Final = (
    b"_INBOX.abc.9",
    b"$JS.ACK.S.c.1.2.3.1700000000000000000.4",
    b"$JS.ACK.hub.account.S.c.1.2.3.1700000000000000000.4.token",
    b"$JS.ACK.S.c.x.2.3.4.5",
    b"$JS.ACK.S.c.1.%b.3.4.5" % (b"9" * 5000),
    b"$JS.ACK." + b"." * 20,
    b"$JS.FC.S.c.abc",
    b"",
)
NUMBERS: Final = (
    b"0",
    b"1",
    b"-1",
    b"+1",
    b" 1",
    b"1_0",
    b"0x1",
    b"2147483648",
    b"9223372036854775807",
    b"9223372036854775808",
    b"18446744073709551616",
    b"9" * 400,
    b"9" * 5000,
    b"1e9",
    b"\xd9\xa1",  # an Arabic digit
    b"",
)
VALUES: Final[tuple[Any, ...]] = (
    None,
    True,
    0,
    -1,
    1,
    2**63,
    2**64,
    10**400,
    1.5,
    float("nan"),
    float("inf"),
    "",
    "text",
    "\ud800",
    "2024-01-02T03:04:05Z",
    "0001-01-01T00:00:00Z",
    "9999999999-01-01T00:00:00Z",
    [],
    {},
    [[]],
    {"a": None},
)
STATUSES: Final = (
    b"100 Idle Heartbeat",
    b"100 FlowControl Request",
    b"204 EOB",
    b"404 No Messages",
    b"408 Request Timeout",
    b"409 Consumer Deleted",
    b"409 Message Size Exceeds MaxBytes",
    b"409 Exceeded MaxRequestBatch of 5",
    b"423 Nats-Wrong-Pin-Id",
    b"503",
    b"503 No Responders",
    b"9" * 5000,
    b"\xff",
    b"",
)
HEADER_LINES: Final = (
    b"Nats-Pending-Messages: 3",
    b"Nats-Pending-Bytes: x",
    b"Nats-Last-Consumer: 5",
    b"Nats-Last-Stream: " + b"9" * 5000,
    b"Nats-Consumer-Stalled: $JS.FC.S.c.abc",
    b"Nats-Num-Pending: 0",
    b"Nats-UpTo-Sequence: -5",
    b"Nats-Stream: S",
    b"Nats-Subject: orders.new",
    b"Nats-Sequence: 5",
    b"Nats-Time-Stamp: 2024-01-02T03:04:05.123456789Z",
    b"Nats-Time-Stamp: yesterday",
    b"Nats-Last-Sequence: 4",
    b"Nats-Pin-Id: abc",
    b"Status: 503",
    b": no name",
    b"no colon",
    b"A: \xff",
)
ANSWERS: Final[tuple[dict[str, Any], ...]] = (
    {"stream": "S", "seq": 1},
    {"stream": "S", "seq": 2, "duplicate": True, "domain": "hub"},
    {"error": {"code": 404, "err_code": 10059, "description": "stream not found"}},
    {"error": {"code": 503, "err_code": 10074}},
    {"type": "io.nats.jetstream.api.v1.stream_names_response", "total": 1, "streams": ["S"]},
    {
        "type": "io.nats.jetstream.api.v1.stream_info_response",
        "config": {"name": "S", "subjects": ["orders.>"], "retention": "limits"},
        "created": "2024-01-02T03:04:05.123456789Z",
        "state": {"messages": 3, "bytes": 99, "first_seq": 1, "last_seq": 3, "consumer_count": 1},
        "cluster": {"leader": "n1", "replicas": [{"name": "n2", "current": True, "active": 5}]},
    },
    {
        "type": "io.nats.jetstream.api.v1.consumer_info_response",
        "stream_name": "S",
        "name": "c",
        "config": {"name": "c", "ack_policy": "explicit", "ack_wait": 30_000_000_000},
        "created": "2024-01-02T03:04:05Z",
        "delivered": {"consumer_seq": 1, "stream_seq": 1},
        "ack_floor": {"consumer_seq": 0, "stream_seq": 0},
        "num_pending": 2,
        "num_ack_pending": 1,
    },
    {
        "type": "io.nats.jetstream.api.v1.stream_msg_get_response",
        "message": {
            "subject": "orders.new",
            "seq": 1,
            "data": "aGVsbG8=",
            "hdrs": "TkFUUy8xLjANCkE6IDENCg0K",
            "time": "2024-01-02T03:04:05Z",
        },
    },
    {
        "type": "io.nats.jetstream.advisory.v1.max_deliver",
        "id": "x",
        "timestamp": "2024-01-02T03:04:05Z",
        "stream": "S",
        "consumer": "c",
        "stream_seq": 1,
        "deliveries": 5,
    },
)
INFO: Final[dict[str, Any]] = {
    "server_id": "N",
    "server_name": "n1",
    "version": "2.15.1",
    "proto": 1,
    "headers": True,
    "jetstream": True,
    "max_payload": 1048576,
    "client_id": 5,
    "connect_urls": ["127.0.0.1:4222", "[::1]:4222", "a" * 70 + ":1", "host:port", "", ":", "x"],
    "ldm": False,
    "nonce": "abc",
}
_EDITS: Final = 6


class Grammar:
    """Makes inputs from a seed: the same seed makes the same inputs."""

    def __init__(self, seed: int) -> None:
        self.random: Final = Random(seed)

    @cached_property
    def _pool(self) -> list[bytes]:
        """Frames from which most inputs are put together: much faster than making each."""
        return [self.frame() for _ in range(3000)]

    def stream(self) -> bytes:
        """Return some frames in a row, mutated more often than not."""
        frames = self.random.choices(self._pool, k=self.random.randint(1, 5))
        data = b"".join(frames)
        return self.mutated(data) if self.random.random() < 0.7 else data

    def pieces(self, data: bytes) -> Iterator[bytes]:
        """Cut bytes at any places."""
        count = min(self.random.randint(1, 6), len(data))
        cuts = sorted(self.random.choices(range(len(data) + 1), k=count))
        for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True):
            if start < end:
                yield data[start:end]

    # ---- frames

    def frame(self) -> bytes:
        """Return one protocol line, with its message if it has one."""
        match self.random.randrange(12):
            case 0:
                return b"INFO " + self.json(INFO) + b"\r\n"
            case 1:
                return self.random.choice((b"PING\r\n", b"PONG\r\n", b"+OK\r\n", b"ping\r\n"))
            case 2:
                texts = (b"'Stale Connection'", b"'Authorization Violation'", b"", b"\xff\x1b[2J")
                denied = b'\'Permissions Violation for Subscription to "a" using queue "q"\''
                return b"-ERR " + self.random.choice((*texts, denied)) + b"\r\n"
            case 3 | 4 | 5:
                return self.message(b"", self.payload())
            case _:
                return self.message(self.headers(), self.payload())

    def message(self, headers: bytes, payload: bytes) -> bytes:
        """Return MSG or HMSG; now and then its sizes are wrong."""
        pick = self.random.choice
        words = [b"HMSG" if headers else b"MSG", pick(SUBJECTS), pick(SIDS)]
        if self.random.random() < 0.6:
            words.append(pick(REPLIES))
        sizes = [b"%d" % (len(headers) + len(payload))]
        if headers:
            sizes.insert(0, b"%d" % len(headers))
        if self.random.random() < 0.1:
            sizes[self.random.randrange(len(sizes))] = pick(NUMBERS)
        return b" ".join((*words, *sizes)) + b"\r\n" + headers + payload + b"\r\n"

    def headers(self) -> bytes:
        """Return a header block: of odd messages, a status, or lines."""
        pick = self.random.choice
        kind = self.random.randrange(4)
        if kind == 0:
            return pick(list(ODD_MESSAGES.values())).headers or b"x"
        lines = b"".join(
            line + b"\r\n"
            for line in self.random.choices(HEADER_LINES, k=self.random.randint(0, 8))
        )
        if kind == 1:
            return b"NATS/1.0 " + pick(STATUSES) + b"\r\n" + lines + b"\r\n"
        if kind == 2:
            return b"NATS/1.0\r\n" + lines + self.tail()
        return b"NATS/1.0\r\n" + lines + b"\r\n"

    def tail(self) -> bytes:
        """Return what a server appends to the headers of a direct get."""
        seq = self.random.choice(NUMBERS)
        return (
            b"Nats-Stream: S\r\nNats-Subject: orders.new\r\nNats-Sequence: %b\r\n"
            b"Nats-Time-Stamp: %b\r\nNats-Num-Pending: %b\r\n\r\n"
            % (
                seq,
                self.random.choice((b"2024-01-02T03:04:05Z", b"never", b"")),
                self.random.choice(NUMBERS),
            )
        )

    def payload(self) -> bytes:
        """Return a payload: an answer of the API with changed members, or any bytes."""
        match self.random.randrange(4):
            case 0:
                return self.random.choice(list(ODD_MESSAGES.values())).data
            case 1:
                return self.random.randbytes(self.random.randint(0, 40))
            case _:
                return self.json(self.random.choice(ANSWERS))

    def json(self, document: dict[str, Any]) -> bytes:
        """Return a document as JSON; in half of them a member has another value, or is gone."""
        if self.random.random() < 0.5:
            document = self.changed(document)
        if self.random.random() < 0.02:
            depth = self.random.choice((50, 5000))
            return b"[" * depth + b"]" * depth
        return json.dumps(document).encode("utf-8", "surrogatepass")

    def changed(
        self, document: dict[str, Any], value: Callable[[object], Any] | None = None
    ) -> dict[str, Any]:
        """Return a document in which a member has another value, or is gone.

        `value` returns the other value; by default it is one of `VALUES`.
        """
        found = dict(document)
        name = self.random.choice(list(found))
        inner = found[name]
        if isinstance(inner, dict) and inner and self.random.random() < 0.7:
            found[name] = self.changed(inner, value)
        elif self.random.random() < 0.2:
            del found[name]
        else:
            found[name] = self.random.choice(VALUES) if value is None else value(inner)
        return found

    # ---- mutations

    def mutated(self, data: bytes) -> bytes:
        """Return bytes with some edits: flipped, cut out, repeated, put in, or replaced numbers."""
        found = bytearray(data)
        for _ in range(self.random.randint(1, _EDITS)):
            self._edit(found)
        return bytes(found)

    def _edit(self, data: bytearray) -> None:
        random = self.random
        at = random.randrange(len(data) + 1)
        end = min(len(data), at + random.choice((1, 1, 2, 4, 16, 64)))
        match random.randrange(6):
            case 0 if at < len(data):
                data[at] ^= 1 << random.randrange(8)
            case 1:
                del data[at:end]
            case 2:
                data[at:at] = data[at:end]
            case 3:
                data[at:at] = random.randbytes(random.randint(1, 4))
            case 4:
                data[at:end] = random.choice(NUMBERS)
            case _:
                data[at:at] = random.choice((b"\r\n", b" ", b"\0", b"\n", b"MSG ", b"NATS/1.0 "))
