"""Second copies in the stream of an elastic group, by a script, and with a server that is killed.

A message is written as `(origin, sequence)`: its sequence in the stream of the group's messages,
and in the stream of the group.
"""

from __future__ import annotations

import json
from base64 import b64encode
from contextlib import asynccontextmanager
from types import SimpleNamespace

import pytest

import js_async as js
from js_async.consume.delivery import Delivery
from js_async.consume.message import Message
from js_async.groups import CopiesSkipped
from js_async.groups.floors import Floors
from js_async.groups.store import GroupStore
from tests._async.flow import eventually
from tests._async.members import (
    CALM,
    PATIENT,
    Members,
    Seen,
    consumed,
    elastic,
    floors_hold,
    publish,
)
from tests.fake.answers import CONSUMER
from twinstream.core.groups.floors import digest, floor_bytes
from twinstream.core.groups.names import GroupNames
from twinstream.models import ElasticGroupConfig
from twinstream.testing import FakePeer, FakeServer

NAMES = GroupNames.of("elastic", "S", "g")
GROUP = "2026-01-01T00:00:01Z"
CREATED = "2026-01-01 00:00:01+00:00"
SOURCE = b"S src.* {{Partition(4,1)}}.src.{{Wildcard(1)}} TOKEN"
KEY = "$KV.elastic-consumer-groups.floors/S.g.0"


class World:
    """A server with a group's stream, whose partition 0 has a stored floor or none."""

    def __init__(self, record=None, last=1000):
        self.records = {} if record is None else {KEY: record}
        self.last = last
        self.acknowledged = 0
        self.denied = ""

    def script(self, peer: FakePeer) -> None:
        peer.handshake()
        for request in peer.follow():
            if request.verb not in {"PUB", "HPUB"}:
                continue
            if self.denied and self.denied in request.subject:
                peer.error(f'Permissions Violation for Publish to "{request.subject}"')
            elif request.subject.startswith("$KV."):
                self.records[request.subject] = request.payload
                peer.answer(request, {"stream": "KV_elastic-consumer-groups", "seq": 9})
            elif request.reply:
                peer.answer(request, self.answer(request))

    def answer(self, request):
        if request.subject.endswith("STREAM.INFO.S"):
            return stream_info("S", "2026-01-01T00:00:00Z", self.last)
        if request.subject.endswith("STREAM.INFO.S-g"):
            return stream_info("S-g", GROUP, 5000)
        if "CONSUMER.INFO" in request.subject:
            floor = {"consumer_seq": self.acknowledged, "stream_seq": self.acknowledged}
            return {**CONSUMER, "name": "m", "stream_name": "S-g", "ack_floor": floor}
        subject = request.json["last_by_subj"]
        if subject not in self.records:
            return {"error": {"code": 404, "err_code": 10037, "description": "no message found"}}
        data = b64encode(self.records[subject]).decode()
        stored = {"subject": subject, "seq": 1, "time": GROUP, "data": data}
        return {"message": stored}

    @property
    def floors(self):
        """The stored floors of partition 0."""
        return json.loads(self.records[KEY])["floors"]


def stream_info(name, created, last):
    times = {"first_ts": GROUP, "last_ts": GROUP}
    counts = dict.fromkeys(("messages", "bytes", "first_seq", "consumer_count"), 0)
    config = {"name": name, "subjects": ["src.*"]}
    return {"config": config, "created": created, "state": counts | times | {"last_seq": last}}


def header(origin, token="TOKEN"):
    """Return the header that the server appends to a copy."""
    words = f"S {origin} src.* {{{{Partition(4,1)}}}}.src.{{{{Wildcard(1)}}}} src.k {token}"
    return f"Nats-Stream-Source: {words}".rstrip()


