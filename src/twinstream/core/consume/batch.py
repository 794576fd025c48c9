"""The result of a fetch: messages, and the reason why the batch ended."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum
from typing import Final, Generic, TypeVar, overload

__all__ = ["Batch", "BatchEnd"]

M = TypeVar("M")


class BatchEnd(Enum):
    """Why a batch ended."""

    FILLED = "filled"
    """The batch has the requested number of messages."""
    BYTES_FILLED = "bytes_filled"
    """The requested bytes are used up, or the next message does not fit into them."""
    NO_MESSAGES = "no_messages"
    """The consumer had no more messages, and the caller did not require a complete batch."""
    EXPIRED = "expired"
    """The fetch timed out."""
    INTERRUPTED = "interrupted"
    """The fetch was interrupted; fetch again.

    Examples are a lost connection, a change of the leader, a server that shuts down or is silent,
    and an error that the next fetch will raise.
    """
    UNPINNED = "unpinned"
    """Another client holds the pin of the priority group."""
    DELETED = "deleted"
    """The consumer was deleted after it had delivered these messages."""


class Batch(Sequence[M], Generic[M]):
    """The messages of one fetch.

    `reason` is why the fetch ended. `detail` explains the reason in words, and may be empty.

    Args:
        messages: The messages, in the order of delivery.
    """

    __slots__ = ("_messages", "detail", "reason")

    def __init__(self, messages: list[M], reason: BatchEnd, detail: str = "") -> None:
        self._messages: Final = messages
        self.reason: Final = reason
        self.detail: Final = detail

    def __len__(self) -> int:
        return len(self._messages)

    def __iter__(self) -> Iterator[M]:
        # `Sequence.__iter__` takes 85 ns per message, this method 6 ns. Fetching a message takes
        # 2,000 ns.
        return iter(self._messages)

    @overload
    def __getitem__(self, index: int) -> M: ...
    @overload
    def __getitem__(self, index: slice) -> list[M]: ...
    def __getitem__(self, index: int | slice) -> M | list[M]:
        return self._messages[index]

    def __repr__(self) -> str:
        return f"<Batch of {len(self)}: {self.reason.value}>"
