"""The base classes of all errors. Applications import them from `twinstream.errors`."""

from __future__ import annotations

from typing import Final

from twinstream.errors.api_target import api_target
from twinstream.models.picklable_error import PicklableError

__all__ = ["JetStreamError", "NoResponders", "TwinstreamError"]

_PACKAGE: Final = "twinstream.errors"


class TwinstreamError(PicklableError):
    """The base class of all errors of this package.

    What to do: See the class of the error, and its text.
    """

    __module__ = _PACKAGE

    def __init_subclass__(cls) -> None:
        # Tracebacks and pickles name the module from which applications import the classes.
        if cls.__module__.startswith(f"{_PACKAGE}."):
            cls.__module__ = _PACKAGE

    def add_advice(self, advice: str) -> None:
        """Add to the text of the error what the caller can do.

        A note would not do: logs and `str(error)` do not show it.

        Args:
            advice: The sentence to add, about what to do.
        """
        self.args = (f"{self.args[0]}; {advice}",)


class NoResponders(TwinstreamError):
    """There are no responders: the stream or consumer does not exist, or it has no leader.

    What to do: Create the stream or consumer, correct its name, or start the program that answers.
    """


class JetStreamError(TwinstreamError):
    """The JetStream API returned an error.

    `err_code` is the server's code for this error, which is stable; it is 0 if the server gave
    none. `code` is the HTTP-like status of the error, `description` its text. `subject` is the
    subject of the request, empty if it is unknown.

    What to do: Look the `err_code` up in the reference of error codes.
    """

    def __init__(self, description: str, *, code: int, err_code: int, subject: str = "") -> None:
        self.description = description
        self.code = code
        self.err_code = err_code
        self.subject = subject
        where = f" [{api_target(subject)}]" if subject else ""
        number = f" (err_code {err_code})" if err_code else ""
        super().__init__(f"{description}{number}{where}")
