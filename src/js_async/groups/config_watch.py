"""The stored configuration of a group: the current one, then each change."""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from js_async.extension import api_of
from js_async.runtime.concurrency import Signal
from twinstream.core.groups.membership import Found
from twinstream.core.groups.names import GroupNames
from twinstream.core.groups.partitions import GroupConfig
from twinstream.core.hooks import HOOKS, reached
from twinstream.core.on_failure import AsyncOnFailure
from twinstream.errors import BucketNotFound, InvalidGroupConfig, IterationEnded
from twinstream.records.entry import Entry

if TYPE_CHECKING:
    from js_async import JetStream, KeyValueWatch
    from js_async.groups.store import GroupStore

__all__ = ["ConfigWatch"]

# Seconds until the worker notices that its group is missing in a bucket that was re-created.
_LOOK: Final = 1.0


class ConfigWatch:
    """A watch of the configuration of a group. It sets `woken` after each change."""

    def __init__(
        self, jet: JetStream, names: GroupNames, store: GroupStore[Any], woken: Signal
    ) -> None:
        self._timeout: Final = api_of(jet).timeout
        self._names: Final = names
        self._store: Final[GroupStore[Any]] = store
        self._woken: Final = woken
        self._watch: KeyValueWatch[bytes] | None = None
        self._changes: Final[deque[Found]] = deque()

    async def open(self) -> GroupConfig:
        """Open the watch and return the current configuration.

        Raises `GroupNotFound`, or `InvalidGroupConfig` if the configuration is invalid.
        """
        try:
            self._watch = watch = await self._store.bucket.watch(self._names.key)
        except BucketNotFound as error:
            raise self._store.missing() from error
        async with AsyncOnFailure(watch.close):
            entry = None
            async for each in watch.initial():
                entry = each
            config = self._judge(entry)
            if config is None:
                raise self._store.missing()
            if isinstance(config, InvalidGroupConfig):
                raise config
            return config

    async def close(self) -> None:
        """End the watch, and `follow`."""
        if self._watch is not None:
            await self._watch.close()

    async def follow(self) -> None:
        """Note the changes until the watch is closed. Raises the error that ends the watch."""
        watch = self._watch
        if watch is None:
            return
        # `open` has read the first entry, so the group exists.
        generation, is_there = watch.generation, True
        with suppress(IterationEnded):  # `close` has ended the watch.
            while not watch.is_ended:
                entry = await watch.next(timeout=_LOOK)
                if watch.generation != generation:
                    # The bucket was re-created. If the watch delivers no entry before the end of
                    # the initial values, the group does not exist any more.
                    generation, is_there = watch.generation, False
                if entry is not None:
                    is_there = True
                    self._note(self._judge(entry))
                elif watch.is_current and not is_there:
                    is_there = True
                    self._note(None)

    def _judge(self, entry: Entry[bytes] | None) -> Found:
        return self._store.judge(entry)

    def _note(self, found: Found) -> None:
        self._changes.append(found)
        self._woken.set()
        if HOOKS:
            reached("group: change noted", self)

    @property
    def has_changes(self) -> bool:
        """Whether there are changes that `next_change` has not returned."""
        return bool(self._changes)

    def next_change(self) -> Found:
        """Return the first change that was not returned yet."""
        return self._changes.popleft()
