"""`twinstream lock ls` and `release`: list held locks, and release a lock by force."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from twinstream.cli.confirm import sure, yes_option
from twinstream.cli.failures import Failure, NotThere
from twinstream.cli.screen import plain_table, print_json, print_none, print_text, results
from twinstream.cli.target import Target, json_option, server_options

if TYPE_CHECKING:
    from js_sync import JetStream
    from js_sync.coordination import HeldSlot

stream_option = click.option(
    "--stream", default="LOCKS", show_default=True, help="The stream of the locks."
)


@click.command(short_help="List held locks and their holders.")
@stream_option
@json_option
@server_options
def ls(target: Target, stream: str, as_json: bool) -> None:
    """List locks, semaphore slots, permits, single runs and leaders, the oldest first."""
    with target.connect() as nc:
        jet = target.jetstream(nc)
        found = _held(jet, stream)
    if as_json:
        for slot in found or ():
            print_json(_members(slot))
    elif found is None:
        print_none(f"nothing is held: there is no stream {stream} yet")
    elif not found:
        print_none("nothing is held")
    else:
        columns = ("kind", "name", "holder", "token", "renewed", "ttl", "note")
        table = plain_table(*columns, numbers=("token", "ttl"), names=("kind", "name"))
        for slot in found:
            record = slot.record
            table.add_row(
                slot.kind, _name(slot), record.owner or "?", record.token, record.time,
                record.ttl, record.note,
            )  # fmt: skip
        results().print(table)


def _held(jet: JetStream, stream: str, kind: str | None = None) -> list[HeldSlot] | None:
    """Return the held locks, slots and so on; only those of `kind` unless it is None.

    Return None if the stream of the locks does not exist.
    """
    from js_sync.coordination import Coordination
    from twinstream.errors import StreamNotFound

    try:
        return list(Coordination(jet, stream).held(kind))
    except StreamNotFound:
        return None


def _name(slot: HeldSlot) -> str:
    return slot.name if slot.number is None else f"{slot.name} {slot.number}"


def _members(slot: HeldSlot) -> dict[str, object]:
    record = slot.record
    return {
        "kind": slot.kind,
        "name": _name(slot),
        "holder": record.owner or "?",
        "token": record.token,
        "renewed": record.time.isoformat(" ", "seconds"),
        "ttl": record.ttl,
        "note": record.note,
    }


@click.command(short_help="Release a lock by force.")
@click.argument("name")
@stream_option
@yes_option
@json_option
@server_options
def release(target: Target, name: str, stream: str, yes: bool, as_json: bool) -> None:
    """Release the lock NAME, whose holder has crashed.

    If the holder is still running, it notices the release at its next renewal. Until then, two
    clients may hold the lock.
    """
    from js_sync.coordination import Coordination

    with target.connect() as nc:
        jet = target.jetstream(nc)
        found = [each for each in _held(jet, stream, "lock") or () if each.name == name]
        if not found:
            raise NotThere(f"the lock {name} is not held; `twinstream lock ls` shows held locks")
        holder = found[0].record.owner or "?"
        sure(f"{name} is held by {holder}. Release it anyway?", yes=yes)
        if not Coordination(jet, stream).evict(found[0]):
            raise Failure(f"{name} was renewed or released meanwhile, so its holder is alive")
    if as_json:
        print_json({"released": name})
    else:
        print_text(f"{name} is free")
