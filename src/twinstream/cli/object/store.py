"""`twinstream object add`, `edit`, `seal` and `sweep`: manage object stores."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import click

from twinstream.cli.confirm import sure, yes_option
from twinstream.cli.object.view import show_status, status_members
from twinstream.cli.option_types import Bytes, Span
from twinstream.cli.screen import alerts, counted, print_json, print_text
from twinstream.cli.target import Target, json_option, server_options
from twinstream.cli.value_text import in_bytes

if TYPE_CHECKING:
    from twinstream.core.object_store.config import ObjectStoreStatus


_SETTINGS: Final = (
    click.option("--description", metavar="TEXT", help="What the store is for."),
    click.option(
        "--ttl", type=Span(), metavar="DURATION",
        help="Age at which objects are removed, such as 24h.",
    ),
    click.option("--max-bucket-size", type=Bytes(), metavar="SIZE",
            help="Maximum size of all objects."),
    click.option("--replicas", type=click.IntRange(1, 5), help="Copies of each object."),
    click.option("--compress/--no-compress", default=None, help="Compress the files on disk."),
    click.option("--metadata", multiple=True, metavar="KEY=VALUE", help="A text to keep."),
    click.option("--cluster", metavar="NAME", help="The cluster for the store."),
    click.option("--tag", "tags", multiple=True, metavar="TAG", help="Tag that servers must have."),
)  # fmt: skip


def _settings(command: Callable[..., object]) -> Callable[..., object]:
    """Add the options for the settings of a store to a command."""
    for option in reversed(_SETTINGS):
        command = option(command)
    return command


@click.command(short_help="Create an object store.")
@click.argument("bucket")
@_settings
@click.option(
    "--storage",
    type=click.Choice(["file", "memory"]),
    default="file",
    show_default=True,
    help="Where objects are kept.",
)
@json_option
@server_options
def add(target: Target, bucket: str, storage: str, as_json: bool, **settings: Any) -> None:
    """Create the object store BUCKET. An existing store with equal settings is accepted."""
    from twinstream.models import ObjectStoreConfig, evolve

    config = evolve(ObjectStoreConfig(bucket=bucket), storage=_word(storage), **_given(settings))
    with target.connect() as nc:
        status = target.jetstream(nc).create_object_store(config).status()
    _show(status, as_json)


@click.command(short_help="Change the settings of an object store.")
@click.argument("bucket")
@_settings
@json_option
@server_options
def edit(target: Target, bucket: str, as_json: bool, **settings: Any) -> None:
    """Change the given settings of the object store BUCKET; other settings are kept."""
    from twinstream.models import evolve

    given = _given(settings)
    if not given:
        raise click.UsageError("give at least one setting to change")
    with target.connect() as nc:
        store = target.jetstream(nc).get_object_store(bucket)
        status = store.change(lambda config: evolve(config, **given))
    _show(status, as_json)


def _word(storage: str) -> object:
    from twinstream.models import StorageType

    return StorageType(storage)


def _given(settings: dict[str, Any]) -> dict[str, object]:
    """Return the settings that the user gave, as fields of `ObjectStoreConfig`."""
    from twinstream.models import Placement

    found: dict[str, object] = {
        "description": settings["description"],
        "max_bytes": settings["max_bucket_size"],
        "num_replicas": settings["replicas"],
        "compression": settings["compress"],
    }
    if settings["ttl"] is not None:
        found["ttl"] = settings["ttl"]
    if settings["metadata"]:
        found["metadata"] = dict(_pair(text) for text in settings["metadata"])
    if settings["cluster"] or settings["tags"]:
        tags = list(settings["tags"]) or None
        found["placement"] = Placement(cluster=settings["cluster"], tags=tags)
    return {name: value for name, value in found.items() if value is not None}


def _pair(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator or not name:
        raise click.UsageError(f"--metadata {text!r} is not of the form KEY=VALUE")
    return name, value


def _show(status: ObjectStoreStatus, as_json: bool) -> None:
    if as_json:
        print_json(status_members(status))
    else:
        show_status(status)


@click.command(short_help="Make an object store permanently read-only.")
@click.argument("bucket")
@yes_option
@json_option
@server_options
def seal(target: Target, bucket: str, yes: bool, as_json: bool) -> None:
    """Make BUCKET permanently read-only: nothing can be added or removed, not even by its age.

    Parts of failed uploads cannot be removed, either; use `twinstream object sweep` before.
    """
    with target.connect() as nc:
        store = target.jetstream(nc).get_object_store(bucket)
        sure(f"Seal {bucket} ({in_bytes(store.status().size)}), permanently?", yes=yes)
        store.seal()
    if as_json:
        print_json({"bucket": bucket, "sealed": True})
    else:
        print_text(f"sealed {bucket}")


@click.command(short_help="Remove the parts of failed uploads.")
@click.argument("bucket")
@click.option(
    "--older-than", default="24h", show_default=True, type=Span(), metavar="DURATION",
    help="Keep younger content, whose upload may still be running.",
)  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Only count.")
@json_option
@server_options
def sweep(target: Target, bucket: str, older_than: timedelta, dry_run: bool, as_json: bool) -> None:
    """Remove content from BUCKET that belongs to no object."""
    with target.connect() as nc:
        store = target.jetstream(nc).get_object_store(bucket)
        swept = store.sweep(older_than=older_than, dry_run=dry_run)
    if as_json:
        found = {"uploads": swept.uploads, "chunks": swept.chunks, "dry_run": dry_run}
        print_json({"bucket": bucket, **found, "unreadable": swept.unreadable})
        return
    what = f"{counted(swept.uploads, 'upload')} of {counted(swept.chunks, 'chunk')}"
    print_text(f"{'would remove' if dry_run else 'removed'} {what} from {bucket}")
    if swept.unreadable:
        alerts().print(
            f"the description of {counted(swept.unreadable, 'object')} cannot be read: content that"
            " it names was kept",
            style="yellow",
            soft_wrap=True,
        )
