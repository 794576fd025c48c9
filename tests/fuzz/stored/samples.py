"""Messages as clients and servers store them, and mutations of them that a stranger may store.

The real ones are made by the code that stores them. A mutation changes subject, headers and data:
a value becomes one that names what belongs to others, one of an odd type or size, or is gone, and
bytes flip.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from random import Random
from typing import Any, Final, NamedTuple

from attrs import evolve

from tests.fuzz.grammar import NUMBERS, VALUES, Grammar
from tests.odd_messages import ODD_MESSAGES
from twinstream.core.coordination.lease_record import LeaseRecord
from twinstream.core.groups.config import config_bytes
from twinstream.core.object_store.info import ObjectMeta, info_bytes, new_info
from twinstream.core.publish.request import publish_headers
from twinstream.core.read.stream_message import StreamMessage
from twinstream.core.schedules.schedules import Schedule, schedule_headers
from twinstream.core.workers.dead_letter import Failure, Names, letter_of_failure
from twinstream.models import (
    ElasticGroupConfig,
    MemberMapping,
    ObjectInfo,
    ObjectLink,
    ObjectOptions,
    PartitioningFilter,
    StaticGroupConfig,
    Timestamp,
)
from twinstream.models import evolve as evolve_model
from twinstream.records.entry import DELETED, PURGED
from twinstream.records.headers import Headers
from twinstream.records.publish_request import PublishRequest

__all__ = [
    "BODY",
    "BUCKET",
    "CREATED",
    "FAILED",
    "KINDS",
    "NAMES",
    "NUID",
    "ORIGINAL_BLOCK",
    "OTHER_NUID",
    "STORED",
    "VICTIM_NAMES",
    "Message",
    "Mutator",
    "info_subject",
]

NOW: Final = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
CREATED: Final = Timestamp.of(NOW - timedelta(days=1))
STORED: Final = Timestamp.of(NOW)
FAILED: Final = Timestamp.of(NOW + timedelta(seconds=30))
BODY: Final = b'{"order": 1}'
NAMES: Final = Names.of("S", None, None, None, None)
BUCKET: Final = "B"
NUID: Final = "NUIDOFTHEOBJECTTHATISIT"
OTHER_NUID: Final = "NUIDOFANOTHERWHICHSTAYS"

ORIGINAL_BLOCK: Final = b"NATS/1.0\r\nA: 1\r\nA: 2\r\nNats-Msg-Id: x\r\n\r\n"
"""The headers of the failed message, which has the sequence 3."""

VICTIM_NAMES: Final = ("VICTIM", "SECRET", "OBJ_OTHER", "KV_OTHER", OTHER_NUID)
"""Names of what belongs to others, in each kind of mutation."""

_TEXTS: Final = (
    "$JS.API.STREAM.DELETE.VICTIM",
    "$JS.API.STREAM.PURGE.S",
    "$JS.API.STREAM.MSG.DELETE.S",
    "$SYS.REQ.SERVER.PING",
    "_INBOX.x.y",
    "VICTIM.a",
    "S.other",
    "S.*",
    "S.>",
    ">",
    "*",
    "$O.B.C.>",
    "$KV.OTHER.k",
    "../../etc/passwd",
    "/tmp/x",
    "a b",
    "a\r\nNats-Rollup: all",
    "\x1b[2J\x1b]0;x\x07",
    "\u202eabc",
    "\ud800",
    "\udcff",
    "a\0b",
    "\x85\u2028",
    "x" * 70_000,
    ".".join("a" * 60),
    "S" * 300,
    "@every 1ns",
    "@every 2562047h47m16.854775807s",
    "@at 9999-12-31T23:59:59.999999999Z",
    "@at 0001-01-01T00:00:00Z",
    "0 0 0 31 2 *",
    "0 0 0 29 2 1-5/2",
    "59 59 23 * * *",
    "@yearly",
    "Europe/Berlin",
    "../../../etc/localtime",
    "9999-12-31T23:59:59.999999999+23:59",
    "2026-01-02T03:04:05.123456789123Z",
    "2026-13-45T25:61:61Z",
    '[["a","b"]]',
    '[["Nats-Rollup","all"],["Nats-Expected-Stream","X"]]',
    "[" * 5000,
    "never",
    "-1",
    "1h",
    *VICTIM_NAMES,
)
# What steers terminals, calls and logs is tried more often than the rest.
_SHARP: Final = (
    "$JS.API.STREAM.DELETE.VICTIM",
    "VICTIM.a",
    ">",
    "*",
    "a\r\nNats-Rollup: all",
    "\x1b[2J\x1b]0;x\x07",
    "\udcff",
    *VICTIM_NAMES,
)
_ODD_NUMBERS: Final = (
    *(0, -1, 1, 3, 65_536, 65_537, 131_000_000),
    *(2**31, 2**53, 2**63 - 1, 2**63, 2**64, 10**308, 10**400, -(10**30)),
    *(1.5, float("nan"), float("inf")),
)
_ODD_VALUES: Final[tuple[Any, ...]] = (
    *VALUES,
    *_TEXTS,
    *_ODD_NUMBERS,
    [f"S.{number}.*" for number in range(300)],
    [{"filter": f"S.{number}.*"} for number in range(300)],
    [1, 2, 3],
    ["a"] * 2000,
    [{"member": "m", "partitions": [0]}],
    {"bucket": "OTHER", "name": "x"},
    {"link": {"bucket": "OTHER", "name": "x"}},
)
_DEEP: Final = (b"[" * 5000, b"[" * 5000 + b"]" * 5000, b'{"a":' * 3000 + b"1" + b"}" * 3000)


class Message(NamedTuple):
    """A stored message, as bytes."""

    subject: bytes
    block: bytes
    data: bytes

    def read(self, stream: str, seq: int = 7) -> StreamMessage:
        """Return the message as a reader gets it."""
        return StreamMessage(
            stream_name=stream,
            subject=self.subject.decode("utf-8", "surrogateescape"),
            seq=seq,
            time=STORED,
            data=self.data,
            headers=Headers.parse(self.block) if self.block else Headers(),
        )


def _of(request: PublishRequest) -> Message:
    return Message(request.subject.encode(), publish_headers(request), request.data)


def _json(subject: str, document: object, headers: dict[str, str] | None = None) -> Message:
    return _of(PublishRequest(subject, json.dumps(document).encode(), headers=headers))


# ---- letters and advisories


def failure(seq: int = 3, consumer: str = "w", cause: str = "max_deliver") -> Failure:
    """Return a failure of a message of the stream S."""
    return Failure(
        stream="S",
        consumer=consumer,
        stream_seq=seq,
        deliveries=5,
        cause=cause,  # type: ignore[arg-type]
        reason="the handler failed",
        time=FAILED,
        advisory="KQXKMXbVKV6j4cW4g4fWyk",
    )


def original(seq: int = 3) -> StreamMessage:
    """Return the message of a failure."""
    return Message(b"S.new", ORIGINAL_BLOCK, BODY).read("S", seq)


def _letters() -> list[Message]:
    given = [
        (failure(), original(), ""),
        (failure(4, cause="terminated"), None, "message 4 of stream S is gone"),
        (failure(3, "v", "rejected"), evolve(original(), subject="S.b", headers=Headers()), ""),
    ]
    return [_of(letter_of_failure(NAMES, each, CREATED, one, gone)) for each, one, gone in given]


def _advisories() -> list[Message]:
    common = {
        "id": "KQXKMXbVKV6j4cW4g4fWyk",
        "timestamp": FAILED.rfc3339(),
        "stream": "S",
        "consumer": "w",
        "stream_seq": 3,
        "deliveries": 5,
    }
    place = "$JS.EVENT.ADVISORY.CONSUMER"
    kind = "io.nats.jetstream.advisory.v1"
    terminated = {"type": f"{kind}.terminated", "consumer_seq": 9, "reason": "bad"}
    return [
        _json(f"{place}.MAX_DELIVERIES.S.w", {"type": f"{kind}.max_deliver", **common}),
        _json(f"{place}.MSG_TERMINATED.S.w", {**terminated, **common}),
        _json(f"{place}.MSG_TERMINATED.S.w", {**terminated, **common, "domain": "hub"}),
    ]


# ---- objects


def info_subject(name: str) -> str:
    """Return the subject of the description of an object of the bucket B."""
    return f"$O.{BUCKET}.M.{urlsafe_b64encode(name.encode()).decode()}"


def _objects() -> list[Message]:
    meta = ObjectMeta("a", description="d", headers={"H": "1"}, metadata={"k": "v"})
    sha = sha256(BODY).digest()
    plain = new_info(meta, BUCKET, NUID, chunk_size=8, size=len(BODY), chunks=2, sha=sha)
    link = ObjectInfo(
        name="a",
        bucket=BUCKET,
        nuid=NUID,
        options=ObjectOptions(link=ObjectLink(bucket=BUCKET, name="keep")),
    )
    gone = evolve_model(plain, deleted=True, size=0, chunks=0, digest=None)
    return [
        Message(info_subject("a").encode(), b"", info_bytes(each, NOW))
        for each in (plain, link, gone, plain)
    ]


# ---- groups, locks, schedules, entries


def _groups() -> list[Message]:
    mappings = [MemberMapping(member="m", partitions=[0, 1]), MemberMapping(member="n")]
    filters = [PartitioningFilter(filter="S.*", partitioning_wildcards=[1])]
    static = "$KV.static-consumer-groups.S.G"
    elastic = "$KV.elastic-consumer-groups.S.G"
    configs: Iterable[tuple[str, StaticGroupConfig | ElasticGroupConfig]] = (
        (static, StaticGroupConfig(max_members=4, filters=["S.*"], members=["m", "n"])),
        (static, StaticGroupConfig(max_members=2, member_mappings=mappings)),
        (elastic, ElasticGroupConfig(max_members=4, members=["m"], partitioning_filters=filters)),
        (elastic, ElasticGroupConfig(max_members=4, max_buffered_msg=9, members=["m", "n"])),
    )
    return [Message(subject.encode(), b"", config_bytes(each)) for subject, each in configs]


def _leases() -> list[Message]:
    record = LeaseRecord(owner="host", tenure="T", attempt=2, token=5, note="n", data=b"result")
    return [
        _of(PublishRequest(f"L.held.{place}", each.encode(), headers={"Nats-TTL": "30"}))
        for place in ("lock.x", "semaphore.x.0", "rate.x.1", "once.x", "leader.x")
        for each in (record, evolve(record, state="done"))
    ]


def _schedules() -> list[Message]:
    made = [
        schedule_headers(Schedule.at(NOW), "S.sched.a", "S.out", ttl=60),
        schedule_headers(Schedule.every(300), "S.sched.a", "S.out", source="S.in", rollup=True),
        schedule_headers(
            Schedule.cron("0 30 9 * * mon-fri", time_zone="Europe/Berlin"), "S.sched.a", "S.out"
        ),
    ]
    return [_of(PublishRequest("S.sched.a", BODY, headers={**each, "A": "1"})) for each in made]


def _entries() -> list[Message]:
    made: list[dict[str, str]] = [
        {},
        {},
        DELETED,
        {**PURGED, "Nats-Rollup": "sub"},
        {"Nats-Marker-Reason": "MaxAge", "Nats-TTL": "10"},
        {"Nats-Msg-Size": "12", "A": "1"},
    ]
    keys = ("a", "a.b", "YQ", "YQ.Yg", "_root_.a")
    return [
        _of(PublishRequest(f"$KV.{BUCKET}.{key}", BODY, headers=each or None))
        for key in keys
        for each in made
    ]


# ---- files and checkpoints


def _backups() -> list[Message]:
    config = {"name": "S", "subjects": ["S.>"], "retention": "limits", "max_age": 0}
    state = {
        "messages": 3,
        "bytes": 99,
        "first_seq": 1,
        "first_ts": STORED.rfc3339(),
        "last_seq": 3,
        "last_ts": STORED.rfc3339(),
        "consumer_count": 0,
    }
    return [_json("0" * 64 + "  stream.tar.s2", {"config": config, "state": state})]


def _outbox() -> list[Message]:
    return [
        Message(b"S.a", b"NATS/1.0\r\nid: one\r\nkey: k\r\n\r\n", b'[["A","1"],["A","2"]]'),
        Message(b"S.b", b"NATS/1.0\r\nid: two\r\n\r\n", b"[]"),
    ]


def _checkpoints() -> list[Message]:
    ids = ("p-S-abc-7-0", "p-S-abc-7-1", "other")
    return [_of(PublishRequest("S.result", BODY, msg_id=each)) for each in ids]


def _messages() -> list[Message]:
    headers = {"A": "1", "traceparent": "00-" + "0" * 31 + "1-" + "0" * 15 + "1-01"}
    copied = {"Nats-Stream-Source": "HUB 7 > > S.odd.a", "Nats-Msg-Id": "x"}
    return [
        _of(PublishRequest("S.odd.a", BODY, headers=headers)),
        Message(b"S.odd.a", b"", BODY),
        Message(b"S.odd.b", publish_headers(PublishRequest("S.b", headers=headers)), b""),
        Message(b"S.odd.c", _block(copied), BODY),
    ]


def _block(headers: dict[str, str]) -> bytes:
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"NATS/1.0\r\n{lines}\r\n".encode()


KINDS: Final[dict[str, Callable[[], list[Message]]]] = {
    "letters": _letters,
    "advisories": _advisories,
    "objects": _objects,
    "groups": _groups,
    "leases": _leases,
    "schedules": _schedules,
    "entries": _entries,
    "backups": _backups,
    "outbox": _outbox,
    "checkpoints": _checkpoints,
    "messages": _messages,
}


class Mutator:
    """Makes messages of each kind: the same seed makes the same message."""

    def __init__(self) -> None:
        self.grammar: Final = Grammar(0)
        self.random: Final[Random] = self.grammar.random
        self._samples: Final = {kind: make() for kind, make in KINDS.items()}
        self._all: Final = [each for made in self._samples.values() for each in made]

    def begin(self, seed: int) -> None:
        """Let everything that follows depend on a seed only."""
        self.random.seed(seed)

    def real(self, kind: str) -> Message:
        """Return a message as it is stored by a client of ours."""
        return self.random.choice(self._samples[kind])

    def message(self, kind: str) -> Message:
        """Return a mutation of a real message; one in twenty is unchanged."""
        found = self.real(kind)
        if self.random.random() < 0.05:
            return found
        for _ in range(self.random.choice((1, 1, 1, 2, 3))):
            found = self._mutated(found)
        return found

    def text(self) -> str:
        """Return an odd text."""
        return self.random.choice(_SHARP if self.random.random() < 0.4 else _TEXTS)

    def value(self, before: object) -> Any:
        """Return an odd value for a member, often of the type that it had."""
        kind = self.random.randrange(3)
        if kind == 0 and isinstance(before, int):
            return self.random.choice(_ODD_NUMBERS)
        if kind == 0 and isinstance(before, str):
            return self.text()
        return self.random.choice(_ODD_VALUES)

    def _mutated(self, message: Message) -> Message:
        match self.random.randrange(10):
            case 0:
                return message._replace(subject=self.subject(message.subject))
            case 1 | 2 | 3:
                return message._replace(block=self._headers(message.block))
            case 4:
                other = self.random.choice(self._all)
                return message._replace(block=other.block)
            case 5:
                odd = self.random.choice(list(ODD_MESSAGES.values()))
                return message._replace(block=odd.headers or b"", data=odd.data)
            case _:
                return message._replace(data=self._data(message.data))

    def subject(self, subject: bytes) -> bytes:
        """Return a subject with another token."""
        tokens = subject.split(b".")
        at = self.random.randrange(len(tokens))
        tokens[at] = self._plain(self.text().encode("utf-8", "surrogatepass"))
        return b".".join(tokens)

    @staticmethod
    def _plain(token: bytes) -> bytes:
        # No client can send a subject with white space.
        return token.translate(None, b" \r\n\t")[:200] or b"x"

    def _headers(self, block: bytes) -> bytes:
        random = self.random
        kind = random.randrange(8)
        if kind == 0 and block:
            return self.grammar.mutated(block)
        pairs = list(Headers.parse(block).pairs) if block else []
        if kind == 1 and pairs:
            del pairs[random.randrange(len(pairs))]
        elif kind == 2 or not pairs:
            name = random.choice(("Nats-Rollup", "Nats-Msg-Id", "Nats-TTL", "Status", "A"))
            pairs.insert(random.randrange(len(pairs) + 1), (name, self.text()))
        else:
            at = random.randrange(len(pairs))
            name, _ = pairs[at]
            value = (
                random.choice(NUMBERS).decode("utf-8", "replace")
                if random.random() < 0.4
                else self.text()
            )
            pairs[at : at + (kind != 3)] = [(name, value)]
        lines = "".join(f"{name}: {value}\r\n" for name, value in pairs)
        return b"NATS/1.0\r\n" + lines.encode("utf-8", "surrogatepass") + b"\r\n"

    def _data(self, data: bytes) -> bytes:
        random = self.random
        kind = random.randrange(12)
        if kind == 0:
            return random.choice(self._all).data
        if kind == 1:
            return random.choice(_DEEP)
        if kind <= 3:
            return self.grammar.mutated(data)
        try:
            document = json.loads(data)
        except (ValueError, RecursionError):
            return self.grammar.mutated(data)
        if not isinstance(document, dict) or not document:
            return self._dumped(random.choice(_ODD_VALUES))
        return self._dumped(self.grammar.changed(document, self.value))

    def _dumped(self, document: object) -> bytes:
        as_ascii = self.random.random() < 0.5
        return json.dumps(document, ensure_ascii=as_ascii).encode("utf-8", "surrogatepass")
