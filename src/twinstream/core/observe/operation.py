"""`Operation`: one thing that a connection does, from its beginning to its end."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Self

from attrs import define, field

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


@define(eq=False, repr=False)
class Operation:
    """One operation of a connection, as observers see it. Observers must not keep it.

    All attributes but `added` are for reading. Attributes that do not apply are None or empty.
    """

    kind: OperationKind
    """What the client does."""
    name: str
    """The call, such as `publish`, `publish_many`, `api`, `fetch`, `worker` or `consume`."""
    subject: str = ""
    """The subject of the message or request."""
    stream_name: str | None = None
    """Name of the stream, or None."""
    consumer_name: str | None = None
    """Name of the consumer, or None."""
    size: int | None = None
    """Bytes of the message or request that is sent, including headers."""
    data_size: int | None = None
    """Bytes of the payload of the message."""
    headers: Mapping[str, Any] | None = None
    """The headers of the message to send, as the program gave them."""
    message: Any = None
    """The received message, of `handle` and the acknowledgements."""
    count: int | None = None
    """The number of messages, for calls that send or receive several."""
    server: tuple[str, int] | None = None
    """Host and port of the server, as configured or announced."""
    client_name: str | None = None
    """The `name` of the connection."""
    added: dict[str, str] = field(factory=dict[str, str], init=False)
    """Headers to add to the message. An observer sets them in `begin`.

    A header that the program gave is never replaced."""
    messages: Sequence[Any] = field(default=(), init=False)
    """The received messages of a `receive`, set at its end."""
    attempts: int = field(default=1, init=False)
    """The number of attempts so far; of a `handle`, that of the message."""
    seq: int | None = field(default=None, init=False)
    """The sequence of the stored message."""
    outcome: str | None = field(default=None, init=False)
    """Of a `handle`: `acknowledged`, `retried` or `given up`; None if it was not settled."""
    error: BaseException | None = field(default=None, init=False)
    """The error that ended the operation, or of the handler; set at the end."""
    seconds: float = field(default=0.0, init=False)
    """The duration, set at the end."""
    began: float = field(factory=monotonic, init=False)
    """The monotonic time of the beginning."""
    tokens: list[tuple[Any, object]] | None = field(factory=list[tuple[Any, object]], init=False)
    """The observers that have seen the beginning, each with its token; None after the end."""
    finish: Callable[[Operation], None] | None = None
    """The function that informs the observers of the end."""

    def end(self, error: BaseException | None = None) -> None:
        """End the operation. Observers see the first end only.

        Args:
            error: The error with which it ended, or None.
        """
        if self.tokens is None:
            return
        self.error = self.error or error
        self.seconds = monotonic() - self.began
        if self.finish is not None:
            self.finish(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self.end(error)

    def __repr__(self) -> str:
        return f"<Operation {self.kind} {self.name} {self.subject}>"
