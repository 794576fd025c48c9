"""The connection: core messages, failures, closing and reconnecting."""

from __future__ import annotations

import gc
import logging
import pickle
import sys
import weakref

import pytest

import js_async as js
from js_async.client.subscription import SubscriptionBuffer
from js_async.exactly_once import Stored, SubjectWriter
from tests._async.flow import eventually, together
from tests.hooked import starts
from twinstream.core.client.options import ConnectOptions
from twinstream.core.deadline import Deadline
from twinstream.models import ConsumerConfig, StreamConfig


async def test_core_messages_and_requests(server, name):
    async with js.connect(server.url, name="tester") as connection:
        async with await connection.subscribe(f"{name}.*") as subscription:
            await connection.publish(f"{name}.a", b"1", headers={"K": ["v", "w"]})
            message = await subscription.next(timeout=60)
            assert (message.subject, message.data) == (f"{name}.a", b"1")
            assert message.headers.get_all("K") == ["v", "w"]

            async def answer():
                question = await subscription.next(timeout=60)
                await connection.publish(question.reply, question.data + b"!")

            async def ask():
                return await connection.request(f"{name}.q", b"hi")

            _, reply = await together(answer, ask)
            assert reply.data == b"hi!"
            assert await subscription.next(timeout=0.05) is None


async def test_a_subscription_is_closed_by_its_block(server, name):
    async with js.connect(server.url) as connection:
        async with connection.subscribe(name, queue="q") as subscription:
            await connection.publish(name, b"1")
            assert (await subscription.next(timeout=60)).data == b"1"
            assert not subscription.is_ended
        assert subscription.is_ended
        with pytest.raises(js.IterationEnded):
            await subscription.next(timeout=5)


async def test_no_responders_is_reported_at_once(server, name):
    async with js.connect(server.url) as connection:
        with pytest.raises(js.NoResponders, match=name):
            await connection.request(name, timeout=30)


async def test_a_server_that_is_not_there(server_factory):
    with server_factory() as stopped:
        url = stopped.url
    with pytest.raises(js.ConnectionFailed, match=r"127\.0\.0\.1"):
        await js.connect(url, connect_timeout=2)
    with pytest.raises(js.BadArgument):
        await js.connect("http://127.0.0.1:1")


async def test_credentials_are_checked_and_never_shown(server_factory):
    config = 'authorization { users = [{user: "ann", password: "s3cret"}] }'
    with server_factory(config) as server:
        host = server.url.removeprefix("nats://")
        for url, options in (
            (server.url, {"user": "ann", "password": "s3cret"}),
            (f"nats://ann:s3cret@{host}", {}),
        ):
            async with js.connect(url, **options) as connection:
                await connection.flush()
                assert "s3cret" not in repr(connection)
        with pytest.raises(js.AuthenticationFailed) as caught:
            await js.connect(server.url, user="ann", password="wr0ng")
        assert "wr0ng" not in str(caught.value)
    for other in ({"user": "ann"}, {"token": "t0ken"}, {"nkey_seed": "SU"}):
        with pytest.raises(js.BadArgument, match="give credentials, or a user, token or nkey_seed"):
            await js.connect(server.url, credentials=js.Credentials, **other)
    options = ConnectOptions(
        servers="nats://ann:s3cret@127.0.0.1", credentials=js.Credentials(token="t0ken")
    )
    assert "t0ken" not in repr(options)
    assert "s3cret" not in repr(options)
    assert pickle.loads(pickle.dumps(options)) == options


