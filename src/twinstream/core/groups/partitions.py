"""Assign partitions to the members of a group, and derive the filters of their consumers.

All clients must compute the same assignment. Source: orbit.go `pcgroups`,
`GeneratePartitionFilters`.
"""

from __future__ import annotations

from typing import TypeAlias

from twinstream.models import ElasticGroupConfig, StaticGroupConfig

__all__ = [
    "GroupConfig",
    "filters_of",
    "is_partitioned",
    "members_of",
    "partitions_of",
    "subjects_of",
]

GroupConfig: TypeAlias = StaticGroupConfig | ElasticGroupConfig


def members_of(config: GroupConfig) -> list[str]:
    """Return the names of the members, each once, in the order of the configuration.

    Some of them may have no partitions.
    """
    if config.members:
        return list(dict.fromkeys(config.members))
    return [mapping.member for mapping in config.member_mappings or ()]


def partitions_of(config: GroupConfig, member: str) -> tuple[int, ...]:
    """Return the partitions of a member, in the order of its filters.

    Without mappings, the members are sorted by name. If there are more members than partitions, the
    last members get none. Each of the others gets `partitions // members` consecutive partitions.
    The remaining partitions go to the first members, one to each. Few partitions move when a member
    is added or removed.
    """
    if not config.members:
        mapped = (each for each in config.member_mappings or () if each.member == member)
        return tuple(number for each in mapped for number in each.partitions or ())
    members = sorted(set(config.members))[: config.max_members]
    if member not in members:
        return ()
    place, count = members.index(member), len(members)
    run = config.max_members // count
    rest = range(count * run + place, config.max_members, count)
    return (*range(place * run, (place + 1) * run), *rest)


def filters_of(config: GroupConfig, member: str) -> tuple[str, ...]:
    """Return the subject filters of a member's consumer, an empty tuple without partitions."""
    partitions = partitions_of(config, member)
    subjects = subjects_of(config) if config.members else [">"]
    # Each filter occurs once, because the server refuses overlapping filters (10138).
    return tuple(
        dict.fromkeys(f"{number}.{subject}" for subject in subjects for number in partitions)
    )


def subjects_of(config: GroupConfig) -> list[str]:
    """Return the different subjects that a group without mappings consumes, in their order."""
    if isinstance(config, StaticGroupConfig):
        given = config.filters or ()
    else:
        given = [each.filter for each in config.partitioning_filters or ()]
    return list(dict.fromkeys(given)) or [">"]


def is_partitioned(subject: str, config: GroupConfig) -> bool:
    """Return whether a stored subject begins with the number of a partition of the group."""
    number, dot, _ = subject.partition(".")
    return bool(dot) and number.isdecimal() and int(number) < config.max_members
