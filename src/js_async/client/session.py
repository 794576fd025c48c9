"""The session with a server: making the link, keeping it, mending it, and what arrives.

This is the transport under the JetStream layer; `Connection` puts the calls for users on top.
"""

from __future__ import annotations

import secrets
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from random import SystemRandom
from typing import TYPE_CHECKING, Final
from weakref import ref

from js_async.client.credentials import credentials_for
from js_async.client.handshake import Greeting
from js_async.runtime.concurrency import Signal, Task, before_exit, spawn
from js_async.runtime.socket_link import Link
from js_async.client.subscriptions import Mailboxes
from js_async.client.keepalive import Pings
from js_async.client.requests import Replies
from js_async.client.transport import Box
from js_async.client.upkeep import Upkeep, keep
from twinstream.core.connect.auth import Credentials
from twinstream.core.read.bulk_page import BulkAnswer
from twinstream.core.deadline import NEVER, Deadline, monotonic
from twinstream.errors import (
    BadArgument,
    ConnectionClosed,
    ConnectionFailed,
    ConnectionLost,
    PermissionDenied,
    RequestTimeout,
)
from twinstream.core.connect.connection_events import (
    Closed,
    Connected,
    ConnectionEvent,
    Disconnected,
    LameDuck,
    ServerReported,
    ServersDiscovered,
)
from twinstream.core.connect.handshake import Attempts, ServerInfo, read_denied, server_error
from twinstream.core.log.logger import Log
from twinstream.core.connect.options import ConnectOptions
from twinstream.core.wire.write_buffers import LONG
from twinstream.core.wire.protocol import (
    PONG,
    Info,
    Ok,
    Parser,
    Ping,
    Pong,
    Refusal,
    Sink,
    line_end,
    long_publish_command,
    publish_command,
)
from twinstream.core.publish.request import check_size
from twinstream.core.connect.server_pool import ReconnectPolicy, Rounds, ServerAddress, ServerPool
from twinstream.core.wire.tokens import Tokens

if TYPE_CHECKING:
    from js_async.client.instrumentation import OnCall

__all__ = ["Session"]

_RANDOM: Final = SystemRandom()
# Closing must not hang on a peer that is gone (seconds).
_GOODBYE: Final = 1.0


