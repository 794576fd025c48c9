"""Responses that the reading thread processes between two statements of the publishing thread."""

from __future__ import annotations

import threading
from contextlib import suppress

import pytest

import js_sync as js
from js_sync.client.requests import Answer
from js_sync.fast_ingest import FastIngest
from js_sync.publish.inflight import InFlight
from js_sync.runtime.concurrency import Signal
from tests._sync.flow import eventually
from tests.fake.answers import describe, silent, until_cut
from tests.fake.threads import beside, in_time
from tests.hooked import hooked
from tests.inside import answers_of, pipeline_of, refuse, session_of
from twinstream.testing import FakePeer, FakeServer

ORDERS = "^H?PUB orders "
REFUSAL = {"error": {"code": 400, "err_code": 10077, "description": "no"}}


def answering(*answers):
    """Return a script that answers messages with `answers`; the last one when the test says so."""

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


def test_a_publisher_closes_after_a_failure_was_noted():
    """The reading thread has the refusal, and has not passed it to the publisher yet."""
    with FakeServer(answering(REFUSAL)) as server, js.connect(server.url) as connection:
        publisher = connection.jetstream().publisher(timeout=30)
        publisher.send("orders")
        closed, noted = [], threading.Event()

        def slowly(_):
            noted.set()
            in_time(lambda: closed)

        def close():
            try:
                publisher.close()
            finally:
                closed.append(True)

        # Read by another thread, so that this one may find the outcome.
        listening = connection.subscribe("x")
        with (
            hooked("publish: before outcome", slowly),
            beside(lambda: listening.next(timeout=30)),
        ):
            eventually(lambda: server.reached("sent"))
            server.tell("answer")
            assert noted.wait(30)
            with pytest.raises(js.PublishFailures, match="1 message was"):
                close()
            listening.close()


def test_read_failure_is_not_reported_again():
    with FakeServer(answering(REFUSAL)) as server, js.connect(server.url) as connection:
        publisher = connection.jetstream().publisher(timeout=30)
        handle = publisher.send("orders")
        looked = []

        def look():
            eventually(lambda: handle.is_done)
            with pytest.raises(js.JetStreamError):
                handle.result()
            looked.append(True)

        with (
            hooked("publish: before outcome", lambda _: in_time(lambda: looked)),
            beside(look),
        ):
            server.tell("answer")
            eventually(lambda: looked)
        publisher.close()


def test_closing_publisher_waits_for_admitted_senders():
    with FakeServer(answering(stored())) as server, js.connect(server.url) as connection:
        publisher = connection.jetstream().publisher(timeout=30).__enter__()
        closed = []

        def close():
            publisher.close()
            closed.append(True)

        def slowly(_):
            closing.__enter__()
            assert not in_time(lambda: closed)

        closing = beside(close)
        with hooked("publish: before send", slowly):
            handle = publisher.send("orders")
        server.tell("answer")
        assert handle.result().seq == 1
        closing.__exit__(None, None, None)
        assert closed
        with pytest.raises(js.ConnectionClosed):
            publisher.send("orders")


def test_both_waiters_for_one_message_are_woken():
    """Each of them finds no signal yet, and creates one."""
    both = threading.Barrier(2)

    def slowly(_):
        with suppress(threading.BrokenBarrierError):
            both.wait(0.3)

    with FakeServer(answering(stored())) as server, js.connect(server.url) as connection:
        publisher = connection.jetstream().publisher(timeout=120)
        handle = publisher.send("orders")
        with (
            hooked("publish: before flag", slowly),
            beside(handle.result) as one,
            beside(handle.result) as other,
        ):
            in_time(lambda: both.broken)
            server.tell("answer")
            eventually(lambda: one and other)
        publisher.close()


