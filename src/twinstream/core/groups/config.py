"""Configurations of consumer groups: validation, the stored JSON, and the allowed changes.

Other clients compare the stored JSON, so a change keeps every JSON field that it does not affect,
including unknown fields and nulls.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeVar

from twinstream.core.arguments.check_arguments import check_kind, check_whole
from twinstream.core.groups.names import GroupNames
from twinstream.core.groups.partitions import GroupConfig, members_of, subjects_of
from twinstream.core.wire.response import write_json
from twinstream.core.wire.selection import one_or_several
from twinstream.core.wire.subjects import check_filter, check_name
from twinstream.errors import BadArgument, InvalidGroupConfig
from twinstream.models import (
    DecodeError,
    ElasticGroupConfig,
    MemberMapping,
    PartitioningFilter,
    StaticGroupConfig,
    decode,
    encode,
    evolve,
)

__all__ = [
    "check_group_config",
    "config_bytes",
    "differences",
    "member_names",
    "read_config",
    "with_mappings",
    "with_members",
    "without_mappings",
    "without_members",
]

C = TypeVar("C", StaticGroupConfig, ElasticGroupConfig)

# Another client may have stored any number. The limit is far above the number of filters that a
# server supports.
_MOST_PARTITIONS: Final = 65_536

# The filters of one member may be each partition with each subject. `filters_of` expands them, so
# their number is checked before.
_MOST_FILTERS: Final = 65_536

# The largest number of a stream's limits, which are 64 bits wide on the server.
_LARGEST_LIMIT: Final = 2**63 - 1


# ---- validation


def check_group_config(config: C) -> C:
    """Return a configuration. Raises `BadArgument`, which names the setting, if it is invalid."""
    check_kind(config.max_members, int, "max_members", "a whole number")
    if check_whole(config.max_members, "max_members") > _MOST_PARTITIONS:
        raise BadArgument(
            f"max_members must be at most {_MOST_PARTITIONS}, got {config.max_members}"
        )
    if isinstance(config, ElasticGroupConfig):
        _check_elastic(config)
    else:
        for subject in config.filters or ():
            check_filter(subject)
    _check_product(config)
    for each in config.member_mappings or ():
        check_kind(each, MemberMapping, "each member mapping", "a MemberMapping")
    for member in members_of(config):
        check_name(member, "member")
    if config.members and config.member_mappings:
        raise BadArgument("a group has members or member_mappings, not both")
    if config.member_mappings:
        _check_mappings(config.member_mappings, config.max_members)
    return config


def _check_product(config: GroupConfig) -> None:
    """Raise `BadArgument` if a member could have more than `_MOST_FILTERS` filters."""
    if config.member_mappings:
        return  # A mapped member has one filter for each of its partitions.
    count = len(subjects_of(config))
    if count * config.max_members > _MOST_FILTERS:
        raise BadArgument(
            f"{config.max_members} partitions of {count} filters are more than {_MOST_FILTERS}"
            " filters of a consumer: choose a smaller max_members, or fewer and wider filters"
        )


def _check_elastic(config: ElasticGroupConfig) -> None:
    """Raise `BadArgument` if a setting that only elastic groups have is invalid."""
    for number in (config.max_buffered_msg, config.max_buffered_bytes):
        if number is None:
            continue
        if check_whole(number, "max_buffered_msg and max_buffered_bytes", -1) > _LARGEST_LIMIT:
            raise BadArgument(
                f"max_buffered_msg and max_buffered_bytes are at most {_LARGEST_LIMIT}"
            )
    for each in config.partitioning_filters or ():
        check_kind(each, PartitioningFilter, "each partitioning filter", "a PartitioningFilter")
        _check_partitioning(each)


def _check_partitioning(given: PartitioningFilter) -> None:
    """Raise `BadArgument` if a filter cannot divide its messages into partitions.

    `partitioning_wildcards` are the numbers of the `*` of the filter, from 1.
    """
    check_filter(given.filter)
    tokens = given.filter.split(".")
    stars = tokens.count("*")
    if not stars and tokens[-1] != ">":
        raise BadArgument(
            f"partitioning filter {given.filter!r} has no wildcard: all of its messages would be in"
            " one partition"
        )
    wildcards = given.partitioning_wildcards or []
    for number in wildcards:
        if check_whole(number, "each of partitioning_wildcards") > stars:
            raise BadArgument(
                f"partitioning filter {given.filter!r} has {stars} tokens *, there is no number"
                f" {number}"
            )
    if len(set(wildcards)) < len(wildcards):
        raise BadArgument(f"partitioning_wildcards of {given.filter!r} has a number twice")


def _check_mappings(mappings: list[MemberMapping], partition_count: int) -> None:
    """Raise `BadArgument` if the mappings do not assign each partition to exactly one member.

    The partitions are 0 to `partition_count` - 1. A group has at most one member for each.
    """
    for each in mappings:
        check_kind(each, MemberMapping, "each of member_mappings", "a MemberMapping")
    if len({each.member for each in mappings}) < len(mappings):
        raise BadArgument("member_mappings has a member twice")
    if len(mappings) > partition_count:
        raise BadArgument(f"{len(mappings)} members are mapped, max_members is {partition_count}")
    assigned = [number for each in mappings for number in each.partitions or ()]
    for number in assigned:
        if check_whole(number, "each partition", least=0) >= partition_count:
            raise BadArgument(f"partitions are 0 to {partition_count - 1}, got {number}")
    if len(set(assigned)) < len(assigned):
        raise BadArgument("member_mappings has a partition twice")
    missing = sorted(set(range(partition_count)).difference(assigned))
    if missing:
        raise BadArgument(
            f"member_mappings must have each partition from 0 to {partition_count - 1}, missing:"
            f" {', '.join(map(str, missing[:10]))}"
        )


# ---- the stored form


def config_bytes(config: GroupConfig) -> bytes:
    """Return a configuration as JSON, with all fields that other clients always write."""
    members = encode(config)
    if isinstance(config, ElasticGroupConfig):
        members = {
            "max_members": members.pop("max_members"),
            "partitioning_filters": None,
            **members,
        }
        for each in members["partitioning_filters"] or ():
            each.setdefault("partitioning_wildcards", None)
    return write_json(members)


def read_config(names: GroupNames, data: bytes, cls: type[C]) -> C:
    """Return the configuration in the stored `data`. Raises `InvalidGroupConfig`."""
    try:
        return check_group_config(decode(data, cls))
    except (DecodeError, BadArgument) as error:
        raise InvalidGroupConfig(
            f"{names}: the value of key {names.key} of bucket {names.bucket} is invalid: {error}"
        ) from error


# ---- changes


def differences(before: GroupConfig, after: GroupConfig) -> list[str]:
    """Return the names of the settings that differ although they cannot be changed.

    In an elastic group only the members may change, in a static group nothing.
    """
    one, other = _fixed_settings(before), _fixed_settings(after)
    return [name for name, value in one.items() if other.get(name) != value]


def _fixed_settings(config: GroupConfig) -> dict[str, Any]:
    """Return the settings that cannot change after the group was created.

    An absent setting becomes an empty list or 0, which means the same.
    """
    if isinstance(config, StaticGroupConfig):
        return {
            "max_members": config.max_members,
            "filters": config.filters or [],
            "members": config.members or [],
            "member_mappings": [
                (each.member, each.partitions or []) for each in config.member_mappings or ()
            ],
        }
    return {
        "max_members": config.max_members,
        "partitioning_filters": [
            (each.filter, each.partitioning_wildcards or [])
            for each in config.partitioning_filters or ()
        ],
        "max_buffered_msg": config.max_buffered_msg or 0,
        "max_buffered_bytes": config.max_buffered_bytes or 0,
    }


def with_members(config: ElasticGroupConfig, added: Iterable[str]) -> ElasticGroupConfig:
    """Return the configuration with `added` members.

    Raises `BadArgument` for an invalid name, and if the members are mapped to partitions.
    """
    _check_unmapped(config)
    members = [*(config.members or ()), *added]
    return check_group_config(evolve(config, members=list(dict.fromkeys(members))))


def without_members(config: ElasticGroupConfig, removed: Iterable[str]) -> ElasticGroupConfig:
    """Return the configuration without `removed` members. Names of other members are ignored.

    Raises `BadArgument` if the members are mapped to partitions.
    """
    _check_unmapped(config)
    gone = set(removed)
    kept = [member for member in config.members or () if member not in gone]
    return check_group_config(evolve(config, members=kept or None))


def member_names(members: str | Iterable[object]) -> list[str]:
    """Return the names of one member or several. Raises `BadArgument` for another object."""
    names: list[str] = []
    for name in one_or_several(members, "members", "a name"):
        if not isinstance(name, str):
            raise BadArgument(f"a member is a text, got {name!r:.80}")
        names.append(name)
    return names


def with_mappings(
    config: ElasticGroupConfig, mappings: Mapping[str, Iterable[int]]
) -> ElasticGroupConfig:
    """Return the configuration with `mappings` of members to partitions as its only members.

    Raises `BadArgument` for invalid mappings.
    """
    check_kind(mappings, Mapping, "mappings", "a mapping of members to their partitions")
    if not mappings:
        raise BadArgument("mappings has no members; delete_mappings removes all")
    made = [
        MemberMapping(member=member, partitions=list(numbers))
        for member, numbers in mappings.items()
    ]
    return check_group_config(evolve(config, members=None, member_mappings=made))


def without_mappings(config: ElasticGroupConfig) -> ElasticGroupConfig:
    """Return the configuration without mappings, and so without members."""
    return evolve(config, member_mappings=None)


def _check_unmapped(config: ElasticGroupConfig) -> None:
    if config.member_mappings:
        raise BadArgument(
            "the members of the group are mapped to partitions: change them with set_mappings, or"
            " call delete_mappings first"
        )
