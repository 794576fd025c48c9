"""The administration of one stream's replicas."""

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
    """The replicas of a stream: move the leadership or a replica. Available as `Stream.replicas`.

    The server responds when a change has begun. The `cluster` field of the stream's info shows the
    leader, the followers and their lag. If the server is not in a cluster, the methods raise
    `JetStreamError` 10010.
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
        """Move the leadership of the stream to another replica.

        Until the next leader is elected, publishes and pulls have no responders.

        Args:
            preferred: The name of the server whose replica becomes the leader (server 2.11).
            cluster: The name of the cluster in which the next leader must be (server 2.11).
            tags: Tags that the server of the next leader must have (server 2.11).
            timeout: Seconds; the default is that of the API.
        """
        subject = self._api.subjects.stream("LEADER.STEPDOWN", self._stream)
        kind = twinstream.models.StreamLeaderStepdownResponse
        deadline = self._api.deadline(timeout)
        await step_down(self._api, subject, kind, preferred, cluster, tags, deadline)

    async def remove(self, peer: str, *, timeout: Seconds | None = None) -> None:
        """Remove the replica on one server. The cluster creates a new replica on another server.

        If no other server is available, the call changes nothing and raises `JetStreamError` 10075.

        Args:
            peer: The name or peer id of the server.
            timeout: Seconds; the default is that of the API.
        """
        subject = self._api.subjects.stream("PEER.REMOVE", self._stream)
        await self._call(subject, peer, twinstream.models.StreamRemovePeerResponse, timeout)

    async def evacuate(self, peer: str, *, timeout: Seconds | None = None) -> None:
        """Move a replica to another server (server 2.15).

        The old replica stays until the new replica is ready.

        Args:
            peer: The name or peer id of the server that has the replica.
            timeout: Seconds; the default is that of the API.
        """
        self._api.require((2, 15, 0), "evacuating a peer")
        subject = self._api.subjects.stream("PEER.EVACUATE", self._stream)
        await self._call(subject, peer, twinstream.models.StreamEvacuatePeerResponse, timeout)

    async def cancel_move(self, *, timeout: Seconds | None = None) -> StreamInfo:
        """Cancel an unfinished move of the stream, and return the stream's info (server 2.15)."""
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
        raise BadArgument("give the name or the id of the peer's server, got nothing")
    return peer
