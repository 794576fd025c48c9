"""Iterators whose messages are noted by the observers of the connection."""

from __future__ import annotations

from typing import Any, Final, TypeVar, cast

from js_async.consume.iterator import Iteration
from js_async.consume.message import Message, delivery_of
from twinstream.core.deadline import Seconds

__all__ = ["noted"]

I = TypeVar("I", bound=Iteration[Message])  # noqa: E741

# By the class of an iterator: its subclass that notes messages.
_NOTING: Final[dict[Any, Any]] = {}


def noted(kind: type[I]) -> type[I]:
    """Return the class of an iterator that also notes its messages, for an observed connection.

    Other connections use `kind` itself, whose fast paths so need no check.
    """
    found = _NOTING.get(kind)
    if found is None:
        found = _NOTING[kind] = type(kind.__name__, (_Noting, kind), {"__doc__": kind.__doc__})
    return cast("type[I]", found)


class _Noting(Iteration[Message]):
    """Notes each message that is returned to the program."""

    async def __anext__(self) -> Message:
        """Return the next message; the iteration ends after `drain` or `close`."""
        message = await super().__anext__()
        _note(message)
        return message

    async def next(self, *, timeout: Seconds | None = None) -> Message | None:
        """Return the next message, or None if none arrived in time."""
        message = await super().next(timeout=timeout)
        if message is not None:
            _note(message)
        return message


def _note(message: Message) -> None:
    observers = delivery_of(message).transport.observers
    if observers is not None:
        observers.note_received(message)