def test_the_end_of_a_link_reaches_requests_though_others_begin():
    def script(peer: FakePeer) -> None:
        peer.handshake()
        peer.until_left(timeout=30)

    with FakeServer(script) as server, js.connect(server.url) as connection:
        replies = session_of(connection).replies
        noted = answers_of(replies)

        class Busy(Signal):
            def set(self):
                noted.setdefault(b"other", Answer(b"a", b"other", Signal()))
                super().set()

        answers = [Answer(b"a", b"%d" % number, Busy()) for number in range(3)]
        noted.update({each.token: each for each in answers})
        replies.fail(js.ConnectionLost("broken"))
        assert all(each.error for each in answers)
        assert list(answers_of(replies)) == [b"other"]


def inboxes_refused(connection):
    """Refuse each inbox before the thread that subscribes to it continues."""

    def refused(box):
        refuse(connection, f'Permissions Violation for Subscription to "{box.subject.decode()}"')

    return hooked("session: mailbox opened", refused)


@pytest.mark.parametrize("way", ["publish_many", "publisher", "fast_ingest"])
def test_refusal_of_a_shared_inbox_reaches_all_requests(way):
    def script(peer: FakePeer) -> None:
        peer.handshake()
        for _ in range(2 if way == "fast_ingest" else 1):
            describe(peer, allow_batched=True)
        peer.until_left(timeout=30)

    with FakeServer(script) as server, js.connect(server.url) as connection:
        jet = connection.jetstream()
        # This opens the inbox of single requests.
        jet.get_stream("S")
        requests = [js.PublishRequest(subject="orders", data=b"x")] * 2
        with inboxes_refused(connection):
            if way == "publish_many":
                errors = [outcome.error for outcome in jet.publish_many(requests, timeout=10)]
            elif way == "publisher":
                publisher = jet.publisher(timeout=10)
                for request in requests:
                    publisher.send(request)
                with pytest.raises(js.PublishFailures) as caught:
                    publisher.close()
                errors = [failure.error for failure in caught.value.failures]
            else:
                errors = [outcome.error for outcome in FastIngest(jet, "S", requests, timeout=10)]
        assert len(errors) == 2
        # Fast ingest says that it may be stored, and why that is not known.
        assert all(isinstance(error.__cause__ or error, js.PermissionDenied) for error in errors)


def test_refusal_of_an_inbox_reaches_the_first_request():
    """The refusal arrives before the thread that subscribes to the inbox continues."""

    def script(peer: FakePeer) -> None:
        peer.handshake()
        peer.until_left(timeout=30)

    with FakeServer(script) as server, js.connect(server.url) as connection:
        with inboxes_refused(connection), pytest.raises(js.PermissionDenied):
            connection.request("question", timeout=20)
        assert connection.stats.open_requests == 0


def test_oldest_message_is_found_while_another_thread_takes_responses():
    """Without the GIL, the table of messages in flight may change during an iteration over it."""

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
        pipeline = pipeline_of(publisher)
        [entry] = pipeline.in_flight()
        pipeline._waiting = waiting = Changing(pipeline._waiting)
        assert pipeline.oldest is entry
        assert waiting.looks == 2
        server.tell("answer")
        assert handle.result().seq == 1
        publisher.close()


def test_two_threads_never_give_a_message_its_first_dict():
    """The reason is described at `InFlight`."""
    entry = InFlight(js.PublishRequest(subject="orders"), b"", b"", b"", 0.0)
    assert not hasattr(entry, "__dict__")


def test_a_message_that_failed_before_it_was_sent_is_not_sent():
    """The connection is lost after the message was counted, and restored before it is sent."""

    def cut(entry):
        server.tell("cut")
        eventually(lambda: entry.outcome)
        eventually(lambda: connection.stats.connects == 2)

    with (
        FakeServer(until_cut, silent) as server,
        js.connect(server.url) as connection,
        connection.jetstream().publisher(timeout=30, raise_failures=False) as publisher,
    ):
        with hooked("publish: before send", cut):
            handle = publisher.send("orders")
        with pytest.raises(js.ConnectionLost):
            handle.result()
        connection.flush()
        assert server.operations(ORDERS) == []
