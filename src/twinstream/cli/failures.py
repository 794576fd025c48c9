"""Errors of commands: a message on standard error, exit code 1 (3 if an object does not exist).

With `--json` the message is a JSON document on one line.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

import click

from twinstream.cli.escapes import harmless, json_line

JSON_ASKED: Final = "twinstream.cli.json"
"""The key in `click.Context.meta` for whether the command line contains `--json`."""


DEBUG: Final = "twinstream.cli.debug"
"""The key in `click.Context.meta` for whether errors are printed with their tracebacks."""


class Failure(click.ClickException):
    """An error for the user. The message names the thing, the reason and what to try."""

    exit_code = 1

    def __init__(
        self, message: str, *, kind: str | None = None, err_code: int | None = None
    ) -> None:
        super().__init__(message)
        # `kind` and `err_code` describe an error that is not `__cause__`, for example an error of
        # another process.
        self._kind = kind
        self._err_code = err_code
        # Read the flag now: when click calls `show`, the context has ended.
        self._as_json = _json_asked()
        self._is_debugged = _asked(DEBUG)

    def show(self, file: object = None) -> None:
        """Print the message to standard error, as text or as JSON."""
        if self._is_debugged:
            lines = traceback.format_exception(self.__cause__ or self)
            click.echo(harmless("".join(lines)), err=True, nl=False)
        if self._as_json:
            about = failure_as_json(self.message, self.__cause__)
            if self._kind is not None:
                about |= {"kind": self._kind, "err_code": self._err_code}
            click.echo(json_line(about), err=True)
        else:
            message = harmless(self.message)
            click.echo(f"{click.style('error:', fg='red', bold=True)} {message}", err=True)


class NotThere(Failure):
    """The requested object does not exist. The exit code is 3, so that scripts can check it."""

    exit_code = 3


def _json_asked() -> bool:
    return _asked(JSON_ASKED)


def _asked(key: str) -> bool:
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(key, False))


def failure_as_json(message: str, cause: BaseException | None) -> dict[str, object]:
    """Return a failure as a JSON object.

    `kind` is the class name of `cause`. `err_code` is the error code of the server, or null
    if `cause` has none. Without a cause, both members are null.
    """
    return {
        "error": message,
        "kind": None if cause is None else type(cause).__name__,
        "err_code": getattr(cause, "err_code", None),
    }


@contextmanager
def reported() -> Generator[None]:
    """Within the block, convert errors that the user can fix to `Failure`.

    These are errors of the SDK, of Spark and of the operating system. An error about an object that
    does not exist becomes `NotThere`. With `--json`, Ctrl-C becomes a `Failure`. A
    closed standard output ends the command with exit code 0. Other errors are raised unchanged.
    """
    try:
        yield
    except click.exceptions.Exit:
        raise
    except click.ClickException as error:
        # click declares the attribute final, so set it in `__dict__`.
        error.__dict__["message"] = harmless(error.message)
        raise
    except BrokenPipeError:
        # The reader of the output, such as `head`, stopped reading. This is success for a command
        # that only prints. A command that works while it prints uses `needs_its_reader`.
        _discard_output()
        raise click.exceptions.Exit(0) from None
    except KeyboardInterrupt as error:
        if not _json_asked():  # click prints the error as text
            _print_notes(error)
            raise
        raise Failure("interrupted" + _notes(error)) from error
    except SystemExit as error:
        _print_notes(error)
        raise
    except Exception as error:
        if not _expected(error):
            raise
        if isinstance(error, OSError):
            _drop_unwritten()
        kind = NotThere if _is_missing(error) else Failure
        raise kind(_sentence(error)) from error


@contextmanager
def arguments_judged() -> Generator[None]:
    """Within the block, convert a `ValueError` to a usage error, which has exit code 2."""
    try:
        yield
    except ValueError as error:
        raise click.UsageError(str(error)) from error


@contextmanager
def needs_its_reader(work: str) -> Generator[None]:
    """Within the block, convert a closed standard output to a failure.

    `work` completes the message "standard output was closed before ...".
    """
    try:
        yield
    except BrokenPipeError as error:
        _discard_output()
        raise Failure(f"standard output was closed before {work}") from error


def _drop_unwritten() -> None:
    """Discard buffered output that cannot be written, for example to a full disk.

    Otherwise Python tries to write it again at exit.
    """
    try:
        sys.stdout.flush()
    except OSError:
        _discard_output()


def _discard_output() -> None:
    """Redirect standard output to the null device."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, sys.stdout.fileno())
    os.close(nothing)


def _expected(error: Exception) -> bool:
    # Import these on first use: a command that only validates files does not need them.
    from twinstream.errors import TwinstreamError
    from twinstream.testing import BinaryNotFound, ServerStartError

    ours = isinstance(error, TwinstreamError | OSError | BinaryNotFound | ServerStartError)
    return ours or _is_of_spark(error)


def _is_missing(error: Exception) -> bool:
    """Whether an error says that a stream, consumer, message, bucket, object or key is missing.

    A missing file of this machine is no such object.
    """
    from twinstream.errors import ConsumerNotFound, MessageNotFound, StreamNotFound

    return isinstance(error, StreamNotFound | ConsumerNotFound | MessageNotFound | LookupError)


def _is_of_spark(error: Exception) -> bool:
    if "pyspark" not in sys.modules:  # importing it takes a second, and few commands need it
        return False
    from pyspark.errors import PySparkException

    return isinstance(error, PySparkException)


def _sentence(error: Exception) -> str:
    # Import it on first use: a command that only validates files does not need it.
    from twinstream.cli.hints import hint, sentence

    text = sentence(error) + _notes(error)
    advice = hint(error)
    return f"{text}\n{advice}" if advice else text


def _notes(error: BaseException) -> str:
    """Return the notes of an error, each on a new line: for example, what is left on the server."""
    return "".join(f"\n{note}" for note in getattr(error, "__notes__", ()))


def _print_notes(error: BaseException) -> None:
    """Print the notes of an error that ends the command without a message."""
    notes = _notes(error).strip()
    if notes:
        click.echo(harmless(notes), err=True)