class Member:
    """A member that receives messages, and its floors."""

    def __init__(self, jet, before=None):
        self.reports = []
        self.jet = jet
        store = GroupStore(jet, NAMES, ElasticGroupConfig)
        floors = before.floors if before is not None else None
        self.floors = Floors(jet, NAMES, store, "m", self._report, floors)
        self.floors.bind(jet.bind_consumer("S-g", "m"), self.reports.append)
        self.acks = []

    def _report(self, report, **_):
        self.reports.append(report)

    def _send(self, data):
        self.acks.append(data)
        return True

    def _message(self, origin, seq, *lines, delivered=1, partition=0):
        lines = lines or (header(origin),)
        block = "".join(f"{line}\r\n" for line in ("NATS/1.0", *lines, "")).encode()
        reply = f"$JS.ACK.S-g.m.{delivered}.{seq}.{seq}.0.0".encode()
        subject = f"{partition}.src.k".encode()
        transport = SimpleNamespace(write_command=self._send, observers=None)
        return Message(
            (subject, reply, len(block), block + b"\r\n"), Delivery(transport, 0.0, None, 1.0)
        )

    def take(self, *messages, lines=(), **options):
        """Return messages as the worker receives them."""
        return [self.floors.adapt(self._message(*each, *lines, **options)) for each in messages]

    async def receive(self, *messages, **options):
        """Return the sequences of the messages that are handled."""
        handled = []
        for message in self.take(*messages, **options):
            if not await self.floors.skips(message):
                handled.append(message.metadata.stream_seq)
        return handled

    async def process(self, message):
        """Acknowledge a message as the worker does after its handler."""
        await message.ack()
        self.floors.note_processed(message)

    @property
    def warnings(self):
        return [each.text for each in self.reports if isinstance(each, js.PullWarning)]


@asynccontextmanager
async def member_in(world):
    """Connect a member to a scripted server."""
    with FakeServer(world.script) as server:
        async with js.connect(server.url) as connection:
            member = Member(connection.jetstream(timeout=60))
            try:
                yield member, server
            finally:
                await member.floors.close()


def record(origin, seq, created=CREATED, source=SOURCE):
    return floor_bytes(created, {digest(source): (origin, seq)})


async def test_a_second_copy_below_the_floor_is_acknowledged_without_handling():
    async with member_in(World(record(100, 100))) as (member, _):
        # The last one was not processed before.
        assert await member.receive((51, 201), (100, 250), (101, 251)) == [251]
        assert len(member.acks) == 2
        assert member.floors.skipped == 2
        assert not member.warnings
        await member.floors.close()
        assert member.reports == [CopiesSkipped("S", "g", "m", 2)]


async def test_a_redelivered_second_copy_is_acknowledged_too():
    async with member_in(World(record(100, 100))) as (member, _):
        assert await member.receive((51, 201), delivered=2) == []


async def test_first_copies_are_handled_whatever_the_floor_is():
    # For example one that was delivered too often, and that a reset delivers again.
    async with member_in(World(record(100, 100))) as (member, _):
        assert await member.receive((51, 51), (100, 100), (101, 101)) == [51, 100, 101]


async def test_the_floor_is_contiguous():
    world = World()
    async with member_in(world) as (member, _):
        assert await member.receive((11, 1), (12, 2), (13, 3), (14, 4)) == [1, 2, 3, 4]
        # 3 is not acknowledged, 4 is.
        world.acknowledged = 2
        await member.floors.close()
        assert world.floors == {digest(SOURCE): [12, 2]}
        later = Member(member.jet)
        # Second copies of all, and then the redelivered first one.
        copies = [(11, 5), (12, 6), (13, 7), (14, 8)]
        assert await later.receive(*copies, (13, 3)) == [7, 8, 3]
        world.acknowledged = 8
        await later.floors.close()
        assert world.floors == {digest(SOURCE): [14, 8]}


async def test_what_this_instance_has_processed_is_not_handled_again():
    async with member_in(World()) as (member, _):
        first, other = member.take((11, 1), (12, 2))
        # A second copy arrives while the first one is still being handled.
        (second,) = member.take((11, 3))
        assert not await member.floors.skips(second)
        await member.process(first)
        assert await member.floors.skips(second)
        assert await member.receive((11, 5), (12, 6)) == [6]
        assert not other.is_acknowledged


@pytest.mark.parametrize("is_same", [True, False])
async def test_a_member_that_joins_again_knows_what_it_has_processed(is_same):
    world = World()
    async with member_in(world) as (member, _):
        (first,) = member.take((11, 1))
        assert not await member.floors.skips(first)
        await member.process(first)
        later = Member(member.jet, member)
        if not is_same:
            world.answer = lambda request: (
                stream_info("S-g", "2026-01-02T00:00:00Z", 1)
                if request.subject.endswith("STREAM.INFO.S-g")
                else World.answer(world, request)
            )
        assert await later.receive((11, 5)) == ([] if is_same else [5])
        await later.floors.close()


