"""Write a configuration into a file that `validate` and `apply` read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final, cast

import click

from twinstream.cli.failures import Failure
from twinstream.cli.value_text import in_time
from twinstream.models import Duration
from twinstream.models.codec.json_object import JsonObject
from twinstream.models.files.shapes import SHAPES
from twinstream.models.units import parse_duration

__all__ = ["export", "export_option"]

export_option: Final = click.option(
    "--export",
    "export_file",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the configuration into FILE (.yaml or .json) instead of creating anything.",
)


def export(file: Path, members: JsonObject, record: str) -> None:
    """Write the configuration `members` of a record into a new file, as YAML or JSON.

    Durations in YAML have units. Raises `Failure` if the file exists or cannot be written.
    """
    if file.suffix == ".json":
        text = json.dumps(members, ensure_ascii=False, indent=2) + "\n"
    else:
        import yaml

        text = yaml.safe_dump(_readable(members, record), allow_unicode=True, sort_keys=False)
    try:
        with file.open("x", encoding="utf-8") as made:
            made.write(text)
    except OSError as error:
        raise Failure(f"cannot write {file}: {error.strerror or error}") from error


def _readable(members: JsonObject, record: str) -> JsonObject:
    shape = SHAPES[record]
    return {
        name: _value(value, shape[name][0]) if name in shape else value
        for name, value in members.items()
    }


def _value(value: Any, kind: str) -> object:
    """Return a setting with units, as a person would write it, if that reads as the same value."""
    if isinstance(value, list) and kind.startswith("["):
        return [_value(item, kind[1:-1]) for item in cast("list[object]", value)]
    if isinstance(value, dict) and kind in SHAPES:
        return _readable(cast("JsonObject", value), kind)
    if kind == "duration" and isinstance(value, int):
        text = in_time(Duration.from_ns(value))
        return text if parse_duration(text) == value else value
    return cast("object", value)
