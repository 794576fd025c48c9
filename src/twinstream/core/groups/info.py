"""The stored configuration of a consumer group, with its revision."""

from __future__ import annotations

from typing import Generic, TypeVar

from attrs import frozen

from twinstream.core.groups.partitions import members_of, partitions_of
from twinstream.models import ElasticGroupConfig, StaticGroupConfig

__all__ = ["GroupInfo"]

C = TypeVar("C", StaticGroupConfig, ElasticGroupConfig)


@frozen
class GroupInfo(Generic[C]):
    """The stored configuration of a consumer group."""

    config: C
    """The settings and members."""
    revision: int
    """The revision of the key whose value is the configuration."""

    @property
    def members(self) -> list[str]:
        """The names of the members. At most `max_members` of them have partitions."""
        return members_of(self.config)

    def partitions(self, member: str) -> tuple[int, ...]:
        """Return the numbers of a member's partitions, an empty tuple if it has none.

        Args:
            member: Name of the member.
        """
        return partitions_of(self.config, member)
