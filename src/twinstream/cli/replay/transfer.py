"""Send the messages of a range at their original distances, and compare what was stored."""

from __future__ import annotations

import threading
import time
from array import array
from collections import deque
from collections.abc import Callable, Iterable
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

from twinstream.cli.failures import Failure
from twinstream.cli.replay.masking import Masks
from twinstream.cli.screen import counted
from twinstream.errors import BadArgument, BadPayload, TwinstreamError
from twinstream.records.header_names import MSG_ID, TTL
from twinstream.records.publish_request import PublishRequest

if TYPE_CHECKING:
    from js_sync import JetStream, Publisher, PublishHandle, Stream, StreamMessage

__all__ = ["Transfer"]

_WINDOW: Final = 256


class Transfer:
    """The messages of a range that were sent into another stream.

    Of each stored message, its two sequences and a digest of 8 bytes are kept.
    """

    def __init__(self, masks: Masks, speed: float, stop: threading.Event) -> None:
        """`speed` is the factor by which the distances are shorter; 0 sends without pauses."""
        self._masks: Final = masks
        self._speed: Final = speed
        self._stop: Final = stop
        self._pending: Final[deque[tuple[StreamMessage, int, PublishHandle]]] = deque()
        self._sources: Final = array("Q")
        self._seqs: Final = array("Q")
        self._digests: Final = array("Q")
        self.duplicates = 0
        """The number of messages that were not stored, because their message ids are known."""
        self.last: StreamMessage | None = None
        """The last message of the range that was acknowledged, as all before it."""

    @property
    def stored(self) -> int:
        """The number of messages that were stored."""
        return len(self._seqs)

    @property
    def bounds(self) -> tuple[int, int]:
        """The first and the last sequence in the other stream; 0 without a stored message."""
        return (self._seqs[0], self._seqs[-1]) if self._seqs else (0, 0)

    def reached(self, name: str) -> str:
        """Return how far the transfer has come, and how to go on."""
        if self.last is None:
            return "no message was replayed"
        return (
            f"{counted(self.stored, 'message')} up to sequence {self.last.seq}"
            f" ({self.last.time.rfc3339()}) are stored in {name}; --from {self.last.seq + 1}"
            " replays the rest"
        )

    def send(
        self,
        messages: Iterable[StreamMessage],
        jet: JetStream,
        name: str,
        advance: Callable[[], None],
    ) -> bool:
        """Send messages into the stream `name`, and return whether all were sent.

        The stop event ends the transfer. Calls `advance` for each acknowledged message. Raises
        `Failure` for a message that cannot be read, masked or sent, and for one that is not
        stored; it says how far the transfer has come.
        """
        with jet.publisher(window=_WINDOW, raise_failures=False) as publisher:
            try:
                is_whole = self._send_with(publisher, messages, name, advance)
            except TwinstreamError as error:
                # The messages in flight are stored nevertheless: count them first.
                try:
                    self._settle_all(name, advance)
                except Failure as lost:
                    raise Failure(f"{error}; {lost.message}") from error
                raise Failure(f"{error}; {self.reached(name)}") from error
            self._settle_all(name, advance)
        return is_whole

    def _send_with(
        self,
        publisher: Publisher,
        messages: Iterable[StreamMessage],
        name: str,
        advance: Callable[[], None],
    ) -> bool:
        """Send messages, and return whether all were sent. Some of them are in flight then."""
        begun = time.monotonic()
        first: StreamMessage | None = None
        for message in messages:
            first = first or message
            if self._pauses(message.time.ns - first.time.ns, begun):
                return False
            request = self._request(message)
            try:
                handle = publisher.send(request)
            except BadArgument as error:
                raise BadArgument(f"{_named(message)} cannot be sent: {error}") from error
            self._pending.append((message, _digest(message, request.data), handle))
            while self._pending and self._pending[0][2].is_done:
                self._settle(name, advance)
        return True

    def _pauses(self, distance: int, begun: float) -> bool:
        """Wait until a message is due, and return whether to stop.

        `distance` is that from the first message in nanoseconds.
        """
        if self._speed and distance > 0:
            pause = begun + distance / 1e9 / self._speed - time.monotonic()
            if pause > 0:
                return self._stop.wait(min(pause, threading.TIMEOUT_MAX))
        return self._stop.is_set()

    def _request(self, message: StreamMessage) -> PublishRequest:
        try:
            data = self._masks.masked(message.data)
        except BadPayload as error:
            raise BadPayload(
                f"{_named(message)} cannot be masked: {error}; leave its subject out with --subject"
            ) from error
        headers = message.headers
        return PublishRequest(
            message.subject, data, headers.to_publish() or None, msg_id=headers.get(MSG_ID)
        )

    def _settle_all(self, name: str, advance: Callable[[], None]) -> None:
        while self._pending:
            self._settle(name, advance)

    def _settle(self, name: str, advance: Callable[[], None]) -> None:
        """Wait for the outcome of the oldest message."""
        message, digest, handle = self._pending.popleft()
        try:
            ack = handle.result()
        except TwinstreamError as error:
            later = len(self._pending)
            more = f"; {counted(later, 'later message')} may be stored, too" if later else ""
            raise Failure(
                f"{_named(message)} was not acknowledged: {error}; {self.reached(name)}{more}"
            ) from error
        if ack.stream != name:
            raise Failure(
                f"{_named(message)} was stored by {ack.stream}, not by"
                f" {name}: its subjects were changed meanwhile; {self.reached(name)}"
            )
        if ack.duplicate:
            self.duplicates += 1
        else:
            self._sources.append(message.seq)
            self._seqs.append(ack.seq)
            self._digests.append(digest)
        self.last = message
        advance()

    def differences(self, stream: Stream) -> list[str]:
        """Read the other stream, and return what is not as it was sent: a sentence for each kind.

        Messages of other clients in between are skipped. Raises `Failure` if the stream cannot be
        read; it says which messages are stored, and up to where they were compared.
        """
        if not self._seqs:
            return []
        expected = deque(
            sorted(zip(self._seqs, self._digests, self._sources, strict=True))
            if self.is_out_of_order
            else zip(self._seqs, self._digests, self._sources, strict=True)
        )
        missing: list[int] = []
        changed: list[int] = []
        first, last = expected[0][0], expected[-1][0]
        compared = first - 1
        try:
            for message in stream.read(first, last + 1):
                while expected and expected[0][0] < message.seq:
                    missing.append(expected.popleft()[2])
                if expected and expected[0][0] == message.seq:
                    _, digest, source = expected.popleft()
                    if digest != _digest(message, message.data):
                        changed.append(source)
                compared = message.seq
        except TwinstreamError as error:
            raise Failure(
                f"{error}; all {counted(self.stored, 'message')} are stored in {stream.name}, as"
                f" sequences {first} to {last}; they were compared up to sequence {compared}"
            ) from error
        missing += [source for _, _, source in expected]
        found = [
            f"{counted(len(sources), 'message')} {what}, the first is sequence {sources[0]} of the"
            " source"
            for sources, what in ((missing, "no longer stored"), (changed, "changed"))
            if sources
        ]
        return [*found, "the messages are in another order"] if self.is_out_of_order else found

    @property
    def is_out_of_order(self) -> bool:
        """Whether the other stream has stored the messages in another order."""
        seqs = self._seqs
        return any(seqs[at] >= seqs[at + 1] for at in range(len(seqs) - 1))


def _named(message: StreamMessage) -> str:
    return f"message {message.seq} ({message.subject})"


def _digest(message: StreamMessage, data: bytes) -> int:
    """Return a digest of the subject, the copied headers, the message id and a payload.

    The header with the TTL is left out, because servers may change it.
    """
    headers = message.headers
    pairs = [pair for pair in headers.to_publish().pairs if pair[0] != TTL]
    parts = [message.subject, headers.get(MSG_ID) or "", *(text for pair in pairs for text in pair)]
    found = blake2b(digest_size=8)
    for part in (*(each.encode("utf-8", "surrogateescape") for each in parts), data):
        found.update(b"%d:" % len(part) + part)
    return int.from_bytes(found.digest())
