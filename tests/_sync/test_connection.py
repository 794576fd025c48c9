# Generated from tests/_async/test_connection.py by codegen/twin.py. Edit that file instead.
"""The connection itself: core messages, failures, closing and coming back."""

from __future__ import annotations

import pickle

import pytest

import js_sync as js
from twinstream.core.deadline import monotonic
from twinstream.core.connect.options import ConnectOptions
from twinstream.models import ConsumerConfig, StreamConfig
from tests._sync.flow import eventually, together


def test_core_messages_and_requests(server, name):
    with js.connect(server.url, name="tester") as connection:
        with connection.subscribe(f"{name}.*") as subscription:
            connection.publish(f"{name}.a", b"1", headers={"K": ["v", "w"]})
            message = subscription.next(5)
            assert (message.subject, message.data) == (f"{name}.a", b"1")
            assert message.headers.get_all("K") == ["v", "w"]

            def answer():
                question = subscription.next(5)
                connection.publish(question.reply, question.data + b"!")

            def ask():
                return connection.request(f"{name}.q", b"hi")

            _, reply = together(answer, ask)
            assert reply.data == b"hi!"
            with pytest.raises(js.RequestTimeout):
                subscription.next(0.05)


def test_a_subscription_is_closed_by_its_block(server, name):
    with js.connect(server.url) as connection:
        with connection.subscribe(name, queue="q") as subscription:
            connection.publish(name, b"1")
            assert (subscription.next(timeout=5)).data == b"1"
            assert not subscription.is_ended
        assert subscription.is_ended
        with pytest.raises(js.IterationEnded):
            subscription.next(timeout=5)


def test_nobody_there_is_told_at_once(server, name):
    with js.connect(server.url) as connection:
        with pytest.raises(js.NoResponders, match=name):
            connection.request(name, timeout=30)


def test_a_server_that_is_not_there(server_factory):
    with server_factory() as stopped:
        url = stopped.url
    with pytest.raises(js.ConnectionFailed, match=r"127\.0\.0\.1"):
        js.connect(url, connect_timeout=2)
    with pytest.raises(js.BadArgument):
        js.connect("http://127.0.0.1:1")


def test_credentials_are_checked_and_never_shown(server_factory):
    config = 'authorization { users = [{user: "ann", password: "s3cret"}] }'
    with server_factory(config) as server:
        host = server.url.removeprefix("nats://")
        for url, options in (
            (server.url, {"user": "ann", "password": "s3cret"}),
            (f"nats://ann:s3cret@{host}", {}),
        ):
            with js.connect(url, **options) as connection:
                connection.flush()
                assert "s3cret" not in repr(connection)
        with pytest.raises(js.AuthenticationFailed) as caught:
            js.connect(server.url, user="ann", password="wr0ng")
        assert "wr0ng" not in str(caught.value)
    for other in ({"user": "ann"}, {"token": "t0ken"}, {"nkey_seed": "SU"}):
        with pytest.raises(js.BadArgument, match="give credentials, or a user, token or nkey_seed"):
            js.connect(server.url, credentials=js.Credentials, **other)
    options = ConnectOptions(
        servers="nats://ann:s3cret@127.0.0.1", credentials=js.Credentials(token="t0ken")
    )
    assert "t0ken" not in repr(options)
    assert "s3cret" not in repr(options)
    assert pickle.loads(pickle.dumps(options)) == options


def test_a_subject_too_long_for_a_protocol_line_leaves_the_link_alone(server, name):
    events = []
    with js.connect(server.url, on_event=events.append) as connection:
        jet = connection.jetstream(timeout=10)
        stream = jet.create_stream(StreamConfig(name=name, subjects=[f"{name}.>"]))
        longest = f"{name}." + "x" * (2999 - len(name))
        assert jet.insert(longest) == js.Stored(stream=name, seq=1)
        consumer = stream.create_consumer(
            ConsumerConfig(durable_name="c" * 255, filter_subject=longest)
        )
        (message,) = consumer.fetch(1)
        assert message.subject == longest
        with pytest.raises(js.BadArgument, match="3000 are allowed"):
            jet.insert(f"{name}." + "x" * 5000)
        connection.flush()
        assert not [event for event in events if isinstance(event, js.Disconnected)]