async def test_a_subject_too_long_for_a_protocol_line_leaves_the_link_alone(server, name):
    events = []
    async with js.connect(server.url, on_event=events.append) as connection:
        jet = connection.jetstream(timeout=60)
        stream = await jet.create_stream(StreamConfig(name=name, subjects=[f"{name}.>"]))
        longest = f"{name}." + "x" * (2999 - len(name))
        assert await SubjectWriter(jet).insert(longest) == Stored(stream_name=name, seq=1)
        consumer = await stream.create_consumer(
            ConsumerConfig(durable_name="c" * 255, filter_subject=longest)
        )
        (message,) = await consumer.fetch(1)
        assert message.subject == longest
        with pytest.raises(js.BadArgument, match="at most 3000"):
            await SubjectWriter(jet).insert(f"{name}." + "x" * 5000)
        await connection.flush()
        assert not [event for event in events if isinstance(event, js.Disconnected)]


async def test_the_background_task_of_a_connection_ends_with_it(server):
    with starts() as tasks:
        connection = await js.connect(server.url, ping_interval=600)
    await connection.close()
    assert await tasks["twinstream-keeper"].join(Deadline.after(30))


async def test_several_may_close_a_connection_at_the_same_time(server):
    for _ in range(20):
        connection = await js.connect(server.url)
        await together(connection.close, connection.close, connection.close)
        assert connection.is_closed


@pytest.mark.parametrize(
    ("closed", "error", "said"),
    [
        (False, js.BadArgument, "opened already"),
        (True, js.ConnectionClosed, "make another"),
    ],
)
async def test_a_connection_is_opened_once(server, closed, error, said):
    connection = await js.connect(server.url)
    if closed:
        await connection.close()
    with pytest.raises(error, match=said):
        await connection._start()
    assert connection.stats.connects == 1
    await connection.close()


async def test_a_closed_connection_says_why(server, name):
    async with js.connect(server.url) as connection:
        jet = connection.jetstream()
    for call in (lambda: jet.publish(name, b""), lambda: connection.request(name, b"")):
        with pytest.raises(js.ConnectionClosed, match=r"closed: the program called `close` or"):
            await call()
    with pytest.raises(js.ConnectionClosed, match="or left its `with` block"):
        await jet.account_info()


async def test_a_timeout_of_0_is_explained(server, name):
    async with js.connect(server.url) as connection:
        jet = connection.jetstream()
        stream = await jet.create_stream(StreamConfig(name=name, subjects=[name]))
        with pytest.raises(js.BadArgument, match="timeout must be above 0, because the ack"):
            await jet.publish(name, b"", timeout=0)
        with pytest.raises(js.BadArgument, match="timeout must be above 0, because the ack"):
            jet.publisher(timeout=0)
        with pytest.raises(js.RequestTimeout, match="a request needs a timeout above 0"):
            await stream.info(timeout=0)
        with pytest.raises(js.RequestTimeout, match="a request needs a timeout above 0"):
            await connection.request(name, timeout=0)
        assert (await stream.info()).state.messages == 0


async def test_closing_wakes_all_waiting_callers(server, name):
    connection = await js.connect(server.url)
    jet = connection.jetstream()
    stream = await jet.create_stream(StreamConfig(name=name, subjects=[name]))
    consumer = await stream.create_consumer(ConsumerConfig(durable_name="c"))
    subscription = await connection.subscribe(f"{name}.core")

    async def fetch():
        batch = await consumer.fetch(1, timeout=30)
        assert batch.reason is js.BatchEnd.INTERRUPTED

    async def iterate():
        messages = consumer.messages()
        with pytest.raises(js.ConnectionClosed):
            await messages.next(timeout=30)

    async def listen():
        with pytest.raises(js.ConnectionClosed):
            await subscription.next()

    async def close():
        await eventually(waiting)
        await connection.close()
        await connection.close()

    async def waiting():
        return (await consumer.info()).num_waiting == 2

    await together(fetch, iterate, listen, close)
    assert connection.is_closed
    for use in (connection.flush, lambda: jet.publish(name), lambda: consumer.fetch(1)):
        with pytest.raises(js.ConnectionClosed):
            await use()


