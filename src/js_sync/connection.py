# Generated from src/js_async/connection.py by codegen/twin.py. Edit that file instead.
"""The connection to a NATS server, as programs use it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final, Self
from weakref import ref

from attrs import frozen

from twinstream.core.connect.event_dispatcher import Announcer
from twinstream.core.connect.auth import Credentials
from twinstream.core.deadline import Deadline, Seconds, monotonic
from twinstream.errors import BadArgument, ConnectionClosed
from twinstream.core.connect.connection_events import Closed, ConnectionEvent, Disconnected
from twinstream.core.connect.handshake import ServerInfo
from twinstream.core.wire.headers import HeaderValues, encode_headers
from twinstream.core.base.nats_py_names import hint_keywords
from twinstream.core.connect.options import ConnectOptions
from twinstream.core.publish.request import check_data
from twinstream.core.log.reporter import GuardedReporter
from twinstream.core.connect.server_pool import ReconnectPolicy
from twinstream.core.wire.subjects import check_filter, check_queue, check_subject
from twinstream.core.connect.tls import TlsOptions
from twinstream.core.wire.tokens import INBOX
from twinstream.core.base.check_callbacks import check_told
from js_sync.runtime.concurrency import BlockHint
from js_sync.runtime.opening import opening
from js_sync.client.owned import Owned
from js_sync.client.session import Session
from js_sync.client.connection_events import ConnectionEvents
from js_sync.client.core_message import CoreMessage
from js_sync.jetstream import JetStream
from js_sync.client.subscription import DEFAULT_PENDING, Subscription

if TYPE_CHECKING:
    from twinstream.core.api.instrumentation import Call

__all__ = ["Connection", "Stats", "connect", "connect_with"]

_RECONNECT: Final = ReconnectPolicy()
_FIRST_SWEEP: Final = 64


@hint_keywords
def connect(
    servers: str | Iterable[str] = "nats://127.0.0.1:4222",
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
    busy_poll: Seconds = 0.0,
    reconnect: ReconnectPolicy | None = _RECONNECT,
    shuffle: bool = True,
    inbox_prefix: str = INBOX,
    on_event: Callable[[ConnectionEvent], None] | None = None,
    on_call: Callable[[Call], None] | None = None,
) -> Connection:
    """Connect to one of the servers.

    `servers` is a URL (`nats://[user:password@]host:port`, `tls://…`), several separated by
    commas, or a list; they are tried in random order unless `shuffle` is off, and others of the
    cluster are learnt. `name` is shown in the server's monitoring and in advisories.

    The user is given by `user` and `password`, a `token`, an `nkey_seed`, a `credentials_file`
    (JWT and seed, as nsc writes it), or `credentials`, a function asked at each attempt. What it
    raises reaches the caller; while a broken link is mended it is one more reason to try again.
    `tls` says how to secure the link; with a server that requires TLS it is used in any case.

    Durations are seconds: `connect_timeout` for one attempt at one server, `request_timeout` the
    default of every request, `ping_interval` between PINGs (a peer that answers none is given up
    after two intervals). `busy_poll` (at most 0.1) is how long each wait polls the socket before it
    sleeps. An answer that comes within that time is had sooner, by what it takes to wake a thread,
    while a processor is kept busy; 0.0003 suits a server close by. In `js_sync`, without TLS, the
    polling thread also holds the interpreter, so that threads that compute cannot delay each
    answer by 5 ms and more; use 0.001 for that.

    With `reconnect=None` the connection closes when the link breaks. `inbox_prefix` replaces
    `_INBOX` where permissions ask for it. `on_event` is told what happens to the link; it must be
    quick, and must not use the connection; what it raises is logged, with its traceback, by the
    logger `twinstream.connection`. The same events are logged, see `docs/logging.md`.

    `on_call` is told, with a `Call`, of each request to JetStream's API and each message that a
    stream acknowledges, when it is over; otherwise it is as `on_event`. Whoever made the call also
    tells of it, before going on; of messages of `publish_many` and `publisher` whoever reads their
    answers does. It is not told of pulls, of acknowledging messages, of requests that many messages
    answer, nor of messages that are not acknowledged one by one: those of `fast_ingest`, and in the
    middle of atomic batches.

    Raises `BadArgument`, `ConnectionFailed` or `AuthenticationFailed`.
    """
    given = Credentials(user=user, password=password, token=token, nkey_seed=nkey_seed)
    if credentials is not None and not given.is_empty:
        raise BadArgument("give credentials, or a user, token or nkey_seed, not both")
    options = ConnectOptions(
        servers=servers,
        name=name,
        credentials=credentials if credentials is not None else given,
        credentials_file=credentials_file,
        tls=tls,
        connect_timeout=connect_timeout,
        request_timeout=request_timeout,
        ping_interval=ping_interval,
        busy_poll=busy_poll,
        reconnect=reconnect,
        shuffle=shuffle,
        inbox_prefix=inbox_prefix,
    )
    return connect_with(options, on_event=on_event, on_call=on_call)


def connect_with(
    options: ConnectOptions,
    *,
    on_event: Callable[[ConnectionEvent], None] | None = None,
    on_call: Callable[[Call], None] | None = None,
) -> Connection:
    """Connect with options that were made before, in another process perhaps."""
    return opening(_connect(options, on_event, on_call))


def _connect(
    options: ConnectOptions,
    on_event: Callable[[ConnectionEvent], None] | None,
    on_call: Callable[[Call], None] | None,
) -> Connection:
    connection = Connection(options, on_event, on_call)
    connection._start()
    return connection


@frozen
class Stats:
    """Counts of a connection at one moment."""

    links: int
    """How often a link was made."""
    subscriptions: int
    """Subscriptions now, inboxes included."""
    open_requests: int
    """Requests that wait for their answer now."""
    strays: int
    """Messages on this link that came for subscriptions that had just ended."""


class Connection(Owned, BlockHint):
    """A connection that mends itself. Make one with `connect`.

    Safe to share between the tasks of one event loop, or between threads. Not usable after a fork.
    """

    def __init__(
        self,
        options: ConnectOptions,
        on_event: Callable[[ConnectionEvent], None] | None = None,
        on_call: Callable[[Call], None] | None = None,
    ) -> None:
        super().__init__()
        self._options: Final = options
        check_told(on_call, "on_call")
        self._report: Final[GuardedReporter[ConnectionEvent]] = GuardedReporter(
            on_event, "on_event"
        )
        self._broke_at = 0.0
        # Weakly: one that nobody has any more is told nothing, and not kept.
        self._listeners: list[ref[ConnectionEvents]] = []
        self._last_event: Closed | None = None
        self._tell: Final = Announcer(self._pass_on).tell
        self._session: Final = Session(options, self._tell, on_call)
        self._subscriptions: dict[int, Subscription] = {}
        self._sweep_at = _FIRST_SWEEP

    def _start(self) -> None:
        """Make the first link; `connect` does it, and it is done once."""
        if self.is_closed:
            raise ConnectionClosed("a closed connection stays closed: make another with `connect`")
        if self.epoch:
            raise BadArgument("the connection was opened already; it mends its link by itself")
        self._session.start()

    def _pass_on(self, event: ConnectionEvent) -> None:
        if isinstance(event, Closed):
            self._last_event = event
        for each in list(self._listeners):
            listener = each()
            if listener is not None:
                listener._tell(event)
        if isinstance(event, Disconnected):
            self._broke_at = monotonic()
        self._report(event, outage=monotonic() - self._broke_at)

    # ---- state

    @property
    def is_connected(self) -> bool:
        """Tell whether the link is up now."""
        return self._session.is_connected and not self._session.is_at_end()

    @property
    def is_closed(self) -> bool:
        """Tell whether the connection is closed for good."""
        return self._session.is_closed

    @property
    def epoch(self) -> int:
        """How many links there were; what was asked under an earlier one is void."""
        return self._session.epoch

    @property
    def server_info(self) -> ServerInfo:
        """What the server said of itself when the link was made."""
        return self._session.server_info

    @property
    def stats(self) -> Stats:
        """Counts of this moment."""
        session = self._session
        return Stats(
            session.epoch, session.subscriptions, session.replies.open_requests, session.strays
        )

    def events(self) -> ConnectionEvents:
        """Return an iteration over what happens to the link from now on, until it is closed."""
        listener = ConnectionEvents(self._session)
        self._listeners.append(ref(listener, self._listeners.remove))
        if self._last_event is not None:
            # It is told to those who were listed before.
            listener._tell(self._last_event)
        return listener

    def __repr__(self) -> str:
        state = "closed" if self.is_closed else "connected" if self.is_connected else "reconnecting"
        return f"<Connection to {self._session.address}: {state}>"

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("a connection cannot be pickled: pass its options and connect over there")

    # ---- life

    def close(self) -> None:
        """Send what was written, close the link and wake everybody who waits.

        Waits up to one second for the server to confirm that it has what was sent, such as
        acknowledgements. Closing again does nothing.
        """
        self._session.close()

    def drain(self, timeout: Seconds = 30.0) -> None:
        """Stop listening, let the owners of subscriptions take what arrived, then close.

        Gives up on owners that are slower than `timeout` seconds, and closes all the same.
        """
        deadline = Deadline.after(timeout)
        listed, self._subscriptions = self._subscriptions, {}
        subscriptions = list(listed.values())
        boxes = [box for each in subscriptions if (box := each._box) is not None]
        try:
            # All at once: one by one, each would wait for the server.
            self._session.close_mailbox(*boxes, settle=True)
        finally:
            for subscription in subscriptions:
                subscription._end()
        for subscription in subscriptions:
            subscription._wait_emptied(deadline)
        self._session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if not self._is_parents:
            self.close()

    # ---- JetStream

    def jetstream(
        self,
        *,
        domain: str | None = None,
        prefix: str | None = None,
        timeout: Seconds | None = None,
        required_api_level: int | None = None,
    ) -> JetStream:
        """Return the JetStream API over this connection.

        `domain` or `prefix` replace `$JS.API`; `timeout` is the default of its calls in seconds.

        With `required_api_level` each request to the API demands that the server has at least this
        level (ADR-44, server 2.12): 1 is 2.11, 2 is 2.12, 3 is 2.12.5, 4 is 2.14, 5 is 2.15. A
        server with a lower one does nothing and answers `JetStreamError` 10185; servers before
        2.12, which ignore the demand, raise `Unsupported`. Publishing, pulls and direct gets carry
        no such demand.
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
        check_data(subject, payload)
        encoded_reply = check_subject(reply) if reply is not None else b""
        encoded = encode_headers(headers)
        self._session.send(check_subject(subject), encoded_reply, encoded, payload)

    def request(
        self,
        subject: str,
        payload: bytes = b"",
        *,
        timeout: Seconds | None = None,
        headers: HeaderValues | None = None,
    ) -> CoreMessage:
        """Send a message and return the first answer, within `timeout` seconds.

        Raises `NoResponders`, `RequestTimeout`, `PermissionDenied`, `ConnectionLost`,
        `ConnectionClosed` or `BadArgument`.
        """
        check_subject(subject)
        check_data(subject, payload)
        deadline = self._deadline(timeout)
        frame = self._session.ask(subject, encode_headers(headers), payload, deadline)
        return CoreMessage(frame)

    @hint_keywords
    def subscribe(
        self, subject: str, *, queue: str = "", max_pending: int = DEFAULT_PENDING
    ) -> Subscription:
        """Listen to a subject, wildcards allowed; members of a `queue` group share messages.

        At most `max_pending` messages wait for their owner; what comes then is dropped, counted
        and told as a `MessagesDropped` event.
        """
        subscription = Subscription(
            self._session, check_filter(subject), check_queue(queue), max_pending, self._tell
        )
        return opening(self._open(subscription))

    def _open(self, subscription: Subscription) -> Subscription:
        subscription._open()
        self._subscriptions[id(subscription)] = subscription
        if len(self._subscriptions) >= self._sweep_at:
            self._sweep()
        return subscription

    def _sweep(self) -> None:
        """Forget the subscriptions that have ended.

        Whenever there are twice as many as were left the last time: a look at all of them for each
        new one would take minutes where there are 100,000.
        """
        # One by one: others subscribe meanwhile.
        for key, each in list(self._subscriptions.items()):
            if each.is_closed:
                self._subscriptions.pop(key, None)
        self._sweep_at = max(_FIRST_SWEEP, 2 * len(self._subscriptions))

    def flush(self, timeout: Seconds | None = None) -> None:
        """Return when the server has handled everything sent so far.

        Raises `RequestTimeout`, `ConnectionLost` or `ConnectionClosed`.
        """
        self._session.flush(self._deadline(timeout))
