"""Iterations that another thread closes, drains or feeds between two statements of their owner."""

from __future__ import annotations

from collections import deque
from types import SimpleNamespace

import pytest

import js_sync as js
from js_sync.api.api import Api
from js_sync.client import session as _session
from js_sync.consume import ack_progress
from js_sync.consume import messages as messages_module
from js_sync.consume.message import Message
from js_sync.consume.push import PushMessages
from js_sync.exactly_once import stream_guarantees
from js_sync.exactly_once.stream_guarantees import PromisedStreams
from js_sync.runtime.concurrency import Signal
from tests._sync.flow import eventually
from tests.fake.threads import beside, in_time
from twinstream.core.connect.mailbox import Mailbox
from twinstream.core.deadline import Deadline
from twinstream.models import ConsumerConfig
from twinstream.testing import FakePeer, FakeServer

COUNT = 3


class Hooked(Signal):
    """A flag before whose lowering somebody else does something, once."""

    __slots__ = ("work",)

    def __init__(self, work):
        super().__init__()
        self.work = work

    def clear(self):
        work, self.work = self.work, lambda: None
        work()
        super().clear()


def delivering(peer: FakePeer) -> None:
    """Deliver some messages, and reach `given back` when all came back."""
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


def silent(peer: FakePeer) -> None:
    peer.handshake()
    peer.until_left(timeout=30)


def opened(connection):
    messages = connection.jetstream().bind_consumer("S", "c").messages()
    channel, engine = messages._open()
    messages._decisions.carry_out(channel, engine, False)
    return messages


def test_messages_that_are_sorted_while_somebody_closes_are_given_back(monkeypatch):
    with FakeServer(delivering) as server, js.connect(server.url) as connection:
        messages = opened(connection)
        connection.flush()
        eventually(lambda: messages.buffered == COUNT and server.reached("here"))

        def slowly(frame, delivery):
            messages.close()
            return Message(frame, delivery)

        monkeypatch.setattr(messages_module, "Message", slowly)
        assert messages._take(Deadline.after(30)) is None
        eventually(lambda: server.reached("given back"))


def test_who_is_about_to_wait_while_somebody_closes_does_not(monkeypatch):
    with FakeServer(silent) as server, js.connect(server.url) as connection:
        messages = opened(connection)
        own = messages._ends

        def slowly(channel):
            ends = own(channel)
            messages.close()
            return ends

        monkeypatch.setattr(messages, "_ends", slowly)
        # Not at the end of that time, nor with the next heartbeat that is missing.
        assert messages._take(Deadline.after(10)) is None


def test_a_message_that_is_handed_over_while_somebody_closes_is_given_back(monkeypatch):
    with FakeServer(delivering) as server, js.connect(server.url) as connection:
        messages = opened(connection)
        connection.flush()
        eventually(lambda: messages.buffered == COUNT and server.reached("here"))
        own = messages._hand_over

        def slowly(engine, now):
            messages.close()
            return own(engine, now)

        monkeypatch.setattr(messages, "_hand_over", slowly)
        assert messages._take(Deadline.after(30)) is None
        eventually(lambda: server.reached("given back"))


def test_who_empties_a_mailbox_may_be_overtaken():
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
        messages._channel.box.signal = Hooked(messages.close)
        assert messages._take(Deadline.after(10)) is None


def given_up(messages):
    """Have an iteration give up what it holds, as it does when nobody takes anything for long."""
    messages._held.start(messages._channel.box)
    messages._held._give_up()


def pulled_anew(peer: FakePeer) -> None:
    """Deliver one message through each of two mailboxes."""
    peer.handshake()
    peer.deliver(peer.expect_pull(), 1)
    peer.fence()
    peer.reach("here")
    peer.expect("^UNSUB")
    peer.deliver(peer.expect_pull(), 2)
    peer.until_left(timeout=30)


def test_who_is_about_to_wait_while_the_mailbox_is_given_up_pulls_anew():
    with FakeServer(pulled_anew) as server, js.connect(server.url) as connection:
        messages = opened(connection)
        connection.flush()
        eventually(lambda: messages.buffered and server.reached("here"))
        assert messages._take(Deadline.after(30)).metadata.stream_seq == 1
        messages._channel.box.signal = Hooked(lambda: given_up(messages))
        # Not with the next heartbeat that is missing, after ten seconds.
        assert messages._take(Deadline.after(8)).metadata.stream_seq == 2
        assert connection.stats.subscriptions == 1


