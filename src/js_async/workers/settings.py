"""The settings of a worker."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Final, Literal

from attrs import frozen

from js_async import Message
from js_async.workers.dead_letters import DeadLetters
from twinstream.core.arguments.check_arguments import check_kind, check_whole
from twinstream.core.consume.order import Order
from twinstream.core.consume.pull_request import Priority, check_priority
from twinstream.core.workers.reports import WorkReport
from twinstream.core.workers.retry import Retry
from twinstream.errors import BadArgument

__all__ = ["KeyOf", "OnBad", "WorkSettings"]

OnBad = Literal["dead_letter", "terminate", "hand_over"]
"""What a worker does with a message whose payload does not fit the type of its handler.

`"dead_letter"`: store it as a dead letter and terminate it; `"terminate"`: terminate it with the
reason; `"hand_over"`: call the handler, whose `message.payload` raises the error.
"""

KeyOf = Order | Callable[[Message], Hashable]
"""Which messages are handled sequentially.

A function returns the key of a message; messages with the same key are handled sequentially.
"""

# The default number of buffered messages. `_AHEAD`: for each handler, if no buffered message has to
# wait for others. `_ORDERED`: for all handlers together, if messages have to wait for others.
_AHEAD: Final = 2
_ORDERED: Final = 500


@frozen(kw_only=True)
class WorkSettings:
    """The checked settings of a worker; see `Worker`. Raises `BadArgument`."""

    concurrency: int
    order: KeyOf
    retry: Retry
    dead_letters: DeadLetters | None
    max_messages: int | None
    priority: Priority | None
    on_report: Callable[[WorkReport], None] | None
    on_bad: OnBad | None = None

    def __attrs_post_init__(self) -> None:
        """Check the settings, and that they fit together."""
        if self.dead_letters is not None:
            check_kind(self.dead_letters, DeadLetters, "dead_letters", "a DeadLetters object")
        check_kind(self.retry, Retry, "retry", "a Retry")
        check_priority(self.priority)
        check_whole(self.concurrency, "concurrency")
        if self.max_messages is not None:
            check_whole(self.max_messages, "max_messages")
        if not callable(self.order) and self.order not in ("none", "subject", "total"):
            raise BadArgument(
                f"order must be 'none', 'subject', 'total' or a function, got {self.order!r}"
            )
        if self.max_messages is not None and self.max_messages < self.concurrency:
            raise BadArgument(
                f"max_messages must be at least concurrency, {self.concurrency},"
                f" got {self.max_messages}"
            )
        if self.on_bad not in (None, "dead_letter", "terminate", "hand_over"):
            raise BadArgument(
                f"on_bad must be 'dead_letter', 'terminate' or 'hand_over', got {self.on_bad!r}"
            )
        if self.on_bad == "dead_letter" and self.dead_letters is None:
            raise BadArgument("on_bad='dead_letter' needs dead_letters")

    @property
    def is_ordered(self) -> bool:
        """Whether there is an order, so that some messages wait for others to be handled."""
        return self.order != "none"

    @property
    def room(self) -> int:
        """Maximum number of messages in the worker's queue, including those being handled.

        The buffer of the worker's iterator has the same limit.
        """
        if self.max_messages is not None:
            return self.max_messages
        if self.order == "total":
            # With this order, one message is handled at a time, so a larger buffer has no use.
            return _AHEAD
        return _ORDERED if self.is_ordered else self.concurrency * _AHEAD

    def key(self, message: Message, number: int) -> Hashable:
        """Return a message's key. Messages with the same key are handled sequentially.

        `number` differs for each message. It is the key if there is no order.
        """
        if callable(self.order):
            return self.order(message)
        if self.order == "none":
            return number
        return message.subject if self.order == "subject" else ""
