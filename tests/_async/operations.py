"""Every operation of the table of permissions, with its preparation and a check of its effect."""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress
from datetime import timedelta
from functools import partial
from os import urandom
from tempfile import TemporaryDirectory

import pytest
from attrs import frozen

import js_async as js
from js_async.backup import backup_stream, restore_stream
from js_async.coordination import Coordination
from js_async.counters import Counters
from js_async.exactly_once import Processing, Stored, SubjectWriter
from js_async.fast_ingest import FastIngest
from js_async.health import check_health
from js_async.outbox import OutboxRelay, SqliteOutbox
from js_async.schedules import Schedule, Schedules
from js_async.workers import DeadLetters
from tests._async.flow import eventually, together
from tests._async.flow import pause as a_while
from tests._async.group_operations import GROUP_ACTS, GROUP_PROOFS, set_group
from tests._async.kv_operations import BUCKET_ACTS, BUCKET_PROOFS, set_bucket
from tests._async.streams import settled
from twinstream.models import AckPolicy, ConsumerConfig, ObjectStoreConfig, StreamConfig, evolve

__all__ = ["ACTS", "PROOFS", "Stage"]

# Long enough for a busy machine; only what is denied takes it whole.
PATIENCE = 10.0

# What streams of some operations are like.
SETTINGS = {
    "atomic_batch": {"allow_atomic": True},
    "fast_ingest": {"allow_batched": True},
    "subject_writer_insert": {
        "storage": "file",
        "max_msgs_per_subject": 1,
        "discard": "new",
        "discard_new_per_subject": True,
    },
    "subject_writer_upsert": {"max_msgs_per_subject": 1},
    "counters": {"allow_msg_counter": True, "allow_direct": True},
    "get_message_direct": {"allow_direct": True},
    "get_last_message_direct": {"allow_direct": True},
    "read": {"allow_direct": True},
    "schedules": {"allow_msg_schedules": True, "allow_msg_ttl": True, "allow_rollup_hdrs": True},
    "outbox": {"storage": "file"},
    "processing": {"storage": "file"},
    "backup_stream": {"storage": "file"},
    "restore_stream": {"storage": "file"},
    "snapshot": {"allow_direct": True},
    "coordination": {
        "subjects": ["coordination.held.>"],
        "storage": "file",
        "max_msgs_per_subject": 1,
        "allow_msg_ttl": True,
    },
}
BIG = 6


@frozen
class Stage:
    """The stream and consumer of an operation, and the seconds to wait for what cannot arrive."""

    stream: str
    short: float = PATIENCE
    folder: str = ""

    @property
    def subject(self):
        """A subject of the stream."""
        return f"p.{self.stream}.a"

    @property
    def deliver_subject(self):
        """The deliver subject of its push consumer."""
        return f"deliver.{self.stream}"

    @property
    def config(self):
        """The stream's configuration."""
        config = StreamConfig(name=self.stream, subjects=[f"p.{self.stream}.>"], storage="memory")
        return evolve(config, **SETTINGS.get(self.stream, {}))

    @property
    def store_config(self):
        """The configuration of its object store."""
        return ObjectStoreConfig(bucket=self.stream, storage="memory")

    async def set(self, jet):
        """Create the stream with three messages, a pull consumer and a push consumer."""
        for ending in ("", "_OUT", "-dead", "-failures"):
            with suppress(js.StreamNotFound):
                await jet.delete_stream(self.stream + ending)
        if "_group" in self.stream:
            await set_group(jet, self.stream)
            return
        if "key_value" in self.stream:
            await set_bucket(jet, self.stream)
            return
        stream = await jet.create_stream(self.config)
        if self.stream in {"subject_writer_insert", "counters", "coordination"}:
            return
        for number in range(3):
            await jet.publish(self.subject, b"%d" % number)
        if self.stream.startswith("read"):
            # Only the leader can tell that nothing comes behind the third.
            await jet.publish(self.subject, b"gone")
            await stream.delete_message(4)
        if self.stream in {"create_push_messages", "push_messages", "backup_stream"}:
            for _ in range(BIG):
                await jet.publish(self.subject, urandom(900_000))
        await stream.create_consumer(ConsumerConfig(durable_name="c"))
        await stream.create_consumer(
            ConsumerConfig(
                durable_name="push",
                deliver_subject=f"{self.deliver_subject}.push",
                flow_control=True,
                idle_heartbeat=timedelta(seconds=5),
            )
        )
        if self.stream in PREPARED:
            await PREPARED[self.stream](jet, self, stream)