def test_who_waits_while_the_mailbox_is_given_up_pulls_anew():
    with FakeServer(pulled_anew) as server, js.connect(server.url) as connection:
        messages = opened(connection)
        connection.flush()
        eventually(lambda: messages.buffered and server.reached("here"))
        assert messages._take(Deadline.after(30)).metadata.stream_seq == 1
        with beside(lambda: messages._take(Deadline.after(30)).metadata.stream_seq) as came:
            eventually(lambda: messages._held.waiting)
            given_up(messages)
            eventually(lambda: came)
        assert came == [2]


@pytest.mark.parametrize("end", ["close", "drain"])
def test_an_iteration_that_is_ended_while_its_user_comes_back_ends(monkeypatch, end):
    with FakeServer(silent) as server, js.connect(server.url) as connection:
        messages = opened(connection)
        given_up(messages)
        own = messages._missing.channels.take

        def slowly():
            getattr(messages, end)()
            return own()

        monkeypatch.setattr(messages._missing.channels, "take", slowly)
        assert messages._take(Deadline.after(10)) is None
        # One inbox is kept for others.
        assert connection.stats.subscriptions == 1
        assert messages._missing.channels.take_idle() is not None


def test_two_who_come_back_at_the_same_time_use_one_mailbox(monkeypatch):
    with FakeServer(silent) as server, js.connect(server.url) as connection:
        messages = opened(connection)
        left = messages._channel
        given_up(messages)
        own = messages._missing.channels.take

        def slowly():
            monkeypatch.undo()
            messages._come_back(left, messages._engine)
            return own()

        monkeypatch.setattr(messages._missing.channels, "take", slowly)
        assert messages._come_back(left, messages._engine) is messages._channel is not left
        assert messages._missing.channels.take_idle() is not None
        messages.close()
        assert connection.stats.subscriptions == 1


def test_closing_waits_for_a_mailbox_that_is_being_given_up(monkeypatch):
    """What is on its way meanwhile is given back."""

    def script(peer: FakePeer) -> None:
        peer.stop_answering()
        peer.handshake()
        pull = peer.expect_pull()
        peer.expect("^UNSUB")
        peer.expect("^PING")
        peer.reach("leaving")
        peer.wait_for("deliver")
        peer.deliver(pull, 1)
        peer.send(b"PONG\r\n")
        peer.go_on()
        assert peer.expect(r"^PUB \$JS\.ACK").payload == b"-NAK"
        peer.reach("given back")
        peer.until_left(timeout=30)

    monkeypatch.setattr(_session, "_GOODBYE", 30.0)
    monkeypatch.setattr(ack_progress, "_GOODBYE", 30.0)
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
        api = connection.jetstream()._api
        push = PushMessages(api, "S", ConsumerConfig(deliver_subject="here"), None)
        push._open(SimpleNamespace(name="c", config=None))
        push._box.signal = Hooked(push.close)
        assert push._take(Deadline.after(10)) is None


def test_an_iteration_that_is_closed_while_it_is_opened_listens_no_more(monkeypatch):
    with FakeServer(silent) as server, js.connect(server.url) as connection:
        messages = connection.jetstream().bind_consumer("S", "c").messages()
        own = messages._missing.channels.take

        def slowly():
            messages.close()
            return own()

        monkeypatch.setattr(messages._missing.channels, "take", slowly)
        assert messages._take(Deadline.after(30)) is None
        assert connection.stats.subscriptions == 0


def test_draining_waits_for_what_is_on_its_way(monkeypatch):
    """Also for an iteration that comes back for more meanwhile."""

    def script(peer: FakePeer) -> None:
        peer.stop_answering()
        peer.handshake()
        pull = peer.expect_pull()
        peer.expect("^UNSUB")
        peer.expect("^PING")
        peer.reach("draining")
        peer.wait_for("deliver")
        peer.deliver(pull, 1)
        peer.send(b"PONG\r\n")
        peer.go_on()
        peer.until_left(timeout=30)

    monkeypatch.setattr(_session, "_GOODBYE", 30.0)
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
        is_acknowledged = _is_returned = False

        def __init__(self, told=None):
            self.told = told

        def in_progress(self):
            if self.told is None:
                raise js.AlreadyAcknowledged("by its handler, just now")
            self.told.append(self)

    with FakeServer(silent) as server, js.connect(server.url) as connection:
        messages = connection.jetstream().bind_consumer("S", "c").messages()
        messages._held.keep_all = True
        told = []
        for keep in (messages._held.hold, messages._held.queue):
            for message in (Kept(), Kept(told)):
                keep(message)
                told.append(message)
        kept = [message for message in told if message.told is not None]
        told.clear()
        messages._held._tell_of_held(1.0)
        assert told == kept


