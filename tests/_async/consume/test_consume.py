"""Pulling: `fetch`, `next` and `messages`, and acknowledgements."""

from __future__ import annotations

import gc
from datetime import timedelta

import pytest
from attrs import evolve

import js_async as js
from js_async.consume.buffer import MessageBuffer
from tests._async.flow import eventually, together
from tests._async.scripted import scripted
from tests._async.streams import filled, is_still, settled, waiting
from tests.dropping import let_go
from tests.hooked import hooked, starts
from tests.inside import outstanding
from tests.stalls import attempts
from twinstream.core.deadline import Deadline
from twinstream.errors import PullError, PullRefused
from twinstream.models import ConsumerConfig, StreamConfig
from twinstream.testing import FakePeer


async def test_fetch_ends_when_it_is_full(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 10)
        consumer = await stream.create_consumer(ConsumerConfig(durable_name="c"))
        batch = await consumer.fetch(4)
        assert batch.reason is js.BatchEnd.FILLED
        assert [message.data for message in batch] == [b"0", b"1", b"2", b"3"]
        assert [message.subject for message in batch[:2]] == [f"{name}.0", f"{name}.1"]
        assert len(await consumer.fetch(6)) == 6


async def test_long_messages_are_not_requested_by_the_hundred(server_factory, name):
    # A server cuts off a client for whom it has to hold back more than 64 MiB.
    count, size = 150, 1_000_000
    with server_factory() as server:
        async with js.connect(server.url) as connection:
            jet = connection.jetstream(timeout=30)
            stream = await jet.create_stream(
                StreamConfig(name=name, subjects=[name], storage="memory")
            )
            request = js.PublishRequest(subject=name, data=b"x" * size)
            async for outcome in jet.publish_many((request for _ in range(count)), window=8):
                assert not isinstance(outcome, js.PublishFailure)
            consumer = await stream.create_consumer(ConsumerConfig(ack_policy="none"))
            seqs, most = [], 0
            async with consumer.messages(stop_after=count) as messages:
                async for message in messages:
                    assert len(message.data) == size
                    seqs.append(message.metadata.stream_seq)
                    most = max(most, messages.buffered + outstanding(messages))
        assert seqs == list(range(1, count + 1))
        assert most <= 32
        assert "Slow Consumer" not in server.log


async def test_consumer_with_max_waiting_one_gets_one_request(opened, name):
    # A server drops the others without a word: what is missing shows after two heartbeats.
    async with opened() as jet:
        stream = await filled(jet, name, 0)
        consumer = await stream.create_consumer(ConsumerConfig(durable_name="c", max_waiting=1))
        reports = []
        async with consumer.messages(on_report=reports.append) as messages:
            for number in range(40):
                await jet.publish(f"{name}.{number}")
                await (await messages.next(timeout=30)).ack()
        assert not reports


async def leave_at_the_first(messages):
    async for _ in messages:
        break
    gc.collect()


async def test_an_iteration_that_is_dropped_open_warns(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 10)
        # Each has all messages: what is in the hands of one is not for others.
        left, closed, over = [
            await stream.create_consumer(ConsumerConfig(durable_name=each))
            for each in ("left", "closed", "over")
        ]
        with pytest.warns(ResourceWarning, match="left: an iterator .* was not closed"):
            await leave_at_the_first(left.messages())
        async with closed.messages() as messages:
            await leave_at_the_first(messages)
        del messages
        assert len([message async for message in over.messages(stop_after=2)]) == 2
        gc.collect()


async def test_an_iteration_that_failed_is_dropped_without_a_warning(server_factory, name):
    config = 'authorization { default_permissions { publish { deny: "$JS.API.CONSUMER.MSG.>" } } }'
    users = "users = [{user: ann, password: pw}]"
    with server_factory(config.replace("{ default", f"{{ {users}, default")) as server:
        async with js.connect(server.url, user="ann", password="pw") as connection:
            jet = connection.jetstream()
            stream = await filled(jet, name, 0)
            consumer = await stream.create_consumer(ConsumerConfig(durable_name="c"))
            messages = [consumer.messages()]
            with pytest.raises(js.PermissionDenied):
                await messages[0].next(timeout=60)
            assert messages[0].is_ended
            # A ResourceWarning would fail the test.
            let_go(messages)