async def another_stream(jet, stage, _):
    name = f"{stage.stream}_OUT"
    await jet.create_stream(StreamConfig(name=name, subjects=[f"p.{name}.*"]))


async def one_failure(jet, stage, stream):
    """Let a message fail; another client has stored a message on the subject of its letter."""
    await DeadLetters(jet, stage.stream).create()
    created = (await stream.info()).created
    await jet.publish(f"dead.{stage.stream}.c.{created.ns:x}.1", b"no letter")
    consumer = await stream.get_consumer("c")
    await (await consumer.fetch(1))[0].term("bad")


async def only_a_backup(jet, stage, stream):
    await backup_stream(jet, stage.stream, stage.folder, overwrite=True)
    await jet.delete_stream(stage.stream)


async def a_message_without_acknowledgement(jet, stage, stream):
    consumer = await stream.get_consumer("c")
    assert len(await consumer.fetch(1)) == 1


async def no_object_store(jet, stage, _):
    with suppress(js.BucketNotFound):
        await jet.delete_object_store(stage.stream)


async def an_object_store(jet, stage, stream):
    await no_object_store(jet, stage, stream)
    store = await jet.create_object_store(stage.store_config)
    await store.put(js.ObjectMeta("a", chunk_size=1000), b"x" * 3000)
    await jet.publish(f"$O.{stage.stream}.C.orphan", b"x")


# Objects that some operations need in addition to their stream.
PREPARED = {
    "create_object_store": no_object_store,
    "get_object_store": an_object_store,
    "update_object_store": an_object_store,
    "create_or_update_object_store": no_object_store,
    "delete_object_store": an_object_store,
    "object_stores": an_object_store,
    "object_store_names": an_object_store,
    "object_put": an_object_store,
    "object_get": an_object_store,
    "object_get_part": an_object_store,
    "object_info": an_object_store,
    "object_list": an_object_store,
    "object_watch": an_object_store,
    "object_update_meta": an_object_store,
    "object_delete": an_object_store,
    "object_add_link": an_object_store,
    "object_status": an_object_store,
    "object_change": an_object_store,
    "object_seal": an_object_store,
    "object_sweep": an_object_store,
    "check_health": a_message_without_acknowledgement,
    "check_health_of_stream": a_message_without_acknowledgement,
    "processing": another_stream,
    "dead_letters": one_failure,
    "restore_stream": only_a_backup,
}


async def all_acknowledged(jet, stage):
    name = f"{stage.stream}-failures"
    consumer = await jet.get_consumer(name, f"dead-letters-{stage.stream}-all")
    await eventually(settled, consumer, 1, patience=3)


async def one_content(jet, stage):
    store = await jet.get_object_store(stage.stream)
    info = await store.info("a")
    found = jet.bind_stream(store.stream_name).subjects(f"$O.{stage.stream}.C.>")
    subjects = {subject async for subject, _ in found}
    assert subjects == {f"$O.{stage.stream}.C.{info.nuid}", f"$O.{stage.stream}.C.orphan"}


# What shows that an operation is done, to a user who may look.
PROOFS = {
    "dead_letters": all_acknowledged,
    "object_put": one_content,
    **BUCKET_PROOFS,
    **GROUP_PROOFS,
}


async def publish(jet, stage):
    ack = await jet.publish(stage.subject, b"x")
    assert ack.stream == stage.stream
    many = [js.PublishRequest(subject=stage.subject)] * 3
    outcomes = [each async for each in jet.publish_many(many)]
    assert [ack.stream for ack in outcomes] == [stage.stream] * 3


async def consume(jet, stage):
    consumer = await jet.get_consumer(stage.stream, "c")
    await take(consumer, stage)


async def consume_bound(jet, stage):
    await take(jet.bind_consumer(stage.stream, "c"), stage)


async def take(consumer, stage):
    batch = await consumer.fetch(1, timeout=stage.short)
    await batch[0].double_ack()
    async with consumer.messages() as messages:
        await (await messages.next(timeout=stage.short)).ack()
        await (await messages.next(timeout=stage.short)).double_ack()


