"""How a configuration differs from the one that the server holds, field by field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from attrs import frozen

if TYPE_CHECKING:
    from twinstream.models import Model

__all__ = ["LIMITED", "Difference", "differences"]


@frozen
class Difference:
    """One field; None where a side does not have it."""

    field: str
    wanted: Any
    actual: Any

    def __str__(self) -> str:
        return f"{self.field}: wanted {self.wanted!r}, is {self.actual!r}"


# Where these are left out, the server takes them from limits of its own, of the stream, or from the
# origin of a mirror.
LIMITED: Final = frozenset(
    {"duplicate_window", "inactive_threshold", "max_ack_pending", "max_batch", "mirror_direct"}
)


def differences(wanted: Model, actual: Model, given: Model) -> tuple[Difference, ...]:
    """Return what the server holds otherwise than a program wants it.

    `given` is the configuration of the program, `wanted` the same with the server's defaults.
    What may only look different, as a limit of the server changed a default, is named where
    nothing else is. Metadata of the server's own makes no difference.
    """
    # Only who looks for differences needs it.
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
    """Return what means the same and is not: empty and absent, two spellings of one time."""
    mine, theirs = _nested({**wanted, **_of_users(given)}), _nested(actual)
    return [
        Difference(name, mine.get(name), theirs.get(name))
        for name in dict.fromkeys([*mine, *theirs])
        if mine.get(name) != theirs.get(name)
    ]


def _nested(config: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in config.items() if isinstance(value, (dict, list))}


def _same(wanted: Any, actual: Any) -> bool:
    # The server leaves out what is zero, false or empty.
    return bool(wanted == actual or (not wanted and not actual))


def _of_users(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a configuration without the metadata that the server adds."""
    metadata = config.get("metadata")
    if not metadata:
        return config
    own = {key: value for key, value in metadata.items() if not key.startswith("_nats.")}
    return {**config, "metadata": own}
