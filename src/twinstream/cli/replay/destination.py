"""The server into which a stream is replayed: its connection, its identity, and its stream."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from attrs import evolve

from twinstream.cli.failures import Failure
from twinstream.cli.target import Target
from twinstream.core.wire.subject_match import covers, matcher
from twinstream.errors import StreamNotFound, TwinstreamError

if TYPE_CHECKING:
    from js_sync import Connection, JetStream, Stream, StreamInfo

__all__ = ["is_own_server", "other_server", "taker_of"]

_USER: Final = "$SYS.REQ.USER.INFO"
# How many subjects that are not taken are named.
_NAMED: Final = 3
# The longest wait for one probe message between two servers (seconds), and how many are sent.
_PROBED: Final = 0.5
_PROBES: Final = 5


def other_server(target: Target, url: str, creds: str | None, nkey: str | None) -> Target:
    """Return the target for another server, which gets no credentials of the first one."""
    return evolve(
        target,
        server=url,
        user=None,
        password=None,
        token=None,
        credentials_file=creds,
        nkey_file=nkey,
        tls_cert=None,
        tls_key=None,
        domain=None,
        prefix=None,
    )


def is_own_server(
    source: Connection, info: StreamInfo, other: Connection, jet: JetStream, inbox_prefix: str
) -> bool:
    """Return whether the stream of `info` is in the account and system of the other connection.

    Servers are compared by their ids and by the names of their clusters, accounts by what the
    servers report. A server that reports no account counts as the same account. A stream of the
    same name and time of creation is the same one, whatever leads to it. Servers that forward
    messages to each other, such as a leaf node and its hub, are the same system.
    """
    try:
        found = jet.get_stream(info.config.name or "").info()
    except StreamNotFound:
        found = None
    if found is not None and found.created == info.created:
        return True
    if source.server_info.server_id != other.server_info.server_id:
        ours = {source.server_info.cluster, *_cluster(info)} - {""}
        theirs = {other.server_info.cluster, *([] if found is None else _cluster(found))} - {""}
        if not ours & theirs:
            return _is_forwarded(other, source, f"{inbox_prefix}.{uuid4().hex}")
    mine, yours = _account(source), _account(other)
    return None in (mine, yours) or mine == yours


def _is_forwarded(sender: Connection, receiver: Connection, inbox: str) -> bool:
    """Return whether messages of one connection reach the other one, through any servers.

    A connection without permission for `inbox` counts as not reached.
    """
    try:
        with receiver.subscribe(inbox) as arrived:
            receiver.flush()
            # Another server may get to know the subscription later: send several times.
            for _ in range(_PROBES):
                sender.publish(inbox)
                sender.flush()
                if arrived.next(timeout=_PROBED / _PROBES) is not None:
                    return True
    except TwinstreamError:
        pass
    return False


def _cluster(info: StreamInfo) -> list[str]:
    return [info.cluster.name or ""] if info.cluster is not None else []


def _account(nc: Connection) -> str | None:
    """Return the account of a connection's user; None if the server does not report it."""
    try:
        answer = json.loads(nc.request(_USER, b"").data)
        return str(answer["data"]["account"])
    except (TwinstreamError, ValueError, LookupError, TypeError):
        return None


def taker_of(jet: JetStream, source: Stream, subjects: Sequence[str], server: str) -> str:
    """Return the name of the only stream that takes all messages of some subjects.

    `subjects` are filters of the stream `source`. Raises `Failure` if there is no such stream.
    """
    names = {name for each in subjects for name in jet.stream_names(each)}
    if not names:
        raise Failure(
            f"no stream of {server} takes {', '.join(subjects)}: create one, or give --subject"
        )
    if len(names) > 1:
        raise Failure(
            f"several streams of {server} take these subjects ({', '.join(sorted(names))}): replay"
            " the subjects of one of them, with --subject"
        )
    (name,) = names
    config = jet.get_stream(name).info().config
    if config.subject_transform is not None:
        raise Failure(
            f"stream {name} of {server} changes subjects (subject_transform), so that its messages"
            " could not be compared with the replayed ones"
        )
    taken = config.subjects or []
    rest = [each for each in subjects if not any(covers(wide, each) for wide in taken)]
    missed = _not_taken(source, rest, taken)
    if missed:
        more = f" and {len(missed) - _NAMED} more subjects" if len(missed) > _NAMED else ""
        raise Failure(
            f"stream {name} of {server} does not take {', '.join(missed[:_NAMED])}{more}, which"
            f" {source.name} has: add them to its subjects, or give --subject"
        )
    return name


def _not_taken(source: Stream, filters: Iterable[str], taken: Sequence[str]) -> list[str]:
    """Return the stored subjects that match a filter and are not taken."""
    matches = matcher(taken)
    if matches is None:
        return []
    return [
        subject
        for each in filters
        for subject, _ in source.subjects(each)
        if not matches(subject.encode("utf-8", "surrogateescape"))
    ]
