"""Wait for events of file descriptors."""

from __future__ import annotations

import select

__all__ = ["poll_for"]


def poll_for(events: int, *numbers: int) -> select.poll:
    """Return a poll object that waits for `events` of the file descriptors `numbers`."""
    poll = select.poll()
    for number in numbers:
        poll.register(number, events)
    return poll
