"""The option `--verbose`, which prints the log of the SDK."""

from __future__ import annotations

import logging
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Final

import click

from twinstream.cli.escapes import harmless
from twinstream.cli.failures import DEBUG

__all__ = ["debug_option", "shown_log", "verbose_option"]

_FORMAT: Final = "%(asctime)s %(levelname)s %(name)s: %(message)s"
# The key of a context for the number of `-v`.
_TIMES: Final = "twinstream.verbose"
_LEVELS: Final = (logging.CRITICAL, logging.INFO, logging.DEBUG)


@contextmanager
def shown_log(ctx: click.Context) -> Generator[None]:
    """Within the block, print log records of the SDK to standard error as `--verbose` says.

    Without `--verbose`, no record is printed, because commands print their own error messages.
    """
    times: int = ctx.find_root().meta.get(_TIMES, 0)
    logger = logging.getLogger("twinstream")
    handler: logging.Handler = _Shown() if times else logging.NullHandler()
    level, propagate = logger.level, logger.propagate
    logger.setLevel(_LEVELS[min(times, 2)])
    logger.propagate = False
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
        logger.propagate = propagate


def _note(ctx: click.Context, _: click.Parameter, times: int) -> None:
    ctx.meta[_TIMES] = times


class _Shown(logging.StreamHandler[Any]):
    """A handler that prints log records to standard error, with escaped control characters."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(logging.Formatter(_FORMAT))

    def format(self, record: logging.LogRecord) -> str:
        """Return the text of a log record, with escapes for control characters."""
        return harmless(super().format(record))


verbose_option: Final = click.option(
    "--verbose",
    "-v",
    count=True,
    expose_value=False,
    is_eager=True,
    callback=_note,
    help="Show the log: -v events of connections and workers, -vv also each API request.",
)


def _debug(ctx: click.Context, _: click.Parameter, asked: bool) -> None:
    ctx.meta[DEBUG] = asked  # `Failure` reads it, and then prints the traceback, too


debug_option: Final = click.option(
    "--debug",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_debug,
    help="Print the Python traceback of an error before its message.",
)
