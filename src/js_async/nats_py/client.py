"""The JetStream API over an existing connection of nats-py.

This module only uses the public API of nats-py: it subscribes with a callback, publishes, and reads
the state of the connection. It does not use the JetStream code of nats-py, so the limitations of
that code do not apply.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from weakref import ref

from js_async.client.closable import Drainables
from js_async.client.observing import observers_of
from js_async.client.requests import PendingRequests
from js_async.client.subscriptions import warn_of_drop
from js_async.client.transport import Box
from js_async.jetstream import JetStream
from js_async.runtime.concurrency import Forks, Signal, here, shielded, sleep, soon, spawn
from twinstream.core.arguments.check_callbacks import check_callback
from twinstream.core.client.handshake import ServerInfo, read_denied
from twinstream.core.client.mailbox import Mailbox
from twinstream.core.deadline import Deadline, Seconds, monotonic, seconds
from twinstream.core.publish.request import check_size
from twinstream.core.wire.control_line import check_line
from twinstream.core.wire.protocol import ByteTaker, Frame, HeldBack, Sink
from twinstream.core.wire.tokens import Tokens
from twinstream.errors import (
    BadArgument,
    ConnectionClosed,
    ConnectionLost,
    PermissionDenied,
    RequestTimeout,
)
from twinstream.records.headers import Headers

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.aio.msg import Msg
    from nats.aio.subscription import Subscription

    from twinstream.core.api.instrumentation import Call
    from twinstream.core.observe.observer import Observer

__all__ = ["NatsPyTransport", "from_nats"]

_STATUS: Final = "Status"
_DESCRIPTION: Final = "Description"
_OF_STREAM: Final = "Nats-Stream"
# Headers that a server appends to each response of a direct get, and to those of a batch, in order.
_APPENDED: Final = (_OF_STREAM, "Nats-Subject", "Nats-Sequence", "Nats-Time-Stamp")
_APPENDED_IN_BATCH: Final = ("Nats-Num-Pending", "Nats-Last-Sequence")
_ACK: Final = b"$JS.ACK."
# Interval at which the state of the connection is checked (seconds). The adapter gets no event when
# the state changes, because the callbacks of nats-py belong to the application.
_LOOK: Final = 0.05
_CONNECTION_BROKE: Final = "the connection of the nats-py client broke before the answer came"


def from_nats(
    client: Client,
    *,
    domain: str | None = None,
    prefix: str | None = None,
    timeout: Seconds = 5.0,
    on_call: Callable[[Call], None] | None = None,
    observers: Iterable[Observer] = (),
    required_api_level: int | None = None,
) -> JetStream:
    """Return the JetStream API over a connected nats-py client.

    The application still owns the client and has to close it. The parser of nats-py reads the
    messages: of several headers with one name it keeps the last, it drops headers that it cannot
    read, and it stops reading at a header block of less than 9 bytes (nats-py 2.16).

    Args:
        client: The connected client.
        domain: JetStream domain; replaces the subject prefix `$JS.API`.
        prefix: Subject prefix in place of `$JS.API`.
        timeout: Default timeout of all calls in seconds.
        on_call: Callback that receives each finished call, as in `connect`.
        observers: Observers, as in `connect`. They get no events of the connection.
        required_api_level: As in `Connection.jetstream`.
    """
    transport = NatsPyTransport(client, timeout, on_call, observers)
    return JetStream(transport, domain=domain, prefix=prefix, required_api_level=required_api_level)


class NatsPyTransport:
    """An adapter that gives a nats-py client the interface of `Transport`."""

    def __init__(
        self,
        client: Client,
        timeout: Seconds = 5.0,
        on_call: Callable[[Call], None] | None = None,
        observers: Iterable[Observer] = (),
    ) -> None:
        # The type is not checked, because nats-py may not be installed, and clients may be wrapped.
        check_callback(on_call, "on_call")
        if not hasattr(client, "new_inbox"):
            raise BadArgument(
                f"client must be what nats.connect() of nats-py returns, got {client!r}"
            )
        if not client.is_connected:
            raise BadArgument("the nats-py client is not connected: await its connect() first")
        self._client: Final = client
        self._forks: Final = Forks.count
        self._timeout: Final = seconds(timeout)
        # Inboxes of this adapter have the client's inbox prefix, which permissions may require.
        inbox = client.new_inbox().rpartition(".")[0]
        self._tokens: Final = Tokens(secrets.token_bytes(16), inbox)
        self._last_error: Exception | None = client.last_error
        self._subscriptions: dict[bytes, Subscription] = {}
        # Weak references: a mailbox that its owner has dropped ends its subscription.
        self._boxes: dict[bytes, ref[Box]] = {}
        self._home: Final = here()
        self._numbers = 0
        self._replies: Final = PendingRequests(self)
        found = observers_of(on_call, observers, self._where, None)
        self.call_observers: Final = found
        self.observers: Final = None if found is None or found.sees_calls_only else found
        self.ask: Final = self._replies.ask
        self._ended: Final = _ended()
        self._refused: Final = _refused()

    def _where(self) -> tuple[str, int] | None:
        url = self._client.connected_url
        return None if url is None else (url.hostname or "", url.port or 4222)

    def _reconnects(self) -> int:
        return int(self._client.stats["reconnects"])

    @property
    def drainables(self) -> Drainables:
        """Nothing: the `drain` of a connection of nats-py ends what nats-py has subscribed."""
        return Drainables()

    @property
    def epoch(self) -> int:
        """Number of connects so far. Requests of an earlier epoch get no response."""
        return 1 + self._reconnects()

    @property
    def is_connected(self) -> bool:
        """Whether the client is connected now."""
        return bool(self._client.is_connected)

    @property
    def is_closed(self) -> bool:
        """Whether the connection is closed permanently."""
        return bool(self._client.is_closed)

    @property
    def server_info(self) -> ServerInfo:
        """The server's version and `max_payload`, as reported at the last connect.

        nats-py does not report the other properties. Headers and JetStream are taken as supported.
        """
        version = self._client.connected_server_version
        return ServerInfo(
            {},
            version=f"{version.major}.{version.minor}.{version.patch}",
            max_payload=self._client.max_payload,
            headers=True,
            jetstream=True,
            # nats-py does not tell whether the server is part of a cluster, so assume that it is.
            cluster="unknown",
        )

    @property
    def request_timeout(self) -> float:
        """Default timeout of a request in seconds."""
        return self._timeout

    @property
    def tokens(self) -> Tokens:
        """The generator of inboxes, request tokens and names."""
        return self._tokens

    @property
    def replies(self) -> PendingRequests:
        """The pending requests of the connection."""
        return self._replies

    def closed_error(self) -> ConnectionClosed:
        """Return the error for a call after the client was closed or while it drains."""
        if not self.is_closed:
            return ConnectionClosed("the nats-py client is draining")
        last = self._client.last_error
        because = f"; its last error: {last}" if last is not None else ""
        return ConnectionClosed(f"the nats-py client is closed{because}")

    async def ready(self, deadline: Deadline) -> None:
        """Wait until the client is connected. Raises `ConnectionClosed` or `RequestTimeout`."""
        while not self._client.is_connected:
            if self._client.is_closed:
                raise self.closed_error()
            if deadline.expired():
                raise RequestTimeout("the nats-py client did not reconnect in time")
            await sleep(min(_LOOK, deadline.remaining()))

    def write(
        self, subject: bytes, reply: bytes, headers: bytes, payload: bytes, now: bool = False
    ) -> bool:
        """Return False, so that the caller uses `send`: nats-py can only publish in a coroutine."""
        return False

    def write_command(self, command: bytes) -> bool:
        """Return False: nats-py can only write in a coroutine, as `send` does."""
        return False

    async def send(
        self, subject: bytes, reply: bytes, headers: bytes, payload: bytes, now: bool = False
    ) -> None:
        """Publish a message, whose parts are already checked and encoded.

        Raises `BadArgument` for a message that only a connection of this package can send, such as
        one with headers that are not UTF-8.
        """
        await self.ready(Deadline.after(self._timeout))
        check_size(subject, len(headers) + len(payload), self._client.max_payload)
        check_line(subject, reply)
        lines = _Lines(Headers.parse(headers).pairs) if headers else None
        try:
            await self._client.publish(subject.decode(), payload, reply.decode(), lines)
        except self._ended as error:
            raise self.closed_error() from error
        except self._refused as error:
            shown = subject.decode(errors="backslashreplace")
            raise BadArgument(f"{shown}: nats-py cannot send the message: {error}") from error

    async def open_mailbox(
        self, subject: bytes, queue: bytes = b"", sink: Callable[[Box], Sink] | None = None
    ) -> Box:
        """Subscribe and return the mailbox. Frames are put into it, or passed to its sink.

        `sink` returns the sink for the new mailbox.
        """
        self._numbers += 1
        sid = b"%d" % self._numbers
        box: Box = Mailbox(sid, subject, queue, Signal(), monotonic())
        take = box.frames.append if sink is None else sink(box)
        callback = _receiver(box, take)
        box.on_drop = self._dropped
        self._boxes[sid] = ref(box)
        try:
            self._subscriptions[sid] = await self._client.subscribe(  # pyright: ignore[reportUnknownMemberType]
                subject.decode(), queue.decode(), cb=callback
            )
        except self._ended as error:
            del self._boxes[sid]
            raise self.closed_error() from error
        return box

    async def close_mailbox(self, *boxes: Box, settle: bool = False) -> None:
        """Unsubscribe. The mailboxes keep their frames.

        With `settle`, messages that the server has already sent are received first. Does nothing in
        a forked child, because the subscriptions belong to the parent.
        """
        if self._forks != Forks.count:
            return
        for box in boxes:
            if settle:
                # `settle` uses a flush of nats-py. If a flush is cancelled, nats-py stops reading
                # and ends the connection.
                await shielded(partial(self._close, box, settle))
            else:
                await self._close(box, settle)

    def _dropped(self, box: Box) -> None:
        """End the subscription of a mailbox whose owner was dropped.

        Called by the garbage collector, in any thread and at any point of the program.
        """
        subscription = self._subscriptions.pop(box.sid, None)
        self._boxes.pop(box.sid, None)
        if subscription is None or self._forks != Forks.count or self._client.is_closed:
            return
        self._later(subscription.unsubscribe)
        warn_of_drop(box)

    def part(self, subject: bytes) -> None:
        """Publish an empty message soon; see `Channel.part`."""
        if self._forks == Forks.count and not self._client.is_closed:
            self._later(partial(self._client.publish, subject.decode()))

    def _later(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Start a call of the client in its event loop. Its errors are ignored."""
        from nats.errors import Error

        async def run() -> None:
            # If the client is closed or drains, its subscriptions have ended.
            with suppress(Error):
                await work()

        soon(lambda: spawn(run, "twinstream-farewell"), self._home)

    async def _close(self, box: Box, settle: bool) -> None:
        box.on_drop = None
        subscription = self._subscriptions.pop(box.sid, None)
        self._boxes.pop(box.sid, None)
        # A client that drains ends all its subscriptions.
        if subscription is not None and not (self._client.is_closed or self._client.is_draining):
            if settle and self._client.is_connected:
                await _drain(subscription)
                self._look_for_denial()
            else:
                await subscription.unsubscribe()
        box.signal.set()

    def hold_back(self, bulk: HeldBack) -> None:
        """Do nothing: bulk data is only supported by the transport of this package."""

    def cut_acks(self, cutter: ByteTaker) -> None:
        """Do nothing: bulk data is only supported by the transport of this package."""

    async def wait(self, signal: Signal, deadline: Deadline) -> bool:
        """Wait until the signal is set or the deadline has passed; return whether it is set.

        nats-py reports a lost connection only to the application, so the state of the connection is
        polled. If the state changes, the pending requests fail, and the result is True.
        """
        epoch, connected = self.epoch, self._client.is_connected
        while not signal.is_set() and not deadline.expired():
            if self.epoch != epoch or self._client.is_connected != connected:
                self._replies.fail(
                    self.closed_error() if self.is_closed else ConnectionLost(_CONNECTION_BROKE)
                )
                return True
            slice_ = Deadline.after(min(deadline.remaining(), _LOOK))
            await signal.sleep(slice_)
            self._look_for_denial()
        return signal.is_set()

    def _look_for_denial(self) -> None:
        """Report the latest permission error to the subscriptions and requests concerned.

        nats-py only keeps its last error, so earlier errors since the previous call are not found.
        """
        last = self._client.last_error
        if last is self._last_error:
            return
        self._last_error = last
        denied = read_denied(str(last))
        if denied is None:
            return
        error = PermissionDenied(str(last))
        # nats-py converts the server's error text to lower case.
        found = [each() for each in list(self._boxes.values())]
        boxes = [box for box in found if box is not None and box.is_refused(denied, lower=True)]
        for box in boxes:
            box.refuse(error)
        self._replies.deny(denied, boxes, error)


