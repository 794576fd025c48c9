"""Failures: one line on standard error, exit code 1 (3 if the object does not exist).

For machines, that is after `--json`, the line is a JSON document.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

import click

from twinstream.cli.escapes import harmless, json_line
from twinstream.models import error_codes

JSON_ASKED: Final = "twinstream.cli.json"
"""The key in click's context for whether the command got `--json`."""


class Failure(click.ClickException):
    """An error for the user. The message names the thing, the reason and what to try."""

    exit_code = 1

    def __init__(
        self, message: str, *, kind: str | None = None, err_code: int | None = None
    ) -> None:
        super().__init__(message)
        # The kind of an error that is not the cause, for example because another process raised it.
        self._kind = kind
        self._err_code = err_code
        # Determined now, because the command's context has ended when the failure is shown.
        self._as_json = _json_asked()

    def show(self, file: object = None) -> None:
        """Print the message to standard error."""
        if self._as_json:
            about = failure_as_json(self.message, self.__cause__)
            if self._kind is not None:
                about |= {"kind": self._kind, "err_code": self._err_code}
            click.echo(json_line(about), err=True)
        else:
            message = harmless(self.message)
            click.echo(f"{click.style('error:', fg='red', bold=True)} {message}", err=True)


class NotThere(Failure):
    """The requested object does not exist; scripts distinguish this from other failures."""

    exit_code = 3


def _json_asked() -> bool:
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(JSON_ASKED, False))


def failure_as_json(message: str, cause: BaseException | None) -> dict[str, object]:
    """Return a failure as a JSON object: ``kind`` is the class of the error that caused it."""
    return {
        "error": message,
        "kind": None if cause is None else type(cause).__name__,
        "err_code": getattr(cause, "err_code", None),
    }


@contextmanager
def reported() -> Generator[None]:
    """Turn the errors that a user can act on into :class:`Failure`; others stay as they are."""
    try:
        yield
    except click.exceptions.Exit:
        raise
    except click.ClickException as error:
        # Set in `__dict__`, because click declares the attribute final.
        error.__dict__["message"] = harmless(error.message)
        raise
    except BrokenPipeError:
        # The reader of the output, such as `head`, stopped reading. For a command that only prints,
        # this is success. A command that does work while printing uses `needs_its_reader`.
        _discard_output()
        raise click.exceptions.Exit(0) from None
    except KeyboardInterrupt as error:
        if not _json_asked():  # otherwise click prints the error as text
            raise
        raise Failure("interrupted") from error
    except Exception as error:
        if not _expected(error):
            raise
        if isinstance(error, OSError):
            _drop_unwritten()
        kind = NotThere if isinstance(error, LookupError) else Failure
        raise kind(_sentence(error)) from error


@contextmanager
def arguments_judged() -> Generator[None]:
    """Turn a `ValueError` about an argument into a usage error, with its own exit code."""
    try:
        yield
    except ValueError as error:
        raise click.UsageError(str(error)) from error


@contextmanager
def needs_its_reader(work: str) -> Generator[None]:
    """Fail, naming the `work`, if standard output is closed while the command still works."""
    try:
        yield
    except BrokenPipeError as error:
        _discard_output()
        raise Failure(f"standard output was closed before {work}") from error


def _drop_unwritten() -> None:
    """Keep Python from writing buffered output again at exit, after a full disk refused it."""
    try:
        sys.stdout.flush()
    except OSError:
        _discard_output()


def _discard_output() -> None:
    """Redirect further output to the null device."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, sys.stdout.fileno())
    os.close(nothing)


def _expected(error: Exception) -> bool:
    # Imported lazily: a command that only validates files does not load the protocol.
    from twinstream.errors import TwinstreamError
    from twinstream.testing import BinaryNotFound, ServerStartError

    ours = isinstance(error, TwinstreamError | OSError | BinaryNotFound | ServerStartError)
    return ours or _is_of_spark(error)


def _is_of_spark(error: Exception) -> bool:
    if "pyspark" not in sys.modules:  # importing it takes a second, and few commands need it
        return False
    from pyspark.errors import PySparkException

    return isinstance(error, PySparkException)


def _sentence(error: Exception) -> str:
    text = str(error) or type(error).__name__
    hint = _hint(error)
    return f"{text}\n{hint}" if hint else text


def _hint(error: Exception) -> str:
    from twinstream import errors
    from twinstream.core.connect.handshake import NO_CREDENTIALS

    match error:
        case errors.AuthenticationFailed() if NO_CREDENTIALS not in str(error):
            return "the server refused them: look at the options, TWINSTREAM_... and the URL"
        case errors.AuthenticationFailed():
            return "give credentials with --user and --password, --token, --creds or --nkey"
        case errors.ConnectionFailed() if "TlsOptions" in str(error):
            return "here that is --tls-ca, --tls-cert and --tls-key, or --tls-first"
        case errors.ConnectionFailed():
            return "is a server running there? --server or TWINSTREAM_URL names another one"
        case errors.StreamNotFound():
            return "`twinstream stream ls` shows the streams of this server"
        case errors.ConsumerNotFound():
            return "`twinstream consumer ls` shows the consumers of a stream"
        case errors.PermissionDenied():
            return "`twinstream permissions` tells which subjects a user must be allowed"
        case errors.JetStreamNotEnabled(err_code=error_codes.NOT_ENABLED_FOR_ACCOUNT):
            return "enable JetStream for the account, or name a --domain or --prefix that has it"
        case errors.JetStreamNotEnabled():
            return "start the server with JetStream: nats-server --jetstream"
        case _:
            return ""
