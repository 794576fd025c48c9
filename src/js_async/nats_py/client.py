"""The JetStream layer on a connection of nats-py that an application has already.

Only the public API of nats-py is used: subscribe with a callback, publish, its state. Its own
JetStream code is not involved, so what it cannot do, works here too.
"""

from __future__ import annotations

import secrets
import warnings
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from js_async.runtime.concurrency import Forks, Signal, shielded, sleep
from js_async.nats_py.parser import OwnParser, take_over
from js_async.client.requests import Replies
from js_async.client.transport import Box
from js_async.jetstream import JetStream
from twinstream.core.wire.bulk_acks import AckCutter
from twinstream.core.read.bulk_page import BulkAnswer
from twinstream.core.deadline import Deadline, Seconds, monotonic, seconds
from twinstream.errors import (
    BadArgument,
    ConnectionClosed,
    ConnectionLost,
    PermissionDenied,
    RequestTimeout,
)
from twinstream.core.connect.handshake import ServerInfo, read_denied
from twinstream.core.wire.headers import Headers
from twinstream.core.connect.mailbox import Mailbox
from twinstream.core.wire.protocol import Frame, Sink
from twinstream.core.publish.request import check_size
from twinstream.core.wire.tokens import Tokens
from twinstream.core.base.check_callbacks import check_told

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.aio.msg import Msg
    from nats.aio.subscription import Subscription

    from twinstream.core.api.instrumentation import Call

__all__ = ["NatsPyTransport", "from_nats"]

_STATUS: Final = "Status"
_DESCRIPTION: Final = "Description"
_OF_STREAM: Final = "Nats-Stream"
_ACK: Final = b"$JS.ACK."
# How often the state of a broken connection is looked at: nats-py's callbacks are the
# application's, so there is nothing to be woken by (seconds).
_LOOK: Final = 0.05
_LINK_BROKE: Final = "the link of the nats-py client broke before the answer came"


def from_nats(
    client: Client,
    *,
    domain: str | None = None,
    prefix: str | None = None,
    timeout: Seconds = 5.0,
    own_parser: bool = False,
    on_call: Callable[[Call], None] | None = None,
    required_api_level: int | None = None,
) -> JetStream:
    """Return the JetStream API over a connected nats-py client, which stays the application's.

    `domain` or `prefix` replace `$JS.API`; `timeout` is the default of all calls in seconds.
    `on_call` is told of each of them, as that of `connect` is; `required_api_level` is that of
    `Connection.jetstream`.

    With `own_parser` this package's parser takes the place of the client's, for all that uses the
    client: reading is twice as fast, and a header that a message has several times keeps all its
    values, of which nats-py gives one. As this replaces a private attribute of nats-py, it is done
    for releases whose inside is known (2.11 to 2.16) only; with another one the client keeps its
    parser, and a `RuntimeWarning` says so.
    """
    transport = NatsPyTransport(client, timeout, on_call)
    if own_parser:
        try:
            transport.parser = take_over(client)
        except LookupError as error:
            text = f"{error.args[0]} is not known to this release: its own parser stays"
            warnings.warn(text, RuntimeWarning, stacklevel=2)
    return JetStream(transport, domain=domain, prefix=prefix, required_api_level=required_api_level)


