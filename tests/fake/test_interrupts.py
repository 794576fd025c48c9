"""Ctrl-C between any two steps of the blocking twin: the connection stays usable.

The interpreter runs a signal handler where a function begins and where one of its calls returns. A
profiler is called at the same places, and raises at each of them in turn.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import FrameType

import pytest

import js_sync as js
from js_sync.backup import backup_stream, restore_stream
from js_sync.client.requests import Answer
from js_sync.runtime.concurrency import spawn
from tests._sync.flow import eventually
from tests.hooked import hooked, starts
from tests.inside import link_of
from twinstream.core.deadline import Deadline
from twinstream.models import ConsumerConfig, StreamConfig
from twinstream.testing import NatsCluster, NatsServer, Proxy

QUICK = js.ReconnectPolicy(wait=0.01, max_wait=0.05, attempts=-1)
MANY = ("js_sync/publish/publish_many.py", "js_sync/publish/pipeline.py")
PUBLISHER = (
    "js_sync/publish/publisher.py",
    "js_sync/publish/pipeline.py",
    "js_sync/publish/inflight.py",
    "twinstream/core/on_failure.py",
)
MESSAGES = (
    "js_sync/consume/messages.py",
    "js_sync/consume/ordered.py",
    "js_sync/consume/ordered_consumer.py",
    "js_sync/consume/ack_progress.py",
    "js_sync/runtime/concurrency.py",
)
SEAM = (
    "js_sync/runtime/socket_link.py",
    "js_sync/runtime/reader.py",
    "js_sync/runtime/sender.py",
    "js_sync/runtime/concurrency.py",
    "twinstream/core/on_failure.py",
)
SESSION = (
    *SEAM,
    "js_sync/client/session.py",
    "js_sync/client/connection_keeper.py",
    "js_sync/client/subscriptions.py",
    "js_sync/client/keepalive.py",
    "js_sync/client/requests.py",
    "js_sync/client/handshake.py",
)


def in_finalizer(frame: FrameType | None) -> bool:
    """Return whether a `__del__` runs, from which no exception reaches the program."""
    while frame is not None and frame.f_code.co_name != "__del__":
        frame = frame.f_back
    return frame is not None


def interrupted_at(work: Callable[[], object], point: int, files: tuple[str, ...] = SEAM) -> bool:
    """Run work with an interrupt at one of its points, from 1; return whether it occurred."""
    passed = 0

    def profile(frame: FrameType, event: str, _: object) -> None:
        nonlocal passed
        if not frame.f_code.co_filename.endswith(files) or in_finalizer(frame):
            return
        if event in {"call", "c_return"}:
            passed += 1
            if passed == point:
                raise KeyboardInterrupt

    sys.setprofile(profile)
    try:
        work()
    except KeyboardInterrupt:
        return True
    finally:
        sys.setprofile(None)
    return False


def test_a_connection_is_usable_after_an_interrupt_at_any_point(server: NatsServer) -> None:
    with js.connect(server.url, reconnect=QUICK) as connection:
        threads, point = threading.active_count(), 1
        while interrupted_at(connection.flush, point):
            point += 1
            connection.flush(timeout=20)
        # Sending, reading, and waiting at least.
        assert point > 30
        assert threading.active_count() <= threads  # one of an earlier test may have ended


def flushed(connection: js.Connection, timeout: float) -> None:
    """Return once a connection works, which may require a reconnect."""
    for _ in range(100):
        with suppress(js.ConnectionLost):
            connection.flush(timeout=timeout)
            return
    raise AssertionError("each link broke")


def test_an_interrupt_of_the_program_is_no_warning(
    server: NatsServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "twinstream")
    with js.connect(server.url, reconnect=QUICK) as connection:
        point = 1
        while interrupted_at(connection.flush, point):
            point += 1
            connection.flush(timeout=20)
    ends = [each for each in caplog.records if each.getMessage().startswith("disconnected")]
    assert ends
    assert {each.levelname for each in ends} == {"INFO"}
    assert {each.getMessage().split(": ")[1][:27] for each in ends} == {
        "the program was interrupted"
    }


def test_a_link_that_ends_is_replaced_after_an_interrupt_at_any_point(server: NatsServer) -> None:
    with Proxy(server.url) as proxy, js.connect(proxy.url, reconnect=QUICK) as connection:

        def ended() -> None:
            proxy.cut()
            flushed(connection, 20)

        # To the point where the flush is done: where that is depends on who sees the end first.
        interrupts = sum(interrupted_at(ended, point, SESSION) for point in range(1, 100))
        flushed(connection, 20)
        assert interrupts > 50


def test_a_connection_is_closed_by_an_interrupt_at_any_point_of_its_closing(
    server: NatsServer,
) -> None:
    threads = threading.active_count()
    point, again = 0, True
    while again:
        point += 1
        with starts() as tasks:
            connection = js.connect(server.url)
        again = interrupted_at(connection.close, point, SESSION)
        # Interrupted at its first step it is as if it had not begun.
        connection.close()
        assert not link_of(connection).is_open
        assert tasks["twinstream-keeper"].join(Deadline.after(20))
    assert point > 50
    assert threading.active_count() <= threads  # one of an earlier test may have ended


def test_messages_in_flight_are_left_after_an_interrupt_at_any_point(server: NatsServer) -> None:
    with js.connect(server.url, reconnect=QUICK) as connection:
        jet = connection.jetstream(timeout=20)
        jet.create_stream(StreamConfig(name="INTERRUPTED", subjects=["interrupted"]))

        point, again = 0, True
        while again:
            point += 1
            with (
                suppress(js.PublishFailures),
                jet.publish_many([("interrupted", b"")] * 3, timeout=0.2) as outcomes,
            ):
                again = interrupted_at(partial(list, iter(outcomes)), point, MANY)
            jet.publish("interrupted")
        assert point > 10


def test_publisher_continues_after_an_interrupt_at_any_point(server: NatsServer) -> None:
    with js.connect(server.url, reconnect=QUICK) as connection:
        jet = connection.jetstream(timeout=20)
        jet.create_stream(StreamConfig(name="GOES_ON", subjects=["goes.on"]))
        point, again = 0, True
        while again:
            point += 1
            with suppress(js.PublishFailures), jet.publisher(timeout=0.2) as publisher:

                def publish(publisher: js.Publisher = publisher) -> None:
                    publisher.send("goes.on")
                    publisher.flush()

                again = interrupted_at(publish, point, PUBLISHER)
                flushing = spawn(publisher.flush, "flushing")
                assert flushing.join(Deadline.after(20))
                assert publisher.in_flight == 0
        assert point > 15


def test_an_iteration_is_closed_again_after_an_interrupt_of_its_closing(
    server: NatsServer,
) -> None:
    with js.connect(server.url, reconnect=QUICK) as connection:
        jet = connection.jetstream(timeout=20)
        stream = jet.create_stream(StreamConfig(name="CLOSED", subjects=["closed"]))
        consumer = stream.create_consumer(ConsumerConfig(durable_name="reader"))
        jet.publish("closed")
        boxes, threads = connection.stats.subscriptions, threading.enumerate()
        makers: tuple[Callable[[], js.Messages | js.OrderedMessages], ...] = (
            consumer.messages,
            stream.ordered,
        )
        for make in makers:
            point, again = 0, True
            while again:
                point += 1
                jet.publish("closed", b"1")
                messages = make()
                messages.next(timeout=20)
                again = interrupted_at(messages.close, point, MESSAGES)
                messages.close()
                assert connection.stats.subscriptions == boxes
                eventually(partial(has_no_threads_besides, threads))
            assert point > 4


def test_a_publisher_is_closed_again_after_an_interrupt_of_its_closing(
    server: NatsServer,
) -> None:
    with js.connect(server.url, reconnect=QUICK) as connection:
        jet = connection.jetstream(timeout=20)
        jet.create_stream(StreamConfig(name="ENDS", subjects=["ends"]))
        jet.publish("ends")
        boxes, threads = connection.stats.subscriptions, threading.enumerate()
        point, again = 0, True
        while again:
            point += 1
            publisher = jet.publisher()
            handle = publisher.send("ends")
            again = interrupted_at(publisher.close, point, PUBLISHER)
            with suppress(js.PublishFailures):
                publisher.close()
            assert handle.is_done
            assert connection.stats.subscriptions == boxes
            eventually(partial(has_no_threads_besides, threads))
        assert point > 4


def has_no_threads_besides(before: list[threading.Thread]) -> bool:
    # Threads of earlier tests may have ended since.
    return set(threading.enumerate()) <= set(before)


@pytest.mark.since("2.15")
def test_interrupted_request_for_a_restore_leaves_no_partial_stream(
    cluster: NatsCluster, tmp_path: Path
) -> None:
    with js.connect(cluster.url) as connection:
        jet = connection.jetstream(timeout=20)
        config = StreamConfig(name="CUT", subjects=["cut.>"], num_replicas=3)
        stream = jet.create_stream(config)
        jet.publish("cut.1")
        backup_stream(jet, "CUT", tmp_path / "copy")
        stream.delete()
        waits: list[Answer] = []

        def interrupted(answer: Answer) -> None:
            waits.append(answer)
            if len(waits) == 1:
                raise KeyboardInterrupt

        with hooked("request: before wait", interrupted), pytest.raises(KeyboardInterrupt):
            restore_stream(jet, tmp_path / "copy")
        # It was asked for, then ended, then removed.
        assert b"RESTORE.CUT" in waits[0].subject
        assert list(jet.stream_names("cut.1")) == []
        assert restore_stream(jet, tmp_path / "copy").info().state.messages == 1
        jet.delete_stream("CUT")
