"""`CloudEvent`: an event with the attributes of CloudEvents 1.0."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, Generic, TypeVar

import attrs

from twinstream.errors import BadArgument

__all__ = ["SPEC_VERSION", "CloudEvent"]

D = TypeVar("D")

SPEC_VERSION: Final = "1.0"
_NAME: Final = re.compile(r"[a-z0-9]+")
_RESERVED: Final = {
    *("id", "source", "specversion", "type", "time", "subject", "dataschema", "datacontenttype"),
    *("data", "data_base64"),
}


def _required(event: Any, attribute: Any, value: Any) -> None:
    if not isinstance(value, str) or not value:
        raise BadArgument(f"{attribute.name} of a CloudEvent must be text, got {value!r}")


def _text(event: Any, attribute: Any, value: Any) -> None:
    if value is not None:
        _required(event, attribute, value)


def _zoned(event: Any, attribute: Any, value: Any) -> None:
    if value is None:
        return
    if not isinstance(value, datetime) or value.tzinfo is None:
        raise BadArgument(f"time of a CloudEvent must be a datetime with a zone, got {value!r}")


def _names(event: Any, attribute: Any, value: Mapping[str, str]) -> None:
    """Raise `BadArgument` if the name or the value of an extension is invalid."""
    for name, each in value.items():
        if not _NAME.fullmatch(name) or name in _RESERVED:
            raise BadArgument(
                f"an extension of a CloudEvent has lower-case letters and digits, got {name!r}"
            )
        if not isinstance(each, str):
            raise BadArgument(f"extension {name} of a CloudEvent must be text, got {each!r}")


@attrs.frozen(kw_only=True)
class CloudEvent(Generic[D]):
    """An event of CloudEvents 1.0. Raises `BadArgument` for an invalid attribute.

    `subject` is an attribute of the event, and not the subject to which it is published.
    """

    id: str = attrs.field(validator=_required)
    """Id of the event, unique for its source."""
    source: str = attrs.field(validator=_required)
    """URI of where the event happened."""
    type: str = attrs.field(validator=_required)
    """Kind of the event."""
    data: D | None = None
    """What happened."""
    time: datetime | None = attrs.field(default=None, validator=_zoned)
    """When it happened."""
    subject: str | None = attrs.field(default=None, validator=_text)
    dataschema: str | None = attrs.field(default=None, validator=_text)
    """URI of the schema of the data."""
    datacontenttype: str | None = attrs.field(default=None, validator=_text)
    """The media type of the data. By default, a publish takes that of the codec of the data."""
    extensions: Mapping[str, str] = attrs.field(factory=dict[str, str], validator=_names)
    """Further attributes. Booleans and numbers of others are read as text, such as `true`."""
