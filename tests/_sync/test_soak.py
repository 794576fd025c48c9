# Generated from tests/_async/test_soak.py by codegen/twin.py. Edit that file instead.
"""Long trouble: kills, step-downs, bad networks. Short here, long with `make soak`.

Each scenario states what it saw: messages lost (none may be), duplicates that nothing explains
(none may be), and the longest pause between two messages.
"""

from __future__ import annotations

import gc
import random
import time
from contextlib import ExitStack
from datetime import timedelta
from functools import partial

import js_sync as js
from twinstream.core.deadline import monotonic
from twinstream.models import ConsumerConfig, StreamConfig
from twinstream.testing import Proxy
from tests._sync.flow import eventually, pause, together
from tests._sync.leaders import step_down
from tests._sync.streams import filled, waiting
from tests.soak import rounds, state

# How long a server may need to settle after trouble (seconds).
CALM = 3.0
PATIENT = js.ReconnectPolicy(wait=0.01, max_wait=0.2, attempts=-1)


class Log:
    """Which messages came when, and what trouble was made in between."""

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


def consume(consumer, log, count, troubles):
    """Take and acknowledge messages until each came."""
    with consumer.messages(max_messages=50, expires=2, heartbeat=0.5) as messages:
        for message in messages:
            log.note(message)
            acknowledge(message, log)
            if len(log.seen) == count:
                return
            # Trouble comes in the middle, not when all is done.
            while len(log.seen) * troubles > (log.trouble + 1) * count:
                pause(0.002)


def acknowledge(message, log):
    """Acknowledge; every fifth time ask for a confirmation, which covers those before it."""
    seq = message.metadata.stream_seq
    log.unconfirmed.add(seq)
    try:
        if seq % 5:
            message.ack()
            return
        message.double_ack(0.25)
    except (js.ConnectionLost, js.RequestTimeout, js.NoResponders):
        # Whether these counted is unknown.
        log.unconfirmed.clear()
        return
    log.confirmed |= log.unconfirmed
    log.unconfirmed.clear()


def test_kills_during_consume_and_acknowledgements(server_factory, name):
    troubles = rounds(4, 100)
    chance = random.Random(4)
    with server_factory() as server:
        with js.connect(server.url, reconnect=PATIENT) as connection:
            jet = connection.jetstream(timeout=20)
            count = troubles * 40
            stream = filled(jet, name, count)
            consumer = stream.create_consumer(
                ConsumerConfig(durable_name="c", ack_wait=timedelta(seconds=2))
            )
            log = Log()

            def chaos():
                for number in range(troubles):
                    target = number * 40 + chance.randrange(5, 35)
                    eventually(reached, log, target, patience=60)
                    log.disturb()
                    server.kill()
                    pause(chance.random() * 0.1)
                    server.restart()

            together(lambda: consume(consumer, log, count, troubles), chaos)
            log.check("kill -9", count)


def reached(log, target):
    return len(log.seen) >= target


def test_leaders_step_down_during_consume(cluster, name):
    troubles = rounds(3, 50)
    with js.connect(cluster.url, reconnect=PATIENT) as connection:
        jet = connection.jetstream(timeout=20)
        stream = jet.create_stream(StreamConfig(name=name, subjects=[f"{name}.>"], num_replicas=3))
        count = troubles * 100
        requests = [
            js.PublishRequest(subject=f"{name}.{n}", data=b"x", msg_id=str(n)) for n in range(count)
        ]
        for outcome in jet.publish_many(requests, window=100):
            assert not isinstance(outcome, js.PublishFailure), outcome
        consumer = stream.create_consumer(
            ConsumerConfig(durable_name="c", ack_wait=timedelta(seconds=2))
        )
        log = Log()

        def chaos():
            for number in range(troubles):
                eventually(reached, log, min(count, number * 100 + 30), patience=60)
                log.disturb()
                target = f"STREAM.LEADER.STEPDOWN.{name}"
                if number % 3:
                    target = f"CONSUMER.LEADER.STEPDOWN.{name}.c"
                step_down(connection, target)

        together(lambda: consume(consumer, log, count, troubles), chaos)
        log.check("leader step-down", count)


def test_a_node_of_the_cluster_dies_during_consume(cluster, name):
    troubles = rounds(1, 10)
    with js.connect(cluster.url, reconnect=PATIENT) as connection:
        jet = connection.jetstream(timeout=30)
        stream = jet.create_stream(StreamConfig(name=name, subjects=[f"{name}.>"], num_replicas=3))
        count = troubles * 200
        for number in range(count):
            jet.publish(f"{name}.x", msg_id=str(number))
        consumer = stream.create_consumer(
            ConsumerConfig(durable_name="c", ack_wait=timedelta(seconds=2))
        )
        log = Log()

        def chaos():
            for number in range(troubles):
                eventually(reached, log, min(count, number * 200 + 50), patience=60)
                log.disturb()
                leader = (consumer.info()).cluster.leader
                node = cluster.node(leader)
                node.kill()
                pause(0.2)
                node.restart()
                cluster.wait_until_ready()

        together(lambda: consume(consumer, log, count, troubles), chaos)
        log.check("node killed", count)


