"""Mailboxes, which buffer frames until their owner takes them."""

from __future__ import annotations

from tests.core.frames import delivery
from twinstream.core.client.mailbox import Mailbox


class Flag:
    def __init__(self) -> None:
        self.up = False

    def set(self) -> None:
        self.up = True

    def clear(self) -> None:
        self.up = False


def test_a_mailbox_is_emptied_at_once() -> None:
    box = Mailbox(b"1", b"s.*", b"", Flag(), 5.0)
    box.frames += [delivery(1), delivery(2)]
    box.signal.set()
    assert box.take_all() == [delivery(1), delivery(2)]
    assert not box.signal.up
    assert not box.frames
    assert box.take_all() == []
    assert box.heard_at == 5.0
