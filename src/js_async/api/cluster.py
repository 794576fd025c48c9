"""Administration of a JetStream cluster by a user of the system account."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar

from js_async.api.api import Api
from js_async.api.many_answers import answers
from js_async.api.priority_groups import step_down
from twinstream.core.api.placement import placement_of
from twinstream.core.deadline import Seconds
from twinstream.core.wire.response import check_success, read_api_answer
from twinstream.errors import (
    BadArgument,
    NoResponders,
    RequestTimeout,
    TwinstreamError,
)
from twinstream.models import (
    AccountPurgeResponse,
    MetaLeaderStepdownResponse,
    MetaRescueResponse,
    MetaServerEvacuateResponse,
    MetaServerRemoveResponse,
    Model,
    StreamInfo,
    StreamUpdateResponse,
    decode,
)

__all__ = ["Cluster"]

M = TypeVar("M", bound=Model)

_CONDITIONS: Final = "servers answer this only to users of the system account, in a cluster"


class Cluster:
    """The calls for the administration of a cluster. Available as `JetStream.cluster`.

    The user must belong to the system account. Servers do not respond to other users, and servers
    outside a cluster do not respond to these calls at all. A response means that a change has
    begun. `Stream.info` of an affected stream shows the progress of the change.

    Each method raises `RequestTimeout` if no response arrives within `timeout` seconds, or
    `NoResponders` if no server can respond. A note of both errors mentions the conditions above.
    """

    def __init__(self, api: Api) -> None:
        self._api: Final = api

    async def step_down(
        self,
        *,
        preferred: str | None = None,
        cluster: str | None = None,
        tags: Sequence[str] = (),
        timeout: Seconds | None = None,
    ) -> None:
        """Move the leadership of the cluster (the meta leader) to another server.

        Args:
            preferred: The name of the server that becomes the leader (server 2.11).
            cluster: The name of the cluster in which the next leader must be (server 2.11).
            tags: Tags that the next leader must have (server 2.11).
            timeout: Seconds; the default is that of the API.
        """
        subject = self._api.subjects.cluster("META.LEADER.STEPDOWN")
        kind, deadline = MetaLeaderStepdownResponse, self._api.deadline(timeout)
        try:
            await step_down(self._api, subject, kind, preferred, cluster, tags, deadline)
        except (RequestTimeout, NoResponders) as error:
            error.add_advice(_CONDITIONS)
            raise

    async def remove_server(
        self, name: str, *, peer_id: str | None = None, timeout: Seconds | None = None
    ) -> None:
        """Remove an offline server, which will never return, from the cluster.

        Other servers, if available, take over its replicas. The meta leader refuses the request if
        the server is unknown or online.

        Args:
            name: The name of the server.
            peer_id: The peer id of the server, if several servers have the same name.
            timeout: Seconds; the default is that of the API.
        """
        subject = self._api.subjects.cluster("SERVER.REMOVE")
        await self._call(subject, _server(name, peer_id), MetaServerRemoveResponse, timeout)

    async def evacuate_server(
        self, name: str, *, peer_id: str | None = None, timeout: Seconds | None = None
    ) -> None:
        """Move all streams and consumers away from a server that stays online (server 2.15).

        Args:
            name: The name of the server.
            peer_id: The peer id of the server, if several servers have the same name.
            timeout: Seconds; the default is that of the API.
        """
        self._api.require((2, 15, 0), "evacuating a server")
        subject = self._api.subjects.cluster("SERVER.EVACUATE")
        await self._call(subject, _server(name, peer_id), MetaServerEvacuateResponse, timeout)

    async def purge_account(self, account: str, *, timeout: Seconds | None = None) -> bool:
        """Delete all streams of an account. The deletion is irreversible.

        Return whether the server has begun to delete the streams.
        """
        subject = self._api.subjects.account("PURGE", account)
        answer = await self._call(subject, None, AccountPurgeResponse, timeout)
        return bool(answer.initiated)

    async def move_stream(
        self,
        account: str,
        stream: str,
        *,
        server: str | None = None,
        cluster: str | None = None,
        tags: Sequence[str] = (),
        timeout: Seconds | None = None,
    ) -> StreamInfo:
        """Move a stream to other servers, and return the stream's info.

        Raises `BadArgument` if `server`, `cluster` and `tags` are all missing.

        Args:
            account: The account of the stream.
            stream: The name of the stream.
            server: The name of a server that must no longer have a replica.
            cluster: The name of the cluster to which the stream moves.
            tags: Tags that the new servers must have.
            timeout: Seconds; the default is that of the API.
        """
        if server is None and cluster is None and not tags:
            raise BadArgument("give the source (server) or the target (cluster, tags) of the move")
        body = placement_of(None, cluster, tags)
        if server is not None:
            body["server"] = server
        subject = self._api.subjects.account("STREAM.MOVE", account, stream)
        return await self._call(subject, body, StreamUpdateResponse, timeout)

    async def cancel_move(
        self, account: str, stream: str, *, timeout: Seconds | None = None
    ) -> StreamInfo:
        """Cancel an unfinished move of a stream, and return the stream's info."""
        subject = self._api.subjects.account("STREAM.CANCEL_MOVE", account, stream)
        return await self._call(subject, None, StreamUpdateResponse, timeout)

    async def rescue(
        self, quorum_needed: int, *, timeout: Seconds = 5.0
    ) -> list[MetaRescueResponse]:
        """Let the remaining servers continue with a smaller quorum (server 2.15).

        Only for a cluster that has permanently lost more than half of its servers. Data that only
        the lost servers had stored is lost, and those servers must not return.

        Return the responses that arrive until the timeout. The call always waits until then,
        because the number of responses is unknown. Raises `JetStreamError` if a server refuses. A
        note of this error names the servers that accepted.

        Args:
            quorum_needed: The number of servers that form a quorum from now on.
            timeout: How long to wait for responses, in seconds.
        """
        if quorum_needed < 1:
            raise BadArgument(f"quorum_needed must be from 1 up, got {quorum_needed}")
        self._api.require((2, 15, 0), "rescuing the cluster")
        subject = self._api.subjects.cluster("META.RESCUE")
        body = {"quorum_needed": quorum_needed}
        found = await answers(self._api, subject, body, timeout)
        if not found:
            silence = RequestTimeout(f"{subject}: no server answered in time")
            silence.add_advice(_CONDITIONS)
            raise silence
        done: list[MetaRescueResponse] = []
        refusal: TwinstreamError | None = None
        for answer in found:
            try:
                rescued = decode(read_api_answer(answer, subject), MetaRescueResponse)
                check_success(rescued, subject)
                done.append(rescued)
            except TwinstreamError as error:
                refusal = refusal or error
        if refusal is None:
            return done
        names = ", ".join(each.server or "unnamed" for each in done) or "none"
        refusal.add_note(f"servers that took the new quorum: {names}")
        raise refusal

    async def _call(
        self, subject: str, body: Mapping[str, Any] | None, as_: type[M], timeout: Seconds | None
    ) -> M:
        try:
            return await self._api.call(subject, body, as_, self._api.deadline(timeout))
        except (RequestTimeout, NoResponders) as error:
            error.add_advice(_CONDITIONS)
            raise


def _server(name: str, peer_id: str | None) -> dict[str, Any]:
    if not name and not peer_id:
        raise BadArgument("give the name or the peer id of a server, got neither")
    body: dict[str, Any] = {"peer": name}
    if peer_id is not None:
        body["peer_id"] = peer_id
    return body