async def test_acknowledgements_are_out_before_the_link_closes(server, name):
    async with js.connect(server.url) as connection:
        jet = connection.jetstream()
        stream = await jet.create_stream(StreamConfig(name=name, subjects=[name]))
        consumer = await stream.create_consumer(ConsumerConfig(durable_name="c"))
        for _ in range(50):
            await jet.publish(name)
        other = await js.connect(server.url)
        batch = await other.jetstream().bind_consumer(name, "c").fetch(50)
        for message in batch:
            await message.ack()
        await other.close()

        async def are_counted():  # The server counts them in the background.
            return (await consumer.info()).ack_floor.stream_seq == 50

        await eventually(are_counted)


async def came_back(connection, epoch):
    return connection.is_connected and connection.stats.connects == epoch


async def test_connection_is_restored_and_continues(server_factory, name):
    policy = js.ReconnectPolicy(wait=0.01, max_wait=0.1, attempts=-1)
    with server_factory() as server:
        async with js.connect(server.url, reconnect=policy) as connection:
            jet = connection.jetstream(timeout=60)
            stream = await jet.create_stream(StreamConfig(name=name, subjects=[name]))
            consumer = await stream.create_consumer(ConsumerConfig(durable_name="c"))
            subscription = await connection.subscribe("core")
            seen = []
            async with consumer.messages() as messages:
                for round_ in range(3):
                    await jet.publish(name, b"%d" % round_)
                    # A killed server may forget an acknowledgement: then one comes again.
                    while b"%d" % round_ not in seen:
                        message = await messages.next(timeout=60)
                        seen.append(message.data)
                        await message.double_ack(timeout=60)
                    server.kill()
                    server.restart()
                    await eventually(came_back, connection, round_ + 2)
            assert list(dict.fromkeys(seen)) == [b"0", b"1", b"2"]
            await jet.publish(name)
            assert connection.stats.connects == 4
            await connection.publish("core", b"again")
            assert (await subscription.next(timeout=60)).data == b"again"


async def test_disconnected_caller_gets_the_reason_within_its_timeout(server_factory, name, caplog):
    caplog.set_level(logging.DEBUG, "twinstream.connection")
    server = server_factory()
    policy = js.ReconnectPolicy(wait=0.01, max_wait=0.1, attempts=-1)
    async with js.connect(server.url, reconnect=policy) as connection:
        # If a call waited for this timeout, the test would not end.
        jet = connection.jetstream(timeout=3600)
        stream = await jet.create_stream(StreamConfig(name=name, subjects=[name]))
        consumer = await stream.create_consumer(ConsumerConfig(durable_name="c"))
        server.stop()

        async def refused():
            return "reconnect attempt 1 failed" in caplog.text

        await eventually(refused)
        # What the last server can do is what the next one is taken to.
        assert connection.server_info.version_numbers >= (2, 11)
        for work in (
            lambda: consumer.fetch(1, timeout=0.2),
            lambda: consumer.fetch(1, timeout=0.2, wait="none"),
            lambda: consumer.next(timeout=0.2),
            lambda: SubjectWriter(jet).insert(name, timeout=0.2),
            lambda: SubjectWriter(jet).upsert(name, timeout=0.2),
            lambda: SubjectWriter(jet).update(name, b"", 1, timeout=0.2),
        ):
            with pytest.raises(js.RequestTimeout, match=r"in time; last: .* 127\.0\.0\.1:"):
                await work()


async def test_without_reconnect_the_end_has_a_reason(server_factory):
    with server_factory() as server:
        connection = await js.connect(server.url, reconnect=None)
        subscription = await connection.subscribe("x")
        server.kill()
        with pytest.raises(js.ConnectionClosed, match="reconnecting is off"):
            await subscription.next(timeout=10)
        await connection.close()


async def test_a_connection_does_not_pickle(server):
    async with js.connect(server.url) as connection:
        with pytest.raises(TypeError, match="connect again"):
            pickle.dumps(connection)


