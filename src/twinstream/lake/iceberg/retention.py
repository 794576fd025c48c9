"""Expire snapshots of a table, and find the objects that none of its snapshots names."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from datetime import datetime
from typing import Final

import obstore
from attrs import frozen
from pyiceberg.table import Table, Transaction
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Operation, Snapshot, ancestors_of
from pyiceberg.table.update.snapshot import ExpireSnapshots

from twinstream.lake.errors import StorageError
from twinstream.lake.iceberg.tables import home_of
from twinstream.lake.objects.errors import requests
from twinstream.lake.objects.folder import ObjectFolder

__all__ = ["StoredObject", "expire", "remove", "trim", "unnamed"]

# Snapshots of a table that stay, and those from which on the others expire. The catalog sends all
# of them with each commit, and each costs half a millisecond of CPU time.
_KEPT: Final = 20
_MOST: Final = 2 * _KEPT

# The folders of a table's own files below that of the table, which may have others.
_FOLDERS: Final = ("data/", "metadata/")
_METADATA: Final = re.compile(r"metadata/.+\.metadata\.json(\.gz)?")
_GZIP: Final = b"\x1f\x8b"


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
        added = _since_other_changes(metadata)
        _expire(transaction, added[: -_KEPT or None])


def expire(table: Table, before: datetime) -> Table:
    """Expire the snapshots that were replaced before a time, unless a branch or tag names them.

    Return the state of the table after that.
    """
    transaction = table.transaction()
    _expire(transaction, _replaced(table.metadata, before))
    transaction.commit_transaction()
    return table


def unnamed(table: Table, folder: ObjectFolder, before: datetime) -> list[StoredObject]:
    """Return the objects stored before a time that no snapshot names that `expire` leaves.

    `folder` is that of the table. Raises `StorageError` if it also has the files of another table.
    """
    expired = {each.snapshot_id for each in _replaced(table.metadata, before)}
    kept = [each for each in table.metadata.snapshots if each.snapshot_id not in expired]
    home = f"{home_of(table)}/"
    named = {url.partition("://")[2].removeprefix(home) for url in _named(table, kept)}
    found = [each for each in _listed(folder) if each.key not in named]
    _refuse_shared(table, folder, found)
    return [each for each in found if each.stored < before]


def _refuse_shared(table: Table, folder: ObjectFolder, objects: list[StoredObject]) -> None:
    """Raise `StorageError` for metadata of another table, such as one that was renamed.

    It may name any of the files.
    """
    for each in objects:
        if _METADATA.fullmatch(each.key):
            with requests(folder, "read", each.key) as client:
                try:
                    data = bytes(obstore.get(client, each.key).bytes())
                except FileNotFoundError:
                    continue  # the catalog has removed it since
            found = json.loads(gzip.decompress(data) if data.startswith(_GZIP) else data)
            if found.get("table-uuid") != str(table.metadata.table_uuid):
                raise StorageError(
                    f"{folder / each.key} belongs to another table than"
                    f" {'.'.join(table.name())}, whose folder this is: a vacuum cannot tell the"
                    " files of both apart; move one of the tables to another location"
                )


def remove(folder: ObjectFolder, objects: list[StoredObject]) -> None:
    """Remove objects below a folder."""
    for each in objects:
        with requests(folder, "remove", each.key) as client:
            obstore.delete(client, each.key)


def _since_other_changes(metadata: TableMetadata) -> list[Snapshot]:
    """Return the snapshots behind the last one that did more than to add files.

    Only those that led to the current snapshot count: another program may publish others later.
    """
    found: list[Snapshot] = []
    for each in ancestors_of(metadata.current_snapshot(), metadata):
        if each.summary is None or each.summary.operation is not Operation.APPEND:
            break
        found.append(each)
    return found[::-1]


def _replaced(metadata: TableMetadata, before: datetime) -> list[Snapshot]:
    """Return the snapshots that got a successor before a time, and that can expire."""
    limit = before.timestamp() * 1000
    # With branches, a snapshot may have several successors.
    later = {each.parent_snapshot_id for each in metadata.snapshots if each.timestamp_ms >= limit}
    old = {each.parent_snapshot_id for each in metadata.snapshots if each.timestamp_ms < limit}
    due = old - later
    return _unreferenced(metadata, [e for e in metadata.snapshots if e.snapshot_id in due])


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
    for below in _FOLDERS:
        with requests(folder, "list", below) as client:
            for page in obstore.list(client, below):
                for each in page:
                    yield StoredObject(each["path"], each["size"], each["last_modified"])