class Session:
    """A link that mends itself. `tell` gets each event."""

    # For one whose making fails.
    is_closed = True
    _keeper: Task | None = None

    def __init__(
        self,
        options: ConnectOptions,
        tell: Callable[[ConnectionEvent], None],
        on_call: OnCall | None = None,
    ) -> None:
        self._options: Final = options
        self._tell: Final = tell
        shuffle = _RANDOM.shuffle if options.shuffle else None
        self._pool: Final = ServerPool(options.servers, shuffle)
        self.rounds: Final = Rounds(options.reconnect or ReconnectPolicy())
        self._connected_at = 0.0
        self.tokens: Final = Tokens(secrets.token_bytes(16), options.inbox_prefix)
        self._link: Final = Link(self._receive, self._ended, options.busy_poll)
        # The link's own, for every wait goes through here: send what was written, then sleep until
        # the flag is up or the deadline passes; tell which.
        self.wait: Final = self._link.wait
        self._mailboxes: Final = Mailboxes(self._link, tell)
        self.cut_acks: Final = self._mailboxes.cut_acks
        self._boxes: Final = self._mailboxes.boxes
        self._parser = self._mailboxes.parser()
        self._info = ServerInfo({})
        self._is_believed = False
        self._address: ServerAddress = options.servers[0]
        self.epoch = 0
        self.is_connected = False
        self.is_closed = self._warned = False
        self._end: BaseException | None = None
        self._cause: BaseException | None = None
        self._pings: Final = Pings(self._link)
        self._greeting: Final = Greeting(options, self._link, self._pings, shuffle)
        self._log: Final = Log("connection")
        self._trouble = Signal()
        self._change = Signal()
        self._upkeep: Final = Upkeep(self, self._link, options)
        self.replies: Final = Replies(self, on_call)
        self.ask: Final = self.replies.ask

    # ---- state

    @property
    def address(self) -> ServerAddress:
        """The server of the link, or of the last one."""
        return self._address

    @property
    def server_info(self) -> ServerInfo:
        """What the server said of itself when the link was made."""
        return self._info

    @property
    def request_timeout(self) -> float:
        """Seconds that a request waits unless told otherwise."""
        return self._options.request_timeout

    @property
    def subscriptions(self) -> int:
        """How many subscriptions there are, inboxes included."""
        return len(self._boxes)

    @property
    def strays(self) -> int:
        """Messages that came for subscriptions that had just ended."""
        return self._parser.strays

    # ---- life

    async def start(self) -> None:
        """Make the first link."""
        try:
            await self._link_up(self._pool.round())
            # Weakly: only the program that uses a connection keeps it.
            work = partial(keep, ref(self._upkeep), ref(self._link), self._trouble)
            self._keeper = spawn(work, "twinstream-keeper")
            before_exit(self._upkeep)
        except BaseException:
            # Interrupted while the keeper began, it is to end too.
            self.is_closed = True
            self._trouble.set()
            await self._link.close()
            raise

    async def close(self) -> None:
        """Send what was written, close the link and wake everybody who waits."""
        if self.is_closed:
            return
        # Before anything is closed: the link may be that of the process this one was forked from.
        self._link.check_owner()
        try:
            # The peer may be gone or slow: nothing more can be done for what is on the way. Or
            # somebody else closes at the same time.
            with suppress(RequestTimeout, ConnectionLost, ConnectionClosed):
                if self.is_connected:
                    await self.flush(Deadline.after(_GOODBYE))
            await self.finish(None)
        except BaseException:
            # Cancelled or interrupted: it is closed all the same.
            await self.finish(None)
            raise
        keeper = self._keeper
        if keeper is not None and not keeper.is_current():
            await keeper.join(Deadline.after(_GOODBYE))

    def __del__(self) -> None:
        if not (self.is_closed or self._link.is_inherited):
            self._link.drop(self._trouble)
            self.warn_unclosed()

    def warn_unclosed(self) -> None:
        """Warn of a connection that the program dropped, or left open at its end."""
        if self._warned or self.is_closed or self._keeper is None or self._link.is_inherited:
            return
        self._warned = True
        text = f"unclosed connection to {self._address}: close it, or use it in a `with` block"
        # The source is not the session: of an object with a dictionary, tracemalloc of Python 3.11
        # does not know where it was made.
        warnings.warn(text, ResourceWarning, stacklevel=1, source=self._trouble)

    async def finish(self, cause: BaseException | None) -> None:
        """Close for good; the error is the reason, if there is one."""
        if self.is_closed:
            return
        self.is_closed = True
        try:
            await self._close_all(cause)
        except BaseException:
            # Interrupted, and nobody comes here again.
            await self._close_all(cause)
            raise

    async def _close_all(self, cause: BaseException | None) -> None:
        self.is_connected = False
        self._mailboxes.pause()
        self._end = cause
        await self._link.close()
        # This ends the making of a link, if one is being made.
        self._greeting.broken(self._end)
        self.replies.fail(self.closed_error())
        self._wake()
        self._trouble.set()
        self._tell(Closed(str(cause) if cause is not None else ""))

    def closed_error(self) -> ConnectionClosed:
        """Return the error for a use after the end; it says why it ended."""
        because = f": {self._end}" if self._end is not None else ""
        error = ConnectionClosed(f"the connection is closed{because}")
        error.__cause__ = self._end
        return error

    def _wake(self) -> None:
        """Wake those who wait for messages or for a link: there is one, or will be none."""
        self._mailboxes.wake()
        # Another flag for those who come from now on: nobody lowers one that others wait for.
        following = Signal()
        change, self._change = self._change, following
        change.set()

    # ---- making a link

    async def _link_up(self, servers: list[ServerAddress]) -> None:
        """Connect to the first server that takes us."""
        attempts = Attempts()
        for address in servers:
            # What a function of the program raises is no trouble of this address.
            credentials = credentials_for(self._options, address)
            try:
                await self._greet(address, credentials)
            except BadArgument:
                await self._link.shut()
                raise
            except Exception as error:
                # Any: the resolver raises `UnicodeError` for some names, and `ssl` its own kinds.
                await self._link.shut()
                attempts.add(address, error)
                continue
            self._pool.prefer(address)
            return
        raise attempts.error()

    async def _greet(self, address: ServerAddress, credentials: Credentials) -> None:
        deadline = Deadline.after(self._options.connect_timeout)
        await self._link.settle(deadline)
        self._parser = Parser({})  # nobody gets a message before the link is secured
        self._end = None
        # Addresses in an INFO that came before TLS are not believed: who wrote it is not known.
        self._is_believed = not await self._greeting.open(address, deadline)
        self._parser = self._mailboxes.parser()
        self._parser.expect_payloads(self._info.max_payload)
        await self._greeting.log_in(credentials, deadline)
        self._address = address
        self._discover()
        self._mailboxes.subscribe()
        self.epoch += 1
        self._connected_at = monotonic()
        self.is_connected = True
        self._tell(Connected(str(address), self.epoch))
        self._wake()
        # If it ended, or all was closed, before it counted as a link, that is still to be noted.
        if self.is_closed:
            self.is_connected = False
            raise ConnectionFailed("the connection was closed meanwhile")
        if not self._link.is_open:
            self._ended(None)
            raise ConnectionFailed(f"the link broke when it was made: {self._end}")

    # ---- keeping the link

    def is_at_end(self) -> bool:
        """Return whether the server left, also where that was not noticed yet."""
        return self._link.is_at_end()

    def beat(self) -> None:
        """Send the PING of a heartbeat, or cut a link that did not answer the last one."""
        if self.is_connected:
            self._pings.beat(self._options.ping_interval)

    def failed(self) -> BaseException | None:
        """Note which server broke the link, to try the others first; return why it ended."""
        self._pool.demote(self._address)
        self.rounds.broke(monotonic() - self._connected_at)
        self._cause = self._end
        return self._end

    async def reconnect(self) -> Exception | None:
        """Try each server once; return the error if none took the connection."""
        try:
            await self._link_up(self._pool.round())
        except Exception as error:
            # Whatever it was: credentials that cannot be had now may be had the next time.
            await self._link.shut()
            self._cause = error
            self._log_failure(self.rounds.count, error)
            return error
        return None

    def _log_failure(self, attempt: int, error: Exception) -> None:
        from twinstream.core.log.events import ReconnectFailed

        self._log(ReconnectFailed(attempt, error))

    # ---- what arrives

    def _receive(self, data: bytes) -> int:
        """Take what came; return how long what came in part is (bytes), 0 if that is not known."""
        sid = self._parser.feed_whole(data)
        if sid is not None:
            if sid:
                self._touch(sid, monotonic())
            return 0
        touched, events = self._parser.feed(data)
        if touched:
            now = monotonic()
            for sid in touched:
                self._touch(sid, now)
        pings = 0
        for event in events:
            if isinstance(event, Ping):
                pings += 1
            else:
                self._handle(event)
        if pings and self._link.is_open:
            # Together: one by one, a flood of PINGs would take a system call for each.
            self._link.post(PONG * pings)
        return self._parser.needed

    def _touch(self, sid: bytes, now: float) -> None:
        """Wake who waits at a mailbox that got something, if it is there still."""
        box = self._boxes.get(sid)
        if box is not None:
            box.heard_at = now
            box.signal.set()

    def _handle(self, event: Info | Pong | Ok | Refusal) -> None:
        match event:
            case Pong():
                self._pings.came()
            case Info(values):
                self._info = ServerInfo.read(values)
                self._is_believed = True
                self._parser.expect_payloads(self._info.max_payload)
                if self.is_connected:
                    self._discover()
                    if self._info.lame_duck:
                        self._tell(LameDuck(str(self._address)))
                self._greeting.heard(self._info)
            case Refusal(text):
                self._refused(text)
            case Ok():
                pass

    def _discover(self) -> None:
        urls = self._info.connect_urls if self._is_believed else ()
        if new := self._pool.discover(urls, self._address):
            self._tell(ServersDiscovered(tuple(str(address) for address in new)))

    def _refused(self, text: str) -> None:
        if not self._mailboxes.is_open:
            self._greeting.refused(text)
            return
        error, denied = server_error(text, self._greeting.secrets), read_denied(text)
        self._tell(ServerReported(str(error)))
        if denied is None:
            if not isinstance(error, PermissionDenied):
                # The server closes the link after this; it is why.
                self._end = error
        else:
            boxes = self._mailboxes.deny(denied, error)
            self.replies.deny(denied, boxes, error)

    def _ended(self, error: Exception | None) -> None:
        was_connected, self.is_connected = self.is_connected, False
        try:
            self._note_end(error, was_connected)
        except BaseException:
            # Interrupted, and nobody else starts the next link.
            self._note_end(error, was_connected)
            raise

    def _note_end(self, error: Exception | None, was_connected: bool) -> None:
        self._mailboxes.pause()
        self._end = error or self._end or ConnectionLost("the server closed the connection")
        self._greeting.broken(self._end)
        if not was_connected:
            # Nothing was asked over it.
            return
        lost = ConnectionLost(f"the link broke before the answer came: {self._end}")
        self.replies.fail(lost)
        if self._link.is_inherited:
            # A forked child leaves reports and reconnecting to its parent.
            return
        try:
            self._tell(Disconnected(str(self._address), str(self._end)))
            self._mailboxes.wake()
        finally:
            # Last: this starts the next link, which must not hear of the end of this one.
            self._trouble.set()

    # ---- the transport of the JetStream layer

    async def ready(self, deadline: Deadline) -> None:
        """Return when the link is up; raises `ConnectionClosed` or `RequestTimeout`."""
        if self.is_connected and self._link.is_at_end():
            await self._link.noticed()
        while not self.is_connected:
            # Noted before it is looked again: what changes after that raises this very flag.
            change = self._change
            if self.is_closed:
                raise self.closed_error()
            if not self.is_connected and not await self._link.wait(change, deadline):
                raise RequestTimeout(f"not connected in time; last: {self._end or self._cause}")

    def try_send(
        self, subject: bytes, reply: bytes, headers: bytes, payload: bytes, now: bool = False
    ) -> bool:
        """Publish if that needs no waiting; tell whether it was done, else use `send`."""
        size = len(payload)
        if not self.is_connected or size + len(headers) > self._info.max_payload:
            return False
        if size > LONG:
            pieces = long_publish_command(subject, reply, headers, payload)
            return self._link.offer_pieces(pieces)
        if headers or not reply:
            return self._link.offer(publish_command(subject, reply, headers, payload), now)
        # What `publish_command` would return, without the call: most of what is sent is this.
        parts = (b"PUB ", subject, b" ", reply, line_end(size), payload, b"\r\n")
        return self._link.offer(b"".join(parts), now)

    def try_write(self, command: bytes) -> bool:
        """Write a short, ready-made command if that needs no waiting; tell whether it was done."""
        return self.is_connected and self._link.offer(command)

    async def send(
        self, subject: bytes, reply: bytes, headers: bytes, payload: bytes, now: bool = False
    ) -> None:
        """Publish; every part is checked and encoded already."""
        link = self._link
        link.check_owner()
        if not self.is_connected:
            await self.ready(Deadline.after(self._options.request_timeout))
        size = len(headers) + len(payload)
        # By the limit of the server that it goes to, which would cut the link for a larger one.
        check_size(subject, size, self._info.max_payload)
        command = publish_command(subject, reply, headers, payload)
        while not link.write(command):
            # The server has left, and the next one may have another limit.
            await self.ready(Deadline.after(self._options.request_timeout))
            check_size(subject, size, self._info.max_payload)
        if link.is_full and not now:
            await link.drain(NEVER)

    async def open_mailbox(
        self, subject: bytes, queue: bytes = b"", sink: Callable[[Box], Sink] | None = None
    ) -> Box:
        """Subscribe; frames go into the mailbox, or where `sink` says for it, as they arrive."""
        if self.is_closed:
            raise self.closed_error()
        self._link.check_owner()
        return self._mailboxes.open(subject, queue, sink)

    async def close_mailbox(self, *boxes: Box, settle: bool = False) -> None:
        """Unsubscribe; frames that are in the mailboxes stay there.

        With `settle`, what the server sent before it read the UNSUB is in them too. Does nothing in
        a forked child, where iterations of its parent end.
        """
        if self._link.is_inherited:
            return
        closed = [box for box in boxes if self._mailboxes.remove(box)]
        try:
            for box in closed:
                self._mailboxes.unsubscribe(box)
            if closed and settle and self.is_connected:
                await self.flush(Deadline.after(_GOODBYE))
        except (RequestTimeout, ConnectionLost, ConnectionClosed):
            # What is still on the way then comes again after the consumer's ack_wait.
            pass
        finally:
            for box in closed:
                self._mailboxes.forget(box)

    def hold_back(self, bulk: BulkAnswer) -> None:
        """Show the bulk answer what arrives before it is parsed, unless one is under way."""
        self._parser.hold_back(bulk)

    async def flush(self, deadline: Deadline) -> None:
        """Return when the server has handled everything sent so far."""
        self._link.check_owner()
        await self.ready(deadline)
        epoch = self.epoch
        pong = self._pings.send(lambda: self._is_link(epoch))
        if pong is not None:
            came = await self._link.wait(pong, deadline)
            if self._is_link(epoch):
                if not came:
                    raise RequestTimeout("no PONG in time")
                return
        if self.is_closed:
            raise self.closed_error()
        raise ConnectionLost(f"the link broke before the PONG came: {self._end or self._cause}")

    def _is_link(self, epoch: int) -> bool:
        return self.is_connected and self.epoch == epoch
