"""An interrupt (Ctrl-C) between any two steps of the blocking twin: the connection stays usable.

An interpreter lets a signal's handler run where a function begins and where one of its own
returns. A profiler stands at the same places, and raises at one after the other.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from types import FrameType

import js_sync as js
from js_models import StreamConfig
from js_testing import NatsServer

QUICK = js.ReconnectPolicy(wait=0.01, max_wait=0.05, attempts=-1)
MANY = ("js_sync/publish_many.py", "js_sync/_pipeline.py")
SEAM = ("js_sync/_link.py", "js_sync/_sender.py", "js_sync/_io.py")


def interrupted_at(work: Callable[[], object], point: int, files: tuple[str, ...] = SEAM) -> bool:
    """Run work with an interrupt at one of its points, counted from 1; tell whether it came."""
    passed = 0

    def profile(frame: FrameType, event: str, _: object) -> None:
        nonlocal passed
        if event in {"call", "c_return"} and frame.f_code.co_filename.endswith(files):
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
        assert threading.active_count() == threads


def test_messages_under_way_are_left_after_an_interrupt_at_any_point(server: NatsServer) -> None:
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
