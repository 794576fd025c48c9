"""Partitioned consumer groups: the members of a group share the partitions of a stream (ADR-42).

All messages of a key have the same partition, and are handled in order by one member at a time. The
members of a `StaticGroup` are fixed, those of an `ElasticGroup` may change. The groups are those of
the other clients, which can work in the same group.
"""

from __future__ import annotations

from js_async.groups.consumer_group import (
    ElasticGroup,
    StaticGroup,
    elastic_groups,
    static_groups,
)
from js_async.groups.group_worker import GroupWorker
from js_async.groups.message import GroupMessage
from twinstream.core.groups.info import GroupInfo
from twinstream.core.groups.reports import (
    CopiesSkipped,
    GroupReport,
    JoinDelayed,
    PartitionsAssigned,
    PartitionsRevoked,
)
from twinstream.errors import GroupChanged, GroupExists, GroupNotFound, InvalidGroupConfig
from twinstream.models import (
    ElasticGroupConfig,
    MemberMapping,
    PartitioningFilter,
    StaticGroupConfig,
)

__all__ = [
    "CopiesSkipped",
    "ElasticGroup",
    "ElasticGroupConfig",
    "GroupChanged",
    "GroupExists",
    "GroupInfo",
    "GroupMessage",
    "GroupNotFound",
    "GroupReport",
    "GroupWorker",
    "InvalidGroupConfig",
    "JoinDelayed",
    "MemberMapping",
    "PartitioningFilter",
    "PartitionsAssigned",
    "PartitionsRevoked",
    "StaticGroup",
    "StaticGroupConfig",
    "elastic_groups",
    "static_groups",
]
