from enum import Enum

from pyarrow import NativeFile

class FileType(Enum):
    NotFound = 0
    File = 2

class FileInfo:
    def __init__(self, path: str, type: FileType, *, size: int | None = None) -> None: ...

class FileSystemHandler: ...

class FileSystem:
    def open_output_stream(self, path: str) -> NativeFile: ...

class PyFileSystem(FileSystem):
    def __init__(self, handler: FileSystemHandler) -> None: ...

class LocalFileSystem(FileSystem): ...
