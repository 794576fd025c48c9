"""The files of Iceberg's metadata, which pyiceberg reads and writes through the client for S3.

So credentials, encryption and retries are those of all other objects of the lake.
"""

from __future__ import annotations

import io
from typing import Any, Final

from pyiceberg.io import FileIO, InputFile, InputStream, OutputFile, OutputStream

from twinstream.lake.errors import StorageError
from twinstream.lake.objects.errors import requests
from twinstream.lake.objects.folder import ObjectFolder, StorageSettings

__all__ = ["ObjectFileIO"]


class ObjectFileIO(FileIO):
    """The objects of a server that speaks S3, by their URLs."""

    def __init__(self, storage: StorageSettings) -> None:
        super().__init__()
        self._storage: Final = storage

    def new_input(self, location: str) -> InputFile:
        """Return an object to read."""
        return _Object(location, self._storage)

    def new_output(self, location: str) -> OutputFile:
        """Return an object to write."""
        return _Object(location, self._storage)

    def delete(self, location: str | InputFile | OutputFile) -> None:
        """Do nothing.

        pyiceberg removes the manifests of a commit that was refused. But a repeated request is also
        refused if the first one was carried out and its answer was lost. Then the table would name
        manifests that do not exist. A vacuum removes those that no snapshot names.
        """


class _Object(InputFile, OutputFile):
    """One object. It is written at once, when its stream is closed."""

    def __init__(self, location: str, storage: StorageSettings) -> None:
        super().__init__(location)
        # Not `urlsplit`, because a key may have "?" and "#".
        bucket, _, key = location.partition("://")[2].partition("/")
        self._folder: Final = ObjectFolder(bucket, "", storage)
        self._key: Final = key
        self._size: int | None = None

    def __len__(self) -> int:
        if self._size is None:
            self._size = self._stored_size()
        if self._size is None:
            raise FileNotFoundError(self.location)
        return self._size

    def exists(self) -> bool:
        return self._stored_size() is not None

    def _stored_size(self) -> int | None:
        import obstore

        with requests(self._folder, "read", self._key) as client:
            try:
                return obstore.head(client, self._key)["size"]
            except FileNotFoundError:
                return None

    def open(self, seekable: bool = True) -> InputStream:
        import obstore

        with requests(self._folder, "read", self._key) as client:
            try:
                data: Any = io.BytesIO(bytes(obstore.get(client, self._key).bytes()))
            except FileNotFoundError:
                raise StorageError(
                    f"{self.location} is missing: another program has removed it. Try again, as the"
                    " program may have expired the snapshot; if it stays missing, restore it"
                ) from None
        stream: InputStream = data
        return stream

    def create(self, overwrite: bool = False) -> OutputStream:
        writer: Any = _Writer(self)
        stream: OutputStream = writer
        return stream

    def to_input_file(self) -> InputFile:
        return self

    def put(self, data: bytes) -> None:
        """Store the object. Its name has an ID that no other object has."""
        import obstore

        with requests(self._folder, "write", self._key) as client:
            obstore.put(client, self._key, data)
        self._size = len(data)


class _Writer(io.BytesIO):
    def __init__(self, target: _Object) -> None:
        super().__init__()
        self._target: Final = target

    def close(self) -> None:
        if not self.closed:
            data = self.getvalue()
            super().close()
            self._target.put(data)
