"""Object stores of nats-py, for tests of both twins. Each call uses its own client."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import nats
from nats.js import api
from nats.js.object_store import ObjectStore

__all__ = ["Theirs"]


class Theirs:
    """An object store of nats-py with blocking calls."""

    def __init__(self, url: str, bucket: str) -> None:
        self.url = url
        self.bucket = bucket

    def _run(self, work: Callable[[ObjectStore], Awaitable[Any]], *, create: bool = False) -> Any:
        async def run() -> Any:
            client = await nats.connect(self.url, connect_timeout=60)
            try:
                context = client.jetstream(timeout=60)
                if create:
                    await context.create_object_store(bucket=self.bucket)
                return await work(await context.object_store(self.bucket))
            finally:
                await client.close()

        # In a thread: the caller may be in an event loop.
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(lambda: asyncio.run(run())).result()

    def create(self) -> None:
        """Create the store."""

        async def nothing(_: ObjectStore) -> None: ...

        self._run(nothing, create=True)

    def put(self, name: str, data: bytes, **meta: Any) -> None:
        """Store an object."""
        self._run(lambda store: store.put(name, data, api.ObjectMeta(**meta)))

    def get(self, name: str) -> bytes:
        """Return the content of an object."""
        return bytes(self._run(lambda store: store.get(name)).data)

    def info(self, name: str, *, deleted: bool = False) -> api.ObjectInfo:
        """Return the description of an object."""
        found: api.ObjectInfo = self._run(lambda store: store.get_info(name, show_deleted=deleted))
        return found

    def delete(self, name: str) -> None:
        """Delete an object."""
        self._run(lambda store: store.delete(name))

    def names(self) -> list[str]:
        """Return the names of all objects."""
        return [info.name for info in self._run(lambda store: store.list())]

    def watched(self) -> list[tuple[str, bool]]:
        """Return the initial results of a watch: names, and whether the objects are deleted."""

        async def work(store: ObjectStore) -> list[tuple[str, bool]]:
            watch = await store.watch()
            found: list[tuple[str, bool]] = []
            while (info := await watch.updates()) is not None:
                found.append((info.name, bool(info.deleted)))
            await watch.stop()
            return found

        found: list[tuple[str, bool]] = self._run(work)
        return found
