"""Events of several threads are delivered in order, and one at a time."""

from __future__ import annotations

import threading

import pytest

from twinstream.core.client.connection_events import Closed, Connected, Disconnected
from twinstream.core.client.event_dispatcher import EventDispatcher

UP = Connected("a", 1)
DOWN = Disconnected("a", "it broke")
OVER = Closed("")


def test_reports_during_a_report_are_delivered_after_it():
    reported, inside, go_on = [], threading.Event(), threading.Event()

    def slow(event):
        if event == UP:
            inside.set()
            assert go_on.wait(10)
        reported.append(event)

    announcer = EventDispatcher(slow)
    first = threading.Thread(target=announcer.tell, args=(UP,))
    first.start()
    assert inside.wait(10)
    # No thread waits for a slow one.
    announcer.tell(DOWN)
    announcer.tell(OVER)
    assert reported == []
    go_on.set()
    first.join(10)
    assert reported == [UP, DOWN, OVER]


def test_a_listener_may_cause_the_next_event():
    reported = []

    def closing(event):
        if event == UP:
            announcer.tell(OVER)
        reported.append(event)

    announcer = EventDispatcher(closing)
    announcer.tell(UP)
    assert reported == [UP, OVER]


def test_nothing_is_reported_after_the_end():
    reported = []
    announcer = EventDispatcher(reported.append)
    for event in (OVER, UP, OVER):
        announcer.tell(event)
    assert reported == [OVER]


def test_a_listener_that_fails_keeps_nothing_from_the_next():
    reported = []

    def failing(event):
        reported.append(event)
        if event == UP:
            raise ValueError("no")

    announcer = EventDispatcher(failing)
    with pytest.raises(ValueError, match="no"):
        announcer.tell(UP)
    announcer.tell(OVER)
    assert reported == [UP, OVER]


def test_many_threads_lose_nothing():
    reported = []
    announcer = EventDispatcher(reported.append)

    def tell(number):
        for at in range(200):
            announcer.tell(Connected(str(number), at))

    threads = [threading.Thread(target=tell, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(reported) == 1600
    for number in range(8):
        assert [each.epoch for each in reported if each.server == str(number)] == list(range(200))