async def ordered(jet, stage, subject=None):
    stream = jet.bind_stream(stage.stream)
    async with stream.ordered(subjects=subject) as messages:
        for seq in (1, 2, 3):
            assert (await messages.next(timeout=stage.short)).metadata.stream_seq == seq


async def ordered_info(jet, stage):
    async with jet.bind_stream(stage.stream).ordered() as messages:
        assert (await messages.next(timeout=stage.short)).metadata.stream_seq == 1
        assert (await messages.info()).name == messages.consumer_name


async def ordered_filter(jet, stage):
    await ordered(jet, stage, stage.subject)


async def create_push_messages(jet, stage):
    config = ConsumerConfig(
        durable_name="made",
        deliver_subject=stage.deliver_subject,
        flow_control=True,
        idle_heartbeat=timedelta(seconds=5),
        max_ack_pending=10_000,
    )
    async with jet.bind_stream(stage.stream).push_messages(config) as messages:
        await take_pushed(messages, stage)


async def push_messages(jet, stage):
    async with jet.bind_stream(stage.stream).push_messages("push") as messages:
        await take_pushed(messages, stage)


async def take_pushed(messages, stage):
    """Take more than the 2 MiB that the server sends before it waits for flow control."""
    for _ in range(3 + BIG):
        await (await messages.next(timeout=stage.short)).double_ack()


async def atomic_batch(jet, stage):
    async with jet.atomic_batch() as batch:
        await batch.add(stage.subject, b"x")
        await batch.add(stage.subject, b"y")
    assert batch.ack.stream == stage.stream


async def fast_ingest(jet, stage):
    many = [js.PublishRequest(subject=stage.subject)] * 3
    outcomes = [each async for each in FastIngest(jet, stage.stream, many)]
    failures = [each.error for each in outcomes if isinstance(each, js.PublishFailure)]
    assert failures == []
    assert [each.stream_name for each in outcomes] == [stage.stream] * 3


async def insert(jet, stage):
    key = f"{stage.subject}.key"
    assert isinstance(await SubjectWriter(jet, stage.stream).insert(key, b"1"), Stored)


async def update(jet, stage):
    assert (await SubjectWriter(jet, stage.stream).update(stage.subject, b"1", 3)).seq == 4


async def upsert(jet, stage):
    assert (await SubjectWriter(jet, stage.stream).upsert(stage.subject, b"1")).seq == 4


async def counters(jet, stage):
    found = Counters(jet, stage.stream)
    await found.add(stage.subject, 2)
    assert (await found.get(stage.subject)).value == 2


async def schedules(jet, stage):
    found = Schedules(jet, stage.stream)
    subject = f"{stage.subject}.plan"
    await found.add(subject, Schedule.every(timedelta(hours=1)), stage.subject, b"x")
    assert (await found.get(subject)).subject == subject
    assert (await found.cancel(subject)).subject == subject


async def outbox(jet, stage):
    with TemporaryDirectory() as folder:
        path = f"{folder}/app.db"
        store = SqliteOutbox(path)
        with closing(sqlite3.connect(path)) as db, db:
            store.create(db)
            store.add(db, f"p.{stage.stream}.{{id}}", b"x")
        relay = OutboxRelay(jet, store, stage.stream, by="id", timeout=stage.short)
        assert await relay.flush(timeout=stage.short) == 1


async def processing(jet, stage):
    async def handle(message):
        subject = f"p.{stage.stream}_OUT.{{id}}"
        return [js.PublishRequest(subject=subject, data=message.data)]

    into, short = f"{stage.stream}_OUT", stage.short
    work = Processing(
        jet, stage.stream, "c", handle, into=into, by="id", stop_after=3, timeout=short
    )
    await work.start()
    await work.wait(timeout=stage.short)
    assert work.done == 3


async def dead_letters(jet, stage):
    letters = DeadLetters(jet, stage.stream)
    # It returns when nothing has arrived for so long.
    assert await letters.collect(idle_timeout=min(stage.short, 1)) == 1
    assert (letters.stored, letters.skipped) == (1, 0)
    await letters.stop()


async def dead_letters_create(jet, stage):
    await DeadLetters(jet, stage.stream).create()


