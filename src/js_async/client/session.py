"""The session with a server: connecting, keeping alive, reconnecting, and dispatching messages.

This is the transport below the JetStream layer; `Connection` adds the calls for users.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from os import urandom
from typing import TYPE_CHECKING, Final
from weakref import ref

from js_async.client.credentials import credentials_for
from js_async.client.handshake import Greeting
from js_async.client.keepalive import Pings
from js_async.client.requests import Replies
from js_async.client.subscriptions import Mailboxes
from js_async.client.transport import Box
from js_async.client.upkeep import Upkeep, keep, shuffle
from js_async.runtime.concurrency import Signal, Task, before_exit, spawn
from js_async.runtime.socket_link import Link
from twinstream.core.base.hooks import HOOKS, reached
from twinstream.core.connect.auth import Credentials
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
from twinstream.core.connect.options import ConnectOptions
from twinstream.core.connect.server_pool import ReconnectPolicy, Rounds, ServerAddress, ServerPool
from twinstream.core.deadline import NEVER, Deadline, monotonic
from twinstream.core.log.logger import Log
from twinstream.core.publish.request import check_size
from twinstream.core.wire.protocol import (
    PONG,
    Event,
    HeldBack,
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
from twinstream.core.wire.tokens import Tokens
from twinstream.core.wire.write_buffers import LONG
from twinstream.errors import (
    BadArgument,
    ConnectionClosed,
    ConnectionFailed,
    ConnectionLost,
    PermissionDenied,
    RequestTimeout,
)

if TYPE_CHECKING:
    from js_async.client.instrumentation import OnCall

__all__ = ["Session"]

# Closing must not hang on a peer that does not respond (seconds).
_GOODBYE: Final = 1.0


class Session:
    """A connection that reconnects by itself. `tell` receives each event."""

    # A default for `__del__` after an `__init__` that raised.
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
        chosen = shuffle if options.shuffle else None
        self._pool: Final = ServerPool(options.servers, chosen)
        self.rounds: Final = Rounds(options.reconnect or ReconnectPolicy())
        self._connected_at = 0.0
        self.tokens: Final = Tokens(urandom(16), options.inbox_prefix)
        self._link: Final = Link(self._receive, self._ended, options.busy_poll)
        # The link's own method, as every wait goes through here: flush what was written, then wait
        # for the signal or the deadline; return whether the signal is set.
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
        self._greeting: Final = Greeting(options, self._link, self._pings, chosen)
        self._log: Final = Log("connection")
        self._trouble = Signal()
        self._change = Signal()
        self._upkeep: Final = Upkeep(self, self._link, options)
        self.replies: Final = Replies(self, on_call)
        self.ask: Final = self.replies.ask

    # ---- state

    @property
    def address(self) -> ServerAddress:
        """The current server, or the last one."""
        return self._address

    @property
    def server_info(self) -> ServerInfo:
        """What the server reported about itself at the last connect."""
        return self._info

    @property
    def request_timeout(self) -> float:
        """Default timeout of a request in seconds."""
        return self._options.request_timeout

    @property
    def subscriptions(self) -> int:
        """Number of subscriptions, including inboxes."""
        return len(self._boxes)

    @property
    def strays(self) -> int:
        """Messages for subscriptions that had just ended."""
        return self._parser.strays

    # ---- lifecycle

    async def start(self) -> None:
        """Connect for the first time."""
        try:
            await self._link_up(self._pool.round())
            # Weak references: only the user's reference keeps a connection alive.
            work = partial(keep, ref(self._upkeep), ref(self._link), self._trouble)
            self._keeper = spawn(work, "twinstream-keeper")
            before_exit(self._upkeep)
        except BaseException:
            # Interrupted while the keeper started: stop it, too.
            self.is_closed = True
            self._trouble.set()
            await self._link.close()
            raise

    async def close(self) -> None:
        """Flush what was written, disconnect and wake up all waiting calls."""
        if self.is_closed:
            return
        # Checked before anything is closed, because the socket may belong to the parent process.
        self._link.check_owner()
        try:
            # If the peer is dead or slow, unsent data is lost. Or another caller closes at the same
            # time.
            with suppress(RequestTimeout, ConnectionLost, ConnectionClosed):
                if self.is_connected:
                    await self.flush(Deadline.after(_GOODBYE))
            await self.finish(None)
        except BaseException:
            # Cancelled or interrupted: close in any case.
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
        """Warn of a connection that its user dropped, or left open at the end of the program."""
        if self._warned or self.is_closed or self._keeper is None or self._link.is_inherited:
            return
        self._warned = True
        text = f"unclosed connection to {self._address}: close it, or use it in a `with` block"
        # The source is not the session: tracemalloc of Python 3.11 cannot report where an object
        # with a `__dict__` was created.
        warnings.warn(text, ResourceWarning, stacklevel=1, source=self._trouble)

    async def finish(self, cause: BaseException | None) -> None:
        """Close for good; `cause` is the reason, if it is an error."""
        if self.is_closed:
            return
        self.is_closed = True
        try:
            await self._close_all(cause)
        except BaseException:
            # Interrupted: a later call would do nothing, because `is_closed` is set.
            await self._close_all(cause)
            raise

    async def _close_all(self, cause: BaseException | None) -> None:
        self.is_connected = False
        self._mailboxes.pause()
        self._end = cause
        await self._link.close()
        # This ends a connect in progress.
        self._greeting.broken(self._end)
        self.replies.fail(self.closed_error())
        self._wake()
        self._trouble.set()
        self._tell(Closed(str(cause) if cause is not None else ""))

    def closed_error(self) -> ConnectionClosed:
        """Return the error for use after the end; it includes the reason of the end."""
        because = f": {self._end}" if self._end is not None else ""
        error = ConnectionClosed(f"the connection is closed{because}")
        error.__cause__ = self._end
        return error

    def _wake(self) -> None:
        """Wake up calls that wait for messages or for the connection: its state has changed."""
        self._mailboxes.wake()
        # Later callers get a new signal, so that none is cleared while others wait for it.
        following = Signal()
        change, self._change = self._change, following
        change.set()

    # ---- connecting

    async def _link_up(self, servers: list[ServerAddress]) -> None:
        """Connect to the first server that accepts."""
        attempts = Attempts()
        for address in servers:
            # Outside of the `try`: an error of the user's function is not a failure of the server.
            credentials = credentials_for(self._options, address)
            try:
                await self._greet(address, credentials)
            except BadArgument:
                await self._link.shut()
                raise
            except Exception as error:
                # Any error: the resolver raises `UnicodeError` for some names, and `ssl` its own.
                await self._link.shut()
                attempts.add(address, error)
                continue
            self._pool.prefer(address)
            return
        raise attempts.error()

    async def _greet(self, address: ServerAddress, credentials: Credentials) -> None:
        deadline = Deadline.after(self._options.connect_timeout)
        await self._link.settle(deadline)
        self._parser = Parser({})  # no messages before the connection is secured
        self._end = None
        # Addresses in an INFO that came before TLS are ignored: an attacker may have written it.
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
        # Handle an end of the socket or the session that came before `is_connected` was set.
        if self.is_closed:
            self.is_connected = False
            raise ConnectionFailed("the connection was closed meanwhile")
        if not self._link.is_open:
            self._ended(None)
            raise ConnectionFailed(f"the connection broke at once: {self._end}")

    # ---- keeping the connection

    def is_at_end(self) -> bool:
        """Whether the server has disconnected, even if that was not processed yet."""
        return self._link.is_at_end()

    def beat(self) -> None:
        """Send a heartbeat PING, or abort if the previous one was not answered."""
        if self.is_connected:
            self._pings.beat(self._options.ping_interval)

    def failed(self) -> BaseException | None:
        """Demote the server that was lost, so that others are tried first; return the reason."""
        self._pool.demote(self._address)
        self.rounds.broke(monotonic() - self._connected_at)
        self._cause = self._end
        return self._end

    async def reconnect(self) -> Exception | None:
        """Try each server once; return the error if none accepted."""
        try:
            await self._link_up(self._pool.round())
        except Exception as error:
            # Any error: credentials that are unavailable now may be available next time.
            await self._link.shut()
            self._cause = error
            self._log_failure(self.rounds.count, error)
            return error
        return None

    def _log_failure(self, attempt: int, error: Exception) -> None:
        from twinstream.core.log.events import ReconnectFailed

        self._log(ReconnectFailed(attempt, error))

    # ---- receiving

    def _receive(self, data: bytes) -> int:
        """Parse received data; return the size of the incomplete message in bytes, 0 if unknown."""
        parser = self._parser
        touched, events = parser.feed(data)
        if touched:
            now, boxes = monotonic(), self._boxes
            for sid in touched:
                # None if it was just closed.
                box = boxes.get(sid)
                if box is not None:
                    box.heard_at = now
                    box.signal.set()
        if events:
            self._handle_all(events)
        return parser.needed

    def _handle_all(self, events: list[Event]) -> None:
        pings = 0
        for event in events:
            if isinstance(event, Ping):
                pings += 1
            else:
                self._handle(event)
        if pings and self._link.is_open:
            # Sent in one write; otherwise each PING of a flood would cost a system call.
            self._link.post(PONG * pings)

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
                # The server disconnects after this error, which is the reason.
                self._end = error
        else:
            boxes = self._mailboxes.deny(denied, error)
            self.replies.deny(denied, boxes, error)

    def _ended(self, error: Exception | None) -> None:
        was_connected, self.is_connected = self.is_connected, False
        try:
            self._note_end(error, was_connected)
        except BaseException:
            # Interrupted: no other code would start the reconnect.
            self._note_end(error, was_connected)
            raise

    def _note_end(self, error: Exception | None, was_connected: bool) -> None:
        self._mailboxes.pause()
        self._end = error or self._end or ConnectionLost("the server closed the connection")
        self._greeting.broken(self._end)
        if not was_connected:
            # There were no requests over this connection.
            return
        lost = ConnectionLost(f"the connection broke before the answer came: {self._end}")
        if HOOKS:
            reached("session: before fail", self)
        self.replies.fail(lost)
        if self._link.is_inherited:
            # A forked child leaves reports and reconnecting to its parent.
            return
        try:
            self._tell(Disconnected(str(self._address), str(self._end)))
            self._mailboxes.wake()
        finally:
            # Last: this starts the reconnect, which must not see the end of this connection.
            self._trouble.set()

    # ---- the transport of the JetStream layer

    async def ready(self, deadline: Deadline) -> None:
        """Wait until connected; raises `ConnectionClosed` or `RequestTimeout`."""
        if self.is_connected and self._link.is_at_end():
            await self._link.noticed()
        while not self.is_connected:
            # Read before the state is checked: later changes set this signal.
            change = self._change
            if HOOKS:
                reached("session: before ready wait", change)
            if self.is_closed:
                raise self.closed_error()
            if not self.is_connected and not await self._link.wait(change, deadline):
                raise RequestTimeout(f"not connected in time; last: {self._end or self._cause}")

    def try_send(
        self, subject: bytes, reply: bytes, headers: bytes, payload: bytes, now: bool = False
    ) -> bool:
        """Publish if that needs no waiting; if it returns False, use `send`."""
        size = len(payload)
        if not self.is_connected or size + len(headers) > self._info.max_payload:
            return False
        if size > LONG:
            pieces = long_publish_command(subject, reply, headers, payload)
            return self._link.offer_pieces(pieces)
        if headers or not reply:
            return self._link.offer(publish_command(subject, reply, headers, payload), now)
        # Inlined `publish_command` for the most frequent case.
        parts = (b"PUB ", subject, b" ", reply, line_end(size), payload, b"\r\n")
        return self._link.offer(b"".join(parts), now)

    def try_write(self, command: bytes) -> bool:
        """Write a short, complete command if that needs no waiting; return whether it was."""
        return self.is_connected and self._link.offer(command)

    async def send(
        self, subject: bytes, reply: bytes, headers: bytes, payload: bytes, now: bool = False
    ) -> None:
        """Publish; every part is already checked and encoded."""
        link = self._link
        link.check_owner()
        if not self.is_connected:
            await self.ready(Deadline.after(self._options.request_timeout))
        size = len(headers) + len(payload)
        # Check against the limit of the current server, which would disconnect on excess.
        check_size(subject, size, self._info.max_payload)
        command = publish_command(subject, reply, headers, payload)
        while not link.write(command):
            # Disconnected; the next server may have another limit.
            await self.ready(Deadline.after(self._options.request_timeout))
            check_size(subject, size, self._info.max_payload)
        if link.is_full and not now:
            await link.drain(NEVER)

    async def open_mailbox(
        self, subject: bytes, queue: bytes = b"", sink: Callable[[Box], Sink] | None = None
    ) -> Box:
        """Subscribe; arriving frames go into the mailbox, or into the `sink`."""
        if self.is_closed:
            raise self.closed_error()
        self._link.check_owner()
        box = self._mailboxes.open(subject, queue, sink)
        if HOOKS:
            reached("session: mailbox opened", box)
        return box

    async def close_mailbox(self, *boxes: Box, settle: bool = False) -> None:
        """Unsubscribe; frames that are in the mailboxes stay there.

        With `settle`, everything that the server sent before it processed the UNSUB is in them.
        Does nothing in a forked child, where iterators of its parent may end.
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
            # Messages that are still in flight are redelivered after the consumer's ack_wait.
            pass
        finally:
            for box in closed:
                self._mailboxes.forget(box)

    def hold_back(self, bulk: HeldBack) -> None:
        """Pass arriving data to the bulk response before it is parsed, unless one is active."""
        self._parser.hold_back(bulk)

    async def flush(self, deadline: Deadline) -> None:
        """Wait until the server has processed everything sent so far."""
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
        end = self._end or self._cause
        raise ConnectionLost(f"the connection broke before the PONG came: {end}")

    def _is_link(self, epoch: int) -> bool:
        return self.is_connected and self.epoch == epoch