def test_streams_that_others_ask_for_meanwhile_disturb_no_search(monkeypatch):
    with FakeServer(silent) as server, js.connect(server.url) as connection:
        streams = PromisedStreams(Api(connection._session, None, 1.0))
        config = SimpleNamespace(subjects=["a"])
        streams._known["A"] = SimpleNamespace(config=config, name="A")
        streams._known["B"] = SimpleNamespace(config=config, name="B")
        own = stream_guarantees.matcher

        def slowly(subjects):
            streams._known[f"C{len(streams._known)}"] = streams._known["A"]
            return own(subjects)

        monkeypatch.setattr(stream_guarantees, "matcher", slowly)
        assert streams._find(b"x") is None


def test_a_relay_that_is_stopped_before_it_looks_does_not_wait_for_its_next_look(
    monkeypatch, tmp_path
):
    with FakeServer(silent) as server, js.connect(server.url) as connection:
        outbox = js.SqliteOutbox(tmp_path / "outbox")
        relay = connection.jetstream().outbox(outbox, stream="S", by="id", poll=3600)
        monkeypatch.setattr(relay, "_claim", lambda: None)
        monkeypatch.setattr(relay, "_round", lambda: None)
        hooked = Hooked(lambda: (relay._stop.set(), hooked.set()))
        relay._awake = hooked
        with beside(relay._run) as came:
            eventually(lambda: came, patience=20)


def test_events_that_are_asked_for_after_the_end_end():
    with FakeServer(silent) as server:
        connection = js.connect(server.url)
        connection.close()
        assert [type(event) for event in connection.events()] == [js.Closed]


def test_a_refusal_that_comes_before_writing_returns_is_the_messages(monkeypatch):
    """Of fast ingest: another thread reads the refusal while the first one is still writing."""

    def script(peer: FakePeer) -> None:
        peer.handshake()
        config = {"name": "S", "subjects": ["a"], "allow_batched": True}
        times = {"first_ts": "0001-01-01T00:00:00Z", "last_ts": "0001-01-01T00:00:00Z"}
        counts = dict.fromkeys(("messages", "bytes", "first_seq", "last_seq", "consumer_count"), 0)
        answer = {"config": config, "created": "2026-01-01T00:00:00Z", "state": counts | times}
        peer.answer(peer.expect("STREAM.INFO.S"), answer)
        peer.until_left(timeout=30)

    with FakeServer(script) as server, js.connect(server.url) as connection:
        session, refusals = connection._session, []
        own = session.try_send

        def refused(subject, *args, **options):
            sent = own(subject, *args, **options)
            if subject == b"a" and not refusals:
                refusals.append(subject)
                session._refused('Permissions Violation for Publish to "a"')
            return sent

        monkeypatch.setattr(session, "try_send", refused)
        request = js.PublishRequest(subject="a", data=b"x")
        [outcome] = connection.jetstream().fast_ingest(
            "S", [request], timeout=10, raise_failures=False
        )
        assert isinstance(outcome.error, js.PermissionDenied)


def test_what_is_outstanding_may_be_asked_for_by_others():
    with FakeServer(silent) as server, js.connect(server.url) as connection:
        messages = opened(connection)
        requests = messages._engine._requests

        class Request:
            @property
            def left(self):
                # The owner sends another one meanwhile.
                requests[b"new %d" % len(requests)] = self
                return 1

        requests[b"a"] = requests[b"b"] = Request()
        assert messages.outstanding > 2
        requests.clear()


def test_subscriptions_that_are_made_at_the_same_time_are_all_drained():
    made = []

    class Other:
        @property
        def is_closed(self):
            if not made:
                made.append(None)
                made.append(connection.subscribe("a"))
            return False

    with FakeServer(silent) as server, js.connect(server.url) as connection:
        connection._subscriptions[0] = Other()
        connection._sweep_at = 2
        made.append(connection.subscribe("b"))
        assert set(made[1:]) < set(connection._subscriptions.values())
        connection._subscriptions.clear()
