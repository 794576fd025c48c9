"""What the receiver does to a request while its owner is between two statements."""

from __future__ import annotations

import threading

import pytest

import js_sync as js
from js_sync.client.requests import Answer
from js_sync.publish import pipeline as _pipeline
from js_sync.publish.fast_ingest_window import Ingest
from js_sync.runtime.concurrency import Signal
from tests._sync.flow import eventually
from tests.fake.threads import beside, in_time
from tests.inside import pipeline_of, session_of
from twinstream.testing import FakePeer, FakeServer

ORDERS = "^H?PUB orders "
REFUSAL = {"error": {"code": 400, "err_code": 10077, "description": "no"}}


def answering(*answers):
    """Return a script that answers messages so; the last one when it is told to."""

    def script(peer: FakePeer) -> None:
        peer.handshake()
        for number, answer in enumerate(answers, 1):
            request = peer.expect(ORDERS)
            if number == len(answers):
                peer.reach("sent")
                peer.wait_for("answer")
            peer.answer(request, answer)
        peer.until_left(timeout=30)

    return script


def stored(seq=1):
    return {"stream": "S", "seq": seq}


def test_a_publisher_closes_after_a_failure_was_noted(monkeypatch):
    """The receiver has the refusal, and has not told the publisher yet."""
    with FakeServer(answering(REFUSAL)) as server, js.connect(server.url) as connection:
        publisher = connection.jetstream().publisher(timeout=30)
        publisher.send("orders")
        own, closed, noted = pipeline_of(publisher)._on_done, [], threading.Event()

        def slowly(*args):
            noted.set()
            in_time(lambda: closed)
            return own(*args)

        def close():
            try:
                publisher.close()
            finally:
                closed.append(True)

        monkeypatch.setattr(pipeline_of(publisher), "_on_done", slowly)
        # Read by another thread, so that this one may find the outcome.
        listening = connection.subscribe("x")
        with beside(lambda: listening.next(timeout=30)):
            eventually(lambda: server.reached("sent"))
            server.tell("answer")
            assert noted.wait(30)
            with pytest.raises(js.PublishFailures, match="1 message was"):
                close()
            listening.close()


def test_a_failure_that_was_looked_at_is_not_told_again(monkeypatch):
    with FakeServer(answering(REFUSAL)) as server, js.connect(server.url) as connection:
        publisher = connection.jetstream().publisher(timeout=30)
        handle = publisher.send("orders")
        own, looked, told = pipeline_of(publisher)._on_done, [], []

        def slowly(*args):
            in_time(lambda: looked)
            told.append(own(*args))
            return True

        def look():
            eventually(lambda: handle.is_done)
            with pytest.raises(js.JetStreamError):
                handle.result()
            looked.append(True)

        monkeypatch.setattr(pipeline_of(publisher), "_on_done", slowly)
        with beside(look):
            server.tell("answer")
        eventually(lambda: told)
        publisher.close()


def test_a_publisher_that_closes_waits_for_who_was_let_in(monkeypatch):
    with FakeServer(answering(stored())) as server, js.connect(server.url) as connection:
        publisher = connection.jetstream().publisher(timeout=30)
        publisher._open()
        pipeline, closed = pipeline_of(publisher), []
        own = pipeline.try_send

        def close():
            publisher.close()
            closed.append(True)

        def slowly(entry):
            closing.__enter__()
            assert not in_time(lambda: closed)
            sent = own(entry)
            server.tell("answer")
            return sent

        closing = beside(close)
        monkeypatch.setattr(pipeline, "try_send", slowly)
        handle = publisher.send("orders")
        assert handle.result().seq == 1
        closing.__exit__(None, None, None)
        assert closed
        with pytest.raises(js.ConnectionClosed):
            publisher.send("orders")


def test_two_who_wait_for_one_message_are_both_woken(monkeypatch):
    """Each finds no flag yet, and makes one."""
    both = threading.Barrier(2)

    def slowly():
        flag = Signal()
        try:
            both.wait(0.3)
        except threading.BrokenBarrierError:
            pass
        return flag

    with FakeServer(answering(stored())) as server, js.connect(server.url) as connection:
        publisher = connection.jetstream().publisher(timeout=120)
        handle = publisher.send("orders")
        monkeypatch.setattr(_pipeline, "Signal", slowly)
        with beside(handle.result) as one, beside(handle.result) as other:
            in_time(lambda: both.broken)
            server.tell("answer")
            eventually(lambda: one and other, patience=20)
        publisher.close()


