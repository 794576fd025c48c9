"""What a fetch returns: messages, and why there are no more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum
from typing import Final, Generic, TypeVar, overload

__all__ = ["Batch", "BatchEnd"]

M = TypeVar("M")


class BatchEnd(Enum):
    """Why a batch ended."""

    FILLED = "filled"
    """As many messages as were asked for."""
    BYTES_FILLED = "bytes_filled"
    """No room for the next message in the bytes that were asked for."""
    NO_MESSAGES = "no_messages"
    """Nothing (more) was there, and waiting was not asked for."""
    EXPIRED = "expired"
    """The time is over."""
    INTERRUPTED = "interrupted"
    """The link broke, the leader moved or the server stopped: fetch again."""
    UNPINNED = "unpinned"
    """Another client holds the pin of the priority group."""
    DELETED = "deleted"
    """The consumer was deleted after these messages were delivered."""


class Batch(Sequence[M], Generic[M]):
    """Messages of one fetch; `reason` says why there are no more, `detail` the server's words."""

    __slots__ = ("_messages", "detail", "reason")

    def __init__(self, messages: list[M], reason: BatchEnd, detail: str = "") -> None:
        self._messages: Final = messages
        self.reason: Final = reason
        self.detail: Final = detail

    def __len__(self) -> int:
        return len(self._messages)

    def __iter__(self) -> Iterator[M]:
        # `Sequence.__iter__` takes 85 ns a message, this one 6; fetching it takes 2,000.
        return iter(self._messages)

    @overload
    def __getitem__(self, index: int) -> M: ...
    @overload
    def __getitem__(self, index: slice) -> list[M]: ...
    def __getitem__(self, index: int | slice) -> M | list[M]:
        return self._messages[index]

    def __repr__(self) -> str:
        return f"<Batch of {len(self)}: {self.reason.value}>"
