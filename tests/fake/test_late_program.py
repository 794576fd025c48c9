"""A program that uses its connection late finds the responses that arrived meanwhile."""

from __future__ import annotations

import threading
from contextlib import ExitStack

import js_sync as js
from tests._sync.flow import eventually
from tests.hooked import hooked
from tests.inside import link_of, session_of
from twinstream.core.deadline import Deadline, monotonic
from twinstream.testing import FakePeer, FakeServer


def test_response_in_time_is_read_after_the_deadline():
    """No thread waits for the response; the background thread reads it where that is possible."""

    def script(peer: FakePeer) -> None:
        peer.handshake()
        for payload in (b"one", b"two" * 100_000):
            peer.answer(peer.expect("PUB question"), payload)
            peer.reach(f"answered {payload[:3].decode()}")
        peer.until_left(timeout=30)

    with (
        FakeServer(script) as server,
        js.connect(server.url) as connection,
        ExitStack() as stack,
    ):
        session = session_of(connection)
        # The keeper does not read.
        resting = threading.Event()
        stack.enter_context(hooked("link: before keeper reads", lambda _: resting.wait(60)))
        stack.callback(resting.set)
        for word in ("one", "two"):
            deadline = Deadline(monotonic())
            answer = session.replies.send(b"question", b"", b"", deadline)
            link_of(connection).flush()
            eventually(lambda word=word: server.reached(f"answered {word}"))
            assert deadline.expired()
            assert session.wait(answer.signal, deadline)
            assert answer.take("question")[3].startswith(word.encode())


def test_timeout_is_reported_without_data():
    def script(peer: FakePeer) -> None:
        peer.handshake()
        peer.until_left(timeout=30)

    with FakeServer(script) as server, js.connect(server.url) as connection:
        session = session_of(connection)
        deadline = Deadline(monotonic())
        answer = session.replies.send(b"question", b"", b"", deadline)
        assert not session.wait(answer.signal, deadline)
