"""Long failure scenarios: kills, step-downs, bad networks. Short here, long with `make soak`.

Each scenario reports the number of lost messages (must be 0), the number of unexplained duplicates
(must be 0), and the longest pause between two messages.
"""

from __future__ import annotations

import gc
import random
import time
from contextlib import ExitStack
from datetime import timedelta
from functools import partial

import js_async as js
from tests._async.flow import eventually, pause, together
from tests._async.leaders import step_down
from tests._async.streams import filled, waiting
from tests.soak import rounds, state
from twinstream.core.deadline import monotonic
from twinstream.models import ConsumerConfig, StreamConfig
from twinstream.testing import Proxy

# How long a server may need to settle after trouble (seconds).
CALM = 3.0
# Time in which unacknowledged messages may be delivered again (seconds).
ACK_WAIT = timedelta(seconds=2)
# A pause without a message is trouble, too (seconds): a process that stood still may have let them
# wait for longer than ACK_WAIT.
LONG_PAUSE = 1.0
PATIENT = js.ReconnectPolicy(wait=0.01, max_wait=0.2, attempts=-1)


class Log:
    """The arrival times of messages, and the failures that were caused."""

    def __init__(self):
        self.first = {}
        self.confirmed = set()
        self.unconfirmed = set()
        self.trouble = 0
        self.trouble_at = 0.0
        self.duplicates = self.unexplained = 0
        self.longest = 0.0
        self.last = monotonic()

    @property
    def seen(self):
        return self.first

    def disturb(self):
        self.trouble += 1
        self.trouble_at = monotonic()

    def note(self, message):
        now = monotonic()
        self.longest = max(self.longest, now - self.last)
        if now - self.last > LONG_PAUSE:
            self.trouble_at = now
        self.last = now
        seq = message.metadata.stream_seq
        if seq in self.first:
            self.duplicates += 1
            # A server that is disturbed after it delivered may forget the delivery or its
            # acknowledgement. Confirmed in quiet times, nothing may come twice.
            quiet = self.trouble_at < self.first[seq] - CALM
            self.unexplained += quiet and seq in self.confirmed
        self.first.setdefault(seq, now)

    def check(self, name, count):
        lost = count - len(self.seen)
        state(
            f"{name}: {count} messages, {self.trouble} troubles, {lost} lost,"
            f" {self.duplicates} again ({self.unexplained} unexplained),"
            f" longest pause {self.longest:.2f} s"
        )
        assert (lost, self.unexplained) == (0, 0)


async def consume(consumer, log, count, troubles):
    """Take and acknowledge messages until each message arrived."""
    async with consumer.messages(max_messages=50, expires=2, heartbeat=0.5) as messages:
        async for message in messages:
            log.note(message)
            await acknowledge(message, log)
            if len(log.seen) == count:
                return
            # Trouble comes in the middle, not when all is done.
            while len(log.seen) * troubles > (log.trouble + 1) * count:
                await pause(0.002)


async def acknowledge(message, log):
    """Acknowledge.

    Every fifth time wait for a confirmation, which covers earlier acknowledgements.
    """
    seq = message.metadata.stream_seq
    log.unconfirmed.add(seq)
    try:
        if seq % 5:
            await message.ack()
            return
        await message.double_ack(timeout=0.25)
    except (js.ConnectionLost, js.RequestTimeout, js.NoResponders):
        # Whether these counted is unknown.
        log.unconfirmed.clear()
        return
    log.confirmed |= log.unconfirmed
    log.unconfirmed.clear()


async def test_kills_during_consume_and_acknowledgements(server_factory, name):
    troubles = rounds(4, 100)
    chance = random.Random(4)
    with server_factory() as server:
        async with js.connect(server.url, reconnect=PATIENT) as connection:
            jet = connection.jetstream(timeout=20)
            count = troubles * 40
            stream = await filled(jet, name, count)
            consumer = await stream.create_consumer(
                ConsumerConfig(durable_name="c", ack_wait=ACK_WAIT)
            )
            log = Log()

            async def chaos():
                for number in range(troubles):
                    target = number * 40 + chance.randrange(5, 35)
                    await eventually(reached, log, target, patience=60)
                    log.disturb()
                    server.kill()
                    await pause(chance.random() * 0.1)
                    server.restart()

            await together(lambda: consume(consumer, log, count, troubles), chaos)
            log.check("kill -9", count)


