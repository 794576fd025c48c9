"""Buckets and object stores of natsio and nats-py with blocking calls, for both twins.

Both clients run in one event loop, in a separate thread. natsio needs Python 3.13.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import Any, Self

import nats
from nats.js import api

__all__ = ["Blocking", "Peers"]

_PATIENCE = 300


class Blocking:
    """An object of another client whose coroutine methods block until they are done."""

    def __init__(self, peers: Peers, handle: Any) -> None:
        self._peers = peers
        self._handle = handle

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._handle, name)
        return lambda *given, **named: self._peers.run(lambda: method(*given, **named))


class Peers:
    """Connections of natsio and nats-py to one server."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="peers", daemon=True)
        self._natsio: Any = None
        self._nats_py: Any = None

    def run(self, work: Callable[[], Awaitable[Any]]) -> Any:
        """Run a coroutine function in the event loop of the peers, and return its result."""

        async def bounded() -> Any:
            async with asyncio.timeout(_PATIENCE):
                return await work()

        return asyncio.run_coroutine_threadsafe(bounded(), self._loop).result()

    def __enter__(self) -> Self:
        self._thread.start()
        self.run(self._connect)
        return self

    async def _connect(self) -> None:
        self._natsio = await import_module("natsio").connect(self._url)
        self._nats_py = await nats.connect(self._url, connect_timeout=60)

    def __exit__(self, *_: object) -> None:
        try:
            self.run(self._close)
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    async def _close(self) -> None:
        await self._natsio.close()
        await self._nats_py.close()

    # ---- key-value buckets

    def create(self, bucket: str, **settings: Any) -> None:
        """Create a bucket with natsio."""
        config = import_module("natsio.kv").KeyValueConfig(bucket=bucket, **settings)
        self.run(lambda: self._natsio.jetstream().create_key_value(config))

    def natsio(self, bucket: str) -> Blocking:
        """Return the bucket as an object of natsio."""
        return Blocking(self, self.run(lambda: self._natsio.jetstream().key_value(bucket)))

    def nats_py(self, bucket: str) -> Blocking:
        """Return the bucket as an object of nats-py."""
        return Blocking(
            self, self.run(lambda: self._nats_py.jetstream(timeout=60).key_value(bucket))
        )

    def watched(self, bucket: str, write: Callable[[], object], count: int) -> list[list[Any]]:
        """Watch with both clients, call `write`, and return the entries of each watch.

        These are the initial values, None and the updates. An entry is key, operation and revision;
        `count` is the number of updates.
        """
        watches = self.run(lambda: self._watches(bucket))
        seen = self.run(lambda: _from_each(watches, None))
        write()
        more = self.run(lambda: _from_each(watches, count))
        for watch in watches:
            self.run(watch.aclose)
        return [[*first, *second] for first, second in zip(seen, more, strict=True)]

    async def _watches(self, bucket: str) -> tuple[Any, Any]:
        natsio = await self._natsio.jetstream().key_value(bucket)
        nats_py = await self._nats_py.jetstream(timeout=60).key_value(bucket)
        return _of_natsio(natsio), _of_nats_py(await nats_py.watchall())

    # ---- object stores

    def natsio_store(self, bucket: str) -> Blocking:
        """Return the object store as an object of natsio."""
        return Blocking(self, self.run(lambda: self._natsio.jetstream().object_store(bucket)))

    def nats_py_store(self, bucket: str) -> Blocking:
        """Return the object store as an object of nats-py."""
        return Blocking(
            self, self.run(lambda: self._nats_py.jetstream(timeout=60).object_store(bucket))
        )

    def create_store(self, bucket: str) -> None:
        """Create an object store with natsio."""
        config = import_module("natsio.objectstore").ObjectStoreConfig(bucket=bucket)
        self.run(lambda: self._natsio.jetstream().create_object_store(config))

    @staticmethod
    def meta(name: str, **members: Any) -> tuple[Any, Any]:
        """Return the metadata of an object for natsio, and for nats-py."""
        theirs = import_module("natsio.objectstore").ObjectMeta(name=name, **members)
        headers = members.get("headers")
        other = api.ObjectMeta(description=members.get("description"), headers=headers)
        return theirs, other

    @staticmethod
    def error(name: str) -> type[Exception]:
        """Return an error of natsio, such as `kv.KeyDeletedError`."""
        module, _, kind = name.rpartition(".")
        found: type[Exception] = getattr(import_module(f"natsio.{module}"), kind)
        return found


async def _of_natsio(bucket: Any) -> Any:
    async with bucket.watch() as watcher:
        async for entry in watcher:
            yield entry and (entry.key, entry.operation.value, entry.revision)


async def _of_nats_py(watcher: Any) -> Any:
    try:
        while True:
            entry = await watcher.updates(_PATIENCE)
            yield entry and (entry.key, entry.operation or "PUT", entry.revision)
    finally:
        await watcher.stop()


async def _from_each(watches: tuple[Any, ...], count: int | None) -> list[list[Any]]:
    return [await _some(each, count) for each in watches]


async def _some(entries: Any, count: int | None) -> list[Any]:
    """Return the next `count` entries, or all entries up to None."""
    found: list[Any] = []
    while count is None or len(found) < count:
        found.append(await anext(entries))
        if count is None and found[-1] is None:
            break
    return found
