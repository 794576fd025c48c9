"""Consumer groups shared with clients that use orbit's layout, simulated with nats-py."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager

import nats

import js_async as js
from js_async.groups import ElasticGroup, StaticGroup, elastic_groups
from tests._async.flow import eventually
from tests._async.members import CALM, QUICK, Seen, consumed, elastic, publish, static
from twinstream.models import ElasticGroupConfig, PartitioningFilter, StreamConfig

SECOND = 1_000_000_000


@asynccontextmanager
async def both(server):
    """Open the JetStream context of the SDK and that of nats-py."""
    client = await nats.connect(server.url)
    try:
        async with js.connect(server.url) as connection:
            yield connection.jetstream(timeout=60), client.jetstream(timeout=60), client
    finally:
        await client.close()


async def bucket_of(old, name):
    """Return a bucket. If it is missing, create it with the settings of orbit."""
    try:
        return await old.key_value(name)
    except nats.js.errors.BucketNotFoundError:
        return await old.create_key_value(bucket=name, history=1)


class ForeignMember:
    """A member of an elastic group that uses orbit's protocol: raw requests over nats-py.

    Its ack_wait is in seconds.
    """

    def __init__(self, client, name, member, filters, seen, ack_wait):
        self._wait = ack_wait * SECOND
        self._client = client
        self._source = f"{name}-g"
        self._member = member
        self._filters = filters
        self._seen = seen
        self._is_over = False

    async def join(self):
        """Create the consumer, and return the server's response."""
        config = {
            "name": self._member,
            "ack_policy": "explicit",
            "ack_wait": self._wait,
            "max_ack_pending": 100,
            "inactive_threshold": self._wait,
            "filter_subjects": self._filters,
            "priority_groups": ["PCG"],
            "priority_policy": "pinned_client",
            "priority_timeout": self._wait,
        }
        request = {"stream_name": self._source, "config": config, "action": "create"}
        answer = await self._client.request(
            f"$JS.API.CONSUMER.CREATE.{self._source}.{self._member}",
            json.dumps(request).encode(),
            timeout=60,
        )
        return json.loads(answer.data)

    @asynccontextmanager
    async def at_work(self):
        """Work until the block ends. An error of the work is raised then."""
        self._is_over = False
        work = asyncio.create_task(self._work())
        try:
            yield
        finally:
            # A cancellation would be lost if nats-py received a message in the same moment.
            self._is_over = True
            await work

    async def _work(self):
        """Pull and acknowledge until the end."""
        inbox = self._client.new_inbox()
        subscription = await self._client.subscribe(inbox)
        pull = {"batch": 1, "expires": SECOND, "group": "PCG"}
        subject = f"$JS.API.CONSUMER.MSG.NEXT.{self._source}.{self._member}"
        while not self._is_over:
            await self._client.publish(subject, json.dumps(pull).encode(), reply=inbox)
            message = await subscription.next_msg(timeout=60)
            if message.reply:
                pull["id"] = message.headers["Nats-Pin-Id"]
                token, _, key = message.subject.split(".")
                assert f"{token}.{self._filters[0].partition('.')[2]}" in self._filters
                number = int(message.data)
                self._seen.finished.append((key, number))
                self._seen.by[number] = self._member
                self._seen.ended.add(number)
                await self._client.request(message.reply, b"+ACK", timeout=60)
            elif message.headers["Status"] == "423":
                # Its pin has timed out.
                del pull["id"]
            elif message.headers["Status"] == "503":
                # It did not pull for so long that its consumer has vanished.
                await self.join()


async def test_a_group_that_another_client_wrote_is_used(server, name):
    async with both(server) as (jet, old, _):
        await jet.create_stream(StreamConfig(name=name, subjects=[f"{name}.*"], storage="memory"))
        value = {
            "max_members": 4,
            "partitioning_filters": [{"filter": f"{name}.*", "partitioning_wildcards": [1]}],
            "max_buffered_msg": 1000,
            "members": ["m1"],
            "kept": {"by": "a newer client"},
        }
        kv = await bucket_of(old, "elastic-consumer-groups")
        await kv.put(f"{name}.g", json.dumps(value).encode())
        group = ElasticGroup(jet, name, "g")
        assert (await group.info()).partitions("m1") == (0, 1, 2, 3)
        assert [each async for each in elastic_groups(jet, name)] == ["g"]
        # What is missing yet is its stream.
        by_key = PartitioningFilter(filter=f"{name}.*", partitioning_wildcards=[1])
        config = ElasticGroupConfig(
            max_members=4, partitioning_filters=[by_key], max_buffered_msg=1000
        )
        await group.create(config)
        seen = Seen(name)
        async with group.worker("m1", seen.handler("m1"), config=QUICK) as worker:
            await publish(jet, name, 0, 20)
            await consumed(seen, 20)
            # Members that another client adds and removes, by blind puts as orbit does.
            await kv.put(f"{name}.g", json.dumps(value | {"members": ["m1", "m2"]}).encode())

            async def half():
                return worker.partitions == (0, 1)

            await eventually(half)
            await group.add_members("m3")
            stored = json.loads((await kv.get(f"{name}.g")).value)
            assert stored == value | {"members": ["m1", "m2", "m3"]}
            # nats-py deletes as orbit does.
            await kv.delete(f"{name}.g")
            await worker.wait(timeout=60)