async def reached(log, target):
    return len(log.seen) >= target


async def test_leaders_step_down_during_consume(cluster, name):
    troubles = rounds(3, 50)
    async with js.connect(cluster.url, reconnect=PATIENT) as connection:
        jet = connection.jetstream(timeout=20)
        stream = await jet.create_stream(
            StreamConfig(name=name, subjects=[f"{name}.>"], num_replicas=3)
        )
        count = troubles * 100
        requests = [
            js.PublishRequest(subject=f"{name}.{n}", data=b"x", msg_id=str(n)) for n in range(count)
        ]
        async for outcome in jet.publish_many(requests, window=100):
            assert not isinstance(outcome, js.PublishFailure), outcome
        consumer = await stream.create_consumer(ConsumerConfig(durable_name="c", ack_wait=ACK_WAIT))
        log = Log()

        async def chaos():
            for number in range(troubles):
                await eventually(reached, log, min(count, number * 100 + 30), patience=60)
                log.disturb()
                target = f"STREAM.LEADER.STEPDOWN.{name}"
                if number % 3:
                    target = f"CONSUMER.LEADER.STEPDOWN.{name}.c"
                await step_down(connection, target)

        await together(lambda: consume(consumer, log, count, troubles), chaos)
        log.check("leader step-down", count)


async def test_a_node_of_the_cluster_dies_during_consume(cluster, name):
    troubles = rounds(1, 10)
    async with js.connect(cluster.url, reconnect=PATIENT) as connection:
        jet = connection.jetstream(timeout=30)
        stream = await jet.create_stream(
            StreamConfig(name=name, subjects=[f"{name}.>"], num_replicas=3)
        )
        count = troubles * 200
        for number in range(count):
            await jet.publish(f"{name}.x", msg_id=str(number))
        consumer = await stream.create_consumer(ConsumerConfig(durable_name="c", ack_wait=ACK_WAIT))
        log = Log()

        async def chaos():
            for number in range(troubles):
                await eventually(reached, log, min(count, number * 200 + 50), patience=60)
                log.disturb()
                leader = (await consumer.info()).cluster.leader
                node = cluster.node(leader)
                node.kill()
                await pause(0.2)
                node.restart()
                cluster.wait_until_ready()

        await together(lambda: consume(consumer, log, count, troubles), chaos)
        log.check("node killed", count)


async def test_a_bad_network(server, name):
    troubles = rounds(4, 60)
    chance = random.Random(7)
    with ExitStack() as stack:
        proxy = stack.enter_context(Proxy(server.url))
        async with js.connect(
            proxy.url, reconnect=PATIENT, ping_interval=0.4, connect_timeout=1
        ) as connection:
            jet = connection.jetstream(timeout=20)
            count = troubles * 40
            async with js.connect(server.url) as straight:
                await filled(straight.jetstream(), name, count)
            consumer = await (await jet.get_stream(name)).create_consumer(
                ConsumerConfig(durable_name="c", ack_wait=ACK_WAIT)
            )
            log = Log()

            async def chaos():
                kinds = ("cut", "delay", "black hole", "splinters")
                for number in range(troubles):
                    target = number * 40 + chance.randrange(5, 35)
                    await eventually(reached, log, target, patience=60)
                    log.disturb()
                    kind = kinds[number % 4]
                    proxy.delay = 0.02 if kind == "delay" else 0.0
                    proxy.chunk = chance.randrange(1, 9) if kind == "splinters" else 65536
                    if kind == "cut":
                        proxy.cut()
                    elif kind == "black hole":
                        proxy.black_hole = True
                        await eventually(gone, connection)
                        proxy.black_hole = False

            await together(lambda: consume(consumer, log, count, troubles), chaos)
            log.check("bad network", count)


async def gone(connection):
    return not connection.is_connected


