"""The subscriptions of a connection. They are sent to the server again after each reconnect.

A subscription lives as long as its mailbox. The connection has only weak references to mailboxes:
if the object that uses a mailbox is dropped, or interrupted before it has stored the mailbox, the
garbage collector ends the subscription.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Final
from weakref import ref

from js_async.client.failed_messages import FailedMessages
from js_async.client.transport import Box
from js_async.runtime.concurrency import Signal, here, soon
from js_async.runtime.socket_link import Link
from twinstream.core.client.connection_events import MessagesDropped
from twinstream.core.client.handshake import Denied, ServerInfo
from twinstream.core.client.mailbox import Mailbox
from twinstream.core.deadline import monotonic
from twinstream.core.wire.control_line import ControlLines
from twinstream.core.wire.protocol import (
    ByteTaker,
    Parser,
    Sink,
    publish_command,
    subscribe_command,
    unsubscribe_command,
)
from twinstream.errors import BadArgument, TwinstreamError

__all__ = ["Subscriptions", "warn_of_drop"]


def warn_of_drop(box: Box) -> None:
    """Warn that the program dropped the owner of an open mailbox without closing it.

    Does nothing if the subscription was refused: the owner has then raised the error.
    """
    if box.owner and box.error is None:
        warnings.warn(
            f"{box.owner} was not closed, so the garbage collector has ended it. Use it in a `with`"
            " block, or close it",
            ResourceWarning,
            stacklevel=3,
        )


class Subscriptions:
    """The mailboxes of a connection by subscription id. It sends their SUB and UNSUB commands.

    Mailboxes may be opened and closed while the client is not connected. When the server has
    authenticated the client, `subscribe` sends a SUB for each open mailbox. From then on
    (`is_open`), opening and closing a mailbox sends its command at once.
    """

    def __init__(
        self, link: Link, tell: Callable[[MessagesDropped], None], lines: ControlLines
    ) -> None:
        self._link: Final = link
        self._lines: Final = lines
        self._failed: Final = FailedMessages(tell)
        self._sids = count(1)
        self.is_open = False
        """Whether the server has authenticated the client. It accepts no commands before that."""
        self._is_ended = False
        self.boxes: Final[dict[bytes, ref[Box]]] = {}
        self._home: Final = here()
        self.parser = Parser({})
        """The parser for the bytes of the current TCP connection."""
        self._sinks: Final[dict[bytes, Sink]] = {}
        self._cutters: Final[list[ByteTaker]] = []
        self._silent: Final[set[bytes]] = set()

    # ---- receiving

    def ignore(self) -> None:
        """Begin a new TCP connection: drop messages until `listen`, because TLS may follow."""
        self.parser = Parser({})

    def listen(self, info: ServerInfo) -> None:
        """Accept messages from now on. `info` is the server's INFO."""
        self.parser = Parser(self._sinks, self._cutters, self._silent, self._failed.note)
        self.parser.expect_payloads(info.max_payload)

    def arrived(self, sids: list[bytes]) -> None:
        """Wake up the owners of mailboxes in which the parser has put messages."""
        now, boxes = monotonic(), self.boxes
        for sid in sids:
            # This is None if the mailbox was just closed.
            weak = boxes.get(sid)
            box = weak() if weak is not None else None
            if box is not None:
                box.heard_at = now
                box.signal.set()

    # ---- subscribing

    def all(self) -> list[Box]:
        """Return the open mailboxes, in the order in which they were opened."""
        found = [each() for each in list(self.boxes.values())]
        return [box for box in found if box is not None]

    def open(self, subject: bytes, queue: bytes, sink: Callable[[Box], Sink] | None) -> Box:
        """Add a mailbox; subscribe now or after the next connect. See `Channel.open_mailbox`."""
        self._lines.check(subject, queue)
        sid = b"%d" % next(self._sids)
        box: Box = Mailbox(sid, subject, queue, Signal(), monotonic())
        # Add the sink before the mailbox: another thread may be connecting, and then subscribes
        # each mailbox that is in the table.
        if sink is None:
            self._sinks[sid] = box.frames.append
        else:
            self._sinks[sid] = sink(box)
            self._silent.add(sid)
        box.on_drop = self._dropped
        self.boxes[sid] = ref(box)
        if self.is_open:
            self._link.write(subscribe_command(subject, queue, sid))
        return box

    def cut_acks(self, cutter: ByteTaker) -> None:
        """Let `cutter` take publish acknowledgements before they are parsed.

        `forget` removes the cutter together with its mailbox.
        """
        self._cutters.append(cutter)

    def remove(self, box: Box) -> bool:
        """Remove a mailbox from the table; return whether it was in the table.

        The mailbox's sink receives messages until `forget`.
        """
        was_open = self.boxes.pop(box.sid, None) is not None
        box.on_drop = None
        return was_open

    def _dropped(self, box: Box) -> None:
        """End the subscription of a mailbox whose owner was dropped.

        Called by the garbage collector, in any thread and at any point of the program. So this
        takes no lock, and it does not wait.
        """
        if self._link.is_inherited or self.boxes.pop(box.sid, None) is None:
            return
        self.forget(box)
        soon(partial(self._leave, unsubscribe_command(box.sid)), self._home)
        warn_of_drop(box)

    def part(self, subject: bytes) -> None:
        """Publish an empty message, unless the client is disconnected; see `Channel.part`."""
        if not (self._is_ended or self._link.is_inherited) and self._lines.admit(len(subject)):
            soon(partial(self._leave, publish_command(subject, b"", b"", b"")), self._home)

    def _leave(self, command: bytes) -> None:
        if self.is_open:
            self._link.write_soon(command)

    def unsubscribe(self, box: Box) -> None:
        """Send the UNSUB of a removed mailbox."""
        if self.is_open:
            self._link.write(unsubscribe_command(box.sid))

    def forget(self, box: Box) -> None:
        """Stop passing messages to a mailbox or its sink, and wake up the mailbox's owner."""
        self._sinks.pop(box.sid, None)
        self._silent.discard(box.sid)
        # Remove it alone: another thread may add or remove one meanwhile.
        for cutter in list(self._cutters):
            if cutter.sid == box.sid:
                self._cutters.remove(cutter)
        self.parser.forget(box.sid)
        box.signal.set()

    def subscribe(self) -> None:
        """Subscribe all mailboxes after a connect."""
        # Set this before reading the table: `open` sends the SUB of any mailbox added afterwards.
        self.is_open = True
        for box in self.all():
            # This server may permit a subscription that an earlier server refused.
            box.error = None
            try:
                self._lines.check(box.subject, box.queue)
            except BadArgument as error:
                # The SUB has ended a connection, and would end this one.
                box.refuse(error)
                continue
            self._link.write(subscribe_command(box.subject, box.queue, box.sid))
            if box.sid not in self.boxes:
                # The mailbox was closed meanwhile. Its UNSUB may have been sent before this SUB.
                self._link.write(unsubscribe_command(box.sid))

    def deny(self, denied: Denied, error: TwinstreamError) -> list[Box]:
        """Record a refusal of the server; return the mailboxes whose subscription it refused."""
        boxes = self.all()
        if denied.subject:
            boxes = [box for box in boxes if box.is_refused(denied)]
        else:
            # The client has too many subscriptions. The server refuses the newest one, and sends
            # an error for each that it refuses.
            boxes = [box for box in boxes if box.error is None][-1:]
        for box in boxes:
            box.refuse(error)
        return boxes

    def pause(self) -> None:
        """Stop sending commands until the next connect."""
        self.is_open = False

    def end(self) -> None:
        """Stop sending commands, because the connection is closed: no subscription exists."""
        self._is_ended = True
        self.pause()
        for box in self.all():
            box.on_drop = None

    def wake(self) -> None:
        """Set the signals of all mailboxes, because the connection state has changed."""
        for box in self.all():
            box.signal.set()