async def backs_up(jet, stage):
    with TemporaryDirectory() as folder:
        copy = f"{folder}/b"
        made = await backup_stream(
            jet, stage.stream, copy, window_size=200_000, idle_timeout=stage.short
        )
        assert made.state.messages == 3 + BIG


async def restores(jet, stage):
    stream = await restore_stream(jet, stage.folder, idle_timeout=stage.short)
    assert stream.cached_info.state.messages == 3


async def events(jet, stage):
    await listen(jet.events())


async def events_of_stream(jet, stage):
    await listen(jet.events(stream_name=stage.stream))


async def listen(listening):
    """Listen until the server has reported a missing permission, and then listen again."""
    async with listening as found:
        for _ in range(2):
            await found.next(timeout=0.5)


async def checks_health(jet, stage):
    tells_what_is_stuck(stage, await check_health(jet, interval=0.05))


async def checks_health_of_stream(jet, stage):
    tells_what_is_stuck(stage, await check_health(jet, stream_name=stage.stream, interval=0.05))


def tells_what_is_stuck(stage, found):
    figures = [
        each.figures
        for each in found.findings
        if (each.kind, each.stream_name, each.consumer_name)
        == ("ack_floor_stuck", stage.stream, "c")
    ]
    assert [(each["seq"], each["subject"]) for each in figures] == [(1, stage.subject)]


async def coordination(jet, stage):
    """Use all coordination primitives, whose permissions are one entry of the table."""
    made = Coordination(jet, stage.stream)

    async def work(_):
        return b"done"

    assert await made.lock("a").holder() is None
    assert (await made.once("o").run(work)).ran_here
    assert (await made.once("o").wait(timeout=PATIENCE)).data == b"done"
    async with made.semaphore("s", 2).acquire(timeout=PATIENCE):
        assert len(await made.semaphore("s", 2).holders()) == 1
    await made.rate_limiter("r", 1, per=3600).acquire(timeout=PATIENCE)
    (slot,) = [each async for each in made.held("rate")]
    assert await made.evict(slot)
    async with made.leader("l") as candidate:
        await eventually(candidate.holder)
    await is_handed_on(made.lock("a", ttl=3600), stage)


async def is_handed_on(lock, stage):
    """Release a lock at a moment when a waiting client gets the notification and does not poll."""
    held = await lock.try_acquire()

    async def leave():
        # A waiter without a notification polls 1 or 1.5 s after the beginning, then not before 3 s.
        await a_while(2.5)
        assert await held.release()

    async def enter():
        async with lock.acquire(timeout=2.6 + stage.short) as lease:
            assert lease.token > held.token

    await together(leave, enter)


async def coordination_create(jet, stage):
    made = Coordination(jet, stage.stream, create=True)
    assert await made.lock("a").holder() is None


async def get_message_direct(jet, stage):
    stream = jet.bind_stream(stage.stream)
    assert (await stream.get_message(2, direct=True)).data == b"1"
    assert (await stream.get_next_message(seq=2, direct=True)).data == b"1"


async def get_last_message_direct(jet, stage):
    stream = jet.bind_stream(stage.stream)
    assert (await stream.get_last_message(stage.subject, direct=True)).data == b"2"


async def read(jet, stage, via="direct"):
    stream = jet.bind_stream(stage.stream)
    reading = stream.read(via=via, idle_timeout=stage.short)
    assert [message.data async for message in reading] == [b"0", b"1", b"2"]


async def read_by_consumer(jet, stage):
    await read(jet, stage, "consumer")


async def read_by_leader(jet, stage):
    await read(jet, stage, "leader")


async def snapshot(jet, stage):
    found = await jet.bind_stream(stage.stream).snapshot(idle_timeout=stage.short)
    assert [(each.subject, each.data) for each in found.values()] == [(stage.subject, b"2")]


async def get_message(jet, stage):
    assert (await jet.bind_stream(stage.stream).get_message(2)).data == b"1"


async def delete_message(jet, stage):
    await jet.bind_stream(stage.stream).delete_message(2)


async def account_info(jet, stage):
    assert (await jet.account_info()).streams


async def create_stream(jet, stage):
    assert (await jet.create_stream(stage.config)).name == stage.stream


async def update_stream(jet, stage):
    changed = await jet.update_stream(evolve(stage.config, max_msgs=10))
    assert changed.cached_info.config.max_msgs == 10
    assert (await jet.update_stream(stage.config)).cached_info.config.max_msgs == -1


