"""Replace the parser of a nats-py client by ours (optional).

nats-py takes three microseconds to parse a message and to run its callback, twice the cost of all
other steps. The parser is a private attribute, so it is only replaced in known releases. Our parser
passes the messages of other subscriptions to nats-py, in order.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final
from weakref import ref

from js_async.client.failed_messages import FailedMessages
from js_async.client.transport import Box
from twinstream.core.deadline import monotonic
from twinstream.core.wire.protocol import Frame, Info, Parser, Ping, Pong, Refusal, Sink
from twinstream.errors import ProtocolError

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.aio.subscription import Subscription

__all__ = ["OwnParser", "take_over"]

# Releases (major, minor) of nats-py in which the parser, and the methods that it calls, are known.
_KNOWN: Final = frozenset((2, minor) for minor in range(11, 17))


def take_over(client: Client) -> OwnParser:
    """Replace the parser of a client by ours and return our parser.

    If the client already has our parser, it is returned. Raises `LookupError` for an unknown
    release of nats-py.
    """
    release = version("nats-py")
    place: Any = client
    before = getattr(place, "_ps", None)
    if isinstance(before, OwnParser):
        return before
    numbers = tuple(int(part) for part in release.split(".")[:2] if part.isdigit())
    parser = f"{type(before).__module__}.{type(before).__qualname__}"
    if numbers not in _KNOWN or parser != "nats.protocol.parser.Parser":
        raise LookupError(f"nats-py {release} with {parser}")
    place._ps = own = OwnParser(place, before)
    return own


class _Sinks(dict[bytes, Sink]):
    """The sinks of our subscriptions by id. Frames of other subscriptions are kept for nats-py."""

    def __init__(self) -> None:
        super().__init__()
        self.others: Final[list[tuple[bytes, Frame]]] = []
        self.served = 0

    def get(self, sid: bytes, default: Any = None) -> Any:
        """Return the sink of a subscription.

        If the subscription is not ours, the returned sink adds the message to `others`. The parser
        calls this once for each message; `served` counts the messages of our subscriptions.
        """
        sink = super().get(sid)
        if sink is None:
            return self._keeper(sid)
        self.served += 1
        return sink

    def _keeper(self, sid: bytes) -> Sink:
        def keep(frame: Frame) -> None:
            self.others.append((sid, frame))

        return keep


def _sid(subscription: Subscription) -> bytes:
    inside: Any = subscription
    return b"%d" % inside._id


class OwnParser:
    """The parser that a nats-py client calls with received data."""

    def __init__(self, client: Any, before: Any) -> None:
        self._client: Final = client
        # The parser of nats-py, until it has finished its current message; then None.
        self._before: Any = before
        self._sinks: Final = _Sinks()
        self._boxes: Final[dict[bytes, ref[Box]]] = {}
        self._failed: Final = FailedMessages()
        self._parser = self._new_parser()

    def _new_parser(self) -> Parser:
        parser = Parser(self._sinks, on_failure=self._failed.note)
        parser.expect_payloads(self._client.max_payload)
        return parser

    def serve(self, subscription: Subscription, box: Box, take: Sink) -> None:
        """Pass the messages of a subscription directly to its mailbox.

        Does nothing if nats-py has already received a message of the subscription.
        """
        # nats-py calls its callbacks later, so a new message could overtake a received one.
        if not subscription.delivered:
            sid = _sid(subscription)
            self._boxes[sid] = ref(box)
            self._sinks[sid] = take

    def forget(self, subscription: Subscription) -> None:
        """Let nats-py handle a subscription that has ended."""
        sid = _sid(subscription)
        self._boxes.pop(sid, None)
        self._sinks.pop(sid, None)

    def reset(self) -> None:
        """Discard the state of the previous connection. Called by nats-py after a reconnect."""
        self._before = None
        self._sinks.others.clear()
        self._parser = self._new_parser()

    async def parse(self, data: bytes = b"") -> None:
        """Parse received data. Raises nats-py's `ProtocolError` for invalid data."""
        from nats.errors import ProtocolError as TheirProtocolError

        if self._before is not None:
            data = await self._succeed(data)
        try:
            touched, events = self._parser.feed(data)
        except ProtocolError as error:
            raise TheirProtocolError from error
        self._wake(touched, len(data))
        await self._pass_on()
        for event in events:
            await self._handle(event)

    async def _succeed(self, data: bytes) -> bytes:
        """Let the parser of nats-py finish its current message; return the data for our parser."""
        before = self._before
        if before.state != 1:
            # nats-py has already parsed the first line of this message.
            await before.parse(data)
            data = b""
        if before.state == 1:
            self._before = None
            data = bytes(before.buf) + data
            before.reset()
        return data

    def _wake(self, touched: list[bytes], size: int) -> None:
        now = monotonic()
        for sid in touched:
            weak = self._boxes.get(sid)
            box = weak() if weak is not None else None
            if box is not None:
                box.heard_at = now
                box.signal.set()
        # Count our messages; nats-py counts its own. The byte count is approximate, because it
        # includes the protocol lines.
        stats = self._client.stats
        stats["in_msgs"] += self._sinks.served
        self._sinks.served = 0
        stats["in_bytes"] += size - sum(len(frame[3]) for _, frame in self._sinks.others)

    async def _pass_on(self) -> None:
        """Pass the messages of other subscriptions to nats-py."""
        others = self._sinks.others
        waiting, others[:] = list(others), []
        for sid, (subject, reply, size, body) in waiting:
            header = body[:size] if size else None
            await self._client._process_msg(int(sid), subject, reply, body[size:-2], header)

    async def _handle(self, event: object) -> None:
        client = self._client
        match event:
            case Ping():
                await client._process_ping()
            case Pong():
                await client._process_pong()
            case Info(values):
                await client._process_info(dict(values))
            case Refusal(text):
                await client._process_err(f"'{text}'".lower())
            case _:
                pass
