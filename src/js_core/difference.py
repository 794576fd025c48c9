"""How a configuration differs from the one that the server holds, field by field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from attrs import frozen

__all__ = ["Difference", "differences"]


@frozen
class Difference:
    """One field; None where a side does not have it."""

    field: str
    wanted: Any
    actual: Any

    def __str__(self) -> str:
        return f"{self.field}: wanted {self.wanted!r}, is {self.actual!r}"


def differences(wanted: Mapping[str, Any], actual: Mapping[str, Any]) -> tuple[Difference, ...]:
    """Return what was asked for and is otherwise.

    Fields that were left to the server are no differences, nor is metadata of the server's own.
    Where nothing that was asked for differs, what the server has beyond its defaults does.
    """
    wanted, actual = _of_users(wanted), _of_users(actual)
    asked = {name: value for name, value in wanted.items() if value is not None}
    found = [
        Difference(name, value, actual.get(name))
        for name, value in asked.items()
        if not _same(value, actual.get(name))
    ]
    if not found:
        found = [
            Difference(name, None, value)
            for name, value in actual.items()
            if name not in asked and value and name not in _FILLED_IN
        ]
    return tuple(found)


# The server fills these in by itself, so their presence tells nothing.
_FILLED_IN: Final = frozenset(
    {
        "ack_wait",
        "deliver_policy",
        "inactive_threshold",
        "max_ack_pending",
        "max_deliver",
        "max_waiting",
        "metadata",
        "name",
        "num_replicas",
        "replay_policy",
    }
)


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
