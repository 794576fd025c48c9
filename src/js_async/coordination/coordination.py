"""The entry point to locks, semaphores, rate limits, run-once work and leader election."""

from __future__ import annotations

import os
import platform
from typing import Final

from attrs import frozen

from js_async import JetStream
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
    check_count,
    coordination_config,
)
from twinstream.core.coordination.lease_engine import FOREVER, Terms
from twinstream.core.coordination.lease_record import SlotRecord
from twinstream.core.deadline import Seconds
from twinstream.models import StreamConfig

__all__ = ["Coordination", "HeldSlot"]

_TTL: Final = 15


@frozen
class HeldSlot:
    """A slot in use, as returned by `Coordination.held`. `record` describes its holder."""

    kind: str
    """`lock`, `semaphore`, `rate`, `once` or `leader`."""
    name: str
    """Name of the lock, semaphore or limit."""
    number: int | None
    """The number, from 1, of a slot of a semaphore or rate limit; None for other kinds."""
    record: SlotRecord


class Coordination:
    """The coordination API of a stream: locks, semaphores, rate limits, run-once work, leaders.

    The constructor sends no request. The first call checks the stream, and with `create` creates it
    if it does not exist. It raises `StreamNotFound`, `UnsuitableSettings` with the settings that
    break a guarantee, `SubjectOverlap` if another stream has the subjects, or `Unsupported` if the
    server is older than 2.11.

    Each lock, and each unit of a semaphore or rate limit, is a slot: a subject of the stream that
    has one message, written by the holder, or none.

    The methods share two durations. `ttl`, in whole seconds, is the time after the last renewal at
    which the server frees the slot of a dead holder. `margin`, in seconds, is how much earlier a
    holder that cannot renew its slot considers the slot lost. The default `ttl` is 15 s, the
    default `margin` is a quarter of the TTL, at most 1 s.

    Args:
        jet: The JetStream context.
        stream_name: Name of the stream.
        create: Create the stream if it does not exist.
        replicas: Number of replicas of a new stream.
        owner: Name of this client in records. The default is the host name and process id.
    """

    def __init__(
        self,
        jet: JetStream,
        stream_name: str,
        *,
        create: bool = False,
        replicas: int = 1,
        owner: str | None = None,
    ) -> None:
        if owner is None:
            owner = f"{platform.node() or 'somewhere'}:{os.getpid()}"
        check_kind(owner, str, "owner", "text")
        self._place: Final = Place(jet, stream_name, create, replicas, owner)

    @staticmethod
    def stream_config(stream_name: str, *, replicas: int = 1) -> StreamConfig:
        """Return the configuration of a stream for locks, semaphores, rate limits and leaders.

        For programs that create the stream themselves. Change settings that do not affect the
        guarantees, such as placement and description, with `evolve`. Raises `BadArgument` for an
        invalid name.

        Args:
            stream_name: Name of the stream. It is also the first token of its subjects.
            replicas: Number of replicas.
        """
        return coordination_config(stream_name, replicas=replicas)

    @property
    def stream_name(self) -> str:
        """The name of the stream."""
        return self._place.stream

    @property
    def owner(self) -> str:
        """The name of this client in the records of its slots."""
        return self._place.owner

    def __repr__(self) -> str:
        return f"<Coordination {self._place.stream}>"

    def _check_name(self, kind: str, name: str) -> None:
        """Raise `BadArgument` if the name is invalid in a subject, before any request is sent."""
        self._place.subjects.slot(kind, name)

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
        self._check_name("lock", name)
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
        self._check_name("semaphore", name)
        count = check_count(count, "count")
        return Semaphore(self._place, name, count, Terms.of(ttl, margin), note, on_lost)

    def rate_limiter(self, name: str, count: int, *, per: Seconds = 1) -> RateLimiter:
        """Return a rate limiter.

        Args:
            name: Name of the limiter.
            count: Maximum number of permits in any period.
            per: Length of the period in whole seconds, at least 1.
        """
        self._check_name("rate", name)
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
        self._check_name("once", key)
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
        self._check_name("leader", name)
        terms = Terms.of(ttl, margin)
        return Leader(self._place, name, terms, note, on_elected, on_lost)

    @looped
    async def held(
        self, kind: str | None = None, *, idle_timeout: Seconds | None = None
    ) -> Items[HeldSlot]:
        """Iterate over the slots in use, the oldest record first.

        Args:
            kind: `lock`, `semaphore`, `rate`, `once` or `leader`; None returns all kinds.
            idle_timeout: Seconds without progress after which the iteration fails; the default is
                the timeout of the API.
        """
        place = self._place
        filter_ = place.subjects.kind(kind)
        await place.ready(place.api.deadline(idle_timeout))
        async for record in Slots(place).all(filter_, idle_timeout=idle_timeout):
            yield HeldSlot(*place.subjects.parts(record.subject), record)

    async def evict(self, slot: HeldSlot, *, timeout: Seconds | None = None) -> bool:
        """Free a slot by force; return whether its record still existed.

        The holder notices this at its next renewal, up to a third of its TTL later. Until then, the
        old holder and a new holder both consider the slot theirs. So use this only if the holder is
        dead.

        Args:
            slot: A slot that `held` returned.
            timeout: Seconds; the default is that of the API.
        """
        deadline = self._place.api.deadline(timeout)
        await self._place.ready(deadline)
        slots = Slots(self._place)
        found = await slots.drop(slot.record.seq, deadline)
        await slots.tell_freed(slot.kind, slot.name)
        return found
