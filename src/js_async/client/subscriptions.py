"""The subscriptions of a connection, repeated after each reconnect."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Final

from js_async.client.failed_messages import FailedMessages
from js_async.client.transport import Box
from js_async.runtime.concurrency import Signal
from js_async.runtime.socket_link import Link
from twinstream.core.connect.connection_events import MessagesDropped
from twinstream.core.connect.handshake import Denied
from twinstream.core.connect.mailbox import Mailbox
from twinstream.core.deadline import monotonic
from twinstream.core.wire.protocol import (
    ByteTaker,
    Parser,
    Sink,
    subscribe_command,
    unsubscribe_command,
)
from twinstream.errors import TwinstreamError

__all__ = ["Mailboxes"]


class Mailboxes:
    """The mailboxes by subscription id, and the SUB and UNSUB commands for them.

    Mailboxes may be opened and closed while the client connects. `subscribe` sends the
    subscriptions that exist when the server has authenticated the client. From then on (`is_open`)
    opening and closing a mailbox sends its command at once.
    """

    def __init__(self, link: Link, tell: Callable[[MessagesDropped], None]) -> None:
        self._link: Final = link
        self._failed: Final = FailedMessages(tell)
        self._sids = count(1)
        self.is_open = False
        """Whether the server accepts commands: it has authenticated the client."""
        self.boxes: Final[dict[bytes, Box]] = {}
        self._sinks: Final[dict[bytes, Sink]] = {}
        self._cutters: Final[list[ByteTaker]] = []
        self._silent: Final[set[bytes]] = set()

    def parser(self) -> Parser:
        """Return the parser for the bytes of a new TCP connection."""
        return Parser(self._sinks, self._cutters, self._silent, self._failed.note)

    def open(self, subject: bytes, queue: bytes, sink: Callable[[Box], Sink] | None) -> Box:
        """Subscribe, now or after the next connect; see `Channel.open_mailbox`."""
        sid = b"%d" % next(self._sids)
        box: Box = Mailbox(sid, subject, queue, Signal(), monotonic())
        # The sink first: a connect in progress may subscribe every listed mailbox.
        if sink is None:
            self._sinks[sid] = box.frames.append
        else:
            self._sinks[sid] = sink(box)
            self._silent.add(sid)
        self.boxes[sid] = box
        if self.is_open:
            self._link.write(subscribe_command(subject, queue, sid))
        return box

    def cut_acks(self, cutter: ByteTaker) -> None:
        """Let `cutter` take acknowledgements before they are parsed, until its mailbox closes."""
        self._cutters.append(cutter)

    def remove(self, box: Box) -> bool:
        """Remove a mailbox; return whether it was listed.

        The mailbox's sink still receives messages.
        """
        return self.boxes.pop(box.sid, None) is not None

    def unsubscribe(self, box: Box) -> None:
        """Send the UNSUB of a removed mailbox."""
        if self.is_open:
            self._link.write(unsubscribe_command(box.sid))

    def forget(self, box: Box) -> None:
        """Drop further messages of a subscription, and wake up its owner."""
        self._sinks.pop(box.sid, None)
        self._silent.discard(box.sid)
        self._cutters[:] = [cutter for cutter in self._cutters if cutter.sid != box.sid]
        box.signal.set()

    def subscribe(self) -> None:
        """Subscribe all mailboxes after a connect."""
        # Set before the list is read: from now on, opening a mailbox sends its command itself.
        self.is_open = True
        for box in list(self.boxes.values()):
            # Another server may permit what an earlier one refused.
            box.error = None
            self._link.write(subscribe_command(box.subject, box.queue, box.sid))
            if box.sid not in self.boxes:
                # The mailbox was closed meanwhile; its UNSUB may have been sent too early.
                self._link.write(unsubscribe_command(box.sid))

    def deny(self, denied: Denied, error: TwinstreamError) -> list[Box]:
        """Record what the server refused; return the mailboxes that get no messages now."""
        boxes = list(self.boxes.values())
        if denied.subject:
            boxes = [box for box in boxes if box.is_refused(denied)]
        else:
            # Too many subscriptions: the server refuses the newest one, with an error for each.
            boxes = [box for box in boxes if box.error is None][-1:]
        for box in boxes:
            box.refuse(error)
        return boxes

    def pause(self) -> None:
        """Stop sending commands until the next connect."""
        self.is_open = False

    def wake(self) -> None:
        """Set the signals of all mailboxes: the connection state has changed."""
        for box in list(self.boxes.values()):
            box.signal.set()