async def create_or_update_stream(jet, stage):
    config = evolve(stage.config, name=f"{stage.stream}", subjects=[f"{stage.subject}.new"])
    made = await jet.create_or_update_stream(config)
    assert made.cached_info.config.subjects == config.subjects


async def get_stream(jet, stage):
    stream = await jet.get_stream(stage.stream)
    assert (await stream.info(deleted_details=True)).state.messages == 3


async def delete_stream(jet, stage):
    await jet.delete_stream(stage.stream)


async def streams(jet, stage):
    infos = [info async for info in jet.streams(stage.subject)]
    assert [info.config.name for info in infos] == [stage.stream]


async def stream_names(jet, stage):
    assert [name async for name in jet.stream_names(stage.subject)] == [stage.stream]


async def stream_name_by_subject(jet, stage):
    assert await jet.stream_name_by_subject(stage.subject) == stage.stream


async def purge(jet, stage):
    assert await jet.bind_stream(stage.stream).purge(keep=1) == 2


async def change(jet, stage):
    stream = jet.bind_stream(stage.stream)
    assert (await stream.change(lambda old: evolve(old, max_msgs=7))).config.max_msgs == 7


async def seal(jet, stage):
    assert (await jet.bind_stream(stage.stream).seal()).config.sealed


async def subjects(jet, stage):
    found = [each async for each in jet.bind_stream(stage.stream).subjects()]
    assert found == [(stage.subject, 3)]


async def create_consumer(jet, stage):
    config = ConsumerConfig(durable_name="made")
    for make in (
        jet.create_consumer,
        jet.create_or_update_consumer,
        jet.update_consumer,
    ):
        assert (await make(stage.stream, config)).name == "made"
    stream = jet.bind_stream(stage.stream)
    for make in (
        stream.create_consumer,
        stream.create_or_update_consumer,
        stream.update_consumer,
    ):
        assert (await make(config)).name == "made"


async def create_consumer_filter(jet, stage):
    config = ConsumerConfig(
        durable_name="made", filter_subject=stage.subject, ack_policy=AckPolicy.NONE
    )
    assert (await jet.create_consumer(stage.stream, config)).name == "made"


async def get_consumer(jet, stage):
    assert (await jet.get_consumer(stage.stream, "c")).name == "c"
    consumer = await jet.bind_stream(stage.stream).get_consumer("c")
    assert (await consumer.info()).num_pending == 3


async def delete_consumer(jet, stage):
    await jet.delete_consumer(stage.stream, "c")
    with pytest.raises(js.ConsumerNotFound):
        await jet.bind_stream(stage.stream).delete_consumer("c")


async def consumers(jet, stage):
    infos = [info async for info in jet.bind_stream(stage.stream).consumers()]
    assert sorted(info.name for info in infos) == ["c", "push"]


async def consumer_names(jet, stage):
    names = [name async for name in jet.bind_stream(stage.stream).consumer_names()]
    assert sorted(names) == ["c", "push"]


async def pause(jet, stage):
    assert (await jet.bind_consumer(stage.stream, "c").pause(60)).paused


async def resume(jet, stage):
    await jet.bind_consumer(stage.stream, "c").resume()


async def reset(jet, stage):
    assert (await jet.bind_consumer(stage.stream, "c").reset(2)).num_pending == 2


async def refused(code, call):
    """Check that the server receives the call, and refuses it with this code as it has one node."""
    with pytest.raises(js.JetStreamError) as caught:
        await call()
    assert caught.value.err_code == code


async def unpin(jet, stage):
    await refused(10160, lambda: jet.bind_consumer(stage.stream, "c").unpin("g"))


async def step_down(jet, stage):
    await refused(10010, lambda: jet.bind_consumer(stage.stream, "c").step_down())


async def stream_step_down(jet, stage):
    await refused(10010, lambda: jet.bind_stream(stage.stream).replicas.step_down())


async def remove_peer(jet, stage):
    await refused(10010, lambda: jet.bind_stream(stage.stream).replicas.remove("node"))


async def evacuate_peer(jet, stage):
    await refused(10010, lambda: jet.bind_stream(stage.stream).replicas.evacuate("node"))