async def test_nothing_is_kept_for_an_iteration_that_is_dropped_open(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 10)
        config = ConsumerConfig(durable_name="c", ack_wait=timedelta(seconds=1))
        consumer = await stream.create_consumer(config)
        messages = [consumer.messages()]
        with starts() as tasks:
            await messages[0].next(timeout=60)
        with pytest.warns(ResourceWarning, match="are redelivered after ack_wait"):
            let_go(messages)
        assert await tasks["twinstream-progress"].join(Deadline.after(20))


async def test_a_consumption_that_is_interrupted_while_it_starts_ends(opened, name):
    tasks = []

    def interrupted(started):
        label, task = started
        if label == "twinstream-consuming":
            tasks.append(task)
            raise KeyboardInterrupt

    async def handle(message):
        await message.ack()

    async with opened() as jet:
        stream = await filled(jet, name, 0)
        consumer = await stream.create_consumer(ConsumerConfig(durable_name="c"))
        with hooked("task: started", interrupted), pytest.raises(KeyboardInterrupt):
            await consumer.consume(handle).start()
        for task in tasks:
            assert await task.join(Deadline.after(20))


async def drained(consuming):
    await consuming.start()
    await consuming.drain(timeout=60)


async def done(consuming):
    await consuming.start()
    await consuming.wait(timeout=60)


@pytest.mark.parametrize("end", [drained, done])
async def test_nothing_runs_on_behind_a_consumption_that_has_ended(opened, name, end):
    async def handle(message):
        await message.ack()

    async with opened() as jet:
        stream = await filled(jet, name, 1)
        consumer = await stream.create_consumer(ConsumerConfig(durable_name="c"))
        consuming = consumer.consume(handle, stop_after=1)
        with starts() as tasks:
            await end(consuming)
        assert await tasks["twinstream-progress"].join(Deadline.after(20))


async def broken(_):
    raise ValueError("out of order")


async def begun(works):
    """Start the only item of `works`; return after it has ended by itself."""
    with starts() as tasks:
        await works[0].start()
    await all_ended(tasks)


async def all_ended(tasks):
    """Return after all tasks or threads of a consumption have ended."""
    assert await tasks["twinstream-consuming"].join(Deadline.after(30))


@pytest.mark.parametrize("closed", [False, True])
async def test_unseen_error_of_a_handler_causes_a_warning(opened, name, closed, unlogged):
    async with opened() as jet:
        stream = await filled(jet, name, 3)
        consumer = await stream.create_consumer(ConsumerConfig(durable_name="c"))
        works = [consumer.consume(broken)]
        await begun(works)
        if not closed:
            with pytest.warns(
                RuntimeWarning, match=f"Consuming c of {name} .*ValueError..out of order"
            ):
                let_go(works)
    if closed:
        with pytest.warns(
            RuntimeWarning, match=f"Consuming c of {name} .*ValueError..out of order"
        ):
            let_go(works)


async def test_an_error_of_a_handler_that_was_seen_does_not_warn(opened, name, unlogged):
    async with opened() as jet:
        stream = await filled(jet, name, 3)
        consumer = await stream.create_consumer(ConsumerConfig(durable_name="c"))
        works = [consumer.consume(broken)]
        await begun(works)
        with pytest.raises(ValueError, match="out of order"):
            await works[0].wait()
        let_go(works)


async def test_a_consumption_that_the_program_ends_by_closing_does_not_warn(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 0)
        consumer = await stream.create_consumer(ConsumerConfig(durable_name="c"))
        works = [consumer.consume(broken)]
        with starts() as tasks:
            await works[0].start()
        await eventually(lambda: waiting(consumer))
    await all_ended(tasks)
    let_go(works)


