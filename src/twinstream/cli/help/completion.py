"""Completion of the names of streams, consumers, buckets and keys in shells.

The names come from the server of the command line. If it does not answer soon, nothing is offered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Final

import click
from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    from js_sync import JetStream

__all__ = ["complete_names"]

# The number of names that are offered at most.
_MOST: Final = 500

# The seconds that the server has to answer.
_PATIENCE: Final = 1.0


def complete_names(command: click.Command) -> None:
    """Let shells complete the arguments and options of a command that are names on the server."""
    of_objects = any(param.name == "object_name" for param in command.params)
    for param in command.params:
        kind = _KINDS.get(param.name or "")
        if kind is not None and param.type is click.STRING and not of_objects:
            param.type = _Name(kind)


class _Name(click.types.StringParamType):
    """Text that is the name of something on the server."""

    def __init__(self, kind: Callable[[JetStream, click.Context], Iterable[str]]) -> None:
        self._kind = kind

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return the names that begin with `incomplete`; none after any error."""
        try:
            return [CompletionItem(name) for name in self._names(ctx, incomplete)]
        except Exception:  # an error message would destroy the line that the user types
            return []

    def _names(self, ctx: click.Context, incomplete: str) -> Iterator[str]:
        from twinstream.cli.target import target_of

        target = target_of(ctx, timeout=_PATIENCE)
        with target.connect() as nc:
            found = self._kind(target.jetstream(nc), ctx)
            matching = (name for name in found if name.startswith(incomplete))
            yield from sorted(islice(matching, _MOST))


def _streams(jet: JetStream, _: click.Context) -> Iterable[str]:
    return jet.stream_names()


def _consumers(jet: JetStream, ctx: click.Context) -> Iterable[str]:
    return jet.bind_stream(ctx.params["stream"]).consumer_names()


def _buckets(jet: JetStream, ctx: click.Context) -> Iterable[str]:
    group = ctx.parent.info_name if ctx.parent is not None else None
    return jet.key_value_names() if group == "kv" else (each.bucket for each in jet.object_stores())


def _keys(jet: JetStream, ctx: click.Context) -> Iterable[str]:
    return jet.get_key_value(ctx.params["bucket"]).keys()


# What the arguments and options of these names are names of.
_KINDS: Final = {
    "stream": _streams,
    "consumer": _consumers,
    "bucket": _buckets,
    "key": _keys,
    "keys": _keys,
}