async def cancel_move(jet, stage):
    await refused(10010, lambda: jet.bind_stream(stage.stream).replicas.cancel_move())


async def create_object_store(jet, stage):
    assert (await jet.create_object_store(stage.store_config)).bucket == stage.stream


async def get_object_store(jet, stage):
    assert (await jet.get_object_store(stage.stream)).bucket == stage.stream


async def update_object_store(jet, stage):
    config = evolve(stage.store_config, description="d")
    assert (await jet.update_object_store(config)).cached_status.config.description == "d"


async def create_or_update_object_store(jet, stage):
    for description in ("a", "b"):
        config = evolve(stage.store_config, description=description)
        store = await jet.create_or_update_object_store(config)
        assert store.cached_status.config.description == description


async def delete_object_store(jet, stage):
    await jet.delete_object_store(stage.stream)


async def object_stores(jet, stage):
    assert stage.stream in {status.bucket async for status in jet.object_stores()}


async def object_store_names(jet, stage):
    assert stage.stream in {bucket async for bucket in jet.object_store_names()}


async def object_put(jet, stage):
    assert (await jet.bind_object_store(stage.stream).put("a", b"new")).size == 3


async def object_get(jet, stage):
    store = jet.bind_object_store(stage.stream)
    assert await store.get_bytes("a", idle_timeout=stage.short) == b"x" * 3000


async def object_get_part(jet, stage):
    store = jet.bind_object_store(stage.stream)
    async with store.get("a", start=1500, idle_timeout=stage.short) as reader:
        assert await reader.read() == b"x" * 1500


async def object_info(jet, stage):
    assert (await jet.bind_object_store(stage.stream).info("a")).size == 3000


async def object_list(jet, stage):
    found = jet.bind_object_store(stage.stream).list(idle_timeout=stage.short)
    assert [info.name async for info in found] == ["a"]


async def object_watch(jet, stage):
    async with jet.bind_object_store(stage.stream).watch() as watch:
        assert [each.name async for each in watch.initial()] == ["a"]


async def object_update_meta(jet, stage):
    store = jet.bind_object_store(stage.stream)
    assert (await store.update_meta("a", description="d")).description == "d"
    assert (await store.update_meta("a", new_name="b")).name == "b"


async def object_delete(jet, stage):
    assert (await jet.bind_object_store(stage.stream).delete("a")).deleted


async def object_add_link(jet, stage):
    store = jet.bind_object_store(stage.stream)
    assert (await store.add_link("l", await store.info("a"))).name == "l"
    assert (await store.add_bucket_link("b", "other")).name == "b"


async def object_status(jet, stage):
    assert (await jet.bind_object_store(stage.stream).status()).bucket == stage.stream


async def object_change(jet, stage):
    edit = partial(evolve, description="d")
    store = jet.bind_object_store(stage.stream)
    assert (await store.change(edit)).config.description == "d"


async def object_seal(jet, stage):
    assert (await jet.bind_object_store(stage.stream).seal()).is_sealed


async def object_sweep(jet, stage):
    store = jet.bind_object_store(stage.stream)
    assert (await store.sweep(older_than=0, idle_timeout=stage.short)).uploads == 1


