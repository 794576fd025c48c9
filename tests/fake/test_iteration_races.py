"""Iterations that another thread closes, drains or feeds between two statements of the caller."""

from __future__ import annotations

import sys
import threading
from collections import deque
from contextlib import ExitStack
from types import SimpleNamespace

import pytest

import js_sync as js
from js_sync.client.subscription import SubscriptionBuffer
from js_sync.consume import buffer as buffer_module
from js_sync.consume.message import Message
from js_sync.consume.push import PushMessages
from js_sync.consume.push_buffer import PushBuffer
from js_sync.fast_ingest import FastIngest
from js_sync.outbox import OutboxRelay, SqliteOutbox
from js_sync.runtime.concurrency import Signal
from js_sync.subject_writes.stream_guarantees import StreamGuarantees
from tests._sync.flow import eventually
from tests.fake.answers import describe, silent
from tests.fake.threads import beside, in_time
from tests.hooked import hooked, once
from tests.inside import api_of, held_of, open_push, outstanding, requests_of, session_of
from twinstream.core.client.mailbox import Mailbox
from twinstream.core.deadline import Deadline
from twinstream.models import ConsumerConfig, StreamConfig
from twinstream.testing import FakePeer, FakeServer

COUNT = 3


class Left(Exception):
    """Raised where an iteration would wait."""


def delivering(peer: FakePeer) -> None:
    """Deliver some messages, and reach `given back` when all of them were returned with naks."""
    peer.handshake()
    pull = peer.expect_pull()
    for seq in range(1, COUNT + 1):
        peer.deliver(pull, seq)
    peer.fence()
    peer.reach("here")
    for _ in range(COUNT):
        assert peer.expect(r"^PUB \$JS\.ACK").payload == b"-NAK"
    peer.reach("given back")
    peer.until_left(timeout=30)


def consumer_of(connection):
    return connection.jetstream().bind_consumer("S", "c")


def opened(connection, **options):
    return pulled(consumer_of(connection), **options)


def pulled(consumer, **options):
    """Return an iteration that has sent a pull request and has not waited."""

    def leave():
        raise Left

    messages = consumer.messages(**options)
    with hooked("messages: before wait", once(leave)), pytest.raises(Left):
        messages.next(timeout=30)
    return messages


def take(messages, timeout=30):
    """Return the sequence of the next message, or None after the end."""
    try:
        return messages.next(timeout=timeout).metadata.stream_seq
    except js.IterationEnded:
        return None


def test_messages_that_are_sorted_while_somebody_closes_are_given_back(monkeypatch):
    with FakeServer(delivering) as server, js.connect(server.url) as connection:
        messages = opened(connection)
        connection.flush()
        eventually(lambda: messages.buffered == COUNT and server.reached("here"))

        def slowly(frame, delivery):
            messages.close()
            return Message(frame, delivery)

        monkeypatch.setattr(buffer_module, "Message", slowly)
        assert take(messages) is None
        eventually(lambda: server.reached("given back"))


def test_wait_that_begins_during_a_close_does_not_block():
    with FakeServer(silent) as server, js.connect(server.url) as connection:
        messages = opened(connection)
        with hooked("messages: before wait", once(messages.close)):
            # Not at the end of that time, nor with the next heartbeat that is missing.
            assert take(messages, 10) is None


def test_a_message_that_is_handed_over_while_somebody_closes_is_given_back():
    with FakeServer(delivering) as server, js.connect(server.url) as connection:
        messages = opened(connection)
        connection.flush()
        eventually(lambda: messages.buffered == COUNT and server.reached("here"))
        with hooked("messages: before hand-over", once(messages.close)):
            assert take(messages) is None
        eventually(lambda: server.reached("given back"))


def test_emptying_a_mailbox_may_be_overtaken():
    class Shared(deque):
        def __len__(self):
            # Another thread takes one after this look.
            return super().__len__() + 1

    box = Mailbox(b"1", b"a", b"", Signal(), 0.0)
    box.frames = Shared([(b"a", b"", 0, b"\r\n")])
    assert box.take_all() == [(b"a", b"", 0, b"\r\n")]


def test_an_iteration_that_is_closed_before_it_waits_ends():
    with FakeServer(silent) as server, js.connect(server.url) as connection:
        messages = opened(connection)
        with hooked("messages: before clear", once(messages.close)):
            assert take(messages, 10) is None