@pytest.mark.parametrize(
    "foreign",
    [
        record(100, 100, created="2025-01-01 00:00:00+00:00"),
        record(100, 100, source=SOURCE.replace(b"TOKEN", b"OTHER")),
        record(100, 100, source=SOURCE.replace(b"src.*", b"src.>")),
    ],
    ids=["stream of the group", "stream of the messages", "filter"],
)
async def test_the_floor_of_another_source_does_not_count(foreign):
    async with member_in(World(foreign)) as (member, _):
        assert await member.receive((51, 201)) == [201]
        assert not member.warnings


@pytest.mark.parametrize(
    "damaged",
    [
        b"",
        b"[]",
        b"\xff",
        b"[" * 100_000,
        f'{{"created":"{CREATED}"}}'.encode(),
        f'{{"created":"{CREATED}","floors":[1,2]}}'.encode(),
        *(
            f'{{"created":"{CREATED}","floors":{{"{digest(SOURCE)}":{floor}}}}}'.encode()
            for floor in ("100", "[100]", '["100",100]', "[1e2,100]", "[-1,1]", f"[1,{2**64}]")
        ),
    ],
    ids=lambda data: data[-30:].decode("ascii", "replace"),
)
async def test_a_floor_that_cannot_be_read_is_ignored_and_reported(damaged):
    async with member_in(World(damaged)) as (member, _):
        assert await member.receive((51, 201), (52, 202)) == [201, 202]
        (warning,) = member.warnings
        assert "floors/S.g.0 is ignored" in warning


async def test_a_floor_above_the_last_message_is_ignored_and_reported():
    async with member_in(World(record(101, 1), last=100)) as (member, _):
        assert await member.receive((51, 201), (100, 250)) == [201, 250]
        (warning,) = member.warnings
        assert "it is 101, and the last sequence of the stream is 100" in warning


async def test_a_publisher_cannot_write_the_origin():
    forged = header(51)
    async with member_in(World(record(100, 100))) as (member, _):
        for seq, own in enumerate([f"{forged}\r\nA: b", f"A: b{forged}"], 201):
            assert await member.receive((0, seq), lines=(own, header(seq))) == [seq]
        assert not member.acks


@pytest.mark.parametrize("line", [header(5, ""), header(51).replace("S 51", "T 51"), "A: b"])
async def test_other_messages_need_no_floors(line):
    async with member_in(World(record(100, 100))) as (member, server):
        assert await member.receive((0, 201), lines=(line,)) == [201]
        await member.floors.close()
        assert not server.operations(r"STREAM|CONSUMER|\$KV")


@pytest.mark.parametrize("denied", ["STREAM.INFO.S-g", "STREAM.MSG.GET", "$KV.", "CONSUMER.INFO"])
async def test_without_permission_messages_are_handled(denied):
    world = World()
    world.denied = denied
    async with member_in(world) as (member, _):
        assert await member.receive((51, 1), (52, 2)) == [1, 2]
        world.acknowledged = 2
        await member.floors.close()
        assert len(member.warnings) == 1
        assert not world.records


async def test_floors_of_other_sources_are_kept():
    other = digest(b"S other {{Partition(4)}}.other TOKEN")
    world = World(floor_bytes(CREATED, {other: (7, 8)}))
    async with member_in(world) as (member, _):
        await member.receive((11, 1))
        world.acknowledged = 1
        await member.floors.close()
        assert world.floors == {other: [7, 8], digest(SOURCE): [11, 1]}


# ---- with a server


@pytest.mark.parametrize("restarts", [True, False], ids=["a new process", "the same process"])
async def test_a_server_that_was_stopped_and_then_killed(server_factory, name, restarts):
    server, seen = server_factory(), Seen(name)
    async with js.connect(server.url, reconnect=PATIENT) as connection, Members() as members:
        jet = connection.jetstream(timeout=60)
        await elastic(jet, name, "m1", stream={"storage": "file"})

        async def started():
            return await members.start(server, name, "m1", seen, CALM, reconnect=PATIENT)

        member = await started()
        await publish(jet, name, 0, 100)
        await consumed(seen, 100)
        server.shut_down()
        server.start()
        await publish(jet, name, 100, 400)
        await consumed(seen, 400)
        await eventually(floors_hold, jet, name, seen)
        if restarts:
            await member.kill()
        server.kill()
        server.start()
        if restarts:
            member = await started()
        await publish(jet, name, 400, 500)
        await consumed(seen, 500)
        seen.check(500)
        assert seen.again == 0
        await member.stop()
        if server.version >= "2.15":
            # The server has copied them again.
            assert member.worker.skipped == 300