def test_iteration_interrupted_at_its_creation_ends_quietly():
    made = MessageBuffer.__new__(MessageBuffer)
    del made
    gc.collect()


async def test_fetch_has_the_reason_of_its_end(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 3)
        for number, attempt in enumerate(attempts(1.5)):
            with attempt:
                config = ConsumerConfig(durable_name=f"c{number}")
                consumer = await stream.create_consumer(config)
                some = await consumer.fetch(10, timeout=1.5)
                assert (len(some), some.reason) == (3, js.BatchEnd.EXPIRED)
        none = await consumer.fetch(10, timeout=0.2)
        assert (len(none), none.reason) == (0, js.BatchEnd.EXPIRED)
        now = await consumer.fetch(10, wait="none")
        assert (len(now), now.reason) == (0, js.BatchEnd.NO_MESSAGES)
        assert await consumer.next(timeout=0) is None


async def test_fetch_can_end_with_the_first_messages(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 3)
        consumer = await stream.create_consumer(ConsumerConfig(durable_name="c"))
        first = await consumer.fetch(10, timeout=60, wait="first")
        assert (len(first), first.reason) == (3, js.BatchEnd.NO_MESSAGES)

        async def fetch():
            return await consumer.fetch(10, timeout=60, wait="first")

        async def publish():
            await eventually(waiting)
            await jet.publish(f"{name}.x")

        async def waiting():
            return (await consumer.info()).num_waiting

        batch, _ = await together(fetch, publish)
        assert len(batch) == 1


async def test_bytes_limit_a_fetch(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 0)
        for _ in range(5):
            await jet.publish(f"{name}.x", b"x" * 1000)
        consumer = await stream.create_consumer(ConsumerConfig(durable_name="c"))
        batch = await consumer.fetch(100, max_bytes=2500, timeout=60)
        assert (len(batch), batch.reason) == (2, js.BatchEnd.BYTES_FILLED)
        batch = await consumer.fetch(max_bytes=2500, timeout=60)
        assert (len(batch), batch.reason) == (2, js.BatchEnd.BYTES_FILLED)
        with pytest.raises(PullError, match="100 bytes"):
            await consumer.fetch(100, max_bytes=100, timeout=60)
        with pytest.raises(js.BadArgument, match="max_messages, max_bytes or both"):
            await consumer.fetch()


async def test_fetch_has_the_requested_heartbeat(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 1)
        consumer = await stream.create_consumer(ConsumerConfig(durable_name="c"))
        assert await consumer.next(timeout=60, heartbeat=1) is not None
        for attempt in attempts(1.5):
            with attempt:
                batch = await consumer.fetch(1, timeout=1.5, heartbeat=0.5)
                assert (len(batch), batch.reason) == (0, js.BatchEnd.EXPIRED)


async def test_fetched_message_is_late_if_its_ack_wait_has_passed(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 1)
        config = ConsumerConfig(durable_name="c", ack_wait=timedelta(seconds=1))
        consumer = await stream.create_consumer(config)
        first, second = await consumer.fetch(2, timeout=60)
        assert [each.metadata.num_delivered for each in (first, second)] == [1, 2]
        assert first.is_late
        assert not await first.double_ack()


async def test_limits_of_the_consumer_are_named(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 1)
        config = ConsumerConfig(
            durable_name="c", max_batch=2, max_expires=timedelta(seconds=60), max_bytes=100
        )
        consumer = await stream.create_consumer(config)
        with pytest.raises(PullRefused) as caught:
            await consumer.fetch(3, timeout=50)
        assert (caught.value.limit, caught.value.asked, caught.value.allowed) == (
            "max_batch",
            3,
            2,
        )
        with pytest.raises(PullRefused, match="max_expires"):
            await consumer.fetch(1, timeout=70)
        with pytest.raises(PullRefused, match="max_bytes"):
            await consumer.fetch(1, max_bytes=1000, timeout=50)


