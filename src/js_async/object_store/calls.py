"""The calls of a JetStream context about object stores."""

from __future__ import annotations

from typing import TYPE_CHECKING

from js_async.api.api import ApiCalls
from twinstream.core.deadline import Seconds

if TYPE_CHECKING:
    from js_async.api.listing import Listing
    from js_async.object_store.store import ObjectStore
    from twinstream.core.object_store.config import ObjectStoreStatus
    from twinstream.models import ObjectStoreConfig

__all__ = ["ObjectCalls"]


class ObjectCalls(ApiCalls):
    """The part of a JetStream context that is about object stores."""

    async def create_object_store(
        self, config: ObjectStoreConfig, *, timeout: Seconds | None = None
    ) -> ObjectStore:
        """Create an object store; an equal one that exists is fine.

        Raises `StreamExists` with the differences where there is another one of that name,
        `InvalidConfig` or another `JetStreamError`.
        """
        from js_async.object_store.store import stores as _object_stores

        return await _object_stores.create(self._api, config, timeout)

    async def get_object_store(self, bucket: str, *, timeout: Seconds | None = None) -> ObjectStore:
        """Return an object store that exists, one of another client perhaps.

        Raises `ObjectStoreNotFound`, `NotAnObjectStore`.
        """
        from js_async.object_store.store import stores as _object_stores

        return await _object_stores.get(self._api, bucket, timeout)

    def bind_object_store(self, bucket: str) -> ObjectStore:
        """Return an object store without asking the server; the first call that needs to asks."""
        from js_async.object_store.store import ObjectStore

        return ObjectStore(self._api, bucket, None)

    async def update_object_store(
        self, config: ObjectStoreConfig, *, timeout: Seconds | None = None
    ) -> ObjectStore:
        """Replace the settings of an object store. What a store has no setting for stays.

        `timeout` is for each of the two requests. Raises `ObjectStoreNotFound`,
        `NotAnObjectStore`, `InvalidConfig` for what cannot be changed, another `JetStreamError`.
        """
        from js_async.object_store.store import stores as _object_stores

        return await _object_stores.update(self._api, config, timeout)

    async def create_or_update_object_store(
        self, config: ObjectStoreConfig, *, timeout: Seconds | None = None
    ) -> ObjectStore:
        """Create an object store, or replace the settings of the one that exists."""
        from js_async.object_store.store import stores as _object_stores

        return await _object_stores.create_or_update(self._api, config, timeout)

    async def delete_object_store(self, bucket: str, *, timeout: Seconds | None = None) -> None:
        """Delete an object store with all its objects. Raises `ObjectStoreNotFound`."""
        from js_async.object_store.store import stores as _object_stores

        await _object_stores.delete(self._api, bucket, timeout)

    def object_stores(self, *, timeout: Seconds | None = None) -> Listing[ObjectStoreStatus]:
        """Iterate over the status of all object stores, mirrors included.

        The server lists all streams for it; `timeout` is for each page.
        """
        from js_async.object_store.store import stores as _object_stores

        return _object_stores.Statuses(self._api, timeout)

    def object_store_names(self, *, timeout: Seconds | None = None) -> Listing[str]:
        """Iterate over the buckets of all object stores, by the names of their streams.

        `timeout` is for each page.
        """
        from js_async.object_store.store import stores as _object_stores

        return _object_stores.Names(self._api, timeout)
