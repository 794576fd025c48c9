"""Errors of objects. Those of the store itself are in `errors.bucket`.

::

    TwinstreamError
        ├── ObjectNotFound (LookupError)     the store has no object of that name
        │   └── ObjectDeleted                the object was deleted
        ├── ObjectExists                     the new name of an object is in use
        ├── ObjectChanged                    the object was replaced or deleted while it was read
        ├── ObjectIncomplete                 chunks of the object are missing
        ├── DigestMismatch                   the content does not match its digest
        ├── InvalidObjectInfo                    the stored metadata of an object cannot be read
        ├── LinkError                        a link cannot be created or followed
        └── ObjectPutFailed                        an object was not stored
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from twinstream.errors.base import TwinstreamError
from twinstream.errors.bucket import BucketNotFound, bucket_not_found
from twinstream.errors.publish import NoStream
from twinstream.errors.server_errors import StreamNotFound

if TYPE_CHECKING:
    from twinstream.models import ObjectInfo

__all__ = [
    "DigestMismatch",
    "InvalidObjectInfo",
    "LinkError",
    "ObjectChanged",
    "ObjectDeleted",
    "ObjectExists",
    "ObjectIncomplete",
    "ObjectNotFound",
    "ObjectPutFailed",
    "StoreErrors",
]


class ObjectNotFound(TwinstreamError, LookupError):
    """The store has no object of that name.

    What to do: Store the object, or correct its name.
    """


class ObjectDeleted(ObjectNotFound):
    """The object was deleted; `info` is its metadata after the deletion.

    What to do: Store the object again, or pass `deleted=True` to `info` to see its metadata.
    """

    info: ObjectInfo | None = None


class ObjectExists(TwinstreamError):
    """The new name of an object or a link is already the name of another object.

    What to do: Choose another name, or delete the other object.
    """


class ObjectChanged(TwinstreamError):
    """The object was replaced, deleted or renamed while it was read or changed.

    What to do: Read the object or its metadata again, and repeat the call.
    """


class ObjectIncomplete(TwinstreamError):
    """Some chunks of the object's content are missing from the stream.

    What to do: Store the object again: its content is lost.
    """


class DigestMismatch(TwinstreamError):
    """The content does not match its digest.

    What to do: Read the object again. If the error stays, store it again: its content is damaged.
    """


class InvalidObjectInfo(TwinstreamError):
    """The stored metadata of an object cannot be read.

    What to do: Store the object again, or delete it.
    """


class LinkError(TwinstreamError):
    """A link cannot be created or followed.

    `bucket` and `name` identify the target of the link. `name` is None if the target is a store.

    What to do: Link to an object that exists and is no link, or delete the link.
    """

    bucket: str | None = None
    name: str | None = None


class ObjectPutFailed(TwinstreamError):
    """An object was not stored, and the previous object is unchanged.

    The `__cause__` of this error is the reason. `cleaned` is true if the chunks of the failed
    upload were removed. Otherwise `ObjectStore.sweep` can remove them later.

    What to do: Remove the cause, and store the object again.
    """

    cleaned: bool = False


class StoreErrors:
    """A context that raises `BucketNotFound` for an error which says that the stream is missing."""

    __slots__ = ("_bucket",)

    def __init__(self, bucket: str) -> None:
        self._bucket = bucket

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        # A `BucketNotFound` may be that of another store, to which a link leads.
        if isinstance(error, NoStream | StreamNotFound) and not isinstance(error, BucketNotFound):
            raise bucket_not_found(self._bucket, "object_store", error) from error
