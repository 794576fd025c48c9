"""Differences between a configuration and the one on the server, field by field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from twinstream.models.records import frozen

if TYPE_CHECKING:
    from twinstream.models import Model

__all__ = ["LIMITED", "Difference", "differences"]


@frozen
class Difference:
    """A field that differs; None means that a side does not have it."""

    field: str
    wanted: Any
    actual: Any

    def __str__(self) -> str:
        return f"{self.field}: wanted {self.wanted!r}, is {self.actual!r}"


# If these fields are omitted, the server takes them from its own limits, from those of the stream,
# or from the origin of a mirror.
LIMITED: Final = frozenset(
    {"duplicate_window", "inactive_threshold", "max_ack_pending", "max_batch", "mirror_direct"}
)


def differences(wanted: Model, actual: Model, given: Model) -> tuple[Difference, ...]:
    """Return the fields in which the server's configuration differs from the requested one.

    `given` is the caller's configuration, `wanted` the same with the server's defaults. Fields that
    may only seem to differ, because a limit of the server changed a default, are returned only if
    no others differ. Metadata added by the server is ignored.
    """
    # Imported here, because it is needed only if there is a difference.
    from twinstream.models import encode

    asked = {name: value for name, value in encode(given).items() if value is not None}
    doubtful = (LIMITED | actual.unknown.keys()) - asked.keys()
    mine, theirs = _of_users(encode(wanted)), _of_users(encode(actual))
    differ = [
        Difference(name, mine.get(name), theirs.get(name))
        for name in dict.fromkeys([*mine, *theirs])
        if not _same(mine.get(name), theirs.get(name))
    ]
    sure = [each for each in differ if each.field not in doubtful]
    return tuple(sure or differ or _odd(mine, theirs, asked))


def _odd(
    wanted: Mapping[str, Any], actual: Mapping[str, Any], given: Mapping[str, Any]
) -> list[Difference]:
    """Return values that are equivalent but not equal: empty and absent, or spellings of a time."""
    mine, theirs = _nested({**wanted, **_of_users(given)}), _nested(actual)
    return [
        Difference(name, mine.get(name), theirs.get(name))
        for name in dict.fromkeys([*mine, *theirs])
        if mine.get(name) != theirs.get(name)
    ]


def _nested(config: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in config.items() if isinstance(value, (dict, list))}


def _same(wanted: Any, actual: Any) -> bool:
    # The server omits members that are zero, false or empty.
    return bool(wanted == actual or (not wanted and not actual))


def _of_users(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a configuration without the metadata added by the server."""
    metadata = config.get("metadata")
    if not metadata:
        return config
    own = {key: value for key, value in metadata.items() if not key.startswith("_nats.")}
    return {**config, "metadata": own}