def given_up(messages):
    """Make an iteration release its messages, as it does if the program takes none for long."""
    held_of(messages).give_up()


def pulled_anew(peer: FakePeer) -> None:
    """Deliver one message for each of two pull requests, each with its own mailbox."""
    peer.handshake()
    peer.deliver(peer.expect_pull(), 1)
    peer.fence()
    peer.reach("here")
    peer.expect("^UNSUB")
    peer.deliver(peer.expect_pull(), 2)
    peer.until_left(timeout=30)


def test_wait_that_begins_during_the_release_of_a_mailbox_pulls_again():
    with FakeServer(pulled_anew) as server, js.connect(server.url) as connection:
        messages = opened(connection, expires=60, heartbeat=30)
        connection.flush()
        eventually(lambda: messages.buffered and server.reached("here"))
        assert take(messages) == 1
        with hooked("messages: before clear", once(lambda: given_up(messages))):
            # Not with the next heartbeat that is missing, after a minute.
            assert take(messages, 40) == 2
        assert connection.stats.subscriptions == 1


def test_waiter_pulls_again_when_its_mailbox_is_released():
    with FakeServer(pulled_anew) as server, js.connect(server.url) as connection:
        messages = opened(connection)
        connection.flush()
        eventually(lambda: messages.buffered and server.reached("here"))
        assert take(messages) == 1
        with beside(lambda: take(messages)) as came:
            eventually(lambda: held_of(messages).waiting)
            given_up(messages)
            eventually(lambda: came)
        assert came == [2]


@pytest.mark.parametrize("end", ["close", "drain"])
def test_iteration_ended_while_its_caller_returns_ends(end):
    with FakeServer(silent) as server, js.connect(server.url) as connection:
        consumer = consumer_of(connection)
        messages = pulled(consumer)
        given_up(messages)
        with hooked("channels: before take", once(getattr(messages, end))):
            assert take(messages, 10) is None
        # One inbox is kept for others.
        assert connection.stats.subscriptions == 1
        with consumer.messages():
            assert connection.stats.subscriptions == 1


def test_two_threads_returning_at_the_same_time_use_one_mailbox():
    with FakeServer(silent) as server, js.connect(server.url) as connection, ExitStack() as stack:
        messages = opened(connection)
        given_up(messages)
        assert connection.stats.subscriptions == 0

        def another():
            stack.enter_context(beside(lambda: take(messages)))
            assert not in_time(lambda: connection.stats.subscriptions)

        with hooked("channels: before take", once(another)):
            came = stack.enter_context(beside(lambda: take(messages)))
            eventually(lambda: outstanding(messages) or came)
        assert connection.stats.subscriptions == 1
        messages.close()
        eventually(lambda: came == [None])
        assert connection.stats.subscriptions == 0


def test_closing_waits_for_a_mailbox_that_is_being_given_up(tuned):
    """A message that arrives meanwhile is returned to the server."""

    def script(peer: FakePeer) -> None:
        peer.stop_answering()
        peer.handshake()
        pull = peer.expect_pull()
        peer.expect("^UNSUB")
        peer.expect("^PING")
        peer.reach("leaving")
        peer.wait_for("deliver")
        peer.deliver(pull, 1)
        peer.go_on()
        peer.send(b"PONG\r\n")
        assert peer.expect(r"^PUB \$JS\.ACK").payload == b"-NAK"
        peer.reach("given back")
        peer.until_left(timeout=30)

    tuned("session goodbye", 30.0)
    tuned("ack progress close time", 30.0)
    with FakeServer(script) as server, js.connect(server.url) as connection:
        messages = opened(connection)
        with beside(lambda: given_up(messages)):
            eventually(lambda: server.reached("leaving"))
            with beside(messages.close) as closed:
                assert not in_time(lambda: closed), closed
                server.tell("deliver")
        eventually(lambda: server.reached("given back"))


def test_a_push_iteration_that_is_closed_before_it_waits_ends():
    with FakeServer(silent) as server, js.connect(server.url) as connection:
        api = api_of(connection.jetstream())
        config = ConsumerConfig(deliver_subject="here")
        push = PushMessages(PushBuffer(api, "S", config, None))
        open_push(push, "c")
        with hooked("push: before clear", once(push.close)):
            assert take(push, 10) is None


def test_an_iteration_that_is_closed_while_it_is_opened_listens_no_more():
    with FakeServer(silent) as server, js.connect(server.url) as connection:
        messages = consumer_of(connection).messages()
        with hooked("channels: before take", once(messages.close)):
            assert take(messages) is None
        assert connection.stats.subscriptions == 0


