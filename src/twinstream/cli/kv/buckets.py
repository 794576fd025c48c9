"""`twinstream kv add`, `edit`, `info`, `compact` and `ls`: manage buckets."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import click
from attrs import fields_dict

from twinstream.cli.confirm import sure, yes_option
from twinstream.cli.failures import arguments_judged
from twinstream.cli.kv.view import bucket_as_json, entry_as_json, show_bucket
from twinstream.cli.listing_gaps import note_undescribed, undescribed
from twinstream.cli.names import names_option, print_names
from twinstream.cli.option_types import Bytes, Span
from twinstream.cli.screen import counted, plain_table, print_json, print_table, print_text
from twinstream.cli.settings.texts import pairs, placement
from twinstream.cli.target import Target, json_option, server_options
from twinstream.cli.value_text import Size
from twinstream.models import (
    ExternalStream,
    KeyValueConfig,
    Republish,
    StreamSource,
    evolve,
)

_SETTINGS = (
    click.option("--description", metavar="TEXT", help="What the bucket is for."),
    click.option("--history", type=int, metavar="N", help="Revisions to keep of each key."),
    click.option(
        "--ttl",
        type=Span(zero=True),
        metavar="DURATION",
        help="Age at which revisions expire; 0s: none.",
    ),
    click.option(
        "--marker-ttl",
        type=Span(zero=True),
        metavar="DURATION",
        help="How long markers of expired keys stay (2.11).",
    ),
    click.option("--replicas", type=int, metavar="N", help="Copies of each value in a cluster."),
    click.option("--max-value-size", type=Bytes(min=-1), metavar="SIZE", help="Largest value."),
    click.option("--max-bucket-size", type=Bytes(min=-1), metavar="SIZE", help="Largest bucket."),
    click.option("--storage", type=click.Choice(["file", "memory"]), help="Where values are kept."),
    click.option("--compress/--no-compress", default=None, help="Compress the storage."),
    click.option("--metadata", multiple=True, metavar="NAME=VALUE", help="Free texts."),
    click.option("--tags", multiple=True, metavar="TAG", help="Tags of the servers to be on."),
    click.option("--cluster", metavar="NAME", help="Cluster to be on."),
    click.option("--republish-source", metavar="SUBJECT", help="Subjects to republish."),
    click.option("--republish-destination", metavar="SUBJECT", help="Subject to republish to."),
    click.option("--republish-headers", is_flag=True, help="Republish without values."),
    click.option("--mirror", metavar="BUCKET", help="Bucket of which this bucket is a mirror."),
    click.option("--mirror-domain", metavar="NAME", help="Domain of the mirrored bucket."),
    click.option("--source", multiple=True, metavar="BUCKET", help="Add the keys of a bucket."),
)


def _settings(command: Callable[..., object]) -> Callable[..., object]:
    for option in reversed(_SETTINGS):
        command = option(command)
    return command


def _config(bucket: str, given: dict[str, Any]) -> KeyValueConfig:
    """Return the config of a bucket from the options. Raises a usage error if it is invalid."""
    with arguments_judged():
        return KeyValueConfig(
            bucket=bucket,
            description=given["description"],
            history=given["history"],
            ttl=given["ttl"],
            limit_marker_ttl=given["marker_ttl"],
            num_replicas=given["replicas"],
            max_value_size=given["max_value_size"],
            max_bytes=given["max_bucket_size"],
            storage=given["storage"],
            compression=given["compress"],
            metadata=pairs(given["metadata"]) or None,
            placement=placement(given["cluster"], given["tags"]),
            republish=_republish(given),
            mirror=_mirror(given["mirror"], given["mirror_domain"]),
            sources=[StreamSource(name=name) for name in given["source"]] or None,
        )


def _republish(given: dict[str, Any]) -> Republish | None:
    source, destination = given["republish_source"], given["republish_destination"]
    if not destination:
        if source:
            raise click.UsageError("--republish-source needs --republish-destination")
        return None
    headers_only = given["republish_headers"] or None
    return Republish(src=source or ">", dest=destination, headers_only=headers_only)


def _mirror(bucket: str | None, domain: str | None) -> StreamSource | None:
    if bucket is None:
        if domain:
            raise click.UsageError("--mirror-domain needs --mirror")
        return None
    external = ExternalStream(api=f"$JS.{domain}.API") if domain else None
    return StreamSource(name=bucket, external=external)


@click.command(short_help="Create a bucket.")
@click.argument("bucket")
@_settings
@json_option
@server_options
def add(target: Target, bucket: str, as_json: bool, **given: Any) -> None:
    """Create BUCKET. An existing bucket with the same settings is accepted.

    \b
    twinstream kv add prices --history 5 --marker-ttl 5m
    """  # noqa: D301  # click needs the backspace character
    config = _config(bucket, given)
    with target.connect() as nc:
        made = target.jetstream(nc).create_key_value(config)
    _print(made.cached_status, as_json)


@click.command(short_help="Change the settings of a bucket.")
@click.argument("bucket")
@click.option("--no-mirror", is_flag=True, help="Stop being a mirror (server 2.12).")
@_settings
@json_option
@server_options
def edit(target: Target, bucket: str, no_mirror: bool, as_json: bool, **given: Any) -> None:
    """Change the given settings of BUCKET; other settings are kept."""
    config = _config(bucket, given)
    with target.connect() as nc:
        found = target.jetstream(nc).get_key_value(bucket)
        status = found.change(lambda current: _changed(current, config, no_mirror))
    _print(status, as_json)


def _changed(current: KeyValueConfig, given: KeyValueConfig, no_mirror: bool) -> KeyValueConfig:
    """Return the current settings, updated with the settings of `given` that are not None."""
    found = {name: getattr(given, name) for name in fields_dict(KeyValueConfig)}
    if no_mirror:
        current = evolve(current, mirror=None)
    return evolve(current, **{name: value for name, value in found.items() if value is not None})


@click.command(short_help="Show a bucket.")
@click.argument("bucket")
@json_option
@server_options
def info(target: Target, bucket: str, as_json: bool) -> None:
    """Show the settings of BUCKET and its size."""
    with target.connect() as nc:
        status = target.jetstream(nc).get_key_value(bucket).cached_status
    _print(status, as_json)


def _print(status: Any, as_json: bool) -> None:
    if as_json:
        print_json(bucket_as_json(status))
    else:
        show_bucket(status)


@click.command(short_help="List buckets, or the keys of one.")
@click.argument("bucket", required=False)
@click.argument("filters", nargs=-1)
@names_option
@click.option(
    "--verbose",
    "-v",
    "--verbose-keys",
    "-l",
    "long",
    is_flag=True,
    help="With revisions and times.",
)
@click.option("--display-value", is_flag=True, help="With the values of keys.")
@json_option
@server_options
def ls(
    target: Target,
    bucket: str | None,
    filters: tuple[str, ...],
    names: bool,
    long: bool,
    display_value: bool,
    as_json: bool,
) -> None:
    """List all buckets, or the keys of BUCKET that have a value and match FILTERS."""
    with target.connect() as nc:
        jet = target.jetstream(nc)
        if bucket is None:
            _list_buckets(jet, names, as_json)
            return
        found = jet.get_key_value(bucket)
        if not (long or display_value):
            for key in found.keys(filters or None):
                _line({"key": key} if as_json else key)
            return
        with found.watch(filters or None, deletes=False, meta_only=not display_value) as watch:
            entries = list(watch.initial())
    if as_json:
        for entry in entries:
            print_json(entry_as_json(entry, has_value=display_value))
        return
    from twinstream.cli.kv.view import show_entries

    show_entries(entries)


def _line(shown: object) -> None:
    if isinstance(shown, str):
        print_text(shown)
    else:
        print_json(shown)


def _list_buckets(jet: Any, names: bool, as_json: bool) -> None:
    """Print the names of the buckets, or a line for each with its state."""
    if names:
        print_names(jet.key_value_names(), "bucket", as_json=as_json)
        return
    listing = jet.key_values()
    found = sorted(listing, key=lambda status: status.bucket)
    if as_json:
        for status in found:
            print_json(bucket_as_json(status))
        for name, reason in undescribed(listing).items():
            print_json({"config": {"bucket": name}, "undescribed": reason})
        return
    numbers = ("values", "size", "history")
    table = plain_table("bucket", "values", "size", "history", "description", numbers=numbers)
    for status in found:
        config = status.config
        text = config.description or ""
        table.add_row(status.bucket, status.values, Size(status.bytes), config.history or 1, text)
    if found or not undescribed(listing):
        print_table(table, "no buckets")
    note_undescribed(listing)


@click.command(short_help="Remove the markers of deleted keys.")
@click.argument("bucket")
@click.option(
    "--older-than",
    default="30m",
    show_default=True,
    type=Span(),
    metavar="DURATION",
    help="Keep younger markers, for watches that are disconnected.",
)
@yes_option
@json_option
@server_options
def compact(target: Target, bucket: str, older_than: timedelta, yes: bool, as_json: bool) -> None:
    """Remove the markers of deleted keys from BUCKET, and their older revisions."""
    with target.connect() as nc:
        found = target.jetstream(nc).get_key_value(bucket)
        sure(f"Remove the markers of deleted keys from {bucket}?", yes=yes)
        done = found.purge_deletes(older_than=older_than)
    if as_json:
        numbers = {"removed": done.removed, "kept": done.kept, "skipped": done.skipped}
        print_json({"bucket": bucket, **numbers})
    else:
        skipped = f", {done.skipped:,} have an invalid key" if done.skipped else ""
        print_text(
            f"removed {counted(done.removed, 'marker')} from {bucket}, {done.kept:,} are too young"
            f"{skipped}"
        )
