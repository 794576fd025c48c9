"""The servers that hold the copies of one stream."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import twinstream.models
from js_async.api.api import Api
from js_async.api.priority_groups import step_down
from twinstream.core.deadline import Seconds
from twinstream.errors import BadArgument

if TYPE_CHECKING:
    from twinstream.models import Model, StreamInfo

__all__ = ["Replicas"]


class Replicas:
    """Changes the leader and the places of a stream's copies; `Stream.replicas` is one.

    The server answers when the change has begun. `Stream.info` shows in `cluster` who leads, who
    follows and how far behind. Raises `JetStreamError` 10010 on a server without a cluster.
    """

    def __init__(self, api: Api, stream: str) -> None:
        self._api: Final = api
        self._stream: Final = stream

    async def step_down(
        self,
        *,
        preferred: str | None = None,
        cluster: str | None = None,
        tags: Sequence[str] = (),
        timeout: Seconds | None = None,
    ) -> None:
        """Hand the leadership over to any follower, or to one that the arguments choose (2.11).

        `preferred` names a server. For a moment publishing and pulling will find no leader.
        """
        subject = self._api.subjects.stream("LEADER.STEPDOWN", self._stream)
        kind = twinstream.models.StreamLeaderStepdownResponse
        deadline = self._api.deadline(timeout)
        await step_down(self._api, subject, kind, preferred, cluster, tags, deadline)

    async def remove(self, peer: str, *, timeout: Seconds | None = None) -> None:
        """Take a copy from a server, given by name or peer id; another server gets one.

        The server refuses (10075 with nothing changed) where no other server is left for it.
        """
        subject = self._api.subjects.stream("PEER.REMOVE", self._stream)
        await self._call(subject, peer, twinstream.models.StreamRemovePeerResponse, timeout)

    async def evacuate(self, peer: str, *, timeout: Seconds | None = None) -> None:
        """Move a copy away from a server; the old one stays until the new one is there (2.15)."""
        self._api.require((2, 15, 0), "evacuating a peer")
        subject = self._api.subjects.stream("PEER.EVACUATE", self._stream)
        await self._call(subject, peer, twinstream.models.StreamEvacuatePeerResponse, timeout)

    async def cancel_move(self, *, timeout: Seconds | None = None) -> StreamInfo:
        """Give up a move that has begun and is not finished (server 2.15)."""
        self._api.require((2, 15, 0), "cancelling a move")
        subject = self._api.subjects.stream("CANCEL_MOVE", self._stream)
        answer, deadline = twinstream.models.StreamCancelMoveResponse, self._api.deadline(timeout)
        return await self._api.call(subject, None, answer, deadline)

    async def _call(
        self, subject: str, peer: str, answer: type[Model], timeout: Seconds | None
    ) -> None:
        await self._api.call(subject, {"peer": _peer(peer)}, answer, self._api.deadline(timeout))


def _peer(peer: str) -> str:
    if not peer:
        raise BadArgument("a peer is given by its server's name or by its id, got nothing")
    return peer
