"""Errors of object stores.

::

    TwinstreamError
    ├── ObjectNotFound (LookupError)     the store has no object of that name
    │   └── ObjectDeleted                … any more
    ├── ObjectExists                     the name that an object was to get is in use
    ├── ObjectChanged                    the object was replaced or deleted while it was read
    ├── ObjectIncomplete                 chunks of the object are missing
    ├── DigestMismatch                   the content is not the one that was stored
    ├── BadObjectInfo                    the stored description of an object cannot be read
    ├── LinkError                        a link cannot be made, or not followed
    ├── PutFailed                        an object was not stored
    ├── NotAnObjectStore                 the stream of that name is something else
    └── JetStreamError
        └── StreamNotFound
            └── ObjectStoreNotFound      there is no store of that name
"""

from __future__ import annotations

from twinstream.errors import StreamNotFound, TwinstreamError
from twinstream.models import ObjectInfo

__all__ = [
    "BadObjectInfo",
    "DigestMismatch",
    "LinkError",
    "NotAnObjectStore",
    "ObjectChanged",
    "ObjectDeleted",
    "ObjectExists",
    "ObjectIncomplete",
    "ObjectNotFound",
    "ObjectStoreNotFound",
    "PutFailed",
]


class ObjectNotFound(TwinstreamError, LookupError):
    """The store has no object of that name."""


class ObjectDeleted(ObjectNotFound):
    """The object was deleted; `info` is what is left of it."""

    info: ObjectInfo | None = None


class ObjectExists(TwinstreamError):
    """The name that an object or a link was to get belongs to another object."""


class ObjectChanged(TwinstreamError):
    """The object was replaced, deleted or renamed while it was read or changed."""


class ObjectIncomplete(TwinstreamError):
    """Messages that hold the object's content are missing from the stream."""


class DigestMismatch(TwinstreamError):
    """The content is not the one that the digest was made of."""


class BadObjectInfo(TwinstreamError):
    """The stored description of an object cannot be read."""


class LinkError(TwinstreamError):
    """A link cannot be made or followed. `bucket` and `name` are of its target.

    The name is None where the target is a whole store.
    """

    bucket: str | None = None
    name: str | None = None


class PutFailed(TwinstreamError):
    """An object was not stored; its cause says why. What the name held before is unchanged.

    `cleaned` tells whether the chunks that were sent are removed. Otherwise
    `ObjectStore.sweep` removes them later.
    """

    cleaned: bool = False


class NotAnObjectStore(TwinstreamError):
    """A stream has the name of the object store, but not its subjects."""


class ObjectStoreNotFound(StreamNotFound):
    """There is no object store of that name."""