async def test_a_pin_changes_hands(opened, name):
    troubles = rounds(5, 100)
    async with opened() as jet:
        stream = await filled(jet, name, 0)
        config = ConsumerConfig(
            durable_name="c", priority_policy="pinned_client", priority_groups=["g"]
        )
        await stream.create_consumer(config)
        log = Log()
        ends = []
        group = js.Priority(group="g")

        async def work():
            consumer = await stream.get_consumer("c")
            async with consumer.messages(priority=group, expires=2, heartbeat=0.5) as messages:
                while not ends:
                    message = await messages.next(timeout=0.1)
                    if message is None:
                        continue
                    log.note(message)
                    await message.ack()

        async def chaos():
            consumer = await stream.get_consumer("c")
            for number in range(troubles):
                await jet.publish(f"{name}.{number}")
                log.last = monotonic()
                await eventually(reached, log, number + 1)
                log.disturb()
                await consumer.unpin("g")
            ends.append(True)

        await together(work, work, chaos)
        log.check("pin handed over", troubles)


async def test_eight_share_one_connection(server, name):
    each = rounds(60, 2000)
    async with js.connect(server.url) as connection:
        jet = connection.jetstream(timeout=20)
        stream = await filled(jet, name, 8 * each)
        await stream.create_consumer(ConsumerConfig(durable_name="c", max_ack_pending=10_000))
        consumer = await stream.get_consumer("c")
        seen = []

        async def work():
            own = []
            for _ in range(each):
                message = await consumer.next(timeout=20)
                own.append(message.metadata.stream_seq)
                await message.ack()
                assert (await jet.publish(f"{name}.more")).stream == name
            seen.extend(own)

        await together(*[work] * 8)
        state(f"eight on one connection: {len(seen)} taken, {len(set(seen))} different")
        assert len(set(seen)) == 8 * each


async def test_no_pull_stays_behind(server, name):
    fetches = rounds(400, 10_000)
    chance = random.Random(11)
    async with js.connect(server.url) as connection:
        jet = connection.jetstream(timeout=20)
        stream = await filled(jet, name, 0)
        consumer = await stream.create_consumer(
            ConsumerConfig(durable_name="c", ack_wait=timedelta(seconds=30))
        )
        seen = []
        published = 0
        for number in range(fetches):
            if number % 3 == 0:
                # Published just so that it may cross the end of the request.
                await connection.publish(f"{name}.{number}")
                published += 1
            batch = await consumer.fetch(2, timeout=chance.choice((0.001, 0.0015, 0.002, 0.003)))
            for message in batch:
                seen.append(message.metadata.stream_seq)
                await message.ack()
        while len(set(seen)) < published:
            message = await consumer.next(timeout=60)
            assert message is not None, "a message was delivered to a request nobody waits for"
            seen.append(message.metadata.stream_seq)
            await message.ack()

        async def nothing_waits():
            return (await consumer.info()).num_waiting == 0

        await eventually(nothing_waits)
        state(f"fetches: {fetches}, {published} published, {len(seen) - published} came twice")
        assert sorted(seen) == list(range(1, published + 1))


async def test_an_ordered_read_survives_leaders_and_cuts(cluster, name):
    troubles = rounds(3, 50)
    chance = random.Random(13)
    with ExitStack() as stack:
        proxy = stack.enter_context(Proxy(cluster.servers[0].url))
        reader = await js.connect(proxy.url, reconnect=PATIENT, ping_interval=1)
        async with js.connect(cluster.url, reconnect=PATIENT) as other:
            jet = other.jetstream(timeout=20)
            await jet.create_stream(StreamConfig(name=name, subjects=[f"{name}.>"], num_replicas=3))
            count = troubles * 100
            requests = [
                js.PublishRequest(subject=f"{name}.{n}", msg_id=str(n)) for n in range(count)
            ]
            async for outcome in jet.publish_many(requests, window=100):
                assert not isinstance(outcome, js.PublishFailure), outcome
            stream = await reader.jetstream(timeout=20).get_stream(name)
            log = Log()
            order = []

            async def read():
                async with stream.ordered(max_messages=40, expires=2, heartbeat=0.5) as messages:
                    async for message in messages:
                        log.note(message)
                        order.append(message.metadata.stream_seq)
                        if len(order) == count:
                            return

            async def chaos():
                for number in range(troubles):
                    target = number * 100 + chance.randrange(10, 90)
                    await eventually(reached, log, min(count, target), patience=60)
                    log.disturb()
                    if number % 2:
                        await step_down(other, f"STREAM.LEADER.STEPDOWN.{name}")
                    else:
                        proxy.cut()

            await together(read, chaos)
            log.check("ordered read", count)
            # Each message once and in order, despite all failures.
            assert order == list(range(1, count + 1))
        await reader.close()


