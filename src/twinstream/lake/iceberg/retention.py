"""Expire snapshots of a table, and find the objects that none of its snapshots names."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Final

import obstore
from attrs import frozen
from pyiceberg.table import Table, Transaction
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Operation, Snapshot
from pyiceberg.table.update.snapshot import ExpireSnapshots

from twinstream.lake.iceberg.tables import home_of
from twinstream.lake.objects.errors import requests
from twinstream.lake.objects.folder import ObjectFolder

__all__ = ["StoredObject", "expire", "remove", "trim", "unnamed"]

# Snapshots of a table that stay, and those from which on the others expire. The catalog sends all
# of them with each commit, and each costs half a millisecond of CPU time.
_KEPT: Final = 20
_MOST: Final = 2 * _KEPT

# For how long objects of metadata stay that no snapshot names: a commit may be about to name them.
_YOUNG: Final = timedelta(minutes=10)
_METADATA: Final = "metadata/"


@frozen
class StoredObject:
    """An object below the folder of a table: its key there, its size and when it was stored."""

    key: str
    size: int
    stored: datetime


def trim(transaction: Transaction) -> None:
    """Expire the oldest snapshots if there are many, as far as no file is only theirs.

    All later snapshots must be those of batches, which add files. The files that another change of
    the table has replaced stay until a vacuum.
    """
    metadata = transaction.table_metadata
    if len(metadata.snapshots) > _MOST:
        added = _since_other_changes(metadata.snapshots)
        _expire(transaction, added[: -_KEPT or None])


def expire(table: Table, before: datetime) -> None:
    """Expire the snapshots that were replaced before a time, unless a branch or tag names them."""
    transaction = table.transaction()
    _expire(transaction, _replaced(table.metadata, before))
    transaction.commit_transaction()


def unnamed(table: Table, folder: ObjectFolder, before: datetime) -> Iterator[StoredObject]:
    """Yield the objects stored before a time that no snapshot names that `expire` leaves.

    `folder` is that of the table.
    """
    expired = {each.snapshot_id for each in _replaced(table.metadata, before)}
    kept = [each for each in table.metadata.snapshots if each.snapshot_id not in expired]
    home = f"{home_of(table)}/"
    named = {url.partition("://")[2].removeprefix(home) for url in _named(table, kept)}
    for each in _listed(folder):
        if each.key not in named and each.stored < _limit(each.key, before):
            yield each


def remove(folder: ObjectFolder, objects: list[StoredObject]) -> None:
    """Remove objects below a folder."""
    for each in objects:
        with requests(folder, "remove", each.key) as client:
            obstore.delete(client, each.key)


def _limit(key: str, before: datetime) -> datetime:
    return min(before, datetime.now(UTC) - _YOUNG) if key.startswith(_METADATA) else before


def _since_other_changes(snapshots: list[Snapshot]) -> list[Snapshot]:
    """Return the snapshots behind the last one that did more than to add files."""
    found: list[Snapshot] = []
    for each in reversed(snapshots):
        if each.summary is None or each.summary.operation is not Operation.APPEND:
            break
        found.append(each)
    return found[::-1]


def _replaced(metadata: TableMetadata, before: datetime) -> list[Snapshot]:
    """Return the snapshots that got a successor before a time, and that can expire."""
    limit = before.timestamp() * 1000
    old = {each.parent_snapshot_id for each in metadata.snapshots if each.timestamp_ms < limit}
    return _unreferenced(metadata, [e for e in metadata.snapshots if e.snapshot_id in old])


def _unreferenced(metadata: TableMetadata, snapshots: list[Snapshot]) -> list[Snapshot]:
    referenced = {each.snapshot_id for each in metadata.refs.values()}
    return [each for each in snapshots if each.snapshot_id not in referenced]


def _expire(transaction: Transaction, snapshots: list[Snapshot]) -> None:
    free = _unreferenced(transaction.table_metadata, snapshots)
    due = [each.snapshot_id for each in free]
    if due:
        with ExpireSnapshots(transaction) as change:
            change.by_ids(due)


def _named(table: Table, snapshots: list[Snapshot]) -> Iterator[str]:
    """Yield the URLs of all objects that some snapshots of a table and its metadata name."""
    metadata = table.metadata
    yield table.metadata_location
    yield from (each.metadata_file for each in metadata.metadata_log)
    yield from (each.statistics_path for each in metadata.statistics)
    yield from (each.statistics_path for each in metadata.partition_statistics)
    manifests: set[str] = set()
    for snapshot in snapshots:
        yield snapshot.manifest_list
        for manifest in snapshot.manifests(table.io):
            if manifest.manifest_path not in manifests:
                manifests.add(manifest.manifest_path)
                yield manifest.manifest_path
                entries = manifest.fetch_manifest_entry(table.io, discard_deleted=True)
                yield from (each.data_file.file_path for each in entries)


def _listed(folder: ObjectFolder) -> Iterator[StoredObject]:
    with requests(folder, "list", "") as client:
        for page in obstore.list(client):
            for each in page:
                yield StoredObject(each["path"], each["size"], each["last_modified"])