def _ended() -> tuple[type[Exception], ...]:
    """Return the exception classes that nats-py raises when it is closed or draining."""
    # Imported in the function, because nats-py is an optional dependency.
    from nats.errors import ConnectionClosedError, ConnectionDrainingError

    return ConnectionClosedError, ConnectionDrainingError


def _refused() -> tuple[type[Exception], ...]:
    """Return the exception classes that nats-py raises for a message that it cannot send."""
    # Imported in the function, because nats-py is an optional dependency.
    from nats import errors

    # Older releases do not check the names of headers.
    named = getattr(errors, "BadHeaderError", UnicodeError)
    return UnicodeError, errors.BadSubjectError, named


async def _drain(subscription: Subscription) -> None:
    """End a subscription after the messages that the server has already sent were received."""
    # Imported in the function, because nats-py is an optional dependency.
    from nats.errors import Error

    try:
        await subscription.drain()  # type: ignore[no-untyped-call]
    except Error:
        # The connection was lost, so no more messages can arrive.
        return


class _Lines(dict[str, str]):
    """Headers for nats-py, which writes the result of `items`. Names may repeat in this result."""

    def __init__(self, pairs: tuple[tuple[str, str], ...]) -> None:
        super().__init__(pairs)
        self._pairs: Final = pairs

    def items(self) -> Any:
        """Return all pairs in order."""
        return self._pairs


