"""`twinstream kv diff` and `revert`: what changed since a moment, and back to that moment."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Final

import click
from attrs import evolve

from twinstream.cli.confirm import no_question_in_json, sure
from twinstream.cli.failures import Failure, NotThere
from twinstream.cli.kv.keys import opened, print_revision
from twinstream.cli.kv.view import entry_as_json
from twinstream.cli.message.message_view import printable
from twinstream.cli.message.start_position import Moment
from twinstream.cli.option_types import SEQUENCE
from twinstream.cli.screen import counted, plain_table, print_json, print_table, print_text
from twinstream.cli.target import Target, json_option, server_options

if TYPE_CHECKING:
    from collections.abc import Iterable

    from js_sync import KeyValue
    from twinstream.records.entry import Entry
    from twinstream.records.key_change import KeyChange

_MOMENT: Final = Moment("revision")


@click.command(short_help="Show what changed between two moments.")
@click.argument("bucket")
@click.argument("keys", metavar="[KEY]...", nargs=-1)
@click.option("--from", "since", type=_MOMENT, required=True, metavar="MOMENT", help="Since when.")
@click.option("--to", "until", type=_MOMENT, metavar="MOMENT", help="Until when, if not now.")
@json_option
@server_options
def diff(
    target: Target,
    bucket: str,
    keys: tuple[str, ...],
    since: int | datetime,
    until: int | datetime | None,
    as_json: bool,
) -> None:
    """Show the keys of BUCKET that were added, changed or deleted, with their values.

    Each KEY may have the wildcards * and >. A MOMENT is a revision of the bucket, an age such as
    2h, a time of day such as 14:05 (the last one), or a time in RFC 3339. With --json there is one
    line for each key. A moment at which the bucket no longer holds its whole state is refused, with
    the earliest one that it holds.
    """
    with opened(target, bucket) as found:
        changes = found.diff(since, until, keys or None)
    _show(changes.values(), as_json)


def _show(changes: Iterable[KeyChange[bytes]], as_json: bool) -> None:
    """Print changes as a table, or as JSON with a line for each."""
    if as_json:
        for each in changes:
            print_json(_as_json(each))
        return
    table = plain_table("key", "change", "before", "after", "time", names=("key", "change"))
    for each in changes:
        time = None if each.after is None else each.after.created
        table.add_row(each.key, each.kind.value, _value(each.before), _value(each.after), time)
    print_table(table, "nothing changed")


def _value(entry: Entry[bytes] | None) -> str | None:
    return None if entry is None or entry.value is None else printable(entry.value)


def _as_json(change: KeyChange[bytes]) -> dict[str, object]:
    before, after = change.before, change.after
    return {
        "key": change.key,
        "change": change.kind.value,
        "before": None if before is None else entry_as_json(before),
        "after": None if after is None else entry_as_json(after),
    }


@click.command(short_help="Restore older values of a key, or of the bucket.")
@click.argument("bucket")
@click.argument("key", required=False)
@click.argument("revision", type=SEQUENCE, required=False)
@click.option("--to", "moment", type=_MOMENT, metavar="MOMENT", help="Restore all at this moment.")
@click.option("--in-parts", is_flag=True, help="Write without one atomic batch.")
@click.option("--dry-run", is_flag=True, help="Only show what would change.")
@click.option("--yes", "-y", "--force", "-f", "yes", is_flag=True, help="Do not ask.")
@json_option
@server_options
def revert(
    target: Target,
    bucket: str,
    key: str | None,
    revision: int | None,
    moment: int | datetime | None,
    in_parts: bool,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Store the value of KEY at REVISION again, or with --to the values of all keys at a moment.

    A MOMENT is as in `kv diff`; KEY may then have the wildcards * and >. Keys that had no value
    are deleted. The command shows what it will add, change and delete, and asks. What another
    client writes meanwhile is not overwritten: all changes are written in one atomic batch, for
    which the bucket's stream needs allow_atomic (stream edit --allow-batch) and server 2.12.
    Otherwise, and for more than 1,000 changes, --in-parts is needed.
    """
    no_question_in_json(yes=yes or dry_run, as_json=as_json)
    if moment is None:
        if key is None or revision is None or in_parts or dry_run:
            raise click.UsageError("give KEY and REVISION, or --to for all keys at a moment")
        _revert_key(target, bucket, key, revision, yes=yes, as_json=as_json)
        return
    if revision is not None:
        raise click.UsageError("give REVISION or --to, not both")
    with opened(target, bucket) as found:
        _revert_bucket(found, key, moment, in_parts, dry_run=dry_run, yes=yes, as_json=as_json)


def _revert_key(
    target: Target, bucket: str, key: str, revision: int, *, yes: bool, as_json: bool
) -> None:
    with opened(target, bucket) as found:
        now, then = found.entry(key), found.get(key, revision=revision)
        if now is None:
            raise NotThere(f"bucket {bucket} has no key {key!r}")
        sure(f"Restore {key} of {bucket} to its value at revision {revision}?", yes=yes)
        new = found.update(key, then.value or b"", now.revision)
        print_revision(bucket, key, new, as_json)


def _revert_bucket(
    found: KeyValue[bytes],
    key: str | None,
    moment: int | datetime,
    in_parts: bool,
    *,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Restore the keys of a bucket to a moment, after a confirmation, and print the result.

    Raises `Failure` if another client has written some of the keys in the meantime.
    """
    bucket, changes = found.bucket, found.diff(moment, keys=key)
    # What the command does to each key: from the present entry to the past one.
    undone = [evolve(each, before=each.after, after=each.before) for each in changes.values()]
    if not as_json:
        _show(undone, as_json)
    if dry_run or not changes:
        if as_json:
            would = [_as_json(each) for each in undone]
            print_json({"bucket": bucket, "reverted": 0, "left": [], "would_revert": would})
        return
    what = counted(len(changes), "key")
    sure(f"Restore {what} of {bucket} to revision {changes.revisions[0]}?", yes=yes)
    skipped = [each.key for each in found.revert(changes, in_parts=in_parts)]
    count = len(changes) - len(skipped)
    if as_json:
        print_json({"bucket": bucket, "reverted": count, "left": skipped})
    else:
        print_text(f"restored {counted(count, 'key')} of {bucket}")
    if skipped:
        named = ", ".join(skipped[:10]) + (" ..." if len(skipped) > 10 else "")
        raise Failure(
            f"bucket {bucket}: left {counted(len(skipped), 'key')} that another client has written"
            f" since: {named}; look at `twinstream kv diff`, and try again"
        )
