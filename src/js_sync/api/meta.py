# Generated from src/js_async/api/meta.py by codegen/twin.py. Edit that file instead.
"""The cluster behind JetStream, as the operator's system account may change it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar

from twinstream.core.wire.response import read_answer
from twinstream.core.deadline import Seconds
from twinstream.errors import BadArgument, NoResponders, RequestTimeout
from twinstream.core.api.placement import placement_of
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
from js_sync.api.api import Api
from js_sync.api.priority_groups import step_down
from js_sync.api.many_answers import answers

__all__ = ["Meta"]

M = TypeVar("M", bound=Model)


class Meta:
    """Calls for a user of the system account; `JetStream.meta` is one.

    To anybody else, and without a cluster, servers do not answer at all: the error says so. They
    answer when a change has begun; `Stream.info` of the streams concerned shows how far it is.
    """

    def __init__(self, api: Api) -> None:
        self._api: Final = api

    def step_down(
        self,
        *,
        preferred: str | None = None,
        cluster: str | None = None,
        tags: Sequence[str] = (),
        timeout: Seconds | None = None,
    ) -> None:
        """Hand over the leadership of the cluster, to any server or to the one described (2.11)."""
        subject = self._api.subjects.cluster("META.LEADER.STEPDOWN")
        kind, deadline = MetaLeaderStepdownResponse, self._api.deadline(timeout)
        try:
            step_down(self._api, subject, kind, preferred, cluster, tags, deadline)
        except (RequestTimeout, NoResponders) as error:
            raise _silent(error) from error

    def remove_server(
        self, name: str, *, peer_id: str | None = None, timeout: Seconds | None = None
    ) -> None:
        """Forget a server that will never come back; it must be gone already.

        Its streams get other servers where there are any. `peer_id` tells servers of one name
        apart. The server refuses a name that it does not know, or knows as alive.
        """
        subject = self._api.subjects.cluster("SERVER.REMOVE")
        self._call(subject, _server(name, peer_id), MetaServerRemoveResponse, timeout)

    def evacuate_server(
        self, name: str, *, peer_id: str | None = None, timeout: Seconds | None = None
    ) -> None:
        """Move everything away from a server that goes on running (server 2.15)."""
        self._api.require((2, 15, 0), "evacuating a server")
        subject = self._api.subjects.cluster("SERVER.EVACUATE")
        self._call(subject, _server(name, peer_id), MetaServerEvacuateResponse, timeout)

    def purge_account(self, account: str, *, timeout: Seconds | None = None) -> bool:
        """Delete every stream of an account; true when that has begun. There is no way back."""
        subject = self._api.subjects.account("PURGE", account)
        answer = self._call(subject, None, AccountPurgeResponse, timeout)
        return bool(answer.initiated)

    def move_stream(
        self,
        account: str,
        stream: str,
        *,
        server: str | None = None,
        cluster: str | None = None,
        tags: Sequence[str] = (),
        timeout: Seconds | None = None,
    ) -> StreamInfo:
        """Move a stream away from a `server`, to a `cluster`, or to servers with all `tags`."""
        if server is None and cluster is None and not tags:
            raise BadArgument("say where from (server) or where to (cluster, tags)")
        body = placement_of(None, cluster, tags)
        if server is not None:
            body["server"] = server
        subject = self._api.subjects.account("STREAM.MOVE", account, stream)
        return self._call(subject, body, StreamUpdateResponse, timeout)

    def cancel_move(
        self, account: str, stream: str, *, timeout: Seconds | None = None
    ) -> StreamInfo:
        """Give up a move that has begun and is not finished."""
        subject = self._api.subjects.account("STREAM.CANCEL_MOVE", account, stream)
        return self._call(subject, None, StreamUpdateResponse, timeout)

    def rescue(self, quorum_needed: int, *, timeout: Seconds = 5.0) -> list[MetaRescueResponse]:
        """Let the remaining servers go on with a smaller quorum (server 2.15).

        For a cluster that has lost more than half of its servers for good, and only then: what the
        lost ones had confirmed alone is gone, and they must not come back. Returns the answers of
        the servers that took it, which came within `timeout` seconds; there is one of each.
        """
        if quorum_needed < 1:
            raise BadArgument(f"quorum_needed must be from 1 up, got {quorum_needed}")
        self._api.require((2, 15, 0), "rescuing the cluster")
        subject = self._api.subjects.cluster("META.RESCUE")
        body = {"quorum_needed": quorum_needed}
        found = answers(self._api, subject, body, timeout)
        if not found:
            raise _silent(RequestTimeout(f"{subject}: no server answered in time"))
        return [decode(read_answer(answer, subject), MetaRescueResponse) for answer in found]

    def _call(
        self, subject: str, body: Mapping[str, Any] | None, as_: type[M], timeout: Seconds | None
    ) -> M:
        try:
            return self._api.call(subject, body, as_, self._api.deadline(timeout))
        except (RequestTimeout, NoResponders) as error:
            raise _silent(error) from error


def _server(name: str, peer_id: str | None) -> dict[str, Any]:
    if not name and not peer_id:
        raise BadArgument("a server is given by its name or by its peer id, got neither")
    body: dict[str, Any] = {"peer": name}
    if peer_id is not None:
        body["peer_id"] = peer_id
    return body


def _silent(error: RequestTimeout | NoResponders) -> RequestTimeout | NoResponders:
    return type(error)(
        f"{error}; servers answer this to users of the system account only, and in a cluster only"
    )