async def test_our_members_and_others_share_the_partitions(server, name):
    async with both(server) as (jet, old, client):
        group = await elastic(jet, name, "m1", partitions=4)
        kv = await bucket_of(old, "elastic-consumer-groups")
        stored = json.loads((await kv.get(f"{name}.g")).value)
        assert stored == {
            "max_members": 4,
            "partitioning_filters": [{"filter": f"{name}.*", "partitioning_wildcards": [1]}],
            "members": ["m1"],
        }
        # Created again by the other client, its stream is the same.
        transform = {
            "src": f"{name}.*",
            "dest": f"{{{{Partition(4,1)}}}}.{name}.{{{{Wildcard(1)}}}}",
        }
        theirs = {
            "name": f"{name}-g",
            "retention": "workqueue",
            "max_consumers": 0,
            "max_msgs": 0,
            "max_bytes": 0,
            "discard": "new",
            "max_age": 0,
            "storage": "memory",
            "num_replicas": 1,
            "sources": [{"name": name, "subject_transforms": [transform]}],
            "sealed": False,
            "deny_delete": False,
            "deny_purge": False,
            "allow_rollup_hdrs": False,
            "compression": "none",
            "allow_direct": True,
            "mirror_direct": False,
            "consumer_limits": {},
        }
        made = await client.request(
            f"$JS.API.STREAM.CREATE.{name}-g", json.dumps(theirs).encode(), timeout=60
        )
        assert "error" not in json.loads(made.data)
        seen = Seen(name)
        filters = [f"{number}.{name}.*" for number in (2, 3)]
        foreign = ForeignMember(client, name, "m2", filters, seen, 1)
        async with group.worker("m1", seen.handler("m1"), config=CALM) as worker:
            # Before we leave its partitions, the server refuses its consumer.
            assert (await foreign.join())["error"]["err_code"] == 10100
            await group.add_members("m2")

            async def joined():
                return "error" not in await foreign.join()

            await eventually(joined)
            async with foreign.at_work():
                await publish(jet, name, 0, 100)
                await consumed(seen, 100)
                seen.check(100)
                assert set(seen.by.values()) == {"m1", "m2"}
                assert worker.partitions == (0, 1)
                assert sorted(await group.active_members()) == ["m1", "m2"]
            # It goes, and we take its partitions when its consumer has vanished.
            await group.remove_members("m2")
            await publish(jet, name, 100, 200)
            await consumed(seen, 200)
            seen.check(200)


async def test_an_instance_of_another_client_stands_by(server, name):
    async with both(server) as (jet, _, client):
        group = await elastic(jet, name, "m1", partitions=2)
        seen = Seen(name)
        worker = group.worker("m1", seen.handler("m1"), config=CALM)
        await worker.start()
        foreign = ForeignMember(client, name, "m1", [f"0.{name}.*", f"1.{name}.*"], seen, 60)
        # The same consumer for both: the same names and settings.
        assert "error" not in await foreign.join()
        await publish(jet, name, 0, 20)
        await consumed(seen, 20)
        async with foreign.at_work():
            await publish(jet, name, 20, 40)
            await consumed(seen, 40)
            await worker.stop()
            assert worker.handled == 40
            await publish(jet, name, 40, 60)
            await consumed(seen, 60)
            assert worker.handled == 40
        seen.check(60)


async def test_a_static_group_that_another_client_wrote_is_used(server, name):
    async with both(server) as (jet, old, _):
        await static(jet, name, "m1", "m2", partitions=3)
        kv = await bucket_of(old, "static-consumer-groups")
        value = {
            "max_members": 3,
            "filters": [f"{name}.*"],
            "member_mappings": [
                {"member": "a", "partitions": [0, 2]},
                {"member": "b", "partitions": [1]},
            ],
        }
        await kv.put(f"{name}.theirs", json.dumps(value).encode())
        group = StaticGroup(jet, name, "theirs")
        seen = Seen(name)
        one = group.worker("a", seen.handler("a"), config=QUICK)
        two = group.worker("b", seen.handler("b"), config=QUICK)
        async with one, two:
            await publish(jet, name, 0, 40)
            await consumed(seen, 40)
            assert sorted(await group.active_members()) == ["a", "b"]
        seen.check(40)
        assert set(seen.by.values()) == {"a", "b"}