def _block(headers: dict[str, str]) -> bytes:
    """Return received headers as a header block.

    The headers are not checked, because a publisher may have sent invalid ones.
    """
    lines = [f"{name}: {value}\r\n" for name, value in headers.items()]
    return "".join(["NATS/1.0\r\n", *lines, "\r\n"]).encode("utf-8", "surrogateescape")


def _in_order(headers: dict[str, str]) -> dict[str, str]:
    """Return the headers of a direct get response in the order in which the server appended its.

    If a publisher stored headers of the same names, nats-py keeps the server's values at the places
    of the publisher's headers.
    """
    names = [*_APPENDED]
    if all(headers.get(name, "").isdecimal() for name in _APPENDED_IN_BATCH):
        names += _APPENDED_IN_BATCH
    last = {name: headers[name] for name in names if name in headers}
    return {name: value for name, value in headers.items() if name not in last} | last


def _receiver(box: Box, take: Sink) -> Callable[[Msg], Any]:
    weak = ref(box)

    async def receive(message: Msg) -> None:
        take(_frame(message))
        box = weak()
        if box is not None:
            box.heard_at = monotonic()
            box.signal.set()

    return receive


def _frame(message: Msg) -> Frame:
    """Convert a message of nats-py to a `Frame`."""
    subject, reply = message.subject.encode(), (message.reply or "").encode()
    if not message.headers:
        # Fast path: saves 0.4 µs of about 10 for each message (Python 3.13, four interleaved runs).
        return subject, reply, 0, message.data + b"\r\n"
    headers: dict[str, str] = dict(message.headers)
    status = text = ""
    if not (message.data or reply.startswith(_ACK) or _OF_STREAM in headers):
        # nats-py puts the server's status line into the headers. In a message of a stream, headers
        # with these names come from the publisher.
        status, text = headers.pop(_STATUS, ""), headers.pop(_DESCRIPTION, "")
    if _OF_STREAM in headers and not reply.startswith(_ACK):
        headers = _in_order(headers)
    block = _block(headers)
    if status:
        block = b"NATS/1.0 " + f"{status} {text}".strip().encode() + block[8:]
    return subject, reply, len(block), block + message.data + b"\r\n"
