# Generated from src/js_async/_coordination_calls.py by codegen/twin.py. Edit that file instead.
"""The call of a JetStream context that leads to locks and their kin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from js_sync.api.api import ApiCalls

if TYPE_CHECKING:
    from js_sync.coordination.coordination import Coordination

__all__ = ["CoordinationCalls"]


class CoordinationCalls(ApiCalls):
    """The part of a JetStream context that is about coordination."""

    def coordination(
        self, stream: str, *, create: bool = False, replicas: int = 1, owner: str | None = None
    ) -> Coordination:
        """Return what makes locks, semaphores, rate limits and leaders, kept in a stream.

        `create` makes the stream where there is none, with so many `replicas`. `owner` is shown to
        those who look who holds something; host and process unless given. Raises `NotPromised`,
        which names the settings that break a promise, `StreamNotFound`, `SubjectOverlap`,
        `Unsupported` (before server 2.11) or another `JetStreamError`.
        """
        from js_sync.coordination.coordination import open_coordination

        return open_coordination(self._api, stream, create, replicas, owner)