def test_an_iteration_that_is_closed_while_a_block_begins_listens_no_more():
    with FakeServer(silent) as server, js.connect(server.url) as connection:
        messages = consumer_of(connection).messages()
        with hooked("channels: before take", once(messages.close)), messages:
            assert connection.stats.subscriptions == 0
            assert take(messages) is None


def test_a_read_that_is_closed_while_it_makes_its_consumer_leaves_nothing(server):
    with js.connect(server.url, request_timeout=60) as connection:
        jet = connection.jetstream()
        stream = jet.create_stream(StreamConfig(name="READ-RACE", subjects=["READ-RACE"]))
        before = connection.stats.subscriptions
        with stream.ordered() as messages:
            with hooked("channels: before take", once(messages.close)):
                assert list(messages) == []
            assert connection.stats.subscriptions == before
            assert list(stream.consumer_names()) == []
        jet.delete_stream("READ-RACE")


def test_draining_waits_for_what_is_on_its_way(tuned):
    """This also holds for another thread that iterates meanwhile."""

    def script(peer: FakePeer) -> None:
        peer.stop_answering()
        peer.handshake()
        pull = peer.expect_pull()
        peer.expect("^UNSUB")
        peer.expect("^PING")
        peer.reach("draining")
        peer.wait_for("deliver")
        peer.deliver(pull, 1)
        peer.go_on()
        peer.send(b"PONG\r\n")
        peer.until_left(timeout=30)

    tuned("session goodbye", 30.0)
    with FakeServer(script) as server, js.connect(server.url) as connection:
        messages = opened(connection)
        with beside(messages.drain):
            eventually(lambda: server.reached("draining"))
            with beside(lambda: [each.metadata.stream_seq for each in messages]) as came:
                assert not in_time(lambda: came), came
                server.tell("deliver")
        assert came == [[1]]


def test_a_message_that_is_done_just_now_keeps_no_other_from_being_kept_alive():
    class Kept:
        is_acknowledged = False

        def __init__(self, told=None):
            self.told = told

        def in_progress(self):
            if self.told is None:
                raise js.AlreadyAcknowledged("by its handler, just now")
            self.told.append(self)

    with FakeServer(silent) as server, js.connect(server.url) as connection:
        messages = connection.jetstream().bind_consumer("S", "c").messages()
        held_of(messages).keep_all = True
        told = []
        for keep in (held_of(messages).hold, held_of(messages).queue):
            for message in (Kept(), Kept(told)):
                keep(message)
                told.append(message)
        kept = [message for message in told if message.told is not None]
        told.clear()
        held_of(messages).report(1.0)
        assert told == kept


def test_streams_requested_by_others_disturb_no_search():
    others = iter("CD")

    class Config:
        def __init__(self, subject):
            self._subject = subject

        @property
        def subjects(self):
            # Another caller asks for one more stream in the middle of a search.
            for name in others:
                streams.of(name.lower(), name)
            return [self._subject]

    class Asked:
        """The API. The subject of each stream is its name in lower case."""

        transport = SimpleNamespace(epoch=0)

        def stream_info(self, name, _):
            return SimpleNamespace(config=Config(name.lower()))

    streams = StreamGuarantees(Asked())
    for name in "AB":
        streams.of(name.lower(), name)
    assert streams.of("b").name == "B"
    assert next(others, None) is None


def test_a_relay_that_is_stopped_before_it_looks_does_not_wait_for_its_next_look(tmp_path):
    def script(peer: FakePeer) -> None:
        peer.handshake()
        describe(peer, duplicate_window=120_000_000_000)
        peer.until_left(timeout=30)

    with FakeServer(script) as server, js.connect(server.url) as connection:
        outbox = SqliteOutbox(tmp_path / "outbox")
        # Nor for the answer of the server, which it would ask first.
        relay = OutboxRelay(connection.jetstream(timeout=60), outbox, "S", by="id", poll=3600)
        stopping = threading.Event()

        def stop():
            threading.Thread(target=lambda: stopped.append(relay.stop()), daemon=True).start()
            assert stopping.wait(30)

        stopped = []
        with (
            hooked("relay: before clear", once(stop)),
            hooked("relay: stopping", lambda _: stopping.set()),
        ):
            relay.start()
            eventually(lambda: stopped, patience=20)


