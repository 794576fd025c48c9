"""The SDK's log on the command line, hidden unless requested."""

from __future__ import annotations

import logging
from typing import Any, Final

import click

from twinstream.cli.escapes import harmless

__all__ = ["verbose_option"]

_FORMAT: Final = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_LEVELS: Final = (logging.CRITICAL, logging.INFO, logging.DEBUG)


def _show(ctx: click.Context, _: click.Parameter, times: int) -> None:
    """Show log records of the SDK on standard error until the command ends.

    Without the option none are shown, because commands print their own error messages.
    """
    logger = logging.getLogger("twinstream")
    handler: logging.Handler = _Shown() if times else logging.NullHandler()
    level, propagate = logger.level, logger.propagate
    logger.setLevel(_LEVELS[min(times, 2)])
    logger.propagate = False
    logger.addHandler(handler)

    @ctx.call_on_close
    def restore() -> None:
        logger.removeHandler(handler)
        logger.setLevel(level)
        logger.propagate = propagate


class _Shown(logging.StreamHandler[Any]):
    """Prints records to standard error, with escapes for control characters."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(logging.Formatter(_FORMAT))

    def format(self, record: logging.LogRecord) -> str:
        """Return the text of a record, with escapes for control characters."""
        return harmless(super().format(record))


verbose_option: Final = click.option(
    "--verbose",
    "-v",
    count=True,
    expose_value=False,
    is_eager=True,
    callback=_show,
    help="Show the log: -v what happens to connections and workers, -vv each API request, too.",
)
