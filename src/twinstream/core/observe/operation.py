"""`Operation`: one thing that a connection does, from its beginning to its end."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Self

from twinstream.core.deadline import monotonic

__all__ = ["Operation", "OperationKind"]

OperationKind = Literal[
    "connect",
    "reconnect",
    "request",
    "create",
    "publish",
    "receive",
    "handle",
    "ack",
    "nak",
    "term",
    "progress",
    "watch",
    "transfer",
    "lock",
]
"""What an operation is.

- `connect`: the first connect. `reconnect`: from the loss of a connection to the next one.
- `request`: a request to JetStream's API, a direct get, or a request of core NATS.
- `create`: a message is added to a batch or an outbox, which sends it later.
- `publish`: a message is sent, until its acknowledgement; retries are part of it.
- `receive`: a fetch. `handle`: one call of a handler, until its message is settled.
- `ack`, `nak`, `term`, `progress`: an acknowledgement is sent, and confirmed if that was requested.
- `watch`: a watch is open. `transfer`: an object is read or written. `lock`: a lease is held.
"""


class Operation:
    """One operation of a connection, as observers see it. Observers must not keep it.

    All attributes but `added` are for reading. Attributes that do not apply are None or empty.
    """

    __slots__ = (
        "_begun",
        "_finish",
        "added",
        "attempts",
        "began",
        "client_name",
        "consumer",
        "count",
        "data_size",
        "error",
        "headers",
        "kind",
        "message",
        "messages",
        "name",
        "outcome",
        "seconds",
        "seq",
        "server",
        "size",
        "stream",
        "subject",
    )

    def __init__(
        self,
        kind: OperationKind,
        name: str,
        subject: str = "",
        *,
        stream: str | None = None,
        consumer: str | None = None,
        size: int | None = None,
        data_size: int | None = None,
        headers: Mapping[str, Any] | None = None,
        message: Any = None,
        count: int | None = None,
        server: tuple[str, int] | None = None,
        client_name: str | None = None,
        finish: Callable[[Operation], None] | None = None,
    ) -> None:
        self.kind: OperationKind = kind
        self.name = name
        """The call, such as `publish`, `publish_many`, `api`, `fetch`, `worker` or `consume`."""
        self.subject = subject
        """The subject of the message or request."""
        self.stream = stream
        self.consumer = consumer
        self.size = size
        """Bytes of the message or request that is sent, including headers."""
        self.data_size = data_size
        """Bytes of the payload of the message."""
        self.headers = headers
        """The headers of the message to send, as the program gave them."""
        self.added: dict[str, str] = {}
        """Headers to add to the message. An observer sets them in `begin`.

        A header that the program gave is never replaced."""
        self.message = message
        """The received message, of `handle` and the acknowledgements."""
        self.messages: Sequence[Any] = ()
        """The received messages of a `receive`, set at its end."""
        self.count = count
        """The number of messages, for calls that send or receive several."""
        self.server = server
        """Host and port of the server, as configured or announced."""
        self.client_name = client_name
        """The `name` of the connection."""
        self.attempts = 1
        """The number of attempts so far."""
        self.seq: int | None = None
        """The sequence of the stored message."""
        self.outcome: str | None = None
        """Of a `handle`: `acknowledged`, `retried` or `given up`; None if it was not settled."""
        self.error: BaseException | None = None
        """The error that ended the operation, or of the handler; set at the end."""
        self.seconds = 0.0
        """The duration, set at the end."""
        self.began = monotonic()
        # The observers that have seen the beginning, each with its token; None after the end.
        self._begun: list[tuple[Any, object]] | None = []
        self._finish = finish

    def end(self, error: BaseException | None = None) -> None:
        """End the operation. Observers see the first end only."""
        if self._begun is None:
            return
        self.error = self.error or error
        self.seconds = monotonic() - self.began
        if self._finish is not None:
            self._finish(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self.end(error)

    def __repr__(self) -> str:
        return f"<Operation {self.kind} {self.name} {self.subject}>"
