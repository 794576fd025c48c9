"""Change settings of a stream or consumer: show the changes, ask, change them, show the result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from twinstream.cli.confirm import sure
from twinstream.cli.screen import print_json, print_text
from twinstream.cli.settings.differences import changes_of
from twinstream.models import encode, evolve
from twinstream.models.codec.model import Model

__all__ = ["edit_settings"]

M = TypeVar("M", bound=Model)


def edit_settings(
    title: str,
    old: M,
    fields: Mapping[str, Any],
    change: Callable[[Callable[[M], M]], Model],
    *,
    named: Mapping[str, str],
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Change the `fields` of the configuration `old` by `change`, unless they are as wanted.

    `named` is what names the object in JSON.
    """
    changes = changes_of(old, fields)
    if not as_json:
        for line in changes:
            print_text(line)
    if not changes or dry_run:
        if as_json:
            print_json({**named, "changed": [], "would_change": changes})
        elif not changes:
            print_text("nothing to change")
        return
    sure(f"Change {title}?", yes=yes)
    info = change(lambda config: evolve(config, **fields))
    if as_json:
        print_json(encode(info))
    else:
        print_text(f"changed {title}")
