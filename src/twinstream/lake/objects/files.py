"""Let Arrow read and write the files of a folder of an object store, by the package obstore.

Arrow's own file system for S3 cannot call this package for credentials that expire.
"""

from __future__ import annotations

import os
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa
from pyarrow.fs import (
    FileInfo,
    FileSystem,
    FileSystemHandler,
    FileType,
    LocalFileSystem,
    PyFileSystem,
)

from twinstream.lake.objects.client import bucket_of
from twinstream.lake.objects.errors import requests
from twinstream.lake.objects.folder import ObjectFolder

__all__ = ["SMALL_PART", "arrow_files"]

# Bytes of a file that are buffered before a part is sent. A smaller file is one request. A file may
# have 10,000 parts.
_PART: Final = 16 * 1024 * 1024

SMALL_PART: Final = 5 * 1024 * 1024
"""The same for files of which many are open. No part but the last one may be smaller."""


@lru_cache(maxsize=64)
def arrow_files(folder: ObjectFolder | None, part: int = _PART) -> FileSystem:
    """Return the file system whose paths are keys below the folder, or the local one."""
    return LocalFileSystem() if folder is None else PyFileSystem(_ObjectFiles(folder, part))


class _Upload:
    """A file that appears as a whole when it is closed, unless writing it has failed."""

    def __init__(self, folder: ObjectFolder, key: str, part: int) -> None:
        import obstore

        self._folder: Final = folder
        self._key: Final = key
        self._writer: Final = obstore.open_writer(bucket_of(folder), key, buffer_size=part)
        self._size = 0
        self.closed = False

    def write(self, data: Any) -> int:
        # The buffer belongs to Arrow, which may change it after this call.
        with requests(self._folder, "write", self._key):
            written = self._writer.write(bytes(data))
        self._size += written
        return written

    def tell(self) -> int:
        return self._size

    def flush(self) -> None:
        """Do nothing: parts are sent when the buffer is full."""

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            with requests(self._folder, "write", self._key):
                self._writer.close()


class _Download:
    """A file of which parts are read, each by one request."""

    def __init__(self, folder: ObjectFolder, key: str) -> None:
        import obstore

        self._folder: Final = folder
        self._key: Final = key
        self._at = 0
        self.closed = False
        with requests(folder, "read", key) as client:
            self._size: Final = obstore.head(client, key)["size"]

    def read(self, size: int = -1) -> bytes:
        import obstore

        end = self._size if size < 0 else min(self._at + size, self._size)
        if end <= self._at:
            return b""
        with requests(self._folder, "read", self._key) as client:
            found = bytes(obstore.get_range(client, self._key, start=self._at, end=end))
        self._at = end
        return found

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        self._at = base + offset
        return self._at

    def tell(self) -> int:
        return self._at

    def close(self) -> None:
        self.closed = True


class _ObjectFiles(FileSystemHandler):
    """The part of a file system that Arrow needs for files whose names are known."""

    def __init__(self, folder: ObjectFolder, part: int) -> None:
        self._folder: Final = folder
        self._part: Final = part

    def get_type_name(self) -> str:
        return "twinstream"

    def normalize_path(self, path: str) -> str:
        return path

    def get_file_info(self, paths: list[str]) -> list[FileInfo]:
        return [self._info(path) for path in paths]

    def _info(self, path: str) -> FileInfo:
        import obstore

        folder, key = self._folder.located(path)
        with requests(folder, "read", key) as client:
            try:
                found = obstore.head(client, key)
            except FileNotFoundError:
                return FileInfo(path, FileType.NotFound)
        return FileInfo(path, FileType.File, size=found["size"])

    def open_input_file(self, path: str) -> pa.NativeFile:
        return pa.PythonFile(_Download(*self._folder.located(path)), mode="r")

    def open_input_stream(self, path: str) -> pa.NativeFile:
        return self.open_input_file(path)

    def open_output_stream(self, path: str, metadata: object) -> pa.NativeFile:
        return pa.PythonFile(_Upload(*self._folder.located(path), self._part), mode="w")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ObjectFiles) and other._folder == self._folder

    def __hash__(self) -> int:
        return hash(self._folder)

    def _refuse(self, *_: object) -> Any:
        raise NotImplementedError("an object store has no folders, and its files are not changed")

    get_file_info_selector = create_dir = delete_dir = delete_dir_contents = _refuse
    delete_root_dir_contents = delete_file = move = copy_file = open_append_stream = _refuse
