"""Let Arrow read and write the files of a folder of an object store, by the package obstore.

Arrow's own file system for S3 cannot call this package for credentials that expire.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import obstore
import pyarrow as pa
from pyarrow.fs import FileInfo, FileSystem, FileSystemHandler, FileType, PyFileSystem

from twinstream.lake.object_client import bucket_of
from twinstream.lake.object_folder import ObjectFolder

__all__ = ["arrow_files"]

# Bytes of a file that are buffered before a part is sent. A smaller file is one request. A file may
# have 10,000 parts.
_PART: Final = 16 * 1024 * 1024


@lru_cache(maxsize=64)
def arrow_files(folder: ObjectFolder) -> FileSystem:
    """Return the file system whose paths are keys below the folder."""
    return PyFileSystem(_ObjectFiles(folder))


class _Upload:
    """A file that appears as a whole when it is closed, unless writing it has failed."""

    def __init__(self, folder: ObjectFolder, key: str) -> None:
        self._writer: Final = obstore.open_writer(bucket_of(folder), key, buffer_size=_PART)
        self._size = 0
        self.closed = False

    def write(self, data: Any) -> int:
        # The buffer belongs to Arrow, which may change it after this call.
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
            self._writer.close()


class _ObjectFiles(FileSystemHandler):
    """The part of a file system that Arrow needs for files whose names are known."""

    def __init__(self, folder: ObjectFolder) -> None:
        self._folder: Final = folder

    def get_type_name(self) -> str:
        return "twinstream"

    def normalize_path(self, path: str) -> str:
        return path

    def get_file_info(self, paths: list[str]) -> list[FileInfo]:
        return [self._info(path) for path in paths]

    def _info(self, path: str) -> FileInfo:
        try:
            found = obstore.head(bucket_of(self._folder), path)
        except FileNotFoundError:
            return FileInfo(path, FileType.NotFound)
        return FileInfo(path, FileType.File, size=found["size"])

    def open_input_file(self, path: str) -> pa.NativeFile:
        return pa.PythonFile(obstore.open_reader(bucket_of(self._folder), path), mode="r")

    def open_input_stream(self, path: str) -> pa.NativeFile:
        return self.open_input_file(path)

    def open_output_stream(self, path: str, metadata: object) -> pa.NativeFile:
        return pa.PythonFile(_Upload(self._folder, path), mode="w")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ObjectFiles) and other._folder == self._folder

    def __hash__(self) -> int:
        return hash(self._folder)

    def _refuse(self, *_: object) -> Any:
        raise NotImplementedError("an object store has no folders, and its files are not changed")

    get_file_info_selector = create_dir = delete_dir = delete_dir_contents = _refuse
    delete_root_dir_contents = delete_file = move = copy_file = open_append_stream = _refuse
