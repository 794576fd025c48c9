"""`Restorable`, the base class of exceptions that can be pickled and copied without loss."""

from __future__ import annotations

from typing import Any, Self, TypeVar

from twinstream.models._escapes import harmless_line

__all__ = ["Restorable"]

E = TypeVar("E", bound=BaseException)


class Restorable(Exception):
    """An exception that keeps its arguments, attributes, notes and cause if pickled or copied.

    By default Python restores an exception by calling its class with `args`, which contains the
    message. This fails for a class whose `__init__` takes other arguments. `Restorable` restores
    the state without calling `__init__`.

    Its text and its notes are shown with escapes for unprintable characters, because they contain
    names and reasons from servers, publishers and files. `args` and attributes are exact.
    """

    def __str__(self) -> str:
        return harmless_line(super().__str__())

    def add_note(self, note: str) -> None:
        """Add a note, with escapes for unprintable characters."""
        super().add_note(harmless_line(note))

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the values for pickling. A cause that cannot be pickled becomes a note."""
        state = self._state()
        cause = self.__cause__
        if cause is not None:
            if _is_picklable(cause):
                state["__cause__"] = cause
            else:
                state.setdefault("__notes__", []).append(f"caused by {cause!r}")
        return _new, (type(self), *self._arguments()), state

    def __copy__(self) -> Self:
        copied = _new(type(self), *self._arguments())
        copied.__setstate__(self._state())
        copied.__cause__ = self.__cause__
        copied.__context__ = self.__context__
        copied.__suppress_context__ = self.__suppress_context__
        return copied.with_traceback(self.__traceback__)

    def _arguments(self) -> tuple[Any, ...]:
        # `args` of an OSError does not contain all of its arguments.
        arguments: Any = super().__reduce__()[1]
        return tuple(arguments)

    def _state(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        if "__notes__" in state:
            # Copy the list, because `add_note` appends to it.
            state["__notes__"] = list(state["__notes__"])
        return state


def _new(cls: type[E], *arguments: Any) -> E:
    """Return a new exception of `cls` without calling `__init__`."""
    return cls.__new__(cls, *arguments)


def _is_picklable(cause: BaseException) -> bool:
    import pickle

    try:
        pickle.loads(pickle.dumps(cause))
    except Exception:
        return False
    return True
