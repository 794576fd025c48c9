"""Locks, semaphores, rate limits, run-once work and leader election in one stream."""

from __future__ import annotations

import os
import platform
from typing import Final

from js_async.api.api import Api
from js_async.coordination.leader import Leader
from js_async.coordination.lease import Lease, OnLost
from js_async.coordination.lock import Lock, Semaphore
from js_async.coordination.once import Once
from js_async.coordination.rate_limiter import RateLimiter
from js_async.coordination.slot import Place, Slots
from js_async.runtime.concurrency import Handler
from js_async.runtime.concurrency import Stream as Generated
from twinstream.core.base.check_arguments import check_kind
from twinstream.core.coordination.coordination import (
    CoordinationSubjects,
    check_coordination,
    check_count,
    coordination_config,
)
from twinstream.core.coordination.lease_engine import FOREVER, Terms
from twinstream.core.coordination.lease_record import SlotRecord
from twinstream.core.deadline import Seconds
from twinstream.errors import StreamExists, StreamNotFound
from twinstream.models import StreamCreateResponse, StreamInfo
from twinstream.models.records import frozen

__all__ = ["Coordination", "Taken", "open_coordination"]

_TTL: Final = 15


@frozen
class Taken:
    """A slot in use, as returned by `Coordination.taken`."""

    kind: str
    """`lock`, `semaphore`, `rate`, `once` or `leader`."""
    name: str
    number: int | None
    """Number of the slot of a semaphore or rate limit, from 1."""
    record: SlotRecord


async def open_coordination(
    api: Api, stream: str, create: bool, replicas: int, owner: str | None
) -> Coordination:
    """Return the coordination API of a stream after checking its settings."""
    if owner is None:
        owner = f"{platform.node() or 'somewhere'}:{os.getpid()}"
    check_kind(owner, str, "owner", "text")
    api.require((2, 11, 0), "coordination (a time to live for each message)")
    subjects = CoordinationSubjects(stream)
    info = await _info(api, stream, create, replicas)
    check_coordination(info.config, subjects)
    most = info.config.max_msg_size
    most = most if most is not None and most > 0 else None
    return Coordination(Place(api, stream, subjects, owner, most, info.domain))


async def _info(api: Api, stream: str, create: bool, replicas: int) -> StreamInfo:
    try:
        return await api.stream_info(stream)
    except StreamNotFound as error:
        if not create:
            error.add_note(f"coordination({stream!r}, create=True) creates the stream")
            raise
    config = coordination_config(stream, replicas=replicas)
    try:
        await api.call(api.subjects.stream("CREATE", stream), config, StreamCreateResponse)
    except StreamExists:
        pass  # another client was faster; the settings are checked in any case
    # Request the info again: the response to a creation lacks the domain.
    return await api.stream_info(stream)


class Coordination:
    """Creates locks, semaphores and so on. Created by `JetStream.coordination`.

    Durations: `ttl`, in whole seconds, is the time after the last renewal at which the server frees
    the slot of a dead holder. `margin`, in seconds, is how much earlier a holder that cannot renew
    considers it lost: by default a quarter of the TTL, at most 1.
    """

    def __init__(self, place: Place) -> None:
        self._place: Final = place

    @property
    def stream(self) -> str:
        """Name of the stream."""
        return self._place.stream

    @property
    def owner(self) -> str:
        """Name of this client in the records of its slots."""
        return self._place.owner

    def __repr__(self) -> str:
        return f"<Coordination {self._place.stream}>"

    def lock(
        self,
        name: str,
        *,
        ttl: Seconds = _TTL,
        margin: Seconds | None = None,
        note: str = "",
        on_lost: OnLost | None = None,
    ) -> Lock:
        """Return a lock.

        Args:
            name: Name of the lock.
            ttl: Time to live in whole seconds, see `Coordination`.
            margin: Safety margin in seconds, see `Coordination`.
            note: Text that others see in the holder's record.
            on_lost: Callback that receives the lease when it is lost.
        """
        self._place.subjects.slot("lock", name)
        return Lock(self._place, name, Terms.of(ttl, margin), note, on_lost)

    def semaphore(
        self,
        name: str,
        count: int,
        *,
        ttl: Seconds = _TTL,
        margin: Seconds | None = None,
        note: str = "",
        on_lost: OnLost | None = None,
    ) -> Semaphore:
        """Return a semaphore with at most `count` holders at a time; other arguments as `lock`."""
        self._place.subjects.slot("semaphore", name)
        count = check_count(count, "count")
        return Semaphore(self._place, name, count, Terms.of(ttl, margin), note, on_lost)

    def rate_limiter(self, name: str, count: int, *, per: Seconds = 1) -> RateLimiter:
        """Return a limiter of at most `count` permits in any `per` seconds (whole, at least 1)."""
        self._place.subjects.slot("rate", name)
        return RateLimiter(self._place, name, check_count(count, "count"), Terms.period(per, "per"))

    def once(self, key: str, *, ttl: Seconds | None = None, keep: Seconds | None = None) -> Once:
        """Return an object that runs work at most once per key.

        Args:
            key: The key.
            ttl: Without it, started work never starts again, even if its client dies. With it,
                another client may start the work `ttl` seconds after the last renewal of a dead
                client.
            keep: Time in whole seconds for which the result is kept; None is forever.
        """
        self._place.subjects.slot("once", key)
        terms = FOREVER if ttl is None else Terms.of(ttl, None)
        return Once(
            self._place, key, terms, None if keep is None else Terms.period(keep, "keep").ttl
        )

    def leader(
        self,
        name: str,
        *,
        ttl: Seconds = _TTL,
        margin: Seconds | None = None,
        note: str = "",
        on_elected: Handler[Lease] | None = None,
        on_lost: Handler[Lease] | None = None,
    ) -> Leader:
        """Return a candidate of an election.

        Args:
            name: Name of the election.
            ttl: Time to live in whole seconds, see `Coordination`.
            margin: Safety margin in seconds, see `Coordination`.
            note: Text that others see in the leader's record.
            on_elected: Handler that runs alongside the campaign with the lease of the term. It
                should return when the lease is no longer held: the next campaign starts after that.
            on_lost: Handler to call as soon as a term is over. The lease's `lost` is the reason, or
                None after stepping down.
        """
        self._place.subjects.slot("leader", name)
        terms = Terms.of(ttl, margin)
        return Leader(self._place, name, terms, note, on_elected, on_lost)

    async def taken(self, kind: str | None = None) -> Generated[Taken]:
        """Iterate over the slots in use, of one kind or all, the oldest record first."""
        subjects = self._place.subjects
        async for record in Slots(self._place).all(subjects.kind(kind)):
            yield Taken(*subjects.parts(record.subject), record)

    async def evict(self, taken: Taken) -> bool:
        """Free a slot by force; return whether its record still existed.

        The holder notices this at its next renewal, up to a third of its TTL later. Until then two
        holders may believe that they hold the slot, so use this only for holders that are dead.
        """
        slots = Slots(self._place)
        found = await slots.drop(taken.record.seq)
        await slots.tell_freed(taken.kind, taken.name)
        return found
