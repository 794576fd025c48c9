"""Backup of streams into folders, and restore.

`backup_stream` copies a stream with its consumers into a folder, `restore_stream` re-creates it
from there, and `read_backup` describes the backup in a folder. The `nats` command reads and writes
the same folders.
"""

from __future__ import annotations

from js_async.backup.backup import backup_stream
from js_async.backup.files import read_backup
from js_async.backup.restore import restore_stream
from twinstream.core.backup.backup import Backup, TransferProgress

__all__ = ["Backup", "TransferProgress", "backup_stream", "read_backup", "restore_stream"]