async def test_soak_recreated_consumers_survive_a_restart(server_factory):
    """A server reports a deletion before it has removed the consumer's folder."""
    count = rounds(5, 150)
    names = [f"S{lane}-{number}" for lane in range(4) for number in range(count)]
    with server_factory() as server:

        async def lose(lane):
            async with js.connect(server.url) as connection:
                for name in names[lane * count : (lane + 1) * count]:
                    await delete_under(connection.jetstream(timeout=10), name)

        # Several at once, so that the server is busy.
        await together(*(partial(lose, lane) for lane in range(4)))
        server.restart()
        async with js.connect(server.url) as connection:
            gone = []
            for name in names:
                try:
                    await connection.jetstream(timeout=10).get_consumer(name, "c")
                except js.ConsumerNotFound:
                    gone.append(name)
    state(f"consumers made anew: {len(names)}, gone after a restart: {gone}")
    assert not gone


async def delete_under(jet, name):
    """Delete a consumer while a client waits for its messages; a new one delivers them again."""
    stream = await filled(jet, name, 1)
    consumer = await stream.create_consumer(ConsumerConfig(durable_name="c"))
    async with consumer.messages(on_deleted="recreate") as messages:
        await (await messages.next(timeout=10)).double_ack()

        async def take():
            await (await messages.next(timeout=10)).double_ack()

        async def delete():
            await eventually(waiting, consumer)
            await stream.delete_consumer("c")

        await together(take, delete)


async def test_soak_publishing_and_reading_with_a_yielding_collector(server, name):
    """On Python 3.11 the garbage collector runs within statements, and may switch threads.

    So one thread may change the state of a message in flight while another thread is about to
    change it.
    """
    before, subjects = gc.get_threshold(), 1500

    def yields(*_):
        time.sleep(0)

    async def disturbed(jet, stream, between):
        snapshots = []

        async def write(number):
            requests = [
                js.PublishRequest(
                    subject=f"{name}.{each}", data=b"%d" % number, headers={"R": str(number)}
                )
                for each in range(subjects)
            ]
            async for outcome in jet.publish_many(requests):
                assert not isinstance(outcome, js.PublishFailure), outcome

        async def publish():
            number = 0
            while len(snapshots) < 4:
                number += 1
                await write(number)
                await pause(between)

        async def read():
            for _ in range(2):
                snapshots.append(await stream.snapshot())
                snapshots.append(await stream.snapshot(f"{name}.*"))

        await write(0)
        await together(publish, read)
        for snapshot in snapshots:
            values = [int(snapshot[f"{name}.{each}"].data) for each in range(subjects)]
            assert values == sorted(values, reverse=True)

    gc.callbacks.append(yields)
    gc.set_threshold(100, 5, 5)
    try:
        for at in range(rounds(1, 60)):
            async with js.connect(server.url) as connection:
                jet = connection.jetstream(timeout=30)
                config = StreamConfig(
                    name=name,
                    subjects=[f"{name}.>"],
                    allow_direct=at % 2 == 0,
                    max_msgs_per_subject=-1 if at % 4 < 2 else 1,
                )
                # Only there a snapshot needs a moment without writes.
                between = 0.1 if at % 4 == 3 else 0.0
                await disturbed(jet, await jet.create_stream(config), between)
                await jet.delete_stream(name)
    finally:
        gc.set_threshold(*before)
        gc.callbacks.remove(yields)