async def test_server_without_jetstream_is_reported_by_every_call(server_factory):
    with server_factory(jetstream=False) as server:
        async with js.connect(server.url) as connection:
            jet = connection.jetstream()
            stream = jet.bind_stream("S")
            for call in (
                jet.account_info,
                lambda: jet.get_stream("S"),
                lambda: jet.publish("s"),
                lambda: stream.get_message(1),
                lambda: stream.get_message(1, direct=True),
                stream.read().next_page,
                stream.snapshot,
            ):
                with pytest.raises(js.JetStreamNotEnabled, match="off for this server"):
                    await call()
            # Of a pull only the consumer would know more.
            with pytest.raises(js.NoResponders, match="JetStream is not available"):
                await jet.bind_consumer("S", "c").fetch(1)


async def test_account_without_jetstream_is_reported_as_such(server_factory):
    with server_factory("accounts { A: { users: [{user: ann, password: pw}] } }") as server:
        async with js.connect(server.url, user="ann", password="pw") as connection:
            jet = connection.jetstream()
            for call in (jet.account_info, lambda: jet.get_stream("S"), lambda: jet.publish("s")):
                match = "JetStream not enabled for account"
                with pytest.raises(js.JetStreamNotEnabled, match=match) as caught:
                    await call()
                # The server answers requests of the API, but no stream answers the publish.
                assert caught.value.err_code == (0 if caught.value.__cause__ else 10039)


async def test_waiter_continues_if_another_got_the_messages(server, name):
    async with js.connect(server.url) as connection:
        subscription = await connection.subscribe(name)
        seen = []

        async def take():
            seen.append((await subscription.next(timeout=30)).data)

        async def send():
            for number in range(3):
                await connection.publish(name, b"%d" % number)
                await eventually(arrived, number)

        async def arrived(number):
            return len(seen) > number

        await together(take, take, take, send)
        assert sorted(seen) == [b"0", b"1", b"2"]


async def test_all_waiting_callers_are_notified_of_the_end(server, name):
    connection = await js.connect(server.url)
    stream = await connection.jetstream().create_stream(StreamConfig(name=name, subjects=[name]))
    consumer = await stream.create_consumer(ConsumerConfig(name="c"))
    subscription, events = await connection.subscribe(name), connection.events()
    pushed = await stream.push_messages(ConsumerConfig(ack_policy="none"))
    waited_for = (subscription, events, consumer.messages(), pushed)
    waiting, ends = [], {}

    def waits(iteration):
        async def wait():
            waiting.append(iteration)
            try:
                while True:
                    await iteration.next(timeout=60)
            except js.TwinstreamError as error:
                ends.setdefault(type(iteration), set()).add(type(error))

        return wait

    async def close():
        await eventually(all_wait)
        await connection.close()

    async def all_wait():
        return len(waiting) == 3 * len(waited_for)

    await together(*[waits(each) for each in waited_for for _ in range(3)], close)
    # The events end with `Closed`. All other iterations end with an error.
    assert ends.pop(type(events)) == {js.IterationEnded}
    assert [*ends.values()] == [{js.ConnectionClosed}] * 3


async def test_subscriptions_that_ended_are_not_kept_nor_looked_at_each_time(server, name):
    looks, ended = 0, []
    look = SubscriptionBuffer.is_closed.fget.__code__

    def count(frame, event, _):
        nonlocal looks
        looks += event == "call" and frame.f_code is look

    async with js.connect(server.url) as connection:
        sys.setprofile(count)
        try:
            lasting = [await connection.subscribe(name) for _ in range(100)]
            for _ in range(1000):
                subscription = await connection.subscribe(name)
                await subscription.close()
                ended.append(weakref.ref(subscription))
        finally:
            sys.setprofile(None)
        del subscription
        gc.collect()
        assert sum(each() is not None for each in ended) <= len(lasting)
        # Not once for each that is there whenever one is made.
        assert 0 < looks < 5 * 1100
        await connection.drain()
        assert all(each.is_closed for each in lasting)
