"""The changes of a bucket between two of its states, as `KeyValue.diff` returns them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Final, Generic, TypeVar

from attrs import frozen

from twinstream.records.entry import Entry

__all__ = ["ChangeKind", "KeyChange", "KeyChanges", "key_changes"]

V = TypeVar("V")


class ChangeKind(StrEnum):
    """What happened to a key between two states."""

    ADDED = "added"
    """The key had no value, and has one."""
    CHANGED = "changed"
    """The key had another value."""
    DELETED = "deleted"
    """The key had a value, and has none."""


@frozen
class KeyChange(Generic[V]):
    """The entries of one key in two states. At least one of them is a value."""

    key: str
    before: Entry[V] | None
    """The entry in the first state: a value, a marker, or None if no revision was stored."""
    after: Entry[V] | None
    """The entry in the second state, as `before`. A marker shows when a value was deleted."""

    @property
    def kind(self) -> ChangeKind:
        """Whether the key was added, changed or deleted."""
        if self.before is None or not self.before.is_value:
            return ChangeKind.ADDED
        has_value = self.after is not None and self.after.is_value
        return ChangeKind.CHANGED if has_value else ChangeKind.DELETED


class KeyChanges(Mapping[str, KeyChange[V]]):
    """A mapping of keys to what changed between two states of a bucket, ordered by key.

    A key whose stored value is the same in both states is not included, even if it was written in
    between.
    """

    def __init__(
        self, bucket: str, revisions: tuple[int, int], changes: Mapping[str, KeyChange[V]]
    ) -> None:
        self.bucket: Final = bucket
        self.revisions: Final = revisions
        """The revisions of the two states."""
        self._changes: Final = changes

    def __getitem__(self, key: str) -> KeyChange[V]:
        return self._changes[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._changes)

    def __len__(self) -> int:
        return len(self._changes)

    def __repr__(self) -> str:
        first, second = self.revisions
        return f"<KeyChanges of {self.bucket} from {first} to {second}: {len(self)} keys>"

    @property
    def added(self) -> list[KeyChange[V]]:
        """The changes of keys that have a value only in the second state."""
        return self._of(ChangeKind.ADDED)

    @property
    def changed(self) -> list[KeyChange[V]]:
        """The changes of keys that have different values."""
        return self._of(ChangeKind.CHANGED)

    @property
    def deleted(self) -> list[KeyChange[V]]:
        """The changes of keys that have a value only in the first state."""
        return self._of(ChangeKind.DELETED)

    def _of(self, kind: ChangeKind) -> list[KeyChange[V]]:
        return [each for each in self.values() if each.kind is kind]


def key_changes(
    bucket: str,
    stored: str,
    revisions: tuple[int, int],
    before: Mapping[str, Entry[V]],
    after: Mapping[str, Entry[V]],
) -> KeyChanges[V]:
    """Return the changes between two states: entries, markers included, by their stored keys.

    A key that a codec cannot decode is the stored one, or the stored subject, which begins with
    `stored`, if another key has this name.
    """
    changes = [
        KeyChange((after.get(raw) or before[raw]).key, before.get(raw), after.get(raw))
        for raw in sorted({*before, *after})
        if _value(before.get(raw)) != _value(after.get(raw))
    ]
    found: dict[str, KeyChange[V]] = {}
    for each in sorted(changes, key=_is_broken):
        entry = each.after or each.before
        if each.key in found and entry is not None:
            each = KeyChange(stored + entry.raw_key, each.before, each.after)
        found[each.key] = each
    return KeyChanges(bucket, revisions, dict(sorted(found.items())))


def _is_broken(change: KeyChange[V]) -> bool:
    return any(each is not None and each.error for each in (change.before, change.after))


def _value(entry: Entry[V] | None) -> bytes | None:
    """Return the stored bytes of a value, or None for a marker and for no entry."""
    return None if entry is None or not entry.is_value else entry.raw_value
