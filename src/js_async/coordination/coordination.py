"""Locks, semaphores, rate limits, work that runs once, and leaders, kept in one stream."""

from __future__ import annotations

import os
import platform
from typing import Final

from attrs import frozen

from js_async.api.api import Api
from js_async.runtime.concurrency import Handler
from js_async.runtime.concurrency import Stream as Generated
from js_async.coordination.slot import Place, Slots
from js_async.coordination.leader import Leader
from js_async.coordination.lease import Lease, OnLost
from js_async.coordination.lock import Lock, Semaphore
from js_async.coordination.once import Once
from js_async.coordination.rate_limiter import RateLimiter
from twinstream.core.coordination.coordination import (
    CoordinationSubjects,
    check_coordination,
    check_count,
    coordination_config,
)
from twinstream.core.deadline import Seconds
from twinstream.errors import StreamExists, StreamNotFound
from twinstream.core.base.check_arguments import check_kind
from twinstream.core.coordination.lease_engine import FOREVER, Terms
from twinstream.core.coordination.lease_record import SlotRecord
from twinstream.models import StreamCreateResponse, StreamInfo

__all__ = ["Coordination", "Taken", "open_coordination"]

_TTL: Final = 15


@frozen
class Taken:
    """A slot that is taken, as `Coordination.taken` tells it."""

    kind: str
    """`lock`, `semaphore`, `rate`, `once` or `leader`."""
    name: str
    number: int | None
    """Which slot of a semaphore or rate limit, from 1."""
    record: SlotRecord


async def open_coordination(
    api: Api, stream: str, create: bool, replicas: int, owner: str | None
) -> Coordination:
    """Return the coordination of a stream whose settings were checked."""
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
            error.add_note(f"coordination({stream!r}, create=True) makes the stream")
            raise
    config = coordination_config(stream, replicas=replicas)
    try:
        await api.call(api.subjects.stream("CREATE", stream), config, StreamCreateResponse)
    except StreamExists:
        pass  # somebody else was quicker; whether it will do is checked all the same
    # Asked once more: what is said of a new stream lacks its domain.
    return await api.stream_info(stream)


class Coordination:
    """Makes locks and their kin; get one from `JetStream.coordination`.

    Durations: `ttl`, in whole seconds, is how long after its last renewal the server frees what a
    dead holder had; `margin`, in seconds, is how much earlier a holder that cannot renew takes it
    for lost (a quarter of the TTL, at most 1, unless given).
    """

    def __init__(self, place: Place) -> None:
        self._place: Final = place

    @property
    def stream(self) -> str:
        """The stream underneath."""
        return self._place.stream

    @property
    def owner(self) -> str:
        """What this program is called where others look who holds something."""
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
        """Return a lock; `note` is shown to those who look who holds it."""
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
        """Return a semaphore that at most `count` hold at a time."""
        self._place.subjects.slot("semaphore", name)
        count = check_count(count, "count")
        return Semaphore(self._place, name, count, Terms.of(ttl, margin), note, on_lost)

    def rate_limiter(self, name: str, count: int, *, per: Seconds = 1) -> RateLimiter:
        """Return a limiter of at most `count` permits in any `per` seconds, whole ones from 1."""
        self._place.subjects.slot("rate", name)
        return RateLimiter(self._place, name, check_count(count, "count"), Terms.period(per, "per"))

    def once(self, key: str, *, ttl: Seconds | None = None, keep: Seconds | None = None) -> Once:
        """Return what runs work at most once under a key.

        Without `ttl`, work that was begun never begins again, whatever becomes of who ran it. With
        it, somebody else may begin when the one who ran it died, `ttl` seconds after its last
        renewal. `keep` in whole seconds is how long the end is known; None is for ever.
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

        `on_elected` runs beside the campaign with the lease of the term, and should return when the
        lease is not held any more: the next campaign begins after that. `on_lost` is called as soon
        as a term is over; the lease's `lost` says why, None after stepping down.
        """
        self._place.subjects.slot("leader", name)
        terms = Terms.of(ttl, margin)
        return Leader(self._place, name, terms, note, on_elected, on_lost)

    async def taken(self, kind: str | None = None) -> Generated[Taken]:
        """Iterate over the slots that are taken, of a kind or all, the oldest record first."""
        subjects = self._place.subjects
        async for record in Slots(self._place).all(subjects.kind(kind)):
            yield Taken(*subjects.parts(record.subject), record)

    async def evict(self, taken: Taken) -> bool:
        """Free a slot by force; tell whether its record was still there.

        Its holder notices at its next renewal, up to a third of its TTL later. Until then two may
        believe that they hold it, so use this for holders that are known to be dead.
        """
        slots = Slots(self._place)
        found = await slots.drop(taken.record.seq)
        await slots.tell_freed(taken.kind, taken.name)
        return found
