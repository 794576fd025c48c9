"""Decide which past states of a bucket its stream still holds whole.

Theory of operation
-------------------
The state at revision R is the last revision of each key up to R. It is held whole unless a revision
was removed that was a key's last one at R. A removed revision leaves a gap in the sequences, and
the server keeps no record of its key, so the decision is made from what is stored:

* Without a gap up to R, nothing that belongs to the state was removed.
* The history removes the oldest revisions of a key that has as many newer ones. A rollup (a purge
  of the key, or a value with a TTL) removes all older ones. So the first stored revision of such a
  key may have had predecessors, and the key is unknown before it. The state is unknown before the
  latest of these revisions.
* The gaps below that revision may all be the work of history and rollups. A gap above it is not:
  `purge_deletes`, a purge of the stream, or a smaller history before has removed it. Which keys had
  a value then is unknown, and no past state is held whole.
* A TTL, of the bucket or of keys, and the deletion of single messages also remove revisions in the
  middle or at the end of a key's history. With such settings and a gap, no past state is held.

Removals never restore a state. So the stored revisions have to be read after the state was read:
if they show that it is held, it was held before. Revisions that are removed during this read only
add gaps.

Two removals look like the work of the history, if all that they removed is older than the revisions
that the history has kept: a purge of the stream by request that removed a key with a value, and the
work of a smaller history or a TTL that the bucket had earlier.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from attrs import frozen

from twinstream.core.read.page import StoredPage, ns_of
from twinstream.errors import PastNotHeld
from twinstream.models import DiscardPolicy, StreamConfig, StreamSourceInfo, Timestamp
from twinstream.models.digits import natural
from twinstream.records.entry import KeyValueOperation, may_be_marker, operation_of
from twinstream.records.header_names import (
    EXPECTED_LAST_SUBJECT_SEQ,
    EXPECTED_LAST_SUBJECT_SEQ_SUBJECT,
    ROLLUP,
)
from twinstream.records.headers import Headers

__all__ = ["Removal", "StoredRevisions", "mirror_delay", "removal_of"]

# A server hears from the origin of a mirror each second, even if there are no new messages.
_SILENCE: Final = timedelta(seconds=10)


def mirror_delay(mirror: StreamSourceInfo | None) -> str:
    """Return why a mirror may lack messages that its origin stores; empty if it does not."""
    if mirror is None:
        return "the server does not report how much of its origin it has copied"
    if mirror.lag:
        return f"it is {mirror.lag} messages behind {mirror.name}"
    if mirror.active is None or mirror.active < timedelta(0):
        return f"it has not heard from {mirror.name} yet"
    if mirror.active > _SILENCE:
        return f"it has not heard from {mirror.name} for {mirror.active.total_seconds():.0f} s"
    return ""


@frozen
class Removal:
    """How a bucket removes revisions."""

    history: int
    """The number of revisions of a key that are kept; 0 for all."""
    other: str = ""
    """Why revisions may be removed in other ways than by history and rollups, or empty."""


def removal_of(configs: Sequence[StreamConfig]) -> Removal:
    """Return how a bucket removes revisions.

    `configs` are those of its stream and, for a mirror, of the streams that it copies: a mirror
    also lacks what its origin removed before it was copied.
    """
    limits = [limit for each in configs if (limit := each.max_msgs_per_subject or 0) > 0]
    others = [other for each in configs if (other := _other_removal(each))]
    if configs[-1].mirror is not None:
        others.append(f"{configs[-1].mirror.name}, which it copies, does not answer")
    return Removal(min(limits, default=0), others[0] if others else "")


def _other_removal(config: StreamConfig) -> str:
    """Return how revisions may disappear, apart from the history of a key; "" if they cannot."""
    if config.max_age:
        return "its ttl removes values"
    if config.allow_msg_ttl:
        return "its keys may have a TTL"
    if not config.deny_delete:
        return "its stream has no deny_delete, so that single revisions may be deleted"
    limited = (config.max_msgs or 0) > 0 or (config.max_bytes or 0) > 0
    if limited and config.discard != DiscardPolicy.NEW:
        return "its limits discard the oldest revisions"
    return ""


class StoredRevisions:
    """What the stored revisions of a bucket show about removed ones; see the theory of operation.

    Add all pages in order. The memory is that of one short list for each key.
    """

    def __init__(self, bucket: str, removal: Removal, first: int = 1) -> None:
        """Begin with the first sequence that the stream has ever had."""
        self._bucket: Final = bucket
        self._removal: Final = removal
        # Of each stored subject: its first revision, the time of it, and the number of revisions.
        self._keys: Final[dict[bytes, list[int]]] = {}
        self._next = first
        self._unbroken_to = 0
        self._last_gap = 0
        # The latest first revision of a key that may have had older ones, and its time.
        self._known_from = (0, 0)

    def add(self, page: StoredPage) -> None:
        """Add the next page, which may lack payloads."""
        for subject, seq, time, block in zip(
            page.subjects, page.seqs, page.times, page.headers, strict=True
        ):
            self._pass(seq)
            key = self._keys.get(subject)
            if key is None:
                ns = time if isinstance(time, int) else ns_of(time, self._bucket)
                key = self._keys[subject] = [seq, ns, 0]
                if _has_predecessors(block):
                    self._note_cut(key)
            key[2] += 1
            if key[2] == self._removal.history:
                self._note_cut(key)

    def end(self, last: int) -> None:
        """Note that all revisions up to `last` were added."""
        self._pass(last + 1)

    def _pass(self, seq: int) -> None:
        if seq > self._next:
            if not self._last_gap:
                self._unbroken_to = self._next - 1
            self._last_gap = seq - 1
        self._next = seq + 1

    def _note_cut(self, key: list[int]) -> None:
        self._known_from = max(self._known_from, (key[0], key[1]))

    @property
    def _held_from(self) -> tuple[int, int] | None:
        """The revision from which on all states are held, and its time; None without one."""
        if self._removal.other or self._last_gap > self._known_from[0]:
            return None
        return self._known_from

    def is_settled(self, revision: int) -> bool:
        """Return whether further pages cannot change whether the state at `revision` is held."""
        if self._last_gap and self._unbroken_to < revision:
            return bool(self._removal.other)
        return self._next > revision

    def check(self, revision: int, shown: str) -> None:
        """Raise `PastNotHeld` unless the state at `revision`, shown as `shown`, is held whole."""
        if not self._last_gap or revision <= self._unbroken_to:
            return
        complete_from = self._held_from
        if complete_from is not None and revision >= complete_from[0]:
            return
        if self._removal.other:
            reason = f"revisions were removed, and {self._removal.other}"
        elif complete_from is None:
            reason = (
                "revisions were removed in another way than by its history, such as purge_deletes,"
                " a purge of the stream or a smaller history before"
            )
        else:
            reason = "its history, or a purge of a key, has removed revisions"
        raise PastNotHeld.removed(
            self._bucket,
            shown,
            reason,
            None
            if complete_from is None
            else (complete_from[0], Timestamp.from_ns(complete_from[1])),
            self._unbroken_to,
        )


def _has_predecessors(block: bytes) -> bool:
    """Return whether a key's first stored revision shows that the key had older ones."""
    if b"Nats-" not in block and not may_be_marker(block):
        return False
    headers = Headers.parse(block)
    if ROLLUP in headers or operation_of(headers) is not KeyValueOperation.PUT:
        return True
    if EXPECTED_LAST_SUBJECT_SEQ_SUBJECT in headers:
        return False
    return bool(natural(headers.get(EXPECTED_LAST_SUBJECT_SEQ)))