@pytest.mark.parametrize("options", [{}, {"max_bytes": 100_000}])
async def test_a_buffer_grows_no_further_than_the_consumer_allows(opened, name, options):
    async with opened() as jet:
        stream = await filled(jet, name, 150)
        consumer = await stream.create_consumer(ConsumerConfig(durable_name="c", max_batch=40))
        seen = []
        async with consumer.messages(**options) as messages:
            while len(seen) < 150:
                message = await messages.next(timeout=60)
                seen.append(message.metadata.stream_seq)
                await message.ack()
        assert seen == list(range(1, 151))


async def test_pulls_keep_to_the_limits_of_the_consumer(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 9)
        config = ConsumerConfig(durable_name="c", max_batch=2, max_expires=timedelta(seconds=2))
        consumer = await stream.create_consumer(config)
        async with consumer.messages(stop_after=3) as messages:
            assert [await message.double_ack() async for message in messages] == [True] * 3
        async with consumer.messages(max_bytes=100, stop_after=3) as messages:
            assert [await message.double_ack() async for message in messages] == [True] * 3
        assert len(await consumer.fetch(max_bytes=10_000, timeout=1)) == 2
        async with consumer.messages(expires=3) as messages:
            with pytest.raises(PullRefused, match="max_expires"):
                await messages.next(timeout=60)


async def test_missing_consumer_is_reported_at_once(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 1)
        with pytest.raises(js.ConsumerNotFound):
            await stream.get_consumer("none")
        with pytest.raises(js.NoResponders):
            await jet.bind_consumer(name, "none").fetch(1, timeout=30)


async def test_a_deleted_consumer_ends_fetch_and_messages(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 0)
        consumer = await stream.create_consumer(ConsumerConfig(durable_name="c"))

        async def delete():
            await eventually(waiting)
            await consumer.delete()

        async def waiting():
            return (await consumer.info()).num_waiting

        async def fetch():
            with pytest.raises(js.ConsumerDeleted):
                await consumer.fetch(1, timeout=30)

        await together(fetch, delete)
        consumer = await stream.create_consumer(ConsumerConfig(durable_name="c"))

        async def iterate():
            async with consumer.messages() as messages:
                with pytest.raises(js.ConsumerDeleted):
                    await messages.next(timeout=30)

        await together(iterate, delete)


async def test_messages_refill_their_buffer(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 300)
        for limit in (1, 2, 7, 100, 500):
            consumer = await stream.create_consumer(ConsumerConfig(durable_name=f"c{limit}"))
            seen = []
            async with consumer.messages(max_messages=limit) as messages:
                async for message in messages:
                    seen.append(message.metadata.stream_seq)
                    assert messages.buffered + outstanding(messages) <= limit
                    await message.ack()
                    if len(seen) == 300:
                        break
            assert seen == list(range(1, 301))
            await eventually(settled, consumer, 300)


async def test_messages_can_be_bounded_by_bytes(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 200)
        consumer = await stream.create_consumer(ConsumerConfig(durable_name="c"))
        seen = []
        async with consumer.messages(max_bytes=2000) as messages:
            async for message in messages:
                seen.append(message.metadata.stream_seq)
                await message.ack()
                if len(seen) == 200:
                    break
        assert seen == list(range(1, 201))


async def test_leaving_gives_back_what_was_not_handed_over(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 20)
        config = ConsumerConfig(durable_name="c", ack_wait=timedelta(seconds=60))
        consumer = await stream.create_consumer(config)
        async with consumer.messages(max_messages=20) as messages:
            await (await messages.next()).ack()
            await eventually(is_still, consumer)
        again = await consumer.fetch(19, timeout=60)
        assert sorted(message.metadata.stream_seq for message in again) == list(range(2, 21))


