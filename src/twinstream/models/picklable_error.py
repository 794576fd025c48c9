"""`PicklableError`, the base class of exceptions that can be pickled, copied and shown safely.

Text from servers, publishers and files is shown with escapes. Without them, a control sequence
could move the cursor, rewrite earlier lines or fill the clipboard (OSC 52), a line break could
forge a line of a log, and bidirectional control characters could reverse the visible text.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final, Self, TypeVar

__all__ = ["PicklableError", "harmless", "harmless_line"]

E = TypeVar("E", bound=BaseException)


class PicklableError(Exception):
    """An exception that keeps its arguments, attributes, notes and cause if pickled or copied.

    By default Python restores an exception by calling its class with `args`, which contains the
    message. This fails for a class whose `__init__` takes other arguments. `PicklableError`
    restores the state without calling `__init__`.

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


# ASCII text that needs no escapes. Most text matches these patterns, which are fast to check.
_ASCII_TEXT: Final = re.compile(r"[\t\n -~]*")
_ASCII_LINE: Final = re.compile(r"[ -~]*")


def harmless(text: str) -> str:
    """Return text with escapes for its unprintable characters, except tabs and newlines."""
    if _ASCII_TEXT.fullmatch(text):
        return text
    return "".join(c if c.isprintable() or c in "\t\n" else _escape(c) for c in text)


def harmless_line(text: str) -> str:
    """Return text with escapes for all its unprintable characters, so that it is one line."""
    if _ASCII_LINE.fullmatch(text):
        return text
    return "".join(c if c.isprintable() else _escape(c) for c in text)


def _escape(character: str) -> str:
    """Return the JSON escape for a character. The json module escapes all of them except DEL."""
    number = ord(character)
    return json.dumps(character)[1:-1] if number != 0x7F else "\\u007f"
