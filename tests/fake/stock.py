"""A scripted server with one consumer, which delivers each message until it is acknowledged.

One message is sent at a time, after the client has read the previous one, so that a client wakes up
as often as possible. There is no ack_wait: a message that the client loses is not redelivered, so
the test notices the loss.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from twinstream.testing import FakePeer, Operation

__all__ = ["Stock"]


class Stock:
    """Messages by stream sequence, the waiting pull requests, and the acknowledgements."""

    def __init__(self, seqs: Iterable[int]) -> None:
        self.waiting = deque(seqs)
        self.sent: list[int] = []
        self.given_back: list[int] = []
        self.done: list[int] = []
        self._pulls: deque[tuple[Operation, list[int]]] = deque()
        self._inboxes: dict[str, str] = {}

    def script(self, peer: FakePeer) -> None:
        """Serve one connection until the client leaves."""
        # In order: a PONG tells that everything before it was handled.
        peer.stop_answering()
        peer.handshake()
        for operation in peer.follow():
            self._take(peer, operation)
            self._serve(peer, operation)
            if operation.verb == "PING":
                peer.send(b"PONG\r\n")

    def _take(self, peer: FakePeer, operation: Operation) -> None:
        match operation.verb:
            case "SUB":
                self._inboxes[operation.sid] = operation.subject
            case "UNSUB":
                prefix = self._inboxes.pop(operation.sid).rstrip("*")
                keep = [each for each in self._pulls if not each[0].reply.startswith(prefix)]
                self._pulls = deque(keep)
            case "PUB" if ".MSG.NEXT." in operation.subject:
                self._pulls.append((operation, [operation.json["batch"]]))
            case "PUB" if operation.subject.startswith("$JS.ACK."):
                self._note(peer, operation)
            case _:
                pass

    def _note(self, peer: FakePeer, operation: Operation) -> None:
        seq = int(operation.subject.split(".")[5])
        if operation.payload.startswith(b"-NAK"):
            self.given_back.append(seq)
            self.waiting.append(seq)
        elif operation.payload == b"+ACK":
            self.done.append(seq)
        if operation.reply:
            peer.answer(operation, b"")

    def _serve(self, peer: FakePeer, operation: Operation) -> None:
        # A PONG means that the client has read the message before.
        moves = operation.verb in {"PONG", "PUB"}
        if not (moves and self.waiting and self._pulls):
            return
        pull, left = self._pulls[0]
        seq = self.waiting.popleft()
        self.sent.append(seq)
        peer.deliver(pull, seq)
        left[0] -= 1
        if left[0] == 0:
            self._pulls.popleft()
        peer.send(b"PING\r\n")
