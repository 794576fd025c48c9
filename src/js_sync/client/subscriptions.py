# Generated from src/js_async/client/subscriptions.py by codegen/twin.py. Edit that file instead.
"""The subscriptions of a connection, made anew over each of its links."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Final

from twinstream.core.wire.bulk_acks import AckCutter
from twinstream.core.deadline import monotonic
from twinstream.errors import TwinstreamError
from twinstream.core.connect.connection_events import MessagesDropped
from twinstream.core.connect.handshake import Denied
from twinstream.core.connect.mailbox import Mailbox
from twinstream.core.wire.protocol import Parser, Sink, subscribe_command, unsubscribe_command
from js_sync.client.failed_messages import FailedMessages
from js_sync.runtime.concurrency import Signal
from js_sync.runtime.socket_link import Link
from js_sync.client.transport import Box

__all__ = ["Mailboxes"]


class Mailboxes:
    """The mailboxes by subscription id, and the words that tell a server of them.

    They may be opened and closed while a link is being made. The link tells the server of those
    that are there when the server has logged us in; from then on (`is_open`) whoever opens or
    closes one tells the server itself.
    """

    def __init__(self, link: Link, tell: Callable[[MessagesDropped], None]) -> None:
        self._link: Final = link
        self._failed: Final = FailedMessages(tell)
        self._sids = count(1)
        self.is_open = False
        """Whether the server understands what it is told: it has logged us in."""
        self.boxes: Final[dict[bytes, Box]] = {}
        self._sinks: Final[dict[bytes, Sink]] = {}
        self._cutters: Final[list[AckCutter]] = []
        self._silent: Final[set[bytes]] = set()

    def parser(self) -> Parser:
        """Return what cuts the bytes of a new link into messages for all that are open."""
        return Parser(self._sinks, self._cutters, self._silent, self._failed.note)

    def open(self, subject: bytes, queue: bytes, sink: Callable[[Box], Sink] | None) -> Box:
        """Subscribe, now or over the next link; see `Transport.open_mailbox`."""
        sid = b"%d" % next(self._sids)
        box: Box = Mailbox(sid, subject, queue, Signal(), monotonic())
        # The sink first: a link that is made just now may subscribe whatever is listed.
        if sink is None:
            self._sinks[sid] = box.frames.append
        else:
            self._sinks[sid] = sink(box)
            self._silent.add(sid)
        self.boxes[sid] = box
        if self.is_open:
            self._link.write(subscribe_command(subject, queue, sid))
        return box

    def cut_acks(self, cutter: AckCutter) -> None:
        """Let it take acknowledgements before they are parsed, until its mailbox is closed."""
        self._cutters.append(cutter)

    def remove(self, box: Box) -> bool:
        """Take a mailbox out; tell whether it was there. What comes still has its sink."""
        return self.boxes.pop(box.sid, None) is not None

    def unsubscribe(self, box: Box) -> None:
        """Tell the server of one that was taken out."""
        if self.is_open:
            self._link.write(unsubscribe_command(box.sid))

    def forget(self, box: Box) -> None:
        """Drop what comes for a subscription from now on, and wake its owner."""
        self._sinks.pop(box.sid, None)
        self._silent.discard(box.sid)
        self._cutters[:] = [cutter for cutter in self._cutters if cutter.sid != box.sid]
        box.signal.set()

    def subscribe(self) -> None:
        """Tell the server of a new link of all there are."""
        # Set before the list is read: whoever opens a mailbox from now on tells the server itself.
        self.is_open = True
        for box in list(self.boxes.values()):
            # What an earlier server refused, this one may permit.
            box.error = None
            self._link.write(subscribe_command(box.subject, box.queue, box.sid))
            if box.sid not in self.boxes:
                # Closed meanwhile, and its owner may have told of that too soon.
                self._link.write(unsubscribe_command(box.sid))

    def deny(self, denied: Denied, error: TwinstreamError) -> list[Box]:
        """Note what the server refused; return the mailboxes that get no messages because of it."""
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
        """Tell nobody any more, until there is another link."""
        self.is_open = False

    def wake(self) -> None:
        """Raise every flag: the link has changed."""
        for box in list(self.boxes.values()):
            box.signal.set()