def test_events_requested_after_the_end_end():
    with FakeServer(silent) as server:
        connection = js.connect(server.url)
        connection.close()
        assert [type(event) for event in connection.events()] == [js.Closed]


def test_refusal_before_the_write_returns_belongs_to_the_message():
    """With fast ingest, another thread reads the refusal while the first one is still writing."""

    def script(peer: FakePeer) -> None:
        peer.handshake()
        describe(peer, allow_batched=True)
        peer.expect("^H?PUB a ")
        peer.error('Permissions Violation for Publish to "a"')
        peer.until_left(timeout=30)

    class Slow:
        """A transport whose write returns after the refusal was read."""

        def __getattr__(self, name):
            return getattr(session, name)

        def write(self, subject, *args, **options):
            sent = session.write(subject, *args, **options)
            if subject == b"a":
                session.wait(Signal(), Deadline.after(0.01))
                eventually(lambda: refusals)
            return sent

    refusals = []

    def note(event):
        if isinstance(event, js.ServerReported):
            refusals.append(event)

    with FakeServer(script) as server, js.connect(server.url, on_event=note) as connection:
        session = session_of(connection)
        request = js.PublishRequest(subject="a", data=b"x")
        [outcome] = FastIngest(
            js.JetStream(Slow()), "S", [request], timeout=10, raise_failures=False
        )
        assert isinstance(outcome.error, js.PermissionDenied)


def test_outstanding_count_may_be_read_by_others():
    with FakeServer(silent) as server, js.connect(server.url) as connection:
        messages = opened(connection)
        requests = requests_of(messages)

        class Request:
            @property
            def left(self):
                # The owner sends another one meanwhile.
                requests[b"new %d" % len(requests)] = self
                return 1

        requests[b"a"] = requests[b"b"] = Request()
        assert outstanding(messages) > 2
        requests.clear()


def test_subscriptions_created_concurrently_are_all_drained():
    """Another thread subscribes while ended subscriptions are removed."""
    look = SubscriptionBuffer.is_closed.fget.__code__
    made, meanwhile = [], []

    def disturb(frame, event, _):
        if event == "call" and frame.f_code is look:
            sys.setprofile(None)
            meanwhile.append(connection.subscribe("meanwhile"))

    with FakeServer(silent) as server, js.connect(server.url) as connection:
        for number in range(200):
            sys.setprofile(disturb if not meanwhile else None)
            made.append(connection.subscribe(f"a.{number}"))
        sys.setprofile(None)
        assert len(meanwhile) == 1
        connection.drain(timeout=10)
        assert all(each.is_closed for each in made + meanwhile)


def test_the_end_of_the_events_of_a_connection_stays_the_end():
    """Another thread takes the last event while the first thread processes an earlier event."""

    def script(peer: FakePeer) -> None:
        peer.handshake()
        peer.expect("^SUB ready")
        peer.error("Something Odd")
        peer.until_left(timeout=30)

    taken = []
    with FakeServer(script) as server:
        connection = js.connect(server.url)
        events = connection.events()
        with connection.subscribe("ready"):
            eventually(lambda: "1 unread" in repr(events))
            connection.close()
        with hooked("events: event taken", once(lambda: taken.append(events.next(timeout=10)))):
            assert isinstance(events.next(timeout=10), js.ServerReported)
        assert [type(event) for event in taken] == [js.Closed]
        with pytest.raises(js.IterationEnded):
            events.next(timeout=1)


def test_all_who_wait_for_events_of_a_connection_end():
    """Another thread takes the last event between two statements of the one that looks."""
    with FakeServer(silent) as server:
        connection = js.connect(server.url)
        events = connection.events()
        connection.close()
        with hooked("events: before look", once(lambda: list(events))):
            with beside(lambda: list(events)) as came:
                pass
        assert came == [[]]


def test_a_sleeper_looks_again_though_the_flag_was_cleared_at_once():
    """Otherwise it would keep an outdated deadline, for example that before a retry was due."""
    flag = Signal()
    interval = sys.getswitchinterval()
    with beside(lambda: flag.sleep(Deadline.after(30))) as woken:
        eventually(lambda: flag.sleepers)
        # No other thread runs between the two calls.
        sys.setswitchinterval(60)
        flag.set()
        flag.clear()
        sys.setswitchinterval(interval)
        eventually(lambda: woken, patience=20)
    assert woken == [False]