class NatsPyTransport:
    """A nats-py client as the JetStream layer sees it."""

    def __init__(
        self, client: Client, timeout: Seconds = 5.0, on_call: Callable[[Call], None] | None = None
    ) -> None:
        # Not by its class: nats-py need not be there, and clients may be wrapped.
        check_told(on_call, "on_call")
        if not hasattr(client, "new_inbox"):
            raise BadArgument(
                f"client must be what nats.connect() of nats-py returns, got {client!r}"
            )
        if not client.is_connected:
            raise BadArgument("the nats-py client is not connected: await its connect() first")
        self._client: Final = client
        self._forks: Final = Forks.count
        self._timeout: Final = seconds(timeout)
        # Inboxes of its own, below the prefix that the application's permissions ask for.
        inbox = client.new_inbox().rpartition(".")[0]
        self._tokens: Final = Tokens(secrets.token_bytes(16), inbox)
        self._last_error: Exception | None = client.last_error
        self._subscriptions: dict[bytes, Subscription] = {}
        self._boxes: dict[bytes, Box] = {}
        self._numbers = 0
        self.parser: OwnParser | None = None
        self._replies: Final = Replies(self, on_call)
        self.ask: Final = self._replies.ask
        self._ended: Final = _ended()

    def _reconnects(self) -> int:
        return int(self._client.stats["reconnects"])

    @property
    def epoch(self) -> int:
        """How many links there were; what was asked under an earlier one is void."""
        return 1 + self._reconnects()

    @property
    def is_connected(self) -> bool:
        """Tell whether the link is up now."""
        return bool(self._client.is_connected)

    @property
    def is_closed(self) -> bool:
        """Tell whether the link is gone for good."""
        return bool(self._client.is_closed)

    @property
    def server_info(self) -> ServerInfo:
        """What the server said of itself when the link was made."""
        version = self._client.connected_server_version
        return ServerInfo(
            {},
            version=f"{version.major}.{version.minor}.{version.patch}",
            max_payload=self._client.max_payload,
            headers=True,
            jetstream=True,
        )

    @property
    def request_timeout(self) -> float:
        """Seconds that a request waits unless told otherwise."""
        return self._timeout

    @property
    def tokens(self) -> Tokens:
        """The source of inboxes, request tokens and names."""
        return self._tokens

    @property
    def replies(self) -> Replies:
        """The requests of the connection."""
        return self._replies

    def closed_error(self) -> ConnectionClosed:
        """Return the error for a use after the end, or while the application drains its client."""
        return ConnectionClosed(
            f"the nats-py client is {'closed' if self.is_closed else 'draining'}"
        )

    async def ready(self, deadline: Deadline) -> None:
        """Return when the link is up; raises `ConnectionClosed` or `RequestTimeout`."""
        while not self._client.is_connected:
            if self._client.is_closed:
                raise self.closed_error()
            if deadline.expired():
                raise RequestTimeout("the nats-py client did not reconnect in time")
            await sleep(min(_LOOK, deadline.remaining()))

    def try_send(
        self, subject: bytes, reply: bytes, headers: bytes, payload: bytes, now: bool = False
    ) -> bool:
        """Tell that `send` is to be used: nats-py has no way to publish without waiting."""
        return False

    def try_write(self, command: bytes) -> bool:
        """Tell that `send` is to be used, for the same reason."""
        return False

    async def send(
        self, subject: bytes, reply: bytes, headers: bytes, payload: bytes, now: bool = False
    ) -> None:
        """Publish; every part is checked and encoded already."""
        await self.ready(Deadline.after(self._timeout))
        check_size(subject, len(headers) + len(payload), self._client.max_payload)
        lines = _Lines(Headers.parse(headers).pairs) if headers else None
        try:
            await self._client.publish(subject.decode(), payload, reply.decode(), lines)
        except self._ended as error:
            raise self.closed_error() from error

    async def open_mailbox(
        self, subject: bytes, queue: bytes = b"", sink: Callable[[Box], Sink] | None = None
    ) -> Box:
        """Subscribe; frames go into the mailbox, or where `sink` says for it, as they arrive."""
        self._numbers += 1
        sid = b"%d" % self._numbers
        box: Box = Mailbox(sid, subject, queue, Signal(), monotonic())
        take = box.frames.append if sink is None else sink(box)
        callback = _receiver(box, take)
        self._boxes[sid] = box
        try:
            self._subscriptions[sid] = await self._client.subscribe(  # pyright: ignore[reportUnknownMemberType]
                subject.decode(), queue.decode(), cb=callback
            )
        except self._ended as error:
            del self._boxes[sid]
            raise self.closed_error() from error
        if self.parser is not None:
            self.parser.serve(self._subscriptions[sid], box, take)
        return box

    async def close_mailbox(self, *boxes: Box, settle: bool = False) -> None:
        """Unsubscribe; frames that are in the mailboxes stay there.

        Does nothing in a forked child, where iterations of its parent end.
        """
        if self._forks != Forks.count:
            return
        for box in boxes:
            if settle:
                # A flush of nats-py that is cancelled ends its reading, and with it all there is.
                await shielded(partial(self._close, box, settle))
            else:
                await self._close(box, settle)

    async def _close(self, box: Box, settle: bool) -> None:
        subscription = self._subscriptions.pop(box.sid, None)
        self._boxes.pop(box.sid, None)
        # A client that drains ends all subscriptions itself.
        if subscription is not None and not (self._client.is_closed or self._client.is_draining):
            if settle and self._client.is_connected:
                await _drain(subscription)
                self._look_for_denial()
            else:
                await subscription.unsubscribe()
        if subscription is not None and self.parser is not None:
            self.parser.forget(subscription)
        box.signal.set()

    def hold_back(self, bulk: BulkAnswer) -> None:
        """Do nothing: nats-py parses by itself."""

    def cut_acks(self, cutter: AckCutter) -> None:
        """Do nothing, for the same reason."""

    async def wait(self, signal: Signal, deadline: Deadline) -> bool:
        """Sleep until the flag is up or the deadline passes.

        nats-py gives the application alone a sign of a broken link, so its state is looked at
        in slices.
        """
        epoch, connected = self.epoch, self._client.is_connected
        while not signal.is_set() and not deadline.expired():
            if self.epoch != epoch or self._client.is_connected != connected:
                self._replies.fail(
                    self.closed_error() if self.is_closed else ConnectionLost(_LINK_BROKE)
                )
                return True
            slice_ = Deadline.after(min(deadline.remaining(), _LOOK))
            await signal.sleep(slice_)
            self._look_for_denial()
        return signal.is_set()

    def _look_for_denial(self) -> None:
        """Tell who waits that the user may not do that; nats-py keeps the last error only."""
        last = self._client.last_error
        if last is self._last_error:
            return
        self._last_error = last
        denied = read_denied(str(last))
        if denied is None:
            return
        error = PermissionDenied(str(last))
        # nats-py puts the server's words into lower case.
        boxes = [box for box in self._boxes.values() if box.is_refused(denied, lower=True)]
        for box in boxes:
            box.refuse(error)
        self._replies.deny(denied, boxes, error)