async def test_draining_hands_over_what_is_here(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 20)
        consumer = await stream.create_consumer(ConsumerConfig(durable_name="c"))
        seen = []
        async with consumer.messages(max_messages=20) as messages:
            async for message in messages:
                seen.append(message.metadata.stream_seq)
                await message.ack()
                if len(seen) == 3:
                    await eventually(is_still, consumer)
                    await messages.drain()
        assert seen == list(range(1, 21))
        await eventually(settled, consumer, 20)


async def test_a_nak_brings_the_message_again(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 1)
        consumer = await stream.create_consumer(ConsumerConfig(durable_name="c"))
        for delivery in range(1, 4):
            message = await consumer.next()
            assert message.metadata.num_delivered == delivery
            await message.nak(0.05 if delivery == 2 else None)
        message = await consumer.next()
        await message.term("no use")
        assert await consumer.next(timeout=0.2) is None
        await eventually(settled, consumer, 1)


async def test_second_acknowledgement_is_refused(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 1)
        consumer = await stream.create_consumer(ConsumerConfig(durable_name="c"))
        message = await consumer.next()
        await message.in_progress()
        assert not message.is_acknowledged
        await message.double_ack()
        assert message.is_acknowledged
        for word in (message.ack, message.nak, message.term, message.in_progress):
            with pytest.raises(js.AlreadyAcknowledged):
                await word()
        assert (await consumer.info()).ack_floor.stream_seq == 1


async def test_confirmed_request_has_taken_effect_on_return(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 2)
        consumer = await stream.create_consumer(ConsumerConfig(durable_name="c"))
        [ended, again] = await consumer.fetch(2)
        await ended.in_progress(confirm=True)
        await ended.term("no tea", confirm=True)
        assert (await consumer.info()).ack_floor.stream_seq == 1
        await again.nak(confirm=True)
        assert again.is_acknowledged
        [once_more] = await consumer.fetch(1)
        assert once_more.metadata.num_delivered == 2


async def test_a_batch_is_acknowledged_and_confirmed_at_once(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 100)
        consumer = await stream.create_consumer(ConsumerConfig(durable_name="c"))
        batch = await consumer.fetch(100)
        assert await consumer.double_ack(batch) == []
        assert all(message.is_acknowledged for message in batch)
        info = await consumer.info()
        assert (info.num_ack_pending, info.ack_floor.stream_seq) == (0, 100)
        assert await consumer.double_ack([]) == []
        with pytest.raises(js.AlreadyAcknowledged):
            await consumer.double_ack(batch[:1])
        with pytest.raises(js.BadArgument, match="message"):
            await consumer.double_ack([b"x"])


async def test_two_consumers_of_one_durable_share_the_messages(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 200)
        await stream.create_consumer(ConsumerConfig(durable_name="c"))

        seen = []

        async def work():
            consumer = await stream.get_consumer("c")
            batch = []
            # What comes twice would come once they have all.
            while batch or len(seen) < 200:
                batch = await consumer.fetch(7, timeout=2)
                for message in batch:
                    await message.ack()
                    seen.append(message.metadata.stream_seq)

        await together(work, work, work)
        assert sorted(seen) == list(range(1, 201))


async def test_consumers_that_are_looked_up_again_and_again_leave_nothing_behind(server, name):
    async with js.connect(server.url) as connection:
        stream = await filled(connection.jetstream(), name, 6)
        for durable in ("a", "b"):
            await stream.create_consumer(ConsumerConfig(durable_name=durable))
        seen, counts = [], set()
        for number in range(12):
            # Of another one each time, through what the last one left.
            jet = connection.jetstream()
            consumer = await jet.get_consumer(name, "ab"[number % 2])
            message = await consumer.next(timeout=60)
            await message.ack()
            seen.append((message.metadata.consumer, message.metadata.stream_seq))
            counts.add(connection.stats.subscriptions)
        assert seen == [(durable, seq) for seq in range(1, 7) for durable in "ab"]
        assert len(counts) == 1