def test_several_may_close_a_connection_at_the_same_time(server):
    for _ in range(20):
        connection = js.connect(server.url)
        together(connection.close, connection.close, connection.close)
        assert connection.is_closed


def test_a_connection_is_opened_once(server):
    connection = js.connect(server.url)
    with pytest.raises(js.BadArgument, match="opened already"):
        connection._start()
    assert connection.stats.links == 1
    connection.close()
    with pytest.raises(js.ConnectionClosed, match="make another"):
        connection._start()
    assert connection.stats.links == 1


def test_closing_wakes_everybody_who_waits(server, name):
    connection = js.connect(server.url)
    jet = connection.jetstream()
    stream = jet.create_stream(StreamConfig(name=name, subjects=[name]))
    consumer = stream.create_consumer(ConsumerConfig(durable_name="c"))
    subscription = connection.subscribe(f"{name}.core")

    def fetch():
        batch = consumer.fetch(1, timeout=30)
        assert batch.reason is js.BatchEnd.INTERRUPTED

    def iterate():
        messages = consumer.messages()
        with pytest.raises(js.ConnectionClosed):
            messages.next(30)

    def listen():
        with pytest.raises(js.ConnectionClosed):
            subscription.next()

    def close():
        eventually(waiting)
        connection.close()
        connection.close()

    def waiting():
        return (consumer.info()).num_waiting == 2

    together(fetch, iterate, listen, close)
    assert connection.is_closed
    for use in (connection.flush, lambda: jet.publish(name), lambda: consumer.fetch(1)):
        with pytest.raises(js.ConnectionClosed):
            use()


def test_acknowledgements_are_out_before_the_link_closes(server, name):
    with js.connect(server.url) as connection:
        jet = connection.jetstream()
        stream = jet.create_stream(StreamConfig(name=name, subjects=[name]))
        consumer = stream.create_consumer(ConsumerConfig(durable_name="c"))
        for _ in range(50):
            jet.publish(name)
        other = js.connect(server.url)
        batch = other.jetstream().bind_consumer(name, "c").fetch(50)
        for message in batch:
            message.ack()
        other.close()
        assert (consumer.info()).ack_floor.stream_seq == 50


def came_back(connection, epoch):
    return connection.is_connected and connection.epoch == epoch


def test_a_connection_comes_back_and_goes_on(server_factory, name):
    policy = js.ReconnectPolicy(wait=0.01, max_wait=0.1, attempts=-1)
    with server_factory() as server:
        with js.connect(server.url, reconnect=policy) as connection:
            jet = connection.jetstream(timeout=10)
            stream = jet.create_stream(StreamConfig(name=name, subjects=[name]))
            consumer = stream.create_consumer(ConsumerConfig(durable_name="c"))
            subscription = connection.subscribe("core")
            seen = []
            with consumer.messages() as messages:
                for round_ in range(3):
                    jet.publish(name, b"%d" % round_)
                    # A killed server may forget an acknowledgement: then one comes again.
                    while b"%d" % round_ not in seen:
                        message = messages.next(10)
                        seen.append(message.data)
                        message.double_ack(10)
                    server.kill()
                    server.restart()
                    eventually(came_back, connection, round_ + 2)
            assert list(dict.fromkeys(seen)) == [b"0", b"1", b"2"]
            jet.publish(name)
            assert connection.epoch == 4
            connection.publish("core", b"again")
            assert (subscription.next(5)).data == b"again"


def test_who_has_no_link_is_told_why_and_in_his_own_time(server_factory, name):
    server = server_factory()
    policy = js.ReconnectPolicy(wait=0.01, max_wait=0.1, attempts=-1)
    with js.connect(server.url, reconnect=policy) as connection:
        jet = connection.jetstream(timeout=60)
        stream = jet.create_stream(StreamConfig(name=name, subjects=[name]))
        consumer = stream.create_consumer(ConsumerConfig(durable_name="c"))
        server.stop()

        def refused():
            return isinstance(connection._session._cause, js.ConnectionFailed)

        eventually(refused)
        # What the last server can do is what the next one is taken to.
        assert connection.server_info.version_numbers >= (2, 11)
        began = monotonic()
        for work in (
            lambda: consumer.fetch(1, timeout=0.2),
            lambda: consumer.fetch(1, timeout=0.2, wait="none"),
            lambda: consumer.next(timeout=0.2),
            lambda: jet.insert(name, timeout=0.2),
            lambda: jet.upsert(name, timeout=0.2),
            lambda: jet.update(name, b"", 1, timeout=0.2),
        ):
            with pytest.raises(js.RequestTimeout, match=r"in time; last: .* 127\.0\.0\.1:"):
                work()
        assert monotonic() - began < 30