def test_a_bad_network(server, name):
    troubles = rounds(4, 60)
    chance = random.Random(7)
    with ExitStack() as stack:
        proxy = stack.enter_context(Proxy(server.url))
        with js.connect(
            proxy.url, reconnect=PATIENT, ping_interval=0.4, connect_timeout=1
        ) as connection:
            jet = connection.jetstream(timeout=20)
            count = troubles * 40
            with js.connect(server.url) as straight:
                filled(straight.jetstream(), name, count)
            consumer = (jet.get_stream(name)).create_consumer(
                ConsumerConfig(durable_name="c", ack_wait=timedelta(seconds=2))
            )
            log = Log()

            def chaos():
                kinds = ("cut", "delay", "black hole", "splinters")
                for number in range(troubles):
                    target = number * 40 + chance.randrange(5, 35)
                    eventually(reached, log, target, patience=60)
                    log.disturb()
                    kind = kinds[number % 4]
                    proxy.delay = 0.02 if kind == "delay" else 0.0
                    proxy.chunk = chance.randrange(1, 9) if kind == "splinters" else 65536
                    if kind == "cut":
                        proxy.cut()
                    elif kind == "black hole":
                        proxy.black_hole = True
                        eventually(gone, connection, patience=20)
                        proxy.black_hole = False

            together(lambda: consume(consumer, log, count, troubles), chaos)
            log.check("bad network", count)


def gone(connection):
    return not connection.is_connected


def test_a_pin_changes_hands(opened, name):
    troubles = rounds(5, 100)
    with opened() as jet:
        stream = filled(jet, name, 0)
        config = ConsumerConfig(
            durable_name="c", priority_policy="pinned_client", priority_groups=["g"]
        )
        stream.create_consumer(config)
        log = Log()
        ends = []
        group = js.Priority(group="g")

        def work():
            consumer = stream.get_consumer("c")
            with consumer.messages(priority=group, expires=2, heartbeat=0.5) as messages:
                while not ends:
                    try:
                        message = messages.next(0.1)
                    except js.RequestTimeout:
                        continue
                    log.note(message)
                    message.ack()

        def chaos():
            consumer = stream.get_consumer("c")
            for number in range(troubles):
                jet.publish(f"{name}.{number}")
                log.last = monotonic()
                eventually(reached, log, number + 1, patience=20)
                log.disturb()
                consumer.unpin("g")
            ends.append(True)

        together(work, work, chaos)
        log.check("pin handed over", troubles)


def test_eight_share_one_connection(server, name):
    each = rounds(60, 2000)
    with js.connect(server.url) as connection:
        jet = connection.jetstream(timeout=20)
        stream = filled(jet, name, 8 * each)
        stream.create_consumer(ConsumerConfig(durable_name="c", max_ack_pending=10_000))
        consumer = stream.get_consumer("c")
        seen = []

        def work():
            own = []
            for _ in range(each):
                message = consumer.next(timeout=20)
                own.append(message.metadata.stream_seq)
                message.ack()
                assert (jet.publish(f"{name}.more")).stream == name
            seen.extend(own)

        together(*[work] * 8)
        state(f"eight on one connection: {len(seen)} taken, {len(set(seen))} different")
        assert len(set(seen)) == 8 * each


def test_no_pull_stays_behind(server, name):
    fetches = rounds(400, 10_000)
    chance = random.Random(11)
    with js.connect(server.url) as connection:
        jet = connection.jetstream(timeout=20)
        stream = filled(jet, name, 0)
        consumer = stream.create_consumer(
            ConsumerConfig(durable_name="c", ack_wait=timedelta(seconds=30))
        )
        seen = []
        published = 0
        for number in range(fetches):
            if number % 3 == 0:
                # Published just so that it may cross the end of the request.
                connection.publish(f"{name}.{number}")
                published += 1
            batch = consumer.fetch(2, timeout=chance.choice((0.001, 0.0015, 0.002, 0.003)))
            for message in batch:
                seen.append(message.metadata.stream_seq)
                message.ack()
        while len(set(seen)) < published:
            message = consumer.next(timeout=5)
            assert message is not None, "a message was delivered to a request nobody waits for"
            seen.append(message.metadata.stream_seq)
            message.ack()

        def nothing_waits():
            return (consumer.info()).num_waiting == 0

        eventually(nothing_waits)
        state(f"fetches: {fetches}, {published} published, {len(seen) - published} came twice")
        assert sorted(seen) == list(range(1, published + 1))


