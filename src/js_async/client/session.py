"""The session: it connects, sends heartbeats, reconnects and dispatches received messages.

It is the transport below the JetStream layer. `Connection` adds the calls for users.
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
from js_async.client.handshake import Handshake
from js_async.client.keepalive import KeepAlive
from js_async.client.requests import PendingRequests
from js_async.client.subscriptions import Subscriptions
from js_async.client.transport import Box
from js_async.client.upkeep import Upkeep, keep, shuffle
from js_async.runtime.concurrency import Signal, Task, before_exit, spawn
from js_async.runtime.socket_link import Link
from twinstream.core.client.auth import Credentials
from twinstream.core.client.connection_events import (
    Closed,
    Connected,
    ConnectionEvent,
    Disconnected,
    Interrupted,
    LameDuck,
    ServerReported,
    ServersDiscovered,
)
from twinstream.core.client.handshake import Attempts, ServerInfo, read_denied, server_error
from twinstream.core.client.options import ConnectOptions
from twinstream.core.client.server_pool import ReconnectPolicy, Rounds, ServerAddress, ServerPool
from twinstream.core.deadline import NEVER, Deadline, monotonic
from twinstream.core.hooks import HOOKS, reached
from twinstream.core.log.logger import Log
from twinstream.core.on_failure import AsyncOnFailure, OnFailure
from twinstream.core.publish.request import check_size
from twinstream.core.wire.control_line import ControlLines
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
    ServerError,
    TwinstreamError,
)

if TYPE_CHECKING:
    from js_async.client.instrumentation import OnCall

__all__ = ["Session"]

# The limit of each wait for the server while closing (seconds), because it may not respond.
_GOODBYE: Final = 1.0

_BY_PROGRAM: Final = (
    "the program called `close` or `drain`, or left its `with` block; connect again"
)


class Session:
    """A connection that reconnects by itself. It calls `tell` with each `ConnectionEvent`."""

    # `__del__` uses these defaults if `__init__` raised.
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
        # When the connection was established or lost.
        self._changed_at = 0.0
        self.tokens: Final = Tokens(urandom(16), options.inbox_prefix)
        self._link: Final = Link(self._receive, self._ended)
        # See `Channel.wait`. This is the method of the `Link` itself, because every wait calls it.
        self.wait: Final = self._link.wait
        self._lines: Final = ControlLines()
        self._mailboxes: Final = Subscriptions(self._link, tell, self._lines)
        self.cut_acks: Final = self._mailboxes.cut_acks
        self.part: Final = self._mailboxes.part
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
        self._pings: Final = KeepAlive(self._link)
        self._greeting: Final = Handshake(options, self._link, self._pings, chosen)
        self._log: Final = Log("connection")
        self._trouble = Signal()
        self._change = Signal()
        self._upkeep: Final = Upkeep(self, self._link, options)
        self.replies: Final = PendingRequests(self, on_call)
        self.ask: Final = self.replies.ask

    # ---- state

    @property
    def address(self) -> ServerAddress:
        """The address of the current server, or of the last one if not connected."""
        return self._address

    @property
    def server_info(self) -> ServerInfo:
        """The server's latest INFO."""
        return self._info

    @property
    def request_timeout(self) -> float:
        """The default timeout of a request in seconds."""
        return self._options.request_timeout

    @property
    def subscriptions(self) -> int:
        """The number of subscriptions, including inboxes."""
        return len(self._boxes)

    @property
    def strays(self) -> int:
        """The number of messages for subscriptions that had ended, since the last connect."""
        return self._parser.strays

    # ---- lifecycle

    async def start(self) -> None:
        """Connect for the first time, and start the keeper, which reconnects later."""
        async with AsyncOnFailure(self._abandon):
            await self._link_up(self._pool.round())
            tls = self._options.tls
            if tls is not None and not tls.verify:
                self._log_unverified()
            # Weak references: only the user's reference keeps a connection alive.
            work = partial(keep, ref(self._upkeep), ref(self._link), self._trouble)
            self._keeper = spawn(work, "twinstream-keeper")
            before_exit(self._upkeep)

    async def _abandon(self) -> None:
        # If the keeper was already started, the signal stops it.
        self.is_closed = True
        self._trouble.set()
        await self._link.close()

    async def close(self) -> None:
        """Flush buffered data, disconnect and wake up all waiting calls.

        Waits for the server at most 1 s; then unsent data is lost.
        """
        if self.is_closed:
            return
        # Check this before closing anything: the socket may belong to the parent process.
        self._link.check_owner()
        # Close even if the call is cancelled or interrupted.
        async with AsyncOnFailure(partial(self.finish, None)):
            # These errors mean that the server does not respond, or that another caller closes the
            # session at the same time.
            with suppress(RequestTimeout, ConnectionLost, ConnectionClosed):
                if self.is_connected:
                    await self.flush(Deadline.after(_GOODBYE))
            await self.finish(None)
        keeper = self._keeper
        if keeper is not None and not keeper.is_current():
            await keeper.join(Deadline.after(_GOODBYE))

    def __del__(self) -> None:
        if not (self.is_closed or self._link.is_inherited):
            self._link.drop(self._trouble)
            self.warn_unclosed()

    def warn_unclosed(self) -> None:
        """Warn, once, that the user did not close the connection.

        Called when the connection is garbage-collected, and at the end of the program.
        """
        if self._warned or self.is_closed or self._keeper is None or self._link.is_inherited:
            return
        self._warned = True
        text = f"unclosed connection to {self._address}: close it, or use it in a `with` block"
        # The source is not the session, because tracemalloc of Python 3.11 cannot report where an
        # object with a `__dict__` was created. The session created this signal in `__init__`.
        warnings.warn(text, ResourceWarning, stacklevel=1, source=self._trouble)

    async def finish(self, cause: BaseException | None) -> None:
        """Close the session. `cause` is the error that ended it, or None if the user closed it."""
        if self.is_closed:
            return
        # After an interrupt, do the work now, because a later call would do nothing.
        async with AsyncOnFailure(partial(self._close_all, cause)):
            self.is_closed = True
            await self._close_all(cause)

    async def _close_all(self, cause: BaseException | None) -> None:
        self.is_connected = False
        self._mailboxes.end()
        self._end = cause
        await self._link.close()
        # End a handshake in progress.
        self._greeting.broken(self._end)
        self.replies.fail(self.closed_error())
        self._wake()
        self._trouble.set()
        self._tell(Closed(str(cause) if cause is not None else ""))

    def closed_error(self) -> ConnectionClosed:
        """Return the error to raise after the session was closed, with the reason if known."""
        because = _BY_PROGRAM if self._end is None else str(self._end)
        error = ConnectionClosed(f"the connection is closed: {because}")
        error.__cause__ = self._end
        return error

    def _wake(self) -> None:
        """Wake up all calls that wait for messages or for a change of the connection state."""
        self._mailboxes.wake()
        # Use a new signal for later waits. The old one stays set for the calls that wait for it.
        following = Signal()
        change, self._change = self._change, following
        change.set()

    # ---- connecting

    async def _link_up(self, servers: list[ServerAddress]) -> None:
        """Connect to the first server that accepts, or raise one error for all failed attempts."""
        attempts = Attempts()
        for address in servers:
            # Outside of the `try`: an error of the user's callback is not a failure of the server.
            credentials = credentials_for(self._options, address)
            try:
                await self._greet(address, credentials)
            except BadArgument:
                await self._link.shut()
                raise
            except Exception as error:
                # Catch any error: the resolver raises `UnicodeError` for some names, and `ssl` its
                # own classes.
                await self._link.shut()
                attempts.add(address, error)
                continue
            self._pool.prefer(address)
            return
        raise attempts.error()

    async def _greet(self, address: ServerAddress, credentials: Credentials) -> None:
        deadline = Deadline.after(self._options.connect_timeout)
        await self._link.settle(deadline)
        self._parser = Parser({})  # drops messages that arrive before TLS is established
        self._end = None
        # Ignore the addresses in an INFO that arrived before TLS: an attacker may have changed it.
        self._is_believed = not await self._greeting.open(address, deadline)
        self._parser = self._mailboxes.parser()
        self._parser.expect_payloads(self._info.max_payload)
        await self._greeting.log_in(credentials, deadline)
        self._address = address
        self._discover()
        self._lines.begin()
        self._mailboxes.subscribe()
        self.epoch += 1
        now = monotonic()
        outage = now - self._changed_at if self.epoch > 1 else 0.0
        self._changed_at = now
        self.is_connected = True
        self._tell(Connected(str(address), self.epoch, outage))
        self._wake()
        # The session may have been closed, or the socket may have failed, before `is_connected`
        # was set.
        if self.is_closed:
            self.is_connected = False
            raise ConnectionFailed("the connection was closed meanwhile")
        if not self._link.is_open:
            self._ended(self._link.last_error)
            raise ConnectionFailed(f"the connection broke at once: {self._end}")

    # ---- keeping the connection

    def is_at_end(self) -> bool:
        """Return whether the server has disconnected, even if the client has not noticed it yet."""
        return self._link.is_at_end()

    def beat(self) -> None:
        """Send a heartbeat PING, or abort the connection if the last heartbeat got no PONG."""
        if self.is_connected:
            self._pings.beat(self._options.ping_interval)

    def failed(self) -> BaseException | None:
        """Record that the connection was lost, and return the reason.

        Reconnecting tries the other servers first.
        """
        self._pool.demote(self._address)
        now = monotonic()
        self.rounds.broke(now - self._changed_at)
        self._changed_at = now
        self._cause = self._end
        return self._end

    async def reconnect(self) -> Exception | None:
        """Try to connect to each server once. Return None if one accepts, else the error."""
        try:
            await self._link_up(self._pool.round())
        except Exception as error:
            # Catch any error: the user's credentials callback may fail now and work later.
            await self._link.shut()
            self._cause = error
            self._log_failure(self.rounds.count, error)
            return error
        return None

    def _log_failure(self, attempt: int, error: Exception) -> None:
        from twinstream.core.log.events import ReconnectFailed

        self._log(ReconnectFailed(attempt, error))

    def _log_unverified(self) -> None:
        from twinstream.core.log.events import ServerUnverified

        self._log(ServerUnverified(str(self._address)))

    # ---- receiving

    def _receive(self, data: bytes) -> int:
        """Parse received data and dispatch the messages.

        Return the number of bytes that the last, incomplete message needs; 0 if unknown.
        """
        parser = self._parser
        touched, events = parser.feed(data)
        if touched:
            now, boxes = monotonic(), self._boxes
            for sid in touched:
                # This is None if the mailbox was just closed.
                weak = boxes.get(sid)
                box = weak() if weak is not None else None
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
            # Answer all PINGs in one write. Otherwise a flood of PINGs costs a system call each.
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
        self._lines.note_error(text)
        self._tell(ServerReported(TwinstreamError.__str__(error)))
        if denied is None:
            if not isinstance(error, PermissionDenied):
                # The server disconnects after such an error. Record the error as the reason.
                self._end = error
        else:
            boxes = self._mailboxes.deny(denied, error)
            self.replies.deny(denied, boxes, error)

    def _ended(self, error: Exception | None) -> None:
        was_connected = self.is_connected
        # After an interrupt, repeat the work, because no other code starts the reconnect.
        with OnFailure(partial(self._note_end, error, was_connected)):
            self.is_connected = False
            self._note_end(error, was_connected)

    def _note_end(self, error: Exception | None, was_connected: bool) -> None:
        self._mailboxes.pause()
        if not isinstance(self._end, ServerError) or isinstance(error, Interrupted):
            # The server's own reason says more than the reset of the connection that follows it.
            self._end = error or self._end or ConnectionLost("the server closed the connection")
        self._greeting.broken(self._end)
        if not was_connected:
            # The handshake was not finished, so no requests were sent.
            return
        lost = ConnectionLost(f"the connection broke before the answer came: {self._end}")
        if HOOKS:
            reached("session: before fail", self)
        self.replies.fail(lost)
        if self._link.is_inherited:
            # This is a forked child: its parent reports the loss and reconnects.
            return
        try:
            is_own = isinstance(self._end, Interrupted)
            self._tell(Disconnected(str(self._address), str(self._end), is_own))
            self._mailboxes.wake()
        finally:
            # Set this signal last, because it starts the reconnect. After that, this call must not
            # change `_end`.
            self._trouble.set()

    # ---- the transport of the JetStream layer

    async def ready(self, deadline: Deadline) -> None:
        """Wait until the client is connected.

        Raises `ConnectionClosed` when it is closed, and `RequestTimeout` at the deadline.
        """
        if self.is_connected and self._link.is_at_end():
            await self._link.noticed()
        while not self.is_connected:
            # Read the signal before the state: every later change sets this signal.
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
        """Publish a message if that needs no waiting; see `Channel.try_send`."""
        size = len(payload)
        if not self.is_connected or size + len(headers) > self._info.max_payload:
            return False
        line = len(subject) + len(reply)
        if line > self._lines.longest and not self._lines.admit(line):
            return False
        if size > LONG:
            pieces = long_publish_command(subject, reply, headers, payload)
            return self._link.offer_pieces(pieces)
        if headers or not reply:
            return self._link.offer(publish_command(subject, reply, headers, payload), now)
        # The most frequent case: `publish_command`, inlined.
        parts = (b"PUB ", subject, b" ", reply, line_end(size), payload, b"\r\n")
        return self._link.offer(b"".join(parts), now)

    def try_write(self, command: bytes) -> bool:
        """Write a short, complete command if that needs no waiting; see `Channel.try_write`."""
        lines, size = self._lines, len(command)
        if size > lines.longest and not lines.admit(size):
            return False
        return self.is_connected and self._link.offer(command)

    async def send(
        self, subject: bytes, reply: bytes, headers: bytes, payload: bytes, now: bool = False
    ) -> None:
        """Publish a message whose parts are already checked and encoded; see `Channel.send`."""
        link = self._link
        link.check_owner()
        if not self.is_connected:
            await self.ready(Deadline.after(self._options.request_timeout))
        size = len(headers) + len(payload)
        # Check the limit of the current server, which disconnects after a larger message.
        self._check(subject, reply, size)
        command = publish_command(subject, reply, headers, payload)
        while not link.write(command):
            # The client was disconnected, and the next server may have another limit.
            await self.ready(Deadline.after(self._options.request_timeout))
            self._check(subject, reply, size)
        if link.is_full and not now:
            await link.drain(NEVER)

    def _check(self, subject: bytes, reply: bytes, size: int) -> None:
        check_size(subject, size, self._info.max_payload)
        self._lines.check(subject, reply)

    async def open_mailbox(
        self, subject: bytes, queue: bytes = b"", sink: Callable[[Box], Sink] | None = None
    ) -> Box:
        """Subscribe, and return the mailbox; see `Channel.open_mailbox`."""
        if self.is_closed:
            raise self.closed_error()
        self._link.check_owner()
        box = self._mailboxes.open(subject, queue, sink)
        if HOOKS:
            reached("session: mailbox opened", box)
        return box

    async def close_mailbox(self, *boxes: Box, settle: bool = False) -> None:
        """Unsubscribe the mailboxes; see `Channel.close_mailbox`.

        Does nothing in a forked child, which may garbage-collect iterators of its parent.
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
            # Messages may still be in flight. The server redelivers them after the ack_wait of
            # their consumer.
            pass
        finally:
            for box in closed:
                self._mailboxes.forget(box)

    def hold_back(self, bulk: HeldBack) -> None:
        """Let `bulk` take the bytes of its subscription unparsed; see `Channel.hold_back`."""
        self._parser.hold_back(bulk)

    async def flush(self, deadline: Deadline) -> None:
        """Wait until the server has processed everything that was sent so far.

        Raises `RequestTimeout`, `ConnectionLost` or `ConnectionClosed` if no PONG confirms that.
        """
        self._link.check_owner()
        await self.ready(deadline)
        epoch = self.epoch
        pong = self._pings.send(lambda: self._is_link(epoch))
        if pong is not None:
            is_set = await self._link.wait(pong, deadline)
            if self._is_link(epoch):
                if not is_set:
                    raise RequestTimeout("no PONG in time")
                return
        if self.is_closed:
            raise self.closed_error()
        end = self._end or self._cause
        raise ConnectionLost(f"the connection broke before the PONG came: {end}")

    def _is_link(self, epoch: int) -> bool:
        return self.is_connected and self.epoch == epoch
