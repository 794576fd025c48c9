"""`twinstream group`: partitioned consumer groups, their settings and members."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from twinstream.cli.confirm import sure, yes_option
from twinstream.cli.failures import NotThere, arguments_judged
from twinstream.cli.option_types import Bytes
from twinstream.cli.screen import plain_table, print_json, print_table, print_text, results
from twinstream.cli.table import Page
from twinstream.cli.target import Target, json_option, server_options
from twinstream.cli.value_text import setting
from twinstream.models import Model, encode

if TYPE_CHECKING:
    from js_sync import JetStream
    from js_sync.groups import ElasticGroup, StaticGroup


@click.command(short_help="Create a group.")
@click.argument("stream")
@click.argument("group")
@click.option(
    "--partitions",
    type=click.IntRange(min=1),
    required=True,
    metavar="N",
    help="Number of partitions, and of members at most. It cannot be changed.",
)
@click.option("--filter", "filters", multiple=True, metavar="SUBJECT", help="Its subjects.")
@click.option(
    "--key",
    "keys",
    multiple=True,
    type=click.IntRange(min=1),
    metavar="N",
    help="The wildcard of the filter that is part of the key, from 1; by default the subject.",
)
@click.option("--member", "members", multiple=True, metavar="NAME", help="A first member.")
@click.option("--static", is_flag=True, help="With fixed members, on a stream with partitions.")
@click.option("--max-buffered-msgs", type=click.IntRange(min=1), metavar="N", help="Of its stream.")
@click.option("--max-buffered-bytes", type=Bytes(), metavar="SIZE", help="Of its stream.")
@json_option
@server_options
def create(
    target: Target,
    stream: str,
    group: str,
    partitions: int,
    filters: tuple[str, ...],
    keys: tuple[int, ...],
    members: tuple[str, ...],
    static: bool,
    max_buffered_msgs: int | None,
    max_buffered_bytes: int | None,
    as_json: bool,
) -> None:
    """Create GROUP of STREAM. An existing group with the same settings is accepted.

    An elastic group has a stream of its own, STREAM-GROUP, and its members may change. With
    --static, the members are fixed, and the first token of each subject of STREAM must be the
    partition.
    """
    from js_sync.groups import (
        ElasticGroup,
        ElasticGroupConfig,
        PartitioningFilter,
        StaticGroup,
        StaticGroupConfig,
    )

    if static and (keys or max_buffered_msgs or max_buffered_bytes):
        raise click.UsageError("a static group has neither --key nor --max-buffered-...")
    if static and not members:
        raise click.UsageError("a static group needs its members: --member")
    if keys and not filters:
        raise click.UsageError("--key counts the wildcards of a --filter")
    with target.connect() as nc:
        jet = target.jetstream(nc)
        with arguments_judged():
            if static:
                fixed = StaticGroupConfig(
                    max_members=partitions, filters=list(filters) or None, members=list(members)
                )
                config: Model = StaticGroup(jet, stream, group).create(fixed).config
            else:
                partitioning = [
                    PartitioningFilter(filter=each, partitioning_wildcards=list(keys) or None)
                    for each in filters
                ]
                elastic = ElasticGroupConfig(
                    max_members=partitions,
                    partitioning_filters=partitioning or None,
                    max_buffered_msg=max_buffered_msgs,
                    max_buffered_bytes=max_buffered_bytes,
                    members=list(members) or None,
                )
                config = ElasticGroup(jet, stream, group).create(elastic).config
    if as_json:
        print_json({"stream_name": stream, "group": group, "config": encode(config)})
    else:
        print_text(f"created group {group} of {stream}")


@click.command(short_help="Show a group.")
@click.argument("stream")
@click.argument("group")
@json_option
@server_options
def info(target: Target, stream: str, group: str, as_json: bool) -> None:
    """Show the settings of GROUP of STREAM."""
    with target.connect() as nc:
        found = _opened(target.jetstream(nc), stream, group)
        config: Any = found.info().config
        source = found.source_stream_name
    if as_json:
        print_json({"stream_name": stream, "group": group, "config": encode(config)})
        return
    page = Page()
    page.add_row("stream", stream)
    page.add_row("group", group)
    page.add_row("stream of the consumers", source)
    for name in encode(config):
        page.add_row(name, setting(name, getattr(config, name)))
    results().print(page)


@click.command(short_help="List the members of a group.")
@click.argument("stream")
@click.argument("group")
@json_option
@server_options
def members(target: Target, stream: str, group: str, as_json: bool) -> None:
    """List the members of GROUP of STREAM, their partitions, and whether they work now."""
    with target.connect() as nc:
        found = _opened(target.jetstream(nc), stream, group)
        described = found.info()
        active = set(found.active_members())
    table = plain_table("member", "working", "partitions")
    for name in described.members:
        partitions = described.partitions(name)
        if as_json:
            is_active = name in active
            print_json({"member": name, "active": is_active, "partitions": list(partitions)})
        else:
            text = ", ".join(map(str, partitions))
            table.add_row(name, "yes" if name in active else "no", text or None)
    if not as_json:
        print_table(table, "no members")


@click.command(short_help="Add members to an elastic group.")
@click.argument("stream")
@click.argument("group")
@click.argument("names", nargs=-1, required=True, metavar="MEMBER...")
@json_option
@server_options
def add(target: Target, stream: str, group: str, names: tuple[str, ...], as_json: bool) -> None:
    """Add each MEMBER to GROUP of STREAM; the partitions are divided again."""
    with target.connect() as nc:
        left = _elastic(target.jetstream(nc), stream, group).add_members(names)
    _print_members(group, left, as_json)


@click.command(short_help="Remove members from an elastic group.")
@click.argument("stream")
@click.argument("group")
@click.argument("names", nargs=-1, required=True, metavar="MEMBER...")
@yes_option
@json_option
@server_options
def remove(
    target: Target, stream: str, group: str, names: tuple[str, ...], yes: bool, as_json: bool
) -> None:
    """Remove each MEMBER from GROUP of STREAM; the other members get its partitions."""
    with target.connect() as nc:
        found = _elastic(target.jetstream(nc), stream, group)
        sure(f"Remove {', '.join(names)} from {group}?", yes=yes)
        left = found.remove_members(names)
    _print_members(group, left, as_json)


def _print_members(group: str, left: list[str], as_json: bool) -> None:
    if as_json:
        print_json({"group": group, "members": left})
    else:
        print_text(f"members of {group}: {', '.join(left) or 'none'}")


def _opened(jet: JetStream, stream: str, group: str) -> ElasticGroup | StaticGroup:
    """Return a group of either kind. Raises `NotThere` if the stream has none of this name."""
    from js_sync.groups import ElasticGroup, StaticGroup, elastic_groups, static_groups

    if group in elastic_groups(jet, stream):
        return ElasticGroup(jet, stream, group)
    if group in static_groups(jet, stream):
        return StaticGroup(jet, stream, group)
    raise NotThere(f"stream {stream} has no consumer group {group}")


def _elastic(jet: JetStream, stream: str, group: str) -> ElasticGroup:
    from js_sync.groups import ElasticGroup

    found = _opened(jet, stream, group)
    if not isinstance(found, ElasticGroup):
        raise click.UsageError(f"{group} is a static group, whose members are fixed")
    return found
