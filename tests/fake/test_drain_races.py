"""Receiving that ends while another thread pulls, or while it looks for the last messages."""

from __future__ import annotations

from contextlib import closing, contextmanager
from threading import Event
from types import SimpleNamespace

import pytest

import js_sync as js
from js_sync.consume.delivery import Delivery
from js_sync.consume.message import Message
from js_sync.consume.push import PushMessages
from js_sync.consume.push_buffer import PushBuffer
from js_sync.consume.ready_messages import ReadyMessages
from tests._sync.flow import eventually
from tests.fake.answers import silent
from tests.fake.threads import beside, in_time
from tests.hooked import hooked, once
from tests.inside import api_of, held_of, open_push
from twinstream.models import ConsumerConfig
from twinstream.testing import FakePeer, FakeServer

# The limit of a wait for something that happens (seconds).
LIMIT = 30


@contextmanager
def pulling(messages):
    """Iterate in a thread that stops while it sends a pull request. Yield what lets it go on."""
    sending, goes_on = Event(), Event()

    def hold(_):
        sending.set()
        assert goes_on.wait(LIMIT)

    with hooked("pull: before send", hold), beside(lambda: list(messages)) as came:
        assert sending.wait(LIMIT)
        yield goes_on
        goes_on.set()
        messages.close()
    assert came == [[]]


@pytest.mark.parametrize(
    "end",
    [js.Messages.close, js.Messages.drain, lambda messages: held_of(messages).give_up()],
    ids=["close", "drain", "give up"],
)
def test_no_pull_request_is_sent_after_its_mailbox_was_closed(end, tuned):
    """The server would deliver messages for it, which wait for their redelivery after ack_wait."""
    tuned("pull sending", LIMIT)
    with FakeServer(silent) as server, js.connect(server.url) as connection:
        messages = connection.jetstream().bind_consumer("S", "c").messages()
        with pulling(messages) as goes_on, beside(lambda: end(messages)) as ended:
            assert not in_time(lambda: ended), ended
            goes_on.set()
        connection.flush()
        sent = [each.verb for each in server.operations(r"^(PUB \S*\.MSG\.NEXT\.|UNSUB)")]
        assert sent[:2] == ["PUB", "UNSUB"]


def test_closing_waits_a_limited_time_for_a_pull_request_that_is_being_sent(tuned):
    tuned("pull sending", 0.1)
    with FakeServer(silent) as server, js.connect(server.url) as connection:
        messages = connection.jetstream().bind_consumer("S", "c").messages()
        with pulling(messages):
            messages.close()


def late(peer: FakePeer, to: str, reply: str = "") -> None:
    """Deliver a message to the subject `to` when the client has unsubscribed."""
    peer.expect("^UNSUB")
    peer.expect("^PING")
    peer.message(to, b"last", subject="subject", reply=reply)
    peer.go_on()
    peer.send(b"PONG\r\n")
    peer.until_left(timeout=LIMIT)


def opened_push(connection):
    config = ConsumerConfig(deliver_subject="here")
    push = PushMessages(PushBuffer(api_of(connection.jetstream()), "S", config, None))
    open_push(push, "c")
    return push


def opened_subscription(connection):
    return connection.subscribe("here")


@pytest.mark.parametrize("opened", [opened_push, opened_subscription], ids=["push", "core"])
def test_messages_that_arrive_during_the_last_look_are_returned(opened, tuned):
    def script(peer: FakePeer) -> None:
        peer.stop_answering()
        peer.handshake()
        late(peer, "here", "$JS.ACK.S.c.1.1.1.1700000000000000000.0")

    tuned("session goodbye", LIMIT)
    with FakeServer(script) as server, js.connect(server.url) as connection:
        source = opened(connection)
        with closing(source), hooked("source: found empty", once(source.drain)):
            assert [each.data for each in source] == [b"last"]


def test_pulled_messages_that_arrive_during_the_last_look_are_returned(tuned):
    def script(peer: FakePeer) -> None:
        peer.stop_answering()
        peer.handshake()
        pull = peer.expect_pull()
        peer.deliver(pull, 1)
        late(peer, pull.reply, "$JS.ACK.S.c.1.2.2.1700000000000000000.0")

    tuned("session goodbye", LIMIT)
    with FakeServer(script) as server, js.connect(server.url) as connection:
        messages = connection.jetstream().bind_consumer("S", "c").messages()
        with closing(messages):
            assert messages.next(timeout=LIMIT).metadata.stream_seq == 1
            with hooked("source: found empty", once(messages.drain)):
                assert [each.metadata.stream_seq for each in messages] == [2]


def test_the_last_message_is_handled_though_a_worker_has_just_found_none(tuned):
    def script(peer: FakePeer) -> None:
        peer.stop_answering()
        peer.handshake()
        pull = peer.expect_pull()
        peer.reach("pulled")
        late(peer, pull.reply, "$JS.ACK.S.c.1.1.1.1700000000000000000.0")

    looked, seen = Event(), []

    def hold(lane):
        if not looked.is_set():
            looked.set()
            eventually(lambda: lane.ended)

    tuned("session goodbye", LIMIT)
    with FakeServer(script) as server, js.connect(server.url) as connection:
        consumer = connection.jetstream().bind_consumer("S", "c")
        consuming = consumer.consume(lambda message: seen.append(message.metadata.stream_seq))
        with hooked("lane: found empty", hold):
            consuming.start()
            assert looked.wait(LIMIT)
            eventually(lambda: server.reached("pulled"))
            consuming.drain(timeout=LIMIT)
    assert seen == [1]


def test_events_that_arrive_during_the_last_look_are_returned():
    advisory = b'{"type":"io.nats.jetstream.advisory.v1.stream_action"}'

    def script(peer: FakePeer) -> None:
        peer.handshake()
        subject = peer.expect(r"^SUB \$JS\.EVENT").subject.replace("*", "x").replace(">", "x")
        peer.wait_for("deliver")
        peer.message(subject, advisory)
        peer.until_left(timeout=LIMIT)

    def last():
        server.tell("deliver")
        eventually(lambda: events.buffered)
        events.close()

    with FakeServer(script) as server, js.connect(server.url) as connection:
        events = connection.jetstream().events(stream_name="S").__enter__()
        with hooked("source: found empty", once(last)):
            assert len(list(events)) == 1


def test_a_late_message_that_another_thread_notes_later_is_still_wanted():
    """With `stop_after`, the iteration would end one message too early."""
    wanted = []

    class Overtaken(Delivery):
        @property
        def late_at(self):
            engine.budget.buffered = 1
            ready.settle(engine)
            engine.budget.buffered = 0
            return 0.0

        @late_at.setter
        def late_at(self, _):
            pass

    engine = SimpleNamespace(
        budget=SimpleNamespace(buffered=1),
        still_wanted=None,
        handed_over=lambda *_: None,
        note_wanted=wanted.append,
    )
    ready = ReadyMessages(None, 30, 5.0)
    ready.messages.append(Message((b"a", b"b", 0, b""), Overtaken(None, 0.0, 30, 5.0)))
    ready.reserved = 0
    assert ready.take_nowait() is None
    ready.settle(engine)
    assert sum(wanted) == 0
