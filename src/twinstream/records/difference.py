"""Compare the fields of a requested configuration with those of the server's configuration."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING, Any, Final, cast

from attrs import frozen

if TYPE_CHECKING:
    from twinstream.models import Model

__all__ = ["LIMITED", "Difference", "differences", "setting_differences"]


@frozen
class Difference:
    """A field that differs. `wanted` or `actual` is None if that configuration lacks the field."""

    field: str
    """Name of the field."""
    wanted: Any
    actual: Any

    def __str__(self) -> str:
        wanted, actual = _shown(self.field, self.wanted), _shown(self.field, self.actual)
        return f"{self.field}: wanted {wanted}, is {actual}"


def _shown(name: str, value: Any) -> str:
    """Return the value of a field for an error, with durations in seconds."""
    if value is None:
        return "unset"
    if isinstance(value, int) and name in _durations():
        return _seconds(value / 1e9)
    if isinstance(value, list):
        return f"[{', '.join(_shown(name, each) for each in cast('list[object]', value))}]"
    if isinstance(value, dict):
        given = cast("dict[str, Any]", value)
        return f"{{{', '.join(f'{key!r}: {_shown(key, each)}' for key, each in given.items())}}}"
    if isinstance(value, timedelta):
        return _seconds(value.total_seconds())
    return repr(value)


def _seconds(value: float) -> str:
    # For the server, a setting of zero is not set.
    return f"{value:.15g} s" if value else "0 s (off)"


@cache
def _durations() -> frozenset[str]:
    """Return the names of all settings that are durations."""
    from twinstream.models import ConsumerConfig, ConsumerLimits, StreamConfig
    from twinstream.models.codec.kinds import Kind, kinds_of
    from twinstream.models.times.duration import Duration

    found: set[str] = set()
    for record in (StreamConfig, ConsumerConfig, ConsumerLimits):
        for name, kind in kinds_of(record).items():
            if (kind.cls.cls if isinstance(kind.cls, Kind) else kind.cls) is Duration:
                found.add(name)
    return frozenset(found)


LIMITED: Final = frozenset(
    {"duplicate_window", "inactive_threshold", "max_ack_pending", "max_batch", "mirror_direct"}
)
"""If these fields are omitted, the server derives them from its limits, from the limits of the
stream, or from the origin of a mirror.
"""

# Settings that only pull consumers have, and whose defaults the server sets.
_OF_ONE_KIND: Final = frozenset({"max_waiting"})


def differences(wanted: Model, actual: Model, given: Model) -> tuple[Difference, ...]:
    """Return the fields in which the server's configuration differs from the requested one.

    `given` is the caller's configuration, `wanted` is `given` with the server's defaults. A limit
    of the server may change the default of a field. Fields that may differ for this reason are
    returned only if no other fields differ. If no field differs, fields with equivalent values of
    different spelling are returned. Metadata that the server added is ignored.
    """
    # The import is needed only if there is a difference.
    from twinstream.models import encode

    requested = {name: value for name, value in encode(given).items() if value is not None}
    doubtful = (LIMITED | actual.unknown.keys()) - requested.keys()
    mine, theirs = _of_users(encode(wanted)), _of_users(encode(actual))
    differ = [
        Difference(name, mine.get(name), theirs.get(name))
        for name in dict.fromkeys([*mine, *theirs])
        if not _same(mine.get(name), theirs.get(name))
    ]
    if _is_push(mine) != _is_push(theirs):
        # A default that only one kind of consumer has is no reason of its own.
        doubtful |= _OF_ONE_KIND - requested.keys()
    sure = [each for each in differ if each.field not in doubtful]
    return tuple(sure or differ or _odd(mine, theirs, requested))


def setting_differences(wanted: Model, actual: Model) -> tuple[Difference, ...]:
    """Return the settings in which an existing bucket or object store differs from a requested one.

    `wanted` contains the server's defaults. Settings of the stream that are not settings of the
    bucket do not count, for example those that another client chose. An unset, an empty and a zero
    value are the same.
    """
    from attrs import fields_dict

    pairs = [
        (name, _plain(getattr(wanted, name)), _plain(getattr(actual, name)))
        for name in fields_dict(type(wanted))
        if name != "unknown"
    ]
    return tuple(Difference(*each) for each in pairs if not _same(each[1], each[2]))


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, Enum) else value


def _is_push(config: Mapping[str, Any]) -> bool:
    return bool(config.get("deliver_subject"))


def _odd(
    wanted: Mapping[str, Any], actual: Mapping[str, Any], given: Mapping[str, Any]
) -> list[Difference]:
    """Return the fields whose values are equivalent but not equal.

    Examples are an empty and an absent value, or two spellings of a time.
    """
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
    """Return a configuration without the metadata that the server added."""
    metadata = config.get("metadata")
    if not metadata:
        return config
    own = {key: value for key, value in metadata.items() if not key.startswith("_nats.")}
    return {**config, "metadata": own}
