"""The names of a consumer group: its bucket and key, its stream, and its members' consumers."""

from __future__ import annotations

from typing import Final, Literal

from attrs import frozen

from twinstream.core.kv.names import check_key
from twinstream.core.wire.subjects import check_name

__all__ = ["BUCKETS", "GroupKind", "GroupNames", "group_of_key"]

GroupKind = Literal["static", "elastic"]

BUCKETS: Final[dict[GroupKind, str]] = {
    "static": "static-consumer-groups",
    "elastic": "elastic-consumer-groups",
}
"""The key-value buckets that store the configurations. All clients use these names."""


@frozen
class GroupNames:
    """The names of one consumer group of a stream."""

    kind: GroupKind
    stream: str
    """The stream whose messages the group consumes."""
    group: str

    @classmethod
    def of(cls, kind: GroupKind, stream: str, group: str) -> GroupNames:
        """Return the names of a group. Raises `BadArgument` if a name is invalid."""
        check_name(group, "consumer group")
        names = cls(kind, check_name(stream, "stream"), group)
        check_key(names.key)
        check_name(names.source, "stream")
        return names

    def __str__(self) -> str:
        return f"{self.kind} consumer group {self.group} of stream {self.stream}"

    @property
    def bucket(self) -> str:
        """The bucket that stores the configuration."""
        return BUCKETS[self.kind]

    @property
    def key(self) -> str:
        """The key of the configuration."""
        return f"{self.stream}.{self.group}"

    @property
    def source(self) -> str:
        """The stream that the members consume. An elastic group has its own stream."""
        return self.stream if self.kind == "static" else f"{self.stream}-{self.group}"

    def consumer(self, member: str) -> str:
        """Return the name of a member's consumer; raises `BadArgument` for an invalid name."""
        check_name(member, "member")
        if self.kind == "elastic":
            return member
        return check_name(f"{self.group}-{member}", "consumer")


def group_of_key(key: str) -> str:
    """Return the name of the group whose configuration has this key."""
    return key.partition(".")[2]