async def test_consumers_are_listed_changed_and_deleted(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 0)
        made = await stream.create_consumer(ConsumerConfig(filter_subject=f"{name}.a"))
        assert made.cached_info.config.ack_policy == "explicit"
        assert made.cached_info.config.filter_subject == f"{name}.a"
        await stream.create_consumer(ConsumerConfig(durable_name="d"))
        with pytest.raises(js.ConsumerExists):
            await stream.create_consumer(ConsumerConfig(durable_name="d", max_deliver=3))
        with pytest.raises(js.ConsumerNotFound):
            await stream.update_consumer(ConsumerConfig(durable_name="e"))
        changed = await stream.update_consumer(ConsumerConfig(durable_name="d", max_deliver=3))
        assert changed.cached_info.config.max_deliver == 3
        names = [each async for each in stream.consumer_names()]
        assert sorted(names) == sorted(["d", made.name])
        assert {each.name async for each in stream.consumers()} == set(names)
        await stream.delete_consumer("d")
        with pytest.raises(js.ConsumerNotFound):
            await jet.get_consumer(name, "d")


async def test_a_buffer_is_bounded_by_messages_and_bytes_at_once(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 0)
        sizes = [10] * 60 + [2000] * 60 + [10] * 60
        requests = (js.PublishRequest(subject=f"{name}.x", data=bytes(size)) for size in sizes)
        async for outcome in jet.publish_many(requests):
            assert not isinstance(outcome, js.PublishFailure)
        consumer = await stream.create_consumer(ConsumerConfig(ack_policy="none"))
        seen, most, most_bytes = [], 0, 0
        async with consumer.messages(
            max_messages=20, max_bytes=10_000, stop_after=len(sizes)
        ) as messages:
            async for message in messages:
                seen.append(len(message.data))
                most = max(most, messages.buffered + outstanding(messages))
                ahead = sizes[len(seen) : len(seen) + messages.buffered]
                most_bytes = max(most_bytes, sum(ahead))
        assert seen == sizes
        assert most <= 20
        assert 2000 < most_bytes <= 10_000


async def test_a_refused_first_request_may_be_reported_and_repeated(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 1)
        config = ConsumerConfig(durable_name="c", max_batch=2)
        await stream.create_consumer(config)
        reports = []
        consumer = stream.bind_consumer("c")
        async with consumer.messages(
            max_messages=10, on_refused="retry", on_report=reports.append
        ) as messages:

            async def change():
                async def refused():
                    return reports

                await eventually(refused)
                assert "Exceeded MaxRequestBatch of 2" in reports[0].text
                await stream.update_consumer(evolve(config, max_batch=100))

            message, _ = await together(lambda: messages.next(timeout=30), change)
            assert message.metadata.stream_seq == 1
        for wrong in ("warn", None, True):
            with pytest.raises(js.BadArgument, match="on_refused must be 'raise' or 'retry'"):
                consumer.messages(on_refused=wrong)


async def test_a_message_has_its_place_and_its_deliveries(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 2)
        consumer = await stream.create_consumer(ConsumerConfig(durable_name="c"))
        stored = await stream.get_message(2)
        await (await consumer.next()).ack()
        for number in (1, 2):
            message = await consumer.next()
            assert (message.seq, message.num_delivered) == (2, number)
            assert (message.time, message.subject) == (stored.time, stored.subject)
            await message.nak()


@pytest.mark.parametrize("count", [0, 1])
async def test_single_message_is_requested_in_two_steps(count):
    def script(peer: FakePeer) -> None:
        peer.handshake()
        first = peer.expect_pull()
        assert first.json == {"batch": 1, "no_wait": True}
        if count:
            peer.deliver(first, 1, b"here")
            return
        peer.status(first, 404, "No Messages")
        second = peer.expect_pull()
        assert second.json["expires"] == 5_000_000_000
        peer.deliver(second, 1, b"here")

    async with scripted(script) as connection:
        consumer = connection.jetstream().bind_consumer("S", "c")
        batch = await consumer.fetch(1, timeout=5, two_step=True)
        assert [message.data for message in batch] == [b"here"]