def test_an_ordered_read_survives_leaders_and_cuts(cluster, name):
    troubles = rounds(3, 50)
    chance = random.Random(13)
    with ExitStack() as stack:
        proxy = stack.enter_context(Proxy(cluster.servers[0].url))
        reader = js.connect(proxy.url, reconnect=PATIENT, ping_interval=1)
        with js.connect(cluster.url, reconnect=PATIENT) as other:
            jet = other.jetstream(timeout=20)
            jet.create_stream(StreamConfig(name=name, subjects=[f"{name}.>"], num_replicas=3))
            count = troubles * 100
            requests = [
                js.PublishRequest(subject=f"{name}.{n}", msg_id=str(n)) for n in range(count)
            ]
            for outcome in jet.publish_many(requests, window=100):
                assert not isinstance(outcome, js.PublishFailure), outcome
            stream = reader.jetstream(timeout=20).get_stream(name)
            log = Log()
            order = []

            def read():
                with stream.ordered(max_messages=40, expires=2, heartbeat=0.5) as messages:
                    for message in messages:
                        log.note(message)
                        order.append(message.metadata.stream_seq)
                        if len(order) == count:
                            return

            def chaos():
                for number in range(troubles):
                    target = number * 100 + chance.randrange(10, 90)
                    eventually(reached, log, min(count, target), patience=60)
                    log.disturb()
                    if number % 2:
                        step_down(other, f"STREAM.LEADER.STEPDOWN.{name}")
                    else:
                        proxy.cut()

            together(read, chaos)
            log.check("ordered read", count)
            # Each message once and in order, whatever happened.
            assert order == list(range(1, count + 1))
        reader.close()


def test_soak_consumers_made_anew_outlive_a_restart(server_factory):
    """A server tells of a deletion before it has removed the consumer's folder."""
    count = rounds(5, 150)
    names = [f"S{lane}-{number}" for lane in range(4) for number in range(count)]
    with server_factory() as server:

        def lose(lane):
            with js.connect(server.url) as connection:
                for name in names[lane * count : (lane + 1) * count]:
                    delete_under(connection.jetstream(timeout=10), name)

        # Several at once, so that the server is busy.
        together(*(partial(lose, lane) for lane in range(4)))
        server.restart()
        with js.connect(server.url) as connection:
            gone = []
            for name in names:
                try:
                    connection.jetstream(timeout=10).get_consumer(name, "c")
                except js.ConsumerNotFound:
                    gone.append(name)
    state(f"consumers made anew: {len(names)}, gone after a restart: {gone}")
    assert not gone


def delete_under(jet, name):
    """Delete a consumer while its messages are waited for; they come again from a new one."""
    stream = filled(jet, name, 1)
    consumer = stream.create_consumer(ConsumerConfig(durable_name="c"))
    with consumer.messages(on_deleted="recreate") as messages:
        (messages.next(10)).double_ack()

        def take():
            (messages.next(10)).double_ack()

        def delete():
            eventually(waiting, consumer)
            stream.delete_consumer("c")

        together(take, delete)


def test_soak_publishing_and_reading_beside_a_collector_that_yields(server, name):
    """On Python 3.11 it collects in the middle of statements, and its callbacks may take turns.

    What one thread is about to do to a message under way, another may do meanwhile.
    """
    before, subjects = gc.get_threshold(), 1500

    def yields(*_):
        time.sleep(0)

    def disturbed(jet, stream, between):
        snapshots = []

        def write(number):
            requests = [
                js.PublishRequest(
                    subject=f"{name}.{each}", data=b"%d" % number, headers={"R": str(number)}
                )
                for each in range(subjects)
            ]
            for outcome in jet.publish_many(requests):
                assert not isinstance(outcome, js.PublishFailure), outcome

        def publish():
            number = 0
            while len(snapshots) < 4:
                number += 1
                write(number)
                pause(between)

        def read():
            for _ in range(2):
                snapshots.append(stream.snapshot())
                snapshots.append(stream.snapshot(f"{name}.*"))

        write(0)
        together(publish, read)
        for snapshot in snapshots:
            values = [int(snapshot[f"{name}.{each}"].data) for each in range(subjects)]
            assert values == sorted(values, reverse=True)

    gc.callbacks.append(yields)
    gc.set_threshold(100, 5, 5)
    try:
        for at in range(rounds(1, 60)):
            with js.connect(server.url) as connection:
                jet = connection.jetstream(timeout=30)
                config = StreamConfig(
                    name=name,
                    subjects=[f"{name}.>"],
                    allow_direct=at % 2 == 0,
                    max_msgs_per_subject=-1 if at % 4 < 2 else 1,
                )
                # Only there a snapshot needs a moment without writes.
                between = 0.1 if at % 4 == 3 else 0.0
                disturbed(jet, jet.create_stream(config), between)
                jet.delete_stream(name)
    finally:
        gc.set_threshold(*before)
        gc.callbacks.remove(yields)
