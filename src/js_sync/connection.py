# Generated from src/js_async/connection.py by codegen/twin.py. Edit that file instead.
"""The connection to a NATS server: greeting, subscriptions, requests, and mending the link."""

from __future__ import annotations

import secrets
from collections import deque
from collections.abc import Iterable
from random import SystemRandom
from typing import Final, Self

from js_core.deadline import NEVER, Deadline, Seconds, monotonic
from js_core.errors import (
    AuthenticationFailed,
    BadArgument,
    ConnectionClosed,
    ConnectionFailed,
    ConnectionLost,
    ProtocolError,
    RequestTimeout,
    TwinstreamError,
)
from js_core.handshake import ServerInfo, connect_fields, server_error
from js_core.headers import HeaderValues, encode_headers
from js_core.mailbox import Mailbox
from js_core.options import ConnectOptions
from js_core.protocol import (
    PING,
    PONG,
    Frame,
    Info,
    Ok,
    Parser,
    Ping,
    Pong,
    Refusal,
    Sink,
    connect_command,
    publish_command,
    subscribe_command,
    unsubscribe_command,
)
from js_core.servers import ReconnectPolicy, ServerAddress, ServerPool
from js_core.subjects import check_filter, check_queue, check_subject
from js_core.tokens import INBOX, Tokens

from js_sync._io import Link, Opening, Signal, Task, opening, spawn
from js_sync._replies import Replies
from js_sync._transport import Box
from js_sync.core_message import CoreMessage, Subscription
from js_sync.jetstream import JetStream

__all__ = ["Connection", "connect"]

_RANDOM: Final = SystemRandom()
_RECONNECT: Final = ReconnectPolicy()
# Closing must not hang on a peer that is gone (seconds).
_GOODBYE: Final = 1.0


def connect(
    servers: str | Iterable[str] = "nats://127.0.0.1:4222",
    *,
    name: str | None = None,
    user: str | None = None,
    password: str | None = None,
    token: str | None = None,
    connect_timeout: Seconds = 5.0,
    request_timeout: Seconds = 5.0,
    ping_interval: Seconds = 30.0,
    reconnect: ReconnectPolicy | None = _RECONNECT,
    shuffle: bool = True,
    inbox_prefix: str = INBOX,
) -> Opening[Connection]:
    """Connect to one of the servers.

    `servers` is a URL (`nats://[user:password@]host:port`), several separated by commas, or a
    list. Durations are seconds: `connect_timeout` for one attempt at one server,
    `request_timeout` the default of every request, `ping_interval` between PINGs (a peer that
    answers none is given up after two intervals). `reconnect=None` closes when the link breaks.

    Raises `BadArgument`, `ConnectionFailed` or `AuthenticationFailed`.
    """
    options = ConnectOptions(
        servers=servers,
        name=name,
        user=user,
        password=password,
        token=token,
        connect_timeout=connect_timeout,
        request_timeout=request_timeout,
        ping_interval=ping_interval,
        reconnect=reconnect,
        shuffle=shuffle,
        inbox_prefix=inbox_prefix,
    )
    return connect_with(options)


def connect_with(options: ConnectOptions) -> Opening[Connection]:
    """Connect with options that were made before, in another process perhaps."""
    return opening(_connect(options))


def _connect(options: ConnectOptions) -> Connection:
    connection = Connection(options)
    connection.start()
    return connection


