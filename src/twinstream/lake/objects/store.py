"""The store in a folder of an S3 bucket, by the package obstore.

An object is created by a PUT with `If-None-Match: *`, which the server refuses if the key exists.
The answer to such a PUT may be lost after the object was stored, and a repeated PUT is then refused
because of the first one. So each call writes a mark of its own into the metadata of the object, and
the mark of the stored object decides whose it is.
"""

from __future__ import annotations

import time
import uuid
from typing import TYPE_CHECKING, Final

from twinstream.core.deadline import Backoff
from twinstream.lake.errors import JournalError, StorageError, StorageUnusable
from twinstream.lake.objects.errors import is_no_bucket, is_unsupported, requests
from twinstream.lake.objects.folder import ObjectFolder
from twinstream.lake.store import KeyTaken
from twinstream.models.files.bounded_read import LARGEST

if TYPE_CHECKING:
    from obstore import GetResult

__all__ = ["ObjectStore"]

# The metadata of an object with the mark of the call that created it.
_MARK: Final = "twinstream-write"

# Attempts to create an object whose answers were lost, and the pauses between them in seconds.
# Each has the retries of the client.
_ATTEMPTS: Final = 4
_PAUSES: Final = Backoff(0.2, 5.0)

# The object with which the conditions of the server are tested, and an ETag that no object has.
_PROBE: Final = "conditional.json"
_NO_ETAG: Final = '"00000000000000000000000000000000"'


class ObjectStore:
    """A store of the objects in `folder`."""

    def __init__(self, folder: ObjectFolder) -> None:
        self._folder: Final = folder

    def check(self) -> None:
        """Raise `StorageUnusable` if the server stores an object over one that exists.

        The first call creates an object for this test, which later calls need.
        """
        for _ in range(2):
            try:
                self._put(_PROBE, b"{}\n", "probe")
            except StorageError as error:
                if not is_unsupported(error):
                    raise
            except KeyTaken:
                return
        raise StorageUnusable(
            f"the server of {self._folder} does not support PUT with If-None-Match, without which"
            " two processes could land a batch twice; use a server that does, such as Amazon S3"
        )

    def check_replace(self) -> None:
        """Raise `StorageUnusable` if the server replaces an object that has another ETag."""
        try:
            self._put(_PROBE, b"{}\n", "probe", _NO_ETAG)
        except StorageError as error:
            if not is_unsupported(error):
                raise
        except KeyTaken:
            return
        raise StorageUnusable(
            f"the server of {self._folder} does not support PUT with If-Match, without which two"
            " commands could change the tables at once; use a server that does, such as Amazon S3"
        )

    def create(self, key: str, data: bytes) -> None:
        """Store an object, or raise `KeyTaken` if there is one with the key.

        Raises `StorageError` if the server refuses the request, or does not answer several times.
        The object may be stored in the second case.
        """
        self.replace(key, data, None)

    def replace(self, key: str, data: bytes, etag: str | None) -> str:
        """Store an object over the one that has an ETag, and return the new ETag.

        `None` stands for no object. Raises `KeyTaken` if the object with the key is another one,
        and `StorageError` as `create` does.
        """
        mark = uuid.uuid4().hex
        attempt = 1
        while True:
            try:
                return self._put(key, data, mark, etag)
            except (StorageError, KeyTaken):
                found = self._found(key)
                stored = None if found is None else found.meta["e_tag"]
                if found is not None and found.attributes.get(_MARK) == mark:
                    return stored or ""
                if stored != etag:
                    raise KeyTaken(key) from None
                if attempt == _ATTEMPTS:
                    raise
            time.sleep(_PAUSES.pause(attempt))
            attempt += 1

    def _put(self, key: str, data: bytes, mark: str, etag: str | None = None) -> str:
        """Store an object once, and return its ETag.

        Raises `KeyTaken` if the server refuses it because the key has an object, or another one
        than that with `etag`.
        """
        import obstore
        from obstore.exceptions import AlreadyExistsError, PreconditionError

        with requests(self._folder, "write", key) as client:
            try:
                stored = obstore.put(
                    client,
                    key,
                    data,
                    mode="create" if etag is None else {"e_tag": etag},
                    attributes={_MARK: mark},
                    use_multipart=False,
                )
            except (AlreadyExistsError, PreconditionError):
                raise KeyTaken(key) from None
            except FileNotFoundError as error:
                if etag is None or is_no_bucket(error):
                    raise
                raise KeyTaken(key) from None  # the object was removed
        return stored["e_tag"] or ""

    def get(self, key: str) -> bytes | None:
        """Return the object with a key, or `None` if there is none.

        Raises `JournalError` for an object of more than 64 MiB, and `StorageError` if the server
        refuses the request or does not answer.
        """
        found = self.tagged(key)
        return None if found is None else found[0]

    def tagged(self, key: str) -> tuple[bytes, str] | None:
        """Return the object with a key and its ETag, or `None` if there is none.

        Raises as `get` does.
        """
        found = self._found(key)
        if found is None:
            return None
        if found.meta["size"] > LARGEST:
            raise JournalError(
                f"the object {self._folder / key} has more than {LARGEST >> 20} MiB: another"
                " program put it there; move it away"
            )
        with requests(self._folder, "read", key):
            return bytes(found.bytes()), found.meta["e_tag"] or ""

    def _found(self, key: str) -> GetResult | None:
        import obstore

        with requests(self._folder, "read", key) as client:
            try:
                return obstore.get(client, key)
            except FileNotFoundError as error:
                if is_no_bucket(error):
                    raise
                return None

    def names(self, folder: str) -> list[str]:
        """Return the last parts of the keys directly below a folder, in their order."""
        import obstore

        with requests(self._folder, "list", folder) as client:
            found = obstore.list_with_delimiter(client, prefix=f"{folder}/")
        # Some servers list the folder itself as an object.
        keys = [each["path"] for each in found["objects"]]
        return sorted(key.rpartition("/")[2] for key in keys if key.startswith(f"{folder}/"))

    def folders(self) -> list[str]:
        """Return the first parts of the keys that have several, in their order."""
        import obstore

        with requests(self._folder, "list", "") as client:
            found = obstore.list_with_delimiter(client)
        return sorted(each.rstrip("/") for each in found["common_prefixes"])

    def delete(self, key: str) -> None:
        """Remove the object with a key, if there is one."""
        import obstore

        with requests(self._folder, "remove", key) as client:
            obstore.delete(client, key)
