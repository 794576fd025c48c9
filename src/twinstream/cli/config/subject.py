"""`twinstream subject`: evaluate subject transforms and partitions without a server."""

from __future__ import annotations

import click

from twinstream.cli.failures import Failure, arguments_judged
from twinstream.cli.screen import plain_table, print_json, results
from twinstream.cli.target import json_option
from twinstream.models.version import parse_version


@click.command(short_help="Show the results of a subject transform.")
@click.argument("source")
@click.argument("destination")
@click.argument("subjects", nargs=-1, required=True)
@click.option(
    "--server-version", metavar="VERSION", help="Server whose rules apply; by default the newest."
)
@json_option
def transform(
    source: str,
    destination: str,
    subjects: tuple[str, ...],
    server_version: str | None,
    as_json: bool,
) -> None:
    """Show how a stream's transform from SOURCE to DESTINATION changes SUBJECTS.

    No server is needed. With --json there is one line for each subject; `to` is null if the subject
    does not match.

    \b
    twinstream subject transform 'orders.*' 'orders.{{partition(3,1)}}.$1' orders.7 orders.8
    """  # noqa: D301  # click needs the backspace character
    from twinstream.models import transform_subject

    with arguments_judged():
        parse_version(server_version)
    try:
        made = [
            (each, transform_subject(source, destination, each, server=server_version))
            for each in subjects
        ]
    except ValueError as error:
        raise Failure(str(error)) from error
    if as_json:
        for before, after in made:
            print_json({"from": before, "to": after})
        return
    table = plain_table("subject", "becomes")
    for before, after in made:
        table.add_row(before, after if after is not None else "(does not match)")
    results().print(table)


@click.command(short_help="Show the partition of keys.")
@click.argument("partitions", type=click.IntRange(min=1))
@click.argument("keys", nargs=-1, required=True)
@json_option
def partition(partitions: int, keys: tuple[str, ...], as_json: bool) -> None:
    """Show the partition, from 0 to PARTITIONS - 1, that the server computes for each of KEYS.

    A key is one token; several tokens without dots between them, as for `{{partition(n,1,2)}}`; or
    a whole subject, as for `{{partition(n)}}`. With --json there is one line for each key.

    \b
    twinstream subject partition 12 customer-7 customer-8
    """  # noqa: D301  # click needs the backspace character
    from twinstream.models import partition as partition_of

    found = [(key, partition_of(key, partitions)) for key in keys]
    if as_json:
        for key, number in found:
            print_json({"key": key, "partition": number})
        return
    table = plain_table("key", "partition", numbers=("partition",))
    for key, number in found:
        table.add_row(key, number)
    results().print(table)