# By operation: the arguments behind the stream, what is done, and the first server that can.
ACTS = {
    "publish": ((), publish, "2.11"),
    "consume": (("c",), consume, "2.11"),
    "consume_bound": (("c",), consume_bound, "2.11"),
    "ordered": ((), ordered, "2.11"),
    "ordered FILTER": (("p.{stream}.a",), ordered_filter, "2.11"),
    "ordered_info": ((), ordered_info, "2.11"),
    "create_push_messages": (("made", "deliver.{stream}"), create_push_messages, "2.11"),
    "push_messages": (("push", "deliver.{stream}.push"), push_messages, "2.11"),
    "atomic_batch": ((), atomic_batch, "2.12"),
    "fast_ingest": (("p.{stream}.>",), fast_ingest, "2.14"),
    "subject_writer.insert": (("p.{stream}.>",), insert, "2.11"),
    "subject_writer.update": (("p.{stream}.>",), update, "2.11"),
    "subject_writer.upsert": (("p.{stream}.>",), upsert, "2.11"),
    "counters": (("p.{stream}.>",), counters, "2.12"),
    "schedules": (("p.{stream}.>",), schedules, "2.14"),
    "outbox": (("p.{stream}.*",), outbox, "2.11"),
    "processing": (("c", "{stream}_OUT", "p.{stream}_OUT.*"), processing, "2.11"),
    "dead_letters.create": ((), dead_letters_create, "2.11"),
    "dead_letters": ((), dead_letters, "2.11"),
    # Small windows, which show that acknowledgements are needed, came with 2.12.5.
    "backup_stream": ((), backs_up, "2.14"),
    "restore_stream": ((), restores, "2.11"),
    "events": ((), events, "2.11"),
    "events_of_stream": ((), events_of_stream, "2.11"),
    "check_health": ((), checks_health, "2.11"),
    "check_health_of_stream": ((), checks_health_of_stream, "2.11"),
    "coordination": ((), coordination, "2.11"),
    "coordination_create": ((), coordination_create, "2.11"),
    "get_message": ((), get_message, "2.11"),
    "get_message_direct": ((), get_message_direct, "2.11"),
    "get_last_message_direct": (("p.{stream}.a",), get_last_message_direct, "2.11"),
    "read": ((), read, "2.11"),
    "read_by_consumer": ((), read_by_consumer, "2.11"),
    "read_by_leader": ((), read_by_leader, "2.11"),
    "snapshot": ((), snapshot, "2.11"),
    "delete_message": ((), delete_message, "2.11"),
    "account_info": ((), account_info, "2.11"),
    "create_stream": ((), create_stream, "2.11"),
    "update_stream": ((), update_stream, "2.11"),
    "create_or_update_stream": ((), create_or_update_stream, "2.11"),
    "get_stream": ((), get_stream, "2.11"),
    "delete_stream": ((), delete_stream, "2.11"),
    "streams": ((), streams, "2.11"),
    "stream_names": ((), stream_names, "2.11"),
    "stream_name_by_subject": ((), stream_name_by_subject, "2.11"),
    "purge": ((), purge, "2.11"),
    "change": ((), change, "2.11"),
    "seal": ((), seal, "2.11"),
    "subjects": ((), subjects, "2.11"),
    "replicas.step_down": ((), stream_step_down, "2.11"),
    "replicas.remove": ((), remove_peer, "2.11"),
    "replicas.evacuate": ((), evacuate_peer, "2.15"),
    "replicas.cancel_move": ((), cancel_move, "2.15"),
    "create_object_store": ((), create_object_store, "2.11"),
    "get_object_store": ((), get_object_store, "2.11"),
    "update_object_store": ((), update_object_store, "2.11"),
    "create_or_update_object_store": ((), create_or_update_object_store, "2.11"),
    "delete_object_store": ((), delete_object_store, "2.11"),
    "object_stores": ((), object_stores, "2.11"),
    "object_store_names": ((), object_store_names, "2.11"),
    "object.put": ((), object_put, "2.11"),
    "object.get": ((), object_get, "2.11"),
    "object.get_part": ((), object_get_part, "2.11"),
    "object.info": ((), object_info, "2.11"),
    "object.list": ((), object_list, "2.11"),
    "object.watch": ((), object_watch, "2.11"),
    "object.update_meta": ((), object_update_meta, "2.11"),
    "object.delete": ((), object_delete, "2.11"),
    "object.add_link": ((), object_add_link, "2.11"),
    "object.status": ((), object_status, "2.11"),
    "object.change": ((), object_change, "2.11"),
    "object.seal": ((), object_seal, "2.11"),
    "object.sweep": ((), object_sweep, "2.11"),
    "create_consumer": (("made",), create_consumer, "2.11"),
    "create_consumer FILTER": (("made", "p.{stream}.a"), create_consumer_filter, "2.11"),
    "get_consumer": (("c",), get_consumer, "2.11"),
    "delete_consumer": (("c",), delete_consumer, "2.11"),
    "consumers": ((), consumers, "2.11"),
    "consumer_names": ((), consumer_names, "2.11"),
    "pause": (("c",), pause, "2.11"),
    "resume": (("c",), resume, "2.11"),
    "reset": (("c",), reset, "2.14"),
    "unpin": (("c",), unpin, "2.11"),
    "step_down": (("c",), step_down, "2.11"),
    **BUCKET_ACTS,
    **GROUP_ACTS,
}
