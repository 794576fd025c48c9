"""Models of one file in schema/.

Generated from schema/ by datamodel-codegen and codegen/templates. Edit those instead.
"""

from __future__ import annotations

from attrs import field, frozen

from twinstream.models.codec import converters
from twinstream.models.codec.model import Model


@frozen(kw_only=True, repr=False)
class PartitioningFilter(Model):
    """A subject filter of an elastic consumer group, and the key of its messages."""

    filter: str
    """Subject filter with at least one wildcard."""

    partitioning_wildcards: list[int] | None = None
    """
    Which of the tokens matched by * are the key, counted from 1; when absent or empty, the
    whole subject is, which needs server 2.12.
    """


@frozen(kw_only=True, repr=False)
class MemberMapping(Model):
    """The partitions of a member of a consumer group."""

    member: str
    """Name of the member."""

    partitions: list[int] | None = None
    """Numbers of its partitions, from 0."""


@frozen(kw_only=True, repr=False)
class StaticGroupConfig(Model):
    """Settings of a static consumer group, whose members are fixed for its life."""

    max_members: int
    """Number of partitions, and so the largest number of members with work."""

    filters: list[str] | None = field(default=None, converter=converters.optional_strings)
    """Subject filters behind the partition token, all subjects when absent."""

    members: list[str] | None = field(default=None, converter=converters.optional_strings)
    """Names of the members, among whom the partitions are divided evenly."""

    member_mappings: list[MemberMapping] | None = None
    """Members with the partitions of each, in place of members."""


@frozen(kw_only=True, repr=False)
class ElasticGroupConfig(Model):
    """Settings of an elastic consumer group, whose members may change."""

    max_members: int
    """Number of partitions, and so the largest number of members with work."""

    partitioning_filters: list[PartitioningFilter] | None = None
    """
    Which subjects are consumed, and which of their tokens are the key; when absent, all
    subjects by the whole subject.
    """

    max_buffered_msg: int | None = None
    """Largest number of messages in the stream of the group, no limit when absent."""

    max_buffered_bytes: int | None = None
    """Largest size of the stream of the group in bytes, no limit when absent."""

    members: list[str] | None = field(default=None, converter=converters.optional_strings)
    """Names of the members, among whom the partitions are divided evenly."""

    member_mappings: list[MemberMapping] | None = None
    """Members with the partitions of each, in place of members."""
