from enum import Enum
from typing import overload

from pyarrow import NativeFile

class FileType(Enum):
    NotFound = 0
    File = 2

class FileInfo:
    path: str
    type: FileType
    size: int
    def __init__(self, path: str, type: FileType, *, size: int | None = None) -> None: ...

class FileSystemHandler: ...

class FileSystem:
    @overload
    def get_file_info(self, paths: str) -> FileInfo: ...
    @overload
    def get_file_info(self, paths: list[str]) -> list[FileInfo]: ...
    def open_output_stream(self, path: str) -> NativeFile: ...

class PyFileSystem(FileSystem):
    def __init__(self, handler: FileSystemHandler) -> None: ...

class LocalFileSystem(FileSystem): ...

class SubTreeFileSystem(FileSystem):
    def __init__(self, base_path: str, base_fs: FileSystem) -> None: ...