def _ended() -> tuple[type[Exception], ...]:
    """Return what nats-py raises when it is used after its end, or while it drains."""
    # Whoever gets here has nats-py; whoever does not, need not.
    from nats.errors import ConnectionClosedError, ConnectionDrainingError

    return ConnectionClosedError, ConnectionDrainingError


async def _drain(subscription: Subscription) -> None:
    """End a subscription; what the server had sent before reaches the callback first."""
    # Whoever gets here has nats-py; whoever does not, need not.
    from nats.errors import Error

    try:
        await subscription.drain()  # type: ignore[no-untyped-call]
    except Error:
        # The link broke meanwhile: nothing more can come over it.
        return


class _Lines(dict[str, str]):
    """Headers for nats-py to write, which it does item by item: a name may come several times."""

    def __init__(self, pairs: tuple[tuple[str, str], ...]) -> None:
        super().__init__(pairs)
        self._pairs: Final = pairs

    def items(self) -> Any:
        """Return all lines in order."""
        return self._pairs


def _block(headers: dict[str, str]) -> bytes:
    """Return headers as they came, however odd: a stream holds what any publisher liked."""
    lines = [f"{name}: {value}\r\n" for name, value in headers.items()]
    return "".join(["NATS/1.0\r\n", *lines, "\r\n"]).encode("utf-8", "surrogateescape")


def _receiver(box: Box, take: Sink) -> Callable[[Msg], Any]:
    async def receive(message: Msg) -> None:
        take(_frame(message))
        box.heard_at = monotonic()
        box.signal.set()

    return receive


def _frame(message: Msg) -> Frame:
    """Return a message of nats-py as it came over the wire."""
    subject, reply = message.subject.encode(), (message.reply or "").encode()
    if not message.headers:
        # Most have none: 0.4 µs less of some 10 a message (Python 3.13, four interleaved runs).
        return subject, reply, 0, message.data + b"\r\n"
    headers: dict[str, str] = dict(message.headers)
    status = text = ""
    if not (message.data or reply.startswith(_ACK) or _OF_STREAM in headers):
        # nats-py puts the server's status line among the headers. In a message of a stream these
        # are its publisher's, whatever their names.
        status, text = headers.pop(_STATUS, ""), headers.pop(_DESCRIPTION, "")
    block = _block(headers)
    if status:
        block = b"NATS/1.0 " + f"{status} {text}".strip().encode() + block[8:]
    return subject, reply, len(block), block + message.data + b"\r\n"
