"""Pulls, iterations and acknowledgements that are cancelled at any of their suspensions."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import nats
import pytest

import js_async as js
import js_async.publish.publisher
from js_async.runtime.socket_link import Link, _Receiver
from tests._async.cancelling import WAITING, WAYS, cancelled_at
from tests._async.flow import eventually
from tests._async.scripted import scripted
from tests._async.streams import waiting
from tests.fake.answers import CONSUMER
from tests.fake.stock import Stock
from tests.hooked import hooked
from twinstream.core.wire.protocol import Parser
from twinstream.models import ConsumerConfig, StreamConfig
from twinstream.testing import FakePeer, FakeServer, Proxy

COUNT = 5


Scenario = Callable[[js.JetStream, Stock, int, str], Awaitable[bool]]


async def at_every_point(scenario: Scenario, way: str, points: int) -> None:
    """Run a scenario with a cancellation at each point, until one run is not cancelled."""
    for stop_at in range(1, 40):
        stock = Stock(range(1, COUNT + 1))
        async with scripted(stock.script) as connection:
            reached = await scenario(connection.jetstream(), stock, stop_at, way)
        if not reached:
            assert stop_at > points, f"only {stop_at - 1} points of suspension"
            return
    raise AssertionError("the call never ran through")


async def the_rest(consumer: js.Consumer, seen: list[int]) -> None:
    """Take the remaining messages, and check that none is missing or repeated."""
    while len(seen) < COUNT:
        batch = await consumer.fetch(COUNT - len(seen), timeout=2)
        assert batch, f"lost: {set(range(1, COUNT + 1)) - set(seen)}"
        seen += [message.metadata.stream_seq for message in batch]
    assert sorted(seen) == list(range(1, COUNT + 1))


@WAYS
async def test_a_cancelled_fetch_loses_and_doubles_nothing(way: str) -> None:
    async def scenario(jet: js.JetStream, stock: Stock, stop_at: int, way: str) -> bool:
        consumer = jet.bind_consumer("S", "c")
        seen: list[int] = []

        async def fetch() -> None:
            batch = await consumer.fetch(COUNT, timeout=10)
            seen.extend(message.metadata.stream_seq for message in batch)

        reached, cancelled = await cancelled_at(fetch(), stop_at, way)
        assert cancelled is reached
        assert not (cancelled and seen)
        await the_rest(consumer, seen)
        assert len(stock.sent) - len(stock.given_back) == COUNT
        return reached

    await at_every_point(scenario, way, 4)


@WAYS
async def test_a_cancelled_next_loses_and_doubles_nothing(way: str) -> None:
    async def scenario(jet: js.JetStream, stock: Stock, stop_at: int, way: str) -> bool:
        consumer = jet.bind_consumer("S", "c")
        seen: list[int] = []

        async def take() -> None:
            message = await consumer.next(timeout=60)
            assert message is not None
            seen.append(message.metadata.stream_seq)

        reached, cancelled = await cancelled_at(take(), stop_at, way)
        assert cancelled is reached
        await the_rest(consumer, seen)
        assert len(stock.sent) - len(stock.given_back) == COUNT
        return reached

    await at_every_point(scenario, way, 1)


@WAYS
async def test_a_cancelled_iteration_keeps_its_buffer(way: str) -> None:
    async def scenario(jet: js.JetStream, stock: Stock, stop_at: int, way: str) -> bool:
        consumer = jet.bind_consumer("S", "c")
        seen: list[int] = []
        async with consumer.messages(max_messages=3) as messages:

            async def iterate() -> None:
                while len(seen) < COUNT:
                    seen.append((await messages.next(timeout=60)).metadata.stream_seq)

            reached, cancelled = await cancelled_at(iterate(), stop_at, way)
            assert cancelled is reached
            await iterate()
            assert sorted(seen) == list(range(1, COUNT + 1))
            assert messages.buffered == 0
        assert stock.given_back == []
        return reached

    await at_every_point(scenario, way, 3)


@WAYS
async def test_leaving_a_cancelled_iteration_gives_back_the_rest(way: str) -> None:
    async def scenario(jet: js.JetStream, stock: Stock, stop_at: int, way: str) -> bool:
        consumer = jet.bind_consumer("S", "c")
        seen: list[int] = []
        here = 0

        async def iterate() -> None:
            nonlocal here
            async with consumer.messages(max_messages=COUNT) as messages:
                while len(seen) < 3:
                    seen.append((await messages.next(timeout=60)).metadata.stream_seq)
                here = messages.buffered

        async def is_given_back() -> bool:
            return len(stock.given_back) >= here

        reached, cancelled = await cancelled_at(iterate(), stop_at, way)
        assert cancelled is reached
        if cancelled and len(seen) == 3:
            # Cancelled in the leaving itself, which does not wait then for what is on the way:
            # that comes again after the consumer's ack_wait, which the script has not.
            await eventually(is_given_back)
            return reached
        await the_rest(consumer, seen)
        assert len(stock.sent) - len(stock.given_back) == COUNT
        return reached

    await at_every_point(scenario, way, 3)


@WAYS
async def test_cancelled_double_ack_may_be_repeated(way: str) -> None:
    async def scenario(jet: js.JetStream, stock: Stock, stop_at: int, way: str) -> bool:
        consumer = jet.bind_consumer("S", "c")
        seen: list[int] = []
        message = await consumer.next(timeout=60)
        assert message is not None
        reached, cancelled = await cancelled_at(message.double_ack(timeout=60), stop_at, way)
        assert cancelled is reached
        assert message.is_acknowledged is not cancelled
        if cancelled:
            await message.double_ack(timeout=60)
        assert set(stock.done) == {1}
        assert len(stock.done) <= 1 + cancelled
        seen.append(1)
        await the_rest(consumer, seen)
        return reached

    await at_every_point(scenario, way, 1)


@pytest.mark.parametrize("word", ["ack", "nak", "term", "in_progress"])
async def test_acknowledgement_is_never_sent_in_part(word: str) -> None:
    """An acknowledgement is sent without a suspension while the connection can be written to."""

    async def scenario(jet: js.JetStream, stock: Stock, stop_at: int, way: str) -> bool:
        message = await jet.bind_consumer("S", "c").next(timeout=10)
        assert message is not None
        reached, cancelled = await cancelled_at(getattr(message, word)(), stop_at, way)
        assert not reached
        assert not cancelled
        return reached

    await at_every_point(scenario, WAITING, 0)


async def test_a_fetch_that_is_cancelled_before_it_starts_sends_nothing() -> None:
    stock = Stock([1])
    with FakeServer(stock.script) as server:
        async with js.connect(server.url) as connection:
            consumer = connection.jetstream().bind_consumer("S", "c")
            task = asyncio.create_task(consumer.fetch(1))
            task.cancel()
            await asyncio.wait([task])
            assert task.cancelled()
        assert server.operations("MSG.NEXT") == []
    assert stock.sent == []


async def test_a_timeout_around_a_fetch_is_a_timeout() -> None:
    stock = Stock([])
    async with scripted(stock.script) as connection:
        consumer = connection.jetstream().bind_consumer("S", "c")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await consumer.fetch(1, timeout=20)
        stock.waiting.append(1)
        assert len(await consumer.fetch(1, timeout=10)) == 1


async def test_a_group_of_tasks_ends_with_its_first_failure() -> None:
    stock = Stock([])
    async with scripted(stock.script) as connection:
        consumer = connection.jetstream().bind_consumer("S", "c")

        async def fail() -> None:
            await connection.flush()
            raise KeyError("mine")

        async def work() -> None:
            async with consumer.messages() as messages, asyncio.TaskGroup() as group:
                group.create_task(consumer.fetch(1, timeout=20))
                group.create_task(messages.next(timeout=20))
                group.create_task(fail())

        with pytest.raises(ExceptionGroup) as caught:
            await work()
        assert caught.group_contains(KeyError)
        await connection.flush()


async def test_reads_are_long_while_messages_are() -> None:
    parser, sizes = Parser({b"1": lambda frame: None}), []

    def take(data: bytes) -> int:
        parser.feed(data)
        return parser.needed

    link = Link(take, lambda error: None)
    receiver = _Receiver(link)
    short, long = (b"MSG a 1 %d\r\n%b\r\n" % (size, bytes(size)) for size in (128, 4096))
    for stream in (short[:100], short[100:], long[:100], long[100:], short, short[:50]):
        receiver.get_buffer(-1)[: len(stream)] = stream
        receiver.buffer_updated(len(stream))
        sizes.append(len(receiver.get_buffer(-1)) >> 10)
    assert sizes == [64, 64, 256, 256, 256, 64]


async def test_waiter_gets_a_message_recovered_by_a_cancelled_task(
    tuned,
):
    recovering = []

    def first(peer: FakePeer) -> None:
        peer.handshake()
        for _ in range(2):
            peer.expect("^H?PUB orders ")
        peer.wait_for("break")
        peer.close()

    def second(peer: FakePeer) -> None:
        peer.wait_for("greet")
        peer.handshake()
        for seq in (1, 2):
            peer.answer(peer.expect("^H?PUB orders "), {"stream": "S", "seq": seq})
        peer.until_left(timeout=60)

    def noted(_):
        recovering.append(asyncio.current_task())

    # Only the tasks that wait recover the publisher.
    tuned("publisher look", 3600.0)
    with FakeServer(first, second) as server, hooked("publish: before recovery", noted):
        async with js.connect(server.url) as connection:
            publisher = connection.jetstream().publisher(timeout=60)
            one, two = [await publisher.send("orders", msg_id=each) for each in ("1", "2")]
            waits = asyncio.create_task(two.result())
            server.tell("break")
            async with asyncio.timeout(30):
                while not recovering:
                    await asyncio.sleep(0.01)
            assert recovering == [waits]
            other = asyncio.create_task(one.result())
            await asyncio.sleep(0)
            waits.cancel()
            server.tell("greet")
            async with asyncio.timeout(30):
                assert (await other).seq == 1
                assert (await two.result()).seq == 2
            await publisher.close()


async def test_cancelled_recreation_of_a_consumer_is_repeated_next_time():
    def script(peer: FakePeer) -> None:
        peer.handshake()
        peer.answer(peer.expect(r"CONSUMER\.INFO"), CONSUMER)
        peer.status(peer.expect_pull(), 409, "Consumer Deleted")
        peer.expect(r"CONSUMER\.CREATE")
        peer.reach("asked")
        peer.answer(peer.expect(r"CONSUMER\.CREATE"), CONSUMER)
        peer.deliver(peer.expect_pull(), 1, b"fine")

    with FakeServer(script) as server:
        async with js.connect(server.url) as connection:
            consumer = connection.jetstream(timeout=30).bind_consumer("S", "c")
            await consumer.info()
            async with consumer.messages(on_deleted="recreate") as messages:
                taking = asyncio.create_task(messages.next(timeout=30))
                while not server.reached("asked"):
                    await asyncio.sleep(0.001)
                taking.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await taking
                assert (await messages.next(timeout=60)).data == b"fine"


async def test_cancelled_waiting_tasks_block_no_other_caller(server):
    async with js.connect(server.url) as connection:
        jet = connection.jetstream(timeout=60)
        stream = await jet.create_stream(StreamConfig(name="TURNS", subjects=["turns"]))
        async with stream.ordered() as messages:
            tasks = [asyncio.create_task(messages.next(timeout=30)) for _ in range(10)]
            while messages.consumer_name is None:
                await asyncio.sleep(0)
            for task in tasks[::2]:
                task.cancel()
            for _ in range(5):
                await jet.publish("turns")
            got = await asyncio.gather(*tasks, return_exceptions=True)
            assert all(isinstance(each, asyncio.CancelledError) for each in got[::2])
            assert [each.metadata.stream_seq for each in got[1::2]] == [1, 2, 3, 4, 5]


async def test_an_iteration_ends_though_its_drain_was_cancelled():
    def script(peer: FakePeer) -> None:
        peer.handshake()
        peer.stop_answering()
        peer.until_left()

    with FakeServer(script) as server:
        async with js_async.connect(server.url) as connection:
            subscription = await connection.subscribe("news")
            draining = asyncio.create_task(subscription.drain())
            await asyncio.sleep(0)
            draining.cancel()
            with pytest.raises(asyncio.CancelledError):
                await draining
            assert [message async for message in subscription] == []


@pytest.mark.parametrize("over_nats_py", [False, True])
@pytest.mark.parametrize("kind", ["messages", "fetch"])
async def test_what_is_on_its_way_is_given_back_though_the_leave_is_cancelled(
    server, name, over_nats_py, kind
):
    async with js.connect(server.url) as direct:
        stream = await direct.jetstream(timeout=60).create_stream(
            StreamConfig(name=name, subjects=[name])
        )
        consumer = await stream.create_consumer(ConsumerConfig(durable_name="w"))

        async def is_on_its_way():
            return (await consumer.info()).num_ack_pending

        with Proxy(server.url) as proxy:
            client = await nats.connect(proxy.url) if over_nats_py else js.connect(proxy.url)
            connection = client if over_nats_py else await client
            jet = js.from_nats(client) if over_nats_py else connection.jetstream(timeout=60)
            far = jet.bind_consumer(name, "w")
            messages = far.messages()
            taking = asyncio.create_task(
                messages.next(timeout=60) if kind == "messages" else far.next()
            )
            await eventually(waiting, consumer)
            proxy.delay = 0.5
            await direct.jetstream().publish(name)
            await eventually(is_on_its_way)
            taking.cancel()
            leaving = taking
            if kind == "messages":
                with pytest.raises(asyncio.CancelledError):
                    await taking
                leaving = asyncio.create_task(messages.close())
            # It has begun to leave, and is cancelled once more.
            for _ in range(3):
                await asyncio.sleep(0)
            leaving.cancel()
            with pytest.raises(asyncio.CancelledError):
                await leaving
            # Not after the ack_wait, which is longer.
            message = await consumer.next(timeout=60)
            assert message is not None
            assert message.metadata.num_delivered == 2
            assert (await far.info()).name == "w"
            await connection.close()