def test_the_end_of_a_link_reaches_requests_though_others_begin():
    def script(peer: FakePeer) -> None:
        peer.handshake()
        peer.until_left(timeout=30)

    with FakeServer(script) as server, js.connect(server.url) as connection:
        replies = session_of(connection).replies
        noted = replies._answers

        class Busy(Signal):
            def set(self):
                noted.setdefault(b"other", Answer(b"a", b"other", Signal()))
                super().set()

        answers = [Answer(b"a", b"%d" % number, Busy()) for number in range(3)]
        noted.update({each.token: each for each in answers})
        replies.fail(js.ConnectionLost("broken"))
        assert all(each.error for each in answers)
        assert list(replies._answers) == [b"other"]


def refuse_inboxes(session, monkeypatch):
    """Refuse each inbox before whoever opens it has it in his hands."""
    own = session.open_mailbox

    def refused(subject, *args, **options):
        box = own(subject, *args, **options)
        text = f'Permissions Violation for Subscription to "{subject.decode()}"'
        session._refused(text)
        return box

    monkeypatch.setattr(session, "open_mailbox", refused)


@pytest.mark.parametrize("way", ["publish_many", "publisher", "fast_ingest"])
def test_an_inbox_of_many_that_is_refused_at_once_is_told_to_each(way, monkeypatch):
    def script(peer: FakePeer) -> None:
        peer.handshake()
        peer.until_left(timeout=30)

    with FakeServer(script) as server, js.connect(server.url) as connection:
        session, jet = session_of(connection), connection.jetstream()
        refuse_inboxes(session, monkeypatch)
        requests = [js.PublishRequest(subject="orders", data=b"x")] * 2
        if way == "publish_many":
            errors = [outcome.error for outcome in jet.publish_many(requests, timeout=10)]
        elif way == "publisher":
            publisher = jet.publisher(timeout=10)
            for request in requests:
                publisher.send_request(request)
            with pytest.raises(js.PublishFailures) as caught:
                publisher.close()
            errors = [failure.error for failure in caught.value.failures]
        else:
            monkeypatch.setattr(Ingest, "open", opened)
            errors = [outcome.error for outcome in jet.fast_ingest("S", requests, timeout=10)]
        assert len(errors) == 2
        # Fast ingest says that it may be stored, and why that is not known.
        assert all(isinstance(error.__cause__ or error, js.PermissionDenied) for error in errors)


def opened(ingest):
    """Listen without asking what the stream is like."""
    ingest._box = ingest._transport.open_mailbox(ingest._inbox + b".>", sink=ingest._sink)
    ingest._transport.replies.watch(ingest)


def test_an_inbox_that_is_refused_at_once_is_told_to_the_first_request(monkeypatch):
    """The refusal comes before whoever opens the inbox has it in his hands."""

    def script(peer: FakePeer) -> None:
        peer.handshake()
        peer.until_left(timeout=30)

    with FakeServer(script) as server, js.connect(server.url) as connection:
        session = session_of(connection)
        refuse_inboxes(session, monkeypatch)
        with pytest.raises(js.PermissionDenied):
            connection.request("question", timeout=20)
        assert session.replies.open_requests == 0


def test_the_oldest_message_is_found_while_another_thread_takes_answers(monkeypatch):
    """Without the GIL the table of what is under way may change in the middle of a look at it."""

    class Changing(dict):
        looks = 0

        def values(self):
            for entry in super().values():
                self.looks += 1
                if self.looks == 1:
                    raise RuntimeError("dictionary changed size during iteration")
                yield entry

    with FakeServer(answering(stored())) as server, js.connect(server.url) as connection:
        publisher = connection.jetstream().publisher(timeout=30)
        handle = publisher.send("orders")
        eventually(lambda: server.reached("sent"))
        waiting = Changing(pipeline_of(publisher)._waiting)
        monkeypatch.setattr(pipeline_of(publisher), "_waiting", waiting)
        assert pipeline_of(publisher).oldest is handle._entry
        assert waiting.looks == 2
        server.tell("answer")
        assert handle.result().seq == 1
        publisher.close()


def test_two_threads_never_give_a_message_its_first_dict():
    """What that can do is told at `UnderWay`."""
    entry = _pipeline.under_way(js.PublishRequest(subject="orders"), b"", b"", b"", 0.0)
    assert not hasattr(entry, "__dict__")
