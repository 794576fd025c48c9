"""The connection to a NATS server, which is the entry point of the API."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Final, Never, Self
from weakref import ref

from attrs import frozen

from js_async.client.closable import Closable
from js_async.client.observing import observers_of
from js_async.client.session import Session
from js_async.jetstream import JetStream
from js_async.runtime.concurrency import BlockHint, Work
from js_async.runtime.opening import Opening, opening, opens
from twinstream.core.arguments.check_callbacks import check_callback
from twinstream.core.arguments.nats_py_names import hint_attributes, unknown_keyword
from twinstream.core.client.auth import Credentials
from twinstream.core.client.connection_events import Closed, ConnectionEvent
from twinstream.core.client.event_dispatcher import EventDispatcher
from twinstream.core.client.handshake import ServerInfo
from twinstream.core.client.options import ConnectOptions
from twinstream.core.client.server_pool import ReconnectPolicy
from twinstream.core.client.tls import TlsOptions
from twinstream.core.deadline import Deadline, Seconds
from twinstream.core.log.reporter import GuardedReporter
from twinstream.core.publish.request import check_data
from twinstream.core.wire.headers import encode_headers
from twinstream.core.wire.subjects import check_filter, check_queue, check_subject
from twinstream.core.wire.tokens import INBOX
from twinstream.errors import BadArgument, ConnectionClosed
from twinstream.records.headers import HeaderValues

if TYPE_CHECKING:
    from js_async.client.connection_events import ConnectionEvents
    from js_async.client.core_message import CoreMessage
    from js_async.client.subscription import Subscription, SubscriptionBuffer
    from twinstream.core.api.instrumentation import Call
    from twinstream.core.observe.observer import Observer
    from twinstream.core.observe.observers import Observers

__all__ = ["Connection", "ConnectionStats", "connect"]

_RECONNECT: Final = ReconnectPolicy()
_FIRST_SWEEP: Final = 64
_LOCAL: Final = "nats://127.0.0.1:4222"


@opens
def connect(
    servers: str | Iterable[str] | ConnectOptions = _LOCAL,
    *,
    name: str | None = None,
    user: str | None = None,
    password: str | None = None,
    token: str | None = None,
    nkey_seed: str | None = None,
    credentials: Callable[[], Credentials] | None = None,
    credentials_file: str | None = None,
    tls: TlsOptions | None = None,
    connect_timeout: Seconds = 5.0,
    request_timeout: Seconds = 5.0,
    ping_interval: Seconds = 30.0,
    reconnect: ReconnectPolicy | None = _RECONNECT,
    shuffle: bool = True,
    inbox_prefix: str = INBOX,
    on_event: Callable[[ConnectionEvent], None] | None = None,
    on_call: Callable[[Call], None] | None = None,
    observers: Iterable[Observer] = (),
    **_unknown: Never,
) -> Opening[Connection]:
    """Connect to one of the servers.

    Args:
        servers: A URL (`nats://[user:password@]host:port`, `tls://…`), several URLs separated by
            commas, or a list. The client learns the other servers of the cluster from them. A
            `ConnectOptions`, for example one from another process, replaces this and all other
            arguments except `on_event`, `on_call` and `observers`.
        name: Name of this client in the server's monitoring and in advisories.
        user: User name. Needs `password`.
        password: Password of `user`.
        token: Authentication token.
        nkey_seed: Seed of an NKey.
        credentials: Function that returns the credentials. It is called at each connect attempt. If
            it raises an error at the first connect, `connect` raises this error. Later, the error
            counts as a failed attempt to reconnect.
        credentials_file: File with a JWT and a seed, in the format of the tool `nsc`.
        tls: TLS settings. If the server requires TLS, the client uses TLS even without them.
        connect_timeout: Seconds for one attempt at one server.
        request_timeout: Default timeout of every request in seconds.
        ping_interval: Seconds between PINGs. If the server does not answer a PING within this time,
            the connection is considered lost.
        reconnect: Reconnect policy. With None, the connection closes when it is lost.
        shuffle: Try the servers in random order.
        inbox_prefix: Prefix of reply subjects, for users who may not subscribe to `_INBOX`.
        on_event: Callback for connection events. It must return quickly and must not use the
            connection. The logger `twinstream.connection` logs the events, and the errors that the
            callback raises with their traceback; see `docs/logging.md`.
        on_call: Callback that receives a `Call` for each finished JetStream API request and for
            each published message that has an outcome. It must return quickly and must not use the
            connection. It runs before the call returns. For messages of `publish_many` and
            `publisher`, it runs when their outcome is known. It gets no report of pulls, acks,
            requests with many responses, and messages of `FastIngest`. Of an atomic batch, only
            the first message and the commit are reported.
        observers: Objects that see what the connection does: calls, messages, handlers,
            acknowledgements and more; see `docs/observing.md`. Not part of a `ConnectOptions`.

    Raises:
        BadArgument: An argument is invalid.
        ConnectionFailed: No server could be reached.
        AuthenticationFailed: The server refused the credentials.
    """
    if _unknown:
        raise unknown_keyword("connect", _unknown)
    given = Credentials(user=user, password=password, token=token, nkey_seed=nkey_seed)
    if credentials is not None and not given.is_empty:
        raise BadArgument("give credentials, or a user, token or nkey_seed, not both")
    options = ConnectOptions(
        servers=_LOCAL if isinstance(servers, ConnectOptions) else servers,
        name=name,
        credentials=credentials if credentials is not None else given,
        credentials_file=credentials_file,
        tls=tls,
        connect_timeout=connect_timeout,
        request_timeout=request_timeout,
        ping_interval=ping_interval,
        reconnect=reconnect,
        shuffle=shuffle,
        inbox_prefix=inbox_prefix,
    )
    if isinstance(servers, ConnectOptions):
        beside = options.changes(ConnectOptions(servers=_LOCAL))
        if beside:
            raise BadArgument(
                f"pass {', '.join(beside)} within the ConnectOptions, not beside them"
            )
        options = servers
    return opening(_connect(options, on_event, on_call, observers))


async def _connect(
    options: ConnectOptions,
    on_event: Callable[[ConnectionEvent], None] | None,
    on_call: Callable[[Call], None] | None,
    observers: Iterable[Observer],
) -> Connection:
    connection = Connection(options, on_event, on_call, observers)
    await connection._start()
    return connection


@frozen
class ConnectionStats:
    """Counters of a connection at one moment."""

    connects: int
    """The number of times that the connection was established."""
    subscriptions: int
    """The number of current subscriptions, including inboxes."""
    open_requests: int
    """The number of requests that wait for their response."""
    late_messages: int
    """The number of messages for ended subscriptions since the last connect or reconnect."""


@hint_attributes
class Connection(Closable, BlockHint):
    """A connection that reconnects by itself. Create one with `connect`.

    The tasks of one event loop may share a connection, and so may threads in `js_sync`. A forked
    process cannot use the connection of its parent.
    """

    def __init__(
        self,
        options: ConnectOptions,
        on_event: Callable[[ConnectionEvent], None] | None = None,
        on_call: Callable[[Call], None] | None = None,
        observers: Iterable[Observer] = (),
    ) -> None:
        super().__init__()
        self._options: Final = options
        check_callback(on_call, "on_call")
        self._report: Final[GuardedReporter[ConnectionEvent]] = GuardedReporter(
            on_event, "on_event"
        )
        # Weak references, because this list must not keep unused iterators alive.
        self._listeners: list[ref[ConnectionEvents]] = []
        self._last_event: Closed | None = None
        self._notify: Final = EventDispatcher(self._pass_on).tell
        self._session: Final = Session(options, self._notify)
        self._observe(self._observed_by(on_call, observers))
        # Weak references: a subscription that the program has dropped ends.
        self._subscriptions: dict[int, ref[SubscriptionBuffer]] = {}
        self._sweep_at = _FIRST_SWEEP
        self._is_draining = False

    async def _start(self) -> None:
        """Connect for the first time. `connect` calls this once."""
        if self.is_closed:
            raise ConnectionClosed("a closed connection stays closed: make another with `connect`")
        if self._session.epoch:
            raise BadArgument("the connection was opened already; it reconnects by itself")
        await self._session.start()

    def _observed_by(
        self, on_call: Callable[[Call], None] | None, observers: Iterable[Observer]
    ) -> Observers | None:
        # The observers must not keep the connection alive.
        session = ref(self._session)

        def where() -> tuple[str, int] | None:
            found = session()
            return None if found is None else (found.address.host, found.address.port)

        found = observers_of(on_call, observers, where, self._options.name)
        if found is not None:
            found.measure(self._session)
        return found

    def _observe(self, observers: Observers | None) -> None:
        session = self._session
        session.call_observers = observers
        session.observers = None if observers is None or observers.sees_calls_only else observers

    def observe(self, observer: Observer) -> None:
        """Let an observer see what begins on this connection from now on.

        Iterators, publishers and other objects that exist already may not be observed.

        Args:
            observer: The observer, see `docs/observing.md`.

        Raises:
            BadArgument: It is no `Observer`.
        """
        found = self._session.call_observers
        if found is None:
            found = self._observed_by(None, [observer])
        else:
            found.add(observer)
        self._observe(found)

    def _pass_on(self, event: ConnectionEvent) -> None:
        if isinstance(event, Closed):
            self._last_event = event
        for each in list(self._listeners):
            listener = each()
            if listener is not None:
                listener._notify(event)
        self._report(event)
        if self._session.observers is not None:
            self._session.observers.note(event)

    # ---- state

    @property
    def is_connected(self) -> bool:
        """Whether the connection is established now."""
        return self._session.is_connected and not self._session.is_at_end()

    @property
    def is_closed(self) -> bool:
        """Whether the connection is closed and will not reconnect."""
        return self._session.is_closed

    @property
    def server_info(self) -> ServerInfo:
        """The server's latest INFO, for example its name and version."""
        return self._session.server_info

    @property
    def stats(self) -> ConnectionStats:
        """The current counters of the connection."""
        session = self._session
        return ConnectionStats(
            session.epoch, session.subscriptions, session.replies.open_requests, session.strays
        )

    def events(self) -> ConnectionEvents:
        """Return an iterator over the connection events from now on. It ends after `Closed`."""
        from js_async.client.connection_events import ConnectionEvents

        listener = ConnectionEvents(self._session)
        self._listeners.append(ref(listener, self._listeners.remove))
        if self._last_event is not None:
            # The connection is already closed, and only earlier iterators got `Closed`.
            listener._notify(self._last_event)
        return listener

    def __repr__(self) -> str:
        state = "closed" if self.is_closed else "connected" if self.is_connected else "reconnecting"
        return f"<Connection to {self._session.address}: {state}>"

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("a connection cannot be pickled: pass its options and connect again")

    # ---- lifecycle

    async def close(self) -> None:
        """Flush buffered data, disconnect and wake up all waiting calls.

        Waits up to one second until the server has received everything, for example acks. A second
        call does nothing, and neither does a call in a forked child, whose parent goes on.
        """
        if not self._is_parents:
            await self._session.close()

    async def drain(self, *, timeout: Seconds = 30.0) -> None:
        """Receive no further messages, let those that have arrived be handled, then close.

        The call ends core subscriptions, iterations over the messages of a consumer, consumptions
        and workers, and waits until all buffered messages were taken. It also waits for running
        handlers; a worker returns the messages that it has not begun to handle. Ordered reads and
        watches end with the connection. If a handler calls `drain`, the connection is closed
        without waiting for the handlers of its work: their messages come again. A second call
        during the first returns at once. In a forked child the call does nothing.

        Args:
            timeout: The longest wait in seconds. Then the connection is closed in any case.

        Raises:
            RequestTimeout: A handler is still running after `timeout` seconds. The connection is
                closed.
            Exception: An error that ended background work, if no call has raised it before. The
                connection is closed.
        """
        if self._is_parents:
            return
        if self._session.is_closed or self._is_draining:
            return
        self._is_draining = True
        deadline = Deadline.after(timeout)
        errors: list[Exception] = []
        received = self._session.drainables.in_use()
        try:
            for end, _ in received:
                # Each end may wait for the server. At a server that is silent, closing is enough.
                if not deadline.expired():
                    await _attempt(end, errors)
            await self._drain_subscriptions(deadline)
            for _, ended in received:
                await _attempt(partial(ended, deadline), errors)
        finally:
            await self._session.close()
        if errors:
            first, *others = errors
            for each in others:
                first.add_note(f"also: {each}")
            raise first

    async def _drain_subscriptions(self, deadline: Deadline) -> None:
        listed, self._subscriptions = self._subscriptions, {}
        # Another thread may still add a subscription.
        buffers = [each for weak in list(listed.values()) if (each := weak()) is not None]
        boxes = [box for each in buffers if (box := each.box) is not None]
        try:
            # Close all mailboxes at once. Closing each by itself would take a round trip for each.
            await self._session.close_mailbox(*boxes, settle=True)
        finally:
            for buffer in buffers:
                buffer.end()
        for buffer in buffers:
            await buffer.wait_emptied(deadline)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        if not self._is_parents:
            await self.close()

    # ---- JetStream

    def jetstream(
        self,
        *,
        domain: str | None = None,
        prefix: str | None = None,
        timeout: Seconds | None = None,
        required_api_level: int | None = None,
    ) -> JetStream:
        """Return the JetStream API of this connection.

        Args:
            domain: JetStream domain. It changes the subject prefix to `$JS.DOMAIN.API`.
            prefix: Subject prefix instead of `$JS.API`.
            timeout: Default timeout of API calls in seconds. By default, it is the connection's
                `request_timeout`.
            required_api_level: Minimum API level that each API request requires of the server
                (ADR-44, server 2.12): 1 is 2.11, 2 is 2.12, 3 is 2.12.5, 4 is 2.14, 5 is 2.15. A
                server with a lower level refuses the request with `JetStreamError` 10185. Servers
                before 2.12 ignore the requirement, so API calls raise `Unsupported` there. The
                level is not checked for publishing, pulls and direct gets.
        """
        return JetStream(
            self._session,
            domain=domain,
            prefix=prefix,
            timeout=timeout,
            required_api_level=required_api_level,
        )

    # ---- core NATS

    def _deadline(self, timeout: Seconds | None) -> Deadline:
        return Deadline.after(self._options.request_timeout if timeout is None else timeout)

    async def publish(
        self,
        subject: str,
        data: bytes = b"",
        *,
        reply: str | None = None,
        headers: HeaderValues | None = None,
        timeout: Seconds | None = None,
    ) -> None:
        """Send a message to the current subscribers, without confirmation.

        Use `JetStream.publish` to store a message in a stream, with confirmation.

        Args:
            subject: Subject of the message.
            data: Payload of the message.
            reply: Subject for responses.
            headers: Headers of the message.
            timeout: Seconds to wait for the connection; the default is its `request_timeout`.

        Raises:
            BadArgument: The subject or a header is invalid, or the message is larger than the
                server accepts.
            RequestTimeout: The client was not connected in time.
            ConnectionClosed: The connection is closed.
        """
        check_data(subject, data)
        encoded_reply = check_subject(reply) if reply is not None else b""
        encoded = encode_headers(headers)
        target = check_subject(subject)
        observers = self._session.observers
        if observers is None:
            if not self._session.is_connected:
                await self._session.ready(self._deadline(timeout))
            await self._session.send(target, encoded_reply, encoded, data)
            return
        from twinstream.core.observe.publish_context import begin_core

        with begin_core(observers, "publish", subject, data, headers) as operation:
            await self._session.ready(self._deadline(timeout))
            encoded = encode_headers(operation.headers)
            await self._session.send(target, encoded_reply, encoded, data)

    async def request(
        self,
        subject: str,
        data: bytes = b"",
        *,
        headers: HeaderValues | None = None,
        timeout: Seconds | None = None,
    ) -> CoreMessage:
        """Send a message and return the first response.

        Args:
            subject: Subject of the request.
            data: Payload of the request.
            headers: Headers of the request.
            timeout: Seconds to wait; the default is the connection's `request_timeout`.

        Raises:
            NoResponders: No subscriber listens to the subject.
            RequestTimeout: No response arrived in time.
            PermissionDenied: The user may not publish to the subject.
            ConnectionLost: The connection broke before the response arrived.
            ConnectionClosed: The connection is closed.
            BadArgument: An argument is invalid.
        """
        from js_async.client.core_message import CoreMessage

        check_subject(subject)
        check_data(subject, data)
        deadline, encoded = self._deadline(timeout), encode_headers(headers)
        observers = self._session.observers
        if observers is None:
            return CoreMessage(await self._session.ask(subject, encoded, data, deadline))
        from twinstream.core.observe.publish_context import begin_core

        with begin_core(observers, "request", subject, data, headers) as operation:
            encoded = encode_headers(operation.headers)
            return CoreMessage(await self._session.ask(subject, encoded, data, deadline))

    @opens
    def subscribe(
        self, subject: str, *, queue: str = "", max_buffered: int = 65_536, **_unknown: Never
    ) -> Opening[Subscription]:
        """Subscribe to a subject.

        Args:
            subject: Subject, with or without wildcards.
            queue: Queue group. The members of a group share the messages.
            max_buffered: Number of messages to buffer. Further messages are dropped, counted and
                reported as a `MessagesDropped` event.
        """
        from js_async.client.subscription import SubscriptionBuffer

        if _unknown:
            raise unknown_keyword("subscribe", _unknown)
        buffer = SubscriptionBuffer(
            self._session, check_filter(subject), check_queue(queue), max_buffered, self._notify
        )
        return opening(self._open(buffer))

    async def _open(self, buffer: SubscriptionBuffer) -> Subscription:
        from js_async.client.subscription import Subscription

        await buffer.open()
        self._subscriptions[id(buffer)] = ref(buffer)
        if len(self._subscriptions) >= self._sweep_at:
            self._sweep()
        return Subscription(buffer)

    def _sweep(self) -> None:
        """Remove the subscriptions that have ended from the table.

        This runs when the table has twice the size that it had after the previous sweep. To check
        the whole table for each new subscription would take minutes with 100,000 subscriptions.
        """
        # Remove them one by one, because other callers may subscribe meanwhile.
        for key, weak in list(self._subscriptions.items()):
            each = weak()
            if each is None or each.is_closed:
                self._subscriptions.pop(key, None)
        self._sweep_at = max(_FIRST_SWEEP, 2 * len(self._subscriptions))

    async def flush(self, *, timeout: Seconds | None = None) -> None:
        """Wait until the server has processed everything that was sent so far.

        Raises `RequestTimeout`, `ConnectionLost` or `ConnectionClosed`.

        Args:
            timeout: Seconds to wait; the default is the connection's `request_timeout`.
        """
        await self._session.flush(self._deadline(timeout))


async def _attempt(step: Work, errors: list[Exception]) -> None:
    """Run a step of an end. Its error does not keep the steps after it from running."""
    try:
        await step()
    except Exception as error:
        errors.append(error)
