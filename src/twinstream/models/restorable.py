"""Exceptions that are the same after pickling and copying."""

from __future__ import annotations

import pickle
from typing import Any, Self, TypeVar

__all__ = ["Restorable"]

E = TypeVar("E", bound=BaseException)


class Restorable(Exception):
    """The base of errors that keep arguments, attributes, notes and cause.

    Python rebuilds an exception by calling its class with `args`, the text, which fails where
    `__init__` takes something else. Here `__init__` is not called again.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        """Return how to rebuild the error: a cause that cannot be pickled becomes a note."""
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
        # An OSError has more arguments than it shows in `args`.
        arguments: Any = super().__reduce__()[1]
        return tuple(arguments)

    def _state(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        if "__notes__" in state:
            # A list of its own: `add_note` appends to it.
            state["__notes__"] = list(state["__notes__"])
        return state


def _new(cls: type[E], *arguments: Any) -> E:
    """Return an error of a class without calling its `__init__`."""
    return cls.__new__(cls, *arguments)


def _is_picklable(cause: BaseException) -> bool:
    try:
        pickle.loads(pickle.dumps(cause))
    except Exception:
        return False
    return True
