"""Exceptions that are the same after pickling and copying."""

from __future__ import annotations

import pickle
from copyreg import __newobj__  # type: ignore[attr-defined]
from typing import Any, Self

__all__ = ["Restorable"]


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
        return (*self._made_of(), state)

    def __copy__(self) -> Self:
        make, arguments = self._made_of()
        copied: Self = make(*arguments)
        copied.__setstate__(self._state())
        copied.__cause__ = self.__cause__
        copied.__context__ = self.__context__
        copied.__suppress_context__ = self.__suppress_context__
        return copied.with_traceback(self.__traceback__)

    def _made_of(self) -> tuple[Any, tuple[Any, ...]]:
        # An OSError has more arguments than it shows in `args`.
        arguments = super().__reduce__()[1]
        return __newobj__, (type(self), *arguments)  # pyright: ignore[reportReturnType]

    def _state(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        if "__notes__" in state:
            # A list of its own: `add_note` appends to it.
            state["__notes__"] = list(state["__notes__"])
        return state


def _is_picklable(cause: BaseException) -> bool:
    try:
        pickle.loads(pickle.dumps(cause))
    except Exception:
        return False
    return True