def test_without_reconnect_the_end_has_a_reason(server_factory):
    with server_factory() as server:
        connection = js.connect(server.url, reconnect=None)
        subscription = connection.subscribe("x")
        server.kill()
        with pytest.raises(js.ConnectionClosed, match="reconnecting is off"):
            subscription.next(10)
        connection.close()


def test_a_connection_does_not_pickle(server):
    with js.connect(server.url) as connection:
        with pytest.raises(TypeError, match="connect over there"):
            pickle.dumps(connection)


def test_a_server_without_jetstream_says_so_in_every_call(server_factory):
    with server_factory(jetstream=False) as server:
        with js.connect(server.url) as connection:
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
                with pytest.raises(js.JetStreamOff, match="off for this server"):
                    call()
            # Of a pull only the consumer would know more.
            with pytest.raises(js.NoResponders, match="JetStream is not served here"):
                jet.bind_consumer("S", "c").fetch(1)


def test_an_account_without_jetstream_is_told_as_one(server_factory):
    with server_factory("accounts { A: { users: [{user: ann, password: pw}] } }") as server:
        with js.connect(server.url, user="ann", password="pw") as connection:
            jet = connection.jetstream()
            for call in (jet.account_info, lambda: jet.get_stream("S"), lambda: jet.publish("s")):
                with pytest.raises(js.JetStreamOff, match="JetStream not enabled for account"):
                    call()


def test_who_waits_for_the_same_messages_waits_on_when_another_has_them(server, name):
    with js.connect(server.url) as connection:
        subscription = connection.subscribe(name)
        seen = []

        def take():
            seen.append((subscription.next(30)).data)

        def send():
            for number in range(3):
                connection.publish(name, b"%d" % number)
                eventually(arrived, number)

        def arrived(number):
            return len(seen) > number

        together(take, take, take, send)
        assert sorted(seen) == [b"0", b"1", b"2"]


def test_all_who_wait_for_the_same_are_told_of_the_end(server, name):
    connection = js.connect(server.url)
    stream = connection.jetstream().create_stream(StreamConfig(name=name, subjects=[name]))
    consumer = stream.create_consumer(ConsumerConfig(name="c"))
    subscription, events = connection.subscribe(name), connection.events()
    pushed = stream.subscribe(ConsumerConfig(ack_policy="none"))
    waited_for = (subscription, events, consumer.messages(), pushed)
    waiting, told = [], []

    def waits(iteration):
        def wait():
            waiting.append(iteration)
            try:
                while True:
                    iteration.next(60)
            except js.TwinstreamError as error:
                told.append(type(error))

        return wait

    def close():
        eventually(all_wait)
        connection.close()

    def all_wait():
        return len(waiting) == 3 * len(waited_for)

    together(*[waits(each) for each in waited_for for _ in range(3)], close)
    assert told == [js.ConnectionClosed] * 12


def test_subscriptions_that_ended_are_not_kept_nor_looked_at_each_time(server, name, monkeypatch):
    looks = []
    is_closed = js.Subscription.is_closed.fget
    looked = property(lambda each: looks.append(each) or is_closed(each))
    monkeypatch.setattr(js.Subscription, "is_closed", looked)
    with js.connect(server.url) as connection:
        lasting = [connection.subscribe(name) for _ in range(100)]
        for _ in range(1000):
            (connection.subscribe(name)).close()
        assert len(connection._subscriptions) <= 2 * len(lasting)
        assert set(lasting) <= set(connection._subscriptions.values())
        # Not once for each that is there whenever one is made.
        assert len(looks) < 5 * 1100
