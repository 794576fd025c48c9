"""Members of consumer groups for scenarios, and the messages that they handled."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import timedelta

import pytest

import js_async as js
from js_async.groups import ElasticGroup, StaticGroup
from tests._async.flow import eventually, pause
from twinstream.models import (
    ConsumerConfig,
    ElasticGroupConfig,
    PartitioningFilter,
    StaticGroupConfig,
    StreamConfig,
    SubjectTransform,
)

__all__ = [
    "CALM",
    "PATIENT",
    "QUICK",
    "STRICT",
    "Members",
    "Seen",
    "consumed",
    "elastic",
    "floors_hold",
    "has",
    "publish",
    "static",
]

QUICK = ConsumerConfig(ack_wait=timedelta(seconds=1))
# No pause of a busy machine lets a message come again, or another instance be pinned.
CALM = ConsumerConfig(ack_wait=timedelta(seconds=60))
PATIENT = js.ReconnectPolicy(wait=0.01, max_wait=0.1, attempts=-1)
STRICT = ConsumerConfig(ack_wait=timedelta(seconds=1), max_ack_pending=1)


class Seen:
    """The messages that the handlers of all members handled, in this order.

    An acknowledgement is confirmed within `patience` seconds; one that is sent to a consumer that
    is just deleted is never confirmed.
    """

    def __init__(self, name, patience=60):
        self._name = name
        self._patience = patience
        self.finished = []
        self.ended = set()
        """The numbers of the messages whose handler has ended, after the acknowledgement."""
        self.by = {}
        self.last = {}
        """The highest number in each partition."""
        self.copies = {}
        """The sequences in the group's stream with which each message was handled."""
        self._is_held = False
        self._error = None

    def hold(self):
        """Make handlers wait until `let_go`."""
        self._is_held = True

    def let_go(self, error=None):
        """Let handlers continue. With an error, one handler raises it."""
        self._error = error
        self._is_held = False

    def handler(self, member, confirmed=True):
        """Return the handler of a member."""

        async def handle(message):
            while self._is_held:
                await pause(0.01)
            if self._error is not None:
                error, self._error = self._error, None
                raise error
            _, key = message.subject.split(".")
            number = int(message.data)
            self.finished.append((key, number))
            self.by.setdefault(number, member)
            self.copies.setdefault(number, set()).add(message.metadata.stream_seq)
            self.last[message.partition] = max(number, self.last.get(message.partition, 0))
            try:
                if confirmed:
                    await message.double_ack(timeout=self._patience)
            finally:
                self.ended.add(number)

        return handle

    @property
    def numbers(self):
        """The numbers of the messages that were handled."""
        return {number for _, number in self.finished}

    def check(self, count, *, strict=False):
        """Fail if a message is missing, or was first handled before an earlier message of its key.

        With `strict`, fail also if an earlier message was handled again after a later one.
        """
        assert self.numbers == set(range(count))
        newest = {}
        for key, number in self.finished:
            last = newest.get(key, -1)
            known = number <= last
            assert not (strict and number < last), (key, last, number)
            if not known:
                between = set(range(last + 1, number))
                missed = {other for other in between if self.key(other) == key}
                assert not missed, (key, last, number)
                newest[key] = number

    @staticmethod
    def key(number):
        """Return the key of a message."""
        return f"k{number % 23}"

    @property
    def twice(self):
        """The number of messages of which more than one copy was handled."""
        return sum(1 for sequences in self.copies.values() if len(sequences) > 1)

    @property
    def again(self):
        """The number of messages that were handled more than once."""
        return len(self.finished) - len(self.numbers)


async def publish(jet, name, first, end):
    """Publish numbered messages. The key of each message is derived from its number."""
    requests = (
        js.PublishRequest(subject=f"{name}.{Seen.key(number)}", data=b"%d" % number)
        for number in range(first, end)
    )
    async for outcome in jet.publish_many(requests):
        assert not isinstance(outcome, js.PublishFailure), outcome


async def elastic(jet, name, *members, partitions=10, stream=None, **settings):
    """Return an elastic group of a new stream. The options of the stream are in `stream`."""
    options = stream or {"storage": "memory"}
    await jet.create_stream(StreamConfig(name=name, subjects=[f"{name}.*"], **options))
    group = ElasticGroup(jet, name, "g")
    by_key = PartitioningFilter(filter=f"{name}.*", partitioning_wildcards=[1])
    await group.create(
        ElasticGroupConfig(
            max_members=partitions,
            partitioning_filters=[by_key],
            members=list(members) or None,
            **settings,
        )
    )
    return group


async def static(jet, name, *members, partitions=10, **settings):
    """Return a static group of a new stream."""
    transform = SubjectTransform(
        src=f"{name}.*", dest=f"{{{{Partition({partitions},1)}}}}.{name}.{{{{Wildcard(1)}}}}"
    )
    await jet.create_stream(
        StreamConfig(
            name=name, subjects=[f"{name}.*"], storage="memory", subject_transform=transform
        )
    )
    group = StaticGroup(jet, name, "g")
    await group.create(
        StaticGroupConfig(max_members=partitions, members=list(members) or None, **settings)
    )
    return group


async def consumed(seen, count, patience=60):
    """Wait until the handlers of `count` messages have ended."""

    async def enough():
        return len(seen.ended) >= count

    await eventually(enough, patience=patience)


async def floors_hold(jet, name, seen):
    """Return whether the stored floor of each partition is its last message."""
    bucket = await jet.get_key_value("elastic-consumer-groups")
    for partition, number in seen.last.items():
        record = await bucket.entry(f"floors/{name}.g.{partition}")
        if record is None:
            return False
        ((origin, _),) = json.loads(record.value)["floors"].values()
        if origin != number + 1:
            return False
    return True


async def has(worker, partitions):
    """Return whether a worker consumes exactly these partitions."""
    return sorted(worker.partitions) == sorted(partitions)


class Members:
    """Starts members, and stops those that still run when the test ends or has failed.

    Their errors are ignored. A test that depends on how a member ends calls the member's `stop`.
    """

    def __init__(self):
        self._started = []

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        for member in self._started:
            member.seen.let_go()
            with suppress(Exception):
                await member.stop()

    async def start(self, server, name, member, seen, config=QUICK, kind="elastic", **options):
        """Return a new member, which works."""
        connection = await js.connect(server.url, **options)
        jet, reports = connection.jetstream(timeout=60), []
        kinds = {"elastic": ElasticGroup, "static": StaticGroup}
        worker = kinds[kind](jet, name, "g").worker(
            member, seen.handler(member), config=config, on_report=reports.append
        )
        started = Member(connection, worker, seen, reports)
        self._started.append(started)
        await worker.start()
        return started


class Member:
    """A member process, simulated by its own connection, which can be cut."""

    def __init__(self, connection, worker, seen, reports):
        self.connection = connection
        self.worker = worker
        self.reports = reports
        self.seen = seen
        self._is_over = False

    async def kill(self):
        """End the member as a crash does: without sending anything to the server."""
        self._is_over = True
        await self.connection.close()
        with pytest.raises(js.TwinstreamError):
            await self.worker.wait(timeout=60)

    async def stop(self):
        """End the member, if it was not ended before."""
        if self._is_over:
            return
        self._is_over = True
        try:
            await self.worker.stop()
        finally:
            await self.connection.close()
