"""The entry point to locks, semaphores, rate limits, run-once work and leader election."""

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
from js_async.runtime.concurrency import Handler, Items
from js_async.runtime.opening import looped
from twinstream.core.arguments.check_arguments import check_kind
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
from twinstream.models.codec.records import frozen

__all__ = ["Coordination", "Taken", "open_coordination"]

_TTL: Final = 15


@frozen
class Taken:
    """A slot in use, as returned by `Coordination.taken`. `record` describes its holder."""

    kind: str
    """`lock`, `semaphore`, `rate`, `once` or `leader`."""
    name: str
    number: int | None
    """The number, from 1, of a slot of a semaphore or rate limit; None for other kinds."""
    record: SlotRecord


async def open_coordination(
    api: Api, stream: str, create: bool, replicas: int, owner: str | None
) -> Coordination:
    """Return the coordination API of a stream, after a check of the stream's settings.

    With `create`, a missing stream is created with `replicas` replicas. `owner` is the name of this
    client in records; None uses host name and process id.

    Raises `StreamNotFound`, `UnsuitableSettings`, and `Unsupported` for a server older than 2.11.
    """
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
        pass  # Another client has created the stream. The caller checks its settings.
    # Request the info again, because the response to a creation lacks the domain.
    return await api.stream_info(stream)


class Coordination:
    """The coordination API of a stream: locks, semaphores, rate limits, run-once work, leaders.

    `JetStream.coordination` creates it. Each lock, and each unit of a semaphore or rate limit, is a
    slot: a subject of the stream that has one message, written by the holder, or none.

    The methods share two durations. `ttl`, in whole seconds, is the time after the last renewal at
    which the server frees the slot of a dead holder. `margin`, in seconds, is how much earlier a
    holder that cannot renew its slot considers the slot lost. The default `ttl` is 15 s, the
    default `margin` is a quarter of the TTL, at most 1 s.
    """

    def __init__(self, place: Place) -> None:
        self._place: Final = place

    @property
    def stream(self) -> str:
        """The name of the stream."""
        return self._place.stream

    @property
    def owner(self) -> str:
        """The name of this client in the records of its slots."""
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
            note: Text that other clients see in the holder's record.
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
        """Return a semaphore.

        Args:
            name: Name of the semaphore.
            count: Maximum number of holders at a time.
            ttl: Time to live in whole seconds, see `Coordination`.
            margin: Safety margin in seconds, see `Coordination`.
            note: Text that other clients see in the records of the holders.
            on_lost: Callback that receives the lease when it is lost.
        """
        self._place.subjects.slot("semaphore", name)
        count = check_count(count, "count")
        return Semaphore(self._place, name, count, Terms.of(ttl, margin), note, on_lost)

    def rate_limiter(self, name: str, count: int, *, per: Seconds = 1) -> RateLimiter:
        """Return a rate limiter.

        Args:
            name: Name of the limiter.
            count: Maximum number of permits in any period.
            per: Length of the period in whole seconds, at least 1.
        """
        self._place.subjects.slot("rate", name)
        return RateLimiter(self._place, name, check_count(count, "count"), Terms.period(per, "per"))

    def once(self, key: str, *, ttl: Seconds | None = None, keep: Seconds | None = None) -> Once:
        """Return an object that runs work at most once per key.

        Args:
            key: The name of the work.
            ttl: Time in whole seconds. If the client that runs the work dies, another client may
                start the work `ttl` seconds after the last renewal. With None, no other client ever
                starts the work.
            keep: Time in whole seconds for which the result is kept; None keeps it forever.
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
            note: Text that other clients see in the leader's record.
            on_elected: Handler that runs in the background during a term. The handler gets the
                lease of the term, and should return when the lease is no longer held. The candidate
                does not campaign again before the handler has returned.
            on_lost: Handler that is called with the lease when a term has ended. The lease's `lost`
                is the reason, or None after stepping down.
        """
        self._place.subjects.slot("leader", name)
        terms = Terms.of(ttl, margin)
        return Leader(self._place, name, terms, note, on_elected, on_lost)

    @looped
    async def taken(self, kind: str | None = None) -> Items[Taken]:
        """Iterate over the slots in use, the oldest record first.

        Args:
            kind: `lock`, `semaphore`, `rate`, `once` or `leader`; None returns all kinds.
        """
        subjects = self._place.subjects
        async for record in Slots(self._place).all(subjects.kind(kind)):
            yield Taken(*subjects.parts(record.subject), record)

    async def evict(self, taken: Taken) -> bool:
        """Free a slot by force; return whether its record still existed.

        The holder notices this at its next renewal, up to a third of its TTL later. Until then, the
        old holder and a new holder both consider the slot theirs. So use this only if the holder is
        dead.
        """
        slots = Slots(self._place)
        found = await slots.drop(taken.record.seq)
        await slots.tell_freed(taken.kind, taken.name)
        return found
