"""The session: it connects, sends heartbeats, reconnects and dispatches received messages.

It is the transport below the JetStream layer. `Connection` adds the calls for users.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from os import urandom
from typing import TYPE_CHECKING, Final

from js_async.client.closable import Drainables
from js_async.client.connection_keeper import ConnectionKeeper, shuffle
from js_async.client.connection_state import ConnectionState
from js_async.client.credentials import credentials_for
from js_async.client.handshake import Handshake
from js_async.client.keepalive import KeepAlive
from js_async.client.requests import PendingRequests
from js_async.client.subscriptions import Subscriptions
from js_async.client.transport import Box
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
from twinstream.core.client.current_server import CurrentServer
from twinstream.core.client.handshake import Attempts, ServerInfo, read_denied, server_error
from twinstream.core.client.options import ConnectOptions
from twinstream.core.client.server_pool import ServerAddress
from twinstream.core.deadline import NEVER, Deadline, monotonic
from twinstream.core.hooks import HOOKS, reached
from twinstream.core.log.logger import Log
from twinstream.core.on_failure import AsyncOnFailure, OnFailure
from twinstream.core.publish.request import check_size
from twinstream.core.wire.control_line import ControlLines
from twinstream.core.wire.protocol import (
    PONG,
    ByteTaker,
    Event,
    HeldBack,
    Info,
    Ok,
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
    AuthenticationFailed,
    BadArgument,
    ConnectionClosed,
    ConnectionFailed,
    ConnectionLost,
    PermissionDenied,
    RequestTimeout,
    TwinstreamError,
)

if TYPE_CHECKING:
    from twinstream.core.client.outage import Outage
    from twinstream.core.observe.gauge import Gauge
    from twinstream.core.observe.observers import Observers

__all__ = ["Session"]

# The limit of each wait for the server while closing (seconds), because it may not respond.
_GOODBYE: Final = 1.0

_LOG: Final = Log("connection")


class Session:
    """A connection that reconnects by itself. It calls `tell` with each `ConnectionEvent`."""

    observers: Observers | None = None
    """The observers of the connection, which its owner sets. See `Channel.observers`."""
    call_observers: Observers | None = None
    """The observers of calls, which its owner sets. See `Channel.call_observers`."""

    def __init__(
        self,
        options: ConnectOptions,
        tell: Callable[[ConnectionEvent], None],
    ) -> None:
        self._options: Final = options
        self._notify: Final = tell
        chosen = shuffle if options.shuffle else None
        self._server: Final = CurrentServer(options.servers, options.reconnect, chosen)
        self._state: Final = ConnectionState()
        # Set while the connection is lost.
        self._outage: Outage | None = None
        self.tokens: Final = Tokens(urandom(16), options.inbox_prefix)
        self._link: Final = Link(self._receive, self._ended)
        # See `Channel.wait`. This is the method of the `Link` itself, because every wait calls it.
        self.wait: Final = self._link.wait
        self._lines: Final = ControlLines()
        self._subscriptions: Final = Subscriptions(self._link, tell, self._lines)
        self._pings: Final = KeepAlive(self._link)
        self._handshake: Final = Handshake(options, self._link, self._pings, chosen)
        self._upkeep: Final = ConnectionKeeper(self, self._server, self._link, options)
        self.replies: Final = PendingRequests(self)
        self.ask: Final = self.replies.ask

    # ---- state

    @property
    def is_connected(self) -> bool:
        """Whether the connection is established now."""
        return self._state.is_connected

    @property
    def is_closed(self) -> bool:
        """Whether the connection is closed and will not reconnect."""
        return self._state.is_closed

    @property
    def drainables(self) -> Drainables:
        """What the end of the connection by `drain` ends first."""
        return self._state.drainables

    @property
    def epoch(self) -> int:
        """The number of connects so far."""
        return self._state.epoch

    @property
    def address(self) -> ServerAddress:
        """The address of the current server, or of the last one if not connected."""
        return self._server.address

    @property
    def server_info(self) -> ServerInfo:
        """The server's latest INFO."""
        return self._server.info

    @property
    def request_timeout(self) -> float:
        """The default timeout of a request in seconds."""
        return self._options.request_timeout

    @property
    def subscriptions(self) -> int:
        """The number of subscriptions, including inboxes."""
        return len(self._subscriptions.boxes)

    @property
    def strays(self) -> int:
        """The number of messages for subscriptions that had ended, since the last connect."""
        return self._subscriptions.parser.strays

    def closed_error(self) -> ConnectionClosed:
        """Return the error to raise after the session was closed, with the reason if known."""
        return self._state.closed_error()

    def gauges(self) -> Iterable[Gauge]:
        """Return the gauges of the connection, for observers."""
        from twinstream.core.observe.gauge import Gauge

        yield Gauge("open_requests", self.replies.open_requests)

    # ---- lifecycle

    async def start(self) -> None:
        """Connect for the first time, and start the keeper, which reconnects later."""
        async with AsyncOnFailure(self._abandon):
            if self.observers is None:
                await self._link_up()
            else:
                with self.observers.begin("connect", "connect"):
                    await self._link_up()
            tls = self._options.tls
            if tls is not None and not tls.verify:
                _report_unverified(self.address)
            self._upkeep.start()

    async def _abandon(self) -> None:
        self._state.closed(None)
        # If the keeper was already started, the signal stops it.
        self._upkeep.connection_lost.set()
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
        await self._upkeep.join(Deadline.after(_GOODBYE))

    async def finish(self, cause: BaseException | None) -> None:
        """Close the session. `cause` is the error that ended it, or None if the user closed it."""
        if self.is_closed:
            return
        # After an interrupt, do the work now, because a later call would do nothing.
        async with AsyncOnFailure(partial(self._close_all, cause)):
            await self._close_all(cause)

    async def _close_all(self, cause: BaseException | None) -> None:
        self._state.closed(cause)
        self._subscriptions.end()
        await self._link.close()
        # End a handshake in progress.
        self._handshake.broken(cause)
        self.replies.fail(self.closed_error())
        self._wake()
        self._upkeep.connection_lost.set()
        self._end_outage(cause or self.closed_error())
        self._notify(Closed(str(cause) if cause is not None else ""))

    def _wake(self) -> None:
        """Wake up all calls that wait for messages or for a change of the connection state."""
        self._subscriptions.wake()
        self._state.wake()

    # ---- connecting

    async def _link_up(self) -> None:
        """Connect to the first server that accepts, or raise one error for all failed attempts."""
        attempts = Attempts()
        for address in self._server.round():
            # Outside of the `try`: an error of the user's callback is not a failure of the server.
            credentials = credentials_for(self._options, address)
            try:
                await self._shake_hands(address, credentials)
            except BadArgument:
                await self._link.shut()
                raise
            except Exception as error:
                # Catch any error: the resolver raises `UnicodeError` for some names, and `ssl` its
                # own classes.
                await self._link.shut()
                attempts.add(address, error)
                if self._outage is not None:
                    self._outage.note_failure(address, credentials, error)
                continue
            self._server.prefer()
            return
        raise attempts.error()

    async def _shake_hands(self, address: ServerAddress, credentials: Credentials) -> None:
        """Do the handshake with a server and restore the subscriptions.

        Raises `ConnectionFailed` if the session was closed or the socket broke meanwhile.
        """
        deadline = Deadline.after(self._options.connect_timeout)
        await self._link.settle(deadline)
        self._state.begin()
        self._subscriptions.ignore()
        if await self._handshake.open(address, deadline):
            self._server.distrust()
        self._subscriptions.listen(self.server_info)
        await self._handshake.log_in(credentials, deadline)
        self._server.accepted(address)
        self._discover()
        self._lines.begin()
        self._subscriptions.subscribe()
        outage = self._server.connected(monotonic())
        self._end_outage(None)
        self._state.connected()
        self._notify(Connected(str(address), self.epoch, outage))
        self._wake()
        # The session may have been closed, or the socket may have failed, before the state was
        # changed.
        if self.is_closed:
            self._state.disconnected()
            raise ConnectionFailed("the connection was closed meanwhile")
        if not self._link.is_open:
            self._ended(self._link.last_error)
            raise ConnectionFailed(f"the connection broke at once: {self._state.end}")

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
        from twinstream.core.client.outage import Outage

        end, now = self._state.end, monotonic()
        self._server.lost(now)
        observers = self.observers
        operation = None if observers is None else observers.begin("reconnect", "reconnect")
        self._end_outage(end)
        self._outage = Outage(now, operation)
        self._state.note_trouble(end)
        return end

    def _end_outage(self, error: BaseException | None) -> None:
        outage, self._outage = self._outage, None
        if outage is not None:
            outage.end(self._server.rounds.count, error)

    async def reconnect(self) -> Exception | None:
        """Try to connect to each server once. Return None if one accepts, else the error.

        Raises `AuthenticationFailed` if a server refused the same credentials twice.
        """
        try:
            await self._link_up()
        except Exception as error:
            # Catch any error: the user's credentials callback may fail now and work later.
            await self._link.shut()
            self._state.note_trouble(error)
            self._report_failure(error)
            return error
        return None

    def _report_failure(self, error: Exception) -> None:
        """Log a failed round of reconnect attempts.

        Raises `AuthenticationFailed` if a server has refused the same credentials twice.
        """
        from twinstream.core.log.events import OutageLasts, ReconnectFailed

        outage, rounds = self._outage, self._server.rounds.count
        _LOG(ReconnectFailed(rounds, error))
        if outage is None:
            return
        if outage.final is not None:
            raise AuthenticationFailed(
                f"gave up, as a server refused the same credentials twice: {outage.final}"
            ) from error
        if HOOKS:
            reached("session: before notice", outage)
        lasted = outage.notice(monotonic())
        if lasted is not None:
            _LOG(OutageLasts(lasted, rounds, error))

    # ---- receiving

    def _receive(self, data: bytes) -> int:
        """Parse received data and dispatch the messages.

        Return the number of bytes that the last, incomplete message needs; 0 if unknown.
        """
        parser = self._subscriptions.parser
        touched, events = parser.feed(data)
        if touched:
            self._subscriptions.arrived(touched)
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
        if pings:
            # Answer all PINGs in one write. Otherwise a flood of PINGs costs a system call each.
            self._link.write_unasked(PONG * pings)

    def _handle(self, event: Info | Pong | Ok | Refusal) -> None:
        """Process a protocol line that is not a message: INFO, PONG, +OK or -ERR."""
        match event:
            case Pong():
                self._pings.came()
            case Info(values):
                info = ServerInfo.read(values)
                self._server.heard(info)
                self._subscriptions.parser.expect_payloads(info.max_payload)
                if self.is_connected:
                    self._discover()
                    if info.lame_duck:
                        self._notify(LameDuck(str(self.address)))
                self._handshake.heard(info)
            case Refusal(text):
                self._refused(text)
            case Ok():
                pass

    def _discover(self) -> None:
        if new := self._server.discover():
            self._notify(ServersDiscovered(tuple(str(address) for address in new)))

    def _refused(self, text: str) -> None:
        """Process the server's error line (-ERR).

        Before the log-in, it fails the handshake. Afterwards, a denied permission is passed to the
        subscriptions and requests of its subject; any other error may explain a later disconnect.
        """
        if not self._subscriptions.is_open:
            self._handshake.refused(text)
            return
        error, denied = server_error(text, self._handshake.secrets), read_denied(text)
        self._lines.note_error(text)
        self._notify(ServerReported(TwinstreamError.__str__(error)))
        if denied is None:
            if not isinstance(error, PermissionDenied):
                self._state.note_server_error(error)
        else:
            boxes = self._subscriptions.deny(denied, error)
            self.replies.deny(denied, boxes, error)

    def _ended(self, error: Exception | None) -> None:
        was_connected = self.is_connected
        # After an interrupt, repeat the work, because no other code starts the reconnect.
        with OnFailure(partial(self._note_end, error, was_connected)):
            self._state.disconnected()
            self._note_end(error, was_connected)

    def _note_end(self, error: Exception | None, was_connected: bool) -> None:
        """Record that the socket ended: fail the open requests, report it, start the reconnect."""
        state = self._state
        self._subscriptions.pause()
        state.note_end(error)
        self._handshake.broken(state.end)
        if not was_connected:
            # The handshake was not finished, so no requests were sent.
            return
        lost = state.lost_error("the answer")
        if HOOKS:
            reached("session: before fail", self)
        self.replies.fail(lost)
        if self._link.is_inherited:
            # This is a forked child: its parent reports the loss and reconnects.
            return
        try:
            is_own = isinstance(state.end, Interrupted)
            self._notify(Disconnected(str(self.address), str(state.end), is_own))
            self._subscriptions.wake()
        finally:
            # Set this signal last, because it starts the reconnect. After that, this call must not
            # change the state.
            self._upkeep.connection_lost.set()

    # ---- the transport of the JetStream layer

    async def ready(self, deadline: Deadline) -> None:
        """Wait until the client is connected.

        Raises `ConnectionClosed` when it is closed, and `RequestTimeout` at the deadline.
        """
        if self.is_connected and self._link.is_at_end():
            await self._link.noticed()
        while not self.is_connected:
            # Read the signal before the state: every later change sets this signal.
            change = self._state.change
            if HOOKS:
                reached("session: before ready wait", change)
            if self.is_closed:
                raise self.closed_error()
            if not self.is_connected and not await self._link.wait(change, deadline):
                raise self._state.late_error()

    def write(
        self, subject: bytes, reply: bytes, headers: bytes, payload: bytes, now: bool = False
    ) -> bool:
        """Publish a message without waiting, if that is possible; see `Channel.write`."""
        link, size = self._link, len(payload)
        if not self._state.is_connected or (link.is_full and not now):
            return False
        line = len(subject) + len(reply)
        if size + len(headers) > self._server.info.max_payload or (
            line > self._lines.longest and not self._lines.admit(line)
        ):
            return False
        if size > LONG:
            return link.writelines(long_publish_command(subject, reply, headers, payload))
        if headers or not reply:
            return link.write(publish_command(subject, reply, headers, payload), now)
        # The most frequent case: `publish_command`, inlined.
        parts = (b"PUB ", subject, b" ", reply, line_end(size), payload, b"\r\n")
        return link.write(b"".join(parts), now)

    def write_command(self, command: bytes) -> bool:
        """Send a short, complete command without waiting; see `Channel.write_command`."""
        link, lines, size = self._link, self._lines, len(command)
        if size > lines.longest and not lines.admit(size):
            return False
        return self._state.is_connected and not link.is_full and link.write(command)

    async def send(
        self, subject: bytes, reply: bytes, headers: bytes, payload: bytes, now: bool = False
    ) -> None:
        """Publish a message, after waiting if necessary; see `Channel.send`."""
        link, size = self._link, len(headers) + len(payload)
        # A full buffer takes the message, which keeps the order; the caller waits afterwards.
        while not self.write(subject, reply, headers, payload, now or link.is_full):
            link.check_owner()
            await self.ready(Deadline.after(self.request_timeout))
            # The limits are those of the current server, which disconnects after a larger message.
            check_size(subject, size, self.server_info.max_payload)
            self._lines.check(subject, reply)
        if link.is_full and not now:
            await link.drain(NEVER)

    async def open_mailbox(
        self, subject: bytes, queue: bytes = b"", sink: Callable[[Box], Sink] | None = None
    ) -> Box:
        """Subscribe, and return the mailbox; see `Channel.open_mailbox`."""
        if self.is_closed:
            raise self.closed_error()
        self._link.check_owner()
        box = self._subscriptions.open(subject, queue, sink)
        if HOOKS:
            reached("session: mailbox opened", box)
        return box

    async def close_mailbox(self, *boxes: Box, settle: bool = False) -> None:
        """Unsubscribe the mailboxes; see `Channel.close_mailbox`.

        Does nothing in a forked child, which may garbage-collect iterators of its parent.
        """
        if self._link.is_inherited:
            return
        closed = [box for box in boxes if self._subscriptions.remove(box)]
        try:
            for box in closed:
                self._subscriptions.unsubscribe(box)
            if closed and settle and self.is_connected:
                await self.flush(Deadline.after(_GOODBYE))
        except (RequestTimeout, ConnectionLost, ConnectionClosed):
            # Messages may still be in flight. The server redelivers them after the ack_wait of
            # their consumer.
            pass
        finally:
            for box in closed:
                self._subscriptions.forget(box)

    def part(self, subject: bytes) -> None:
        """Publish an empty message soon; see `Channel.part`."""
        self._subscriptions.part(subject)

    def hold_back(self, bulk: HeldBack) -> None:
        """Let `bulk` take the bytes of its subscription unparsed; see `Channel.hold_back`."""
        self._subscriptions.parser.hold_back(bulk)

    def cut_acks(self, cutter: ByteTaker) -> None:
        """Let `cutter` take acknowledgements unparsed; see `Channel.cut_acks`."""
        self._subscriptions.cut_acks(cutter)

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
        raise self._state.lost_error("the PONG")

    def _is_link(self, epoch: int) -> bool:
        return self.is_connected and self.epoch == epoch


def _report_unverified(address: ServerAddress) -> None:
    from twinstream.core.log.events import ServerUnverified

    _LOG(ServerUnverified(str(address)))