class Connection:
    """A connection that mends itself. Make one with `connect`.

    Safe to share between the tasks of one event loop, or between threads. Not usable after a fork.
    """

    def __init__(self, options: ConnectOptions) -> None:
        self._options: Final = options
        shuffle = _RANDOM.shuffle if options.shuffle else None
        self._pool: Final = ServerPool(options.servers, shuffle)
        self._tokens: Final = Tokens(secrets.token_bytes(16), options.inbox_prefix)
        self._link: Final = Link(self._receive, self._ended)
        self._sinks: dict[bytes, Sink] = {}
        self._boxes: dict[bytes, Box] = {}
        self._parser = Parser(self._sinks)
        self._info = ServerInfo({})
        self._address: ServerAddress = options.servers[0]
        self._sids = 0
        self._epoch = 0
        self._connected = False
        self._closed = False
        self._end: BaseException | None = None
        self._refusals: list[str] = []
        self._pongs: deque[Signal] = deque()
        self._beat_pong: Signal | None = None
        self._greeting = Signal()
        self._trouble = Signal()
        self._change = Signal()
        self._keeper: Task | None = None
        self._replies: Final = Replies(self)

    # ---- state

    @property
    def epoch(self) -> int:
        """How many links there were; what was asked under an earlier one is void."""
        return self._epoch

    @property
    def is_connected(self) -> bool:
        """Tell whether the link is up now."""
        return self._connected

    @property
    def is_closed(self) -> bool:
        """Tell whether the connection is closed for good."""
        return self._closed

    @property
    def server_info(self) -> ServerInfo:
        """What the server said of itself when the link was made."""
        return self._info

    @property
    def request_timeout(self) -> float:
        """Seconds that a request waits unless told otherwise."""
        return self._options.request_timeout

    @property
    def tokens(self) -> Tokens:
        """The source of inboxes, request tokens and names."""
        return self._tokens

    def __repr__(self) -> str:
        state = "closed" if self._closed else "connected" if self._connected else "reconnecting"
        return f"<Connection to {self._address}: {state}>"

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("a connection cannot be pickled: pass its options and connect over there")

    # ---- life

    def start(self) -> None:
        """Make the first link."""
        try:
            self._link_up(self._pool.round())
        except BaseException:
            self._link.close()
            raise
        self._keeper = spawn(self._keep, "twinstream-keeper")

    def close(self) -> None:
        """Send what was written, close the link and wake everybody who waits.

        What acknowledgements are on the way is confirmed by the server first, for one second at
        most. Closing again does nothing.
        """
        if self._closed:
            return
        if self._connected:
            try:
                self.flush(_GOODBYE)
            except (RequestTimeout, ConnectionLost):
                # The peer is gone or slow: nothing more can be done for what is on the way.
                pass
        self._finish(None)
        keeper = self._keeper
        if keeper is not None and not keeper.is_current():
            keeper.join(Deadline.after(_GOODBYE))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _finish(self, cause: BaseException | None) -> None:
        self._closed = True
        self._connected = False
        self._end = cause
        self._link.close()
        self._replies.fail(self.closed_error())
        self._wake_all()

    def closed_error(self) -> ConnectionClosed:
        """Return the error for a use after the end; it says why it ended."""
        error = ConnectionClosed(
            f"the connection is closed: {self._end}" if self._end else "the connection is closed"
        )
        error.__cause__ = self._end
        return error

    def _wake_all(self) -> None:
        for box in list(self._boxes.values()):
            box.signal.set()
        while self._pongs:
            self._pongs.popleft().set()
        self._change.set()
        self._trouble.set()

    # ---- making a link

    def _link_up(self, servers: list[ServerAddress]) -> None:
        """Connect to the first server that takes us."""
        met: list[str] = []
        refused = True
        for address in servers:
            try:
                self._greet(address)
            except (OSError, TwinstreamError) as error:
                self._link.shut()
                refused = refused and isinstance(error, AuthenticationFailed)
                met.append(f"{address}: {error or type(error).__name__}")
                continue
            self._pool.prefer(address)
            return
        text = "no server took the connection: " + "; ".join(met)
        raise AuthenticationFailed(text) if refused and met else ConnectionFailed(text)

    def _greet(self, address: ServerAddress) -> None:
        deadline = Deadline.after(self._options.connect_timeout)
        self._parser = Parser(self._sinks)
        self._end = None
        self._refusals.clear()
        self._pongs.clear()
        self._beat_pong = None
        self._greeting = Signal()
        self._info = ServerInfo({})
        self._link.open(address.host, address.port, deadline)
        self._await_greeting(self._greeting, deadline, "INFO")
        if self._info.tls_required or address.tls:
            raise ConnectionFailed("the server wants TLS, which this release does not speak yet")
        pong = Signal()
        self._pongs.append(pong)
        self._link.write(connect_command(connect_fields(self._options, address)) + PING)
        self._await_greeting(pong, deadline, "PONG")
        self._address = address
        self._pool.discover(self._info.connect_urls, address)
        for box in list(self._boxes.values()):
            self._link.write(subscribe_command(box.subject, box.queue, box.sid))
        self._epoch += 1
        self._connected = True
        self._wake_all()

    def _await_greeting(self, signal: Signal, deadline: Deadline, what: str) -> None:
        came = self._link.wait(signal, deadline)
        if self._refusals:
            raise server_error(self._refusals[-1])
        if self._end is not None or not self._link.is_open:
            raise ConnectionFailed(f"the link broke before {what} came: {self._end or 'closed'}")
        if not came:
            raise ConnectionFailed(f"no {what} within {self._options.connect_timeout:g} s")

    # ---- keeping the link

    def _keep(self) -> None:
        """Beat, and mend the link, until the connection is closed."""
        try:
            while not self._closed:
                beat = Deadline.after(self._options.ping_interval)
                signalled = self._link.wait_behind(self._trouble, beat)
                self._trouble.clear()
                if self._closed:
                    return
                if not self._connected:
                    self._mend()
                elif not signalled:
                    self._beat()
        except Exception as error:
            # Whatever went wrong, nobody is left to mend the link: close, and say why.
            self._finish(error)

    def _beat(self) -> None:
        """Send a PING, or cut the link when the last one has no answer yet."""
        pong = self._beat_pong
        if pong is not None and not pong.is_set():
            interval = self._options.ping_interval
            self._link.abort(ConnectionLost(f"no answer to a PING within {interval:g} s"))
            return
        self._beat_pong = Signal()
        self._pongs.append(self._beat_pong)
        self._link.write(PING)
        self._link.flush()

    def _mend(self) -> None:
        policy = self._options.reconnect
        if policy is None:
            raise ConnectionLost(f"the link broke and reconnecting is off: {self._end}")
        cause = self._end
        self._pool.demote(self._address)
        round_ = 0
        while policy.attempts < 0 or round_ < policy.attempts:
            pause = policy.pause(round_, _RANDOM.random())
            self._link.wait_behind(self._trouble, Deadline.after(pause))
            self._trouble.clear()
            if self._closed:
                return
            try:
                self._link_up(self._pool.round())
            except ConnectionFailed as error:
                cause = error
                round_ += 1
                continue
            return
        raise ConnectionFailed(f"gave up after {round_} rounds; last: {cause}")

    # ---- what arrives

    def _receive(self, data: bytes) -> None:
        touched, events = self._parser.feed(data)
        if touched:
            now = monotonic()
            for sid in touched:
                box = self._boxes.get(sid)
                if box is not None:
                    box.heard_at = now
                    box.signal.set()
        for event in events:
            self._handle(event)

    def _handle(self, event: Info | Ping | Pong | Ok | Refusal) -> None:
        match event:
            case Ping():
                self._link.write(PONG)
                self._link.flush()
            case Pong():
                if self._pongs:
                    self._pongs.popleft().set()
            case Info(values):
                self._info = ServerInfo.read(values)
                if self._connected:
                    self._pool.discover(self._info.connect_urls, self._address)
                self._greeting.set()
            case Refusal(text):
                self._refused(text)
            case Ok():
                pass

    def _refused(self, text: str) -> None:
        self._refusals.append(text)
        if not self._connected:
            self._greeting.set()
            for pong in self._pongs:
                pong.set()

    def _ended(self, error: Exception | None) -> None:
        was_connected, self._connected = self._connected, False
        self._end = error or ConnectionLost("the server closed the connection")
        if isinstance(error, ProtocolError):
            self._parser = Parser(self._sinks)
        self._greeting.set()
        lost = ConnectionLost(f"the link broke before the answer came: {self._end}")
        self._replies.fail(lost)
        if was_connected:
            self._wake_all()
        else:
            for pong in self._pongs:
                pong.set()

    # ---- the transport of the JetStream layer

    def ready(self, deadline: Deadline) -> None:
        """Return when the link is up; raises `ConnectionClosed` or `RequestTimeout`."""
        while not self._connected:
            if self._closed:
                raise self.closed_error()
            self._change.clear()
            if self._connected or self._closed:
                continue
            if not self._link.wait(self._change, deadline):
                raise RequestTimeout(f"not connected in time; last: {self._end}")

    def send(self, subject: bytes, reply: bytes, headers: bytes, payload: bytes) -> None:
        """Publish; every part is checked and encoded already."""
        if len(headers) + len(payload) > self._info.max_payload:
            raise BadArgument(
                f"{subject.decode()}: {len(headers) + len(payload)} bytes with headers,"
                f" the server takes {self._info.max_payload}"
            )
        if not self._connected:
            self.ready(Deadline.after(self._options.request_timeout))
        self._link.write(publish_command(subject, reply, headers, payload))
        self._link.drain(NEVER)

    def ask(self, subject: str, headers: bytes, payload: bytes, deadline: Deadline) -> Frame:
        """Publish with a reply subject and return the one answer."""
        return self._replies.ask(subject, headers, payload, deadline)

    @property
    def replies(self) -> Replies:
        """The connection's requests."""
        return self._replies

    def open_mailbox(self, subject: bytes, queue: bytes = b"", sink: Sink | None = None) -> Box:
        """Subscribe; frames go to the mailbox, or to `sink` as they arrive."""
        if self._closed:
            raise self.closed_error()
        self._sids += 1
        sid = b"%d" % self._sids
        box: Box = Mailbox(sid, subject, queue, Signal(), monotonic())
        self._boxes[sid] = box
        self._sinks[sid] = box.frames.append if sink is None else sink
        # Otherwise the next link subscribes it.
        if self._connected:
            self._link.write(subscribe_command(subject, queue, sid))
        return box

    def close_mailbox(self, box: Box, *, settle: bool = False) -> None:
        """Unsubscribe; frames that are in the mailbox stay there.

        With `settle`, what the server sent before it read the UNSUB is in the mailbox too.
        """
        if self._boxes.pop(box.sid, None) is None:
            return
        try:
            if self._connected:
                self._link.write(unsubscribe_command(box.sid))
                if settle:
                    self.flush(_GOODBYE)
        except (RequestTimeout, ConnectionLost, ConnectionClosed):
            # What is still on the way then comes again after the consumer's ack_wait.
            pass
        finally:
            self._sinks.pop(box.sid, None)
            box.signal.set()

    def wait(self, signal: Signal, deadline: Deadline) -> bool:
        """Send what was written, then sleep until the flag is up or the deadline passes."""
        return self._link.wait(signal, deadline)

    # ---- for the user

    def jetstream(
        self,
        *,
        domain: str | None = None,
        prefix: str | None = None,
        timeout: Seconds | None = None,
    ) -> JetStream:
        """Return the JetStream API over this connection.

        `domain` or `prefix` replace `$JS.API`; `timeout` is the default of its calls in seconds.
        """
        return JetStream(self, domain=domain, prefix=prefix, timeout=timeout)

    def publish(
        self,
        subject: str,
        payload: bytes = b"",
        *,
        reply: str | None = None,
        headers: HeaderValues | None = None,
    ) -> None:
        """Send a message to whoever listens now; nothing confirms it (see `JetStream.publish`).

        Raises `BadArgument` for a bad subject or header and for more than the server takes.
        """
        encoded_reply = check_subject(reply) if reply is not None else b""
        self.send(check_subject(subject), encoded_reply, encode_headers(headers), payload)

    def request(
        self,
        subject: str,
        payload: bytes = b"",
        *,
        timeout: Seconds | None = None,
        headers: HeaderValues | None = None,
    ) -> CoreMessage:
        """Send a message and return the first answer, within `timeout` seconds.

        Raises `NoResponders`, `RequestTimeout`, `ConnectionLost` or `ConnectionClosed`.
        """
        check_subject(subject)
        deadline = Deadline.after(self._options.request_timeout if timeout is None else timeout)
        check_subject(subject)
        frame = self.ask(subject, encode_headers(headers), payload, deadline)
        return CoreMessage(frame)

    def subscribe(self, subject: str, *, queue: str = "") -> Subscription:
        """Listen to a subject, wildcards allowed; members of a `queue` group share messages."""
        box = self.open_mailbox(check_filter(subject), check_queue(queue))
        return Subscription(self, box)

    def flush(self, timeout: Seconds | None = None) -> None:
        """Return when the server has handled everything sent so far.

        Raises `RequestTimeout`, `ConnectionLost` or `ConnectionClosed`.
        """
        deadline = Deadline.after(self._options.request_timeout if timeout is None else timeout)
        self.ready(deadline)
        epoch = self._epoch
        pong = Signal()
        self._pongs.append(pong)
        self._link.write(PING)
        if not self._link.wait(pong, deadline):
            raise RequestTimeout("no PONG in time")
        if self._closed:
            raise self.closed_error()
        if not self._connected or self._epoch != epoch:
            raise ConnectionLost(f"the link broke before the PONG came: {self._end}")
