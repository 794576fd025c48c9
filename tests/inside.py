"""What tests look at behind the objects that programs hold. No other module has these names.

Prefer what programs use, then the hooks of `twinstream.core.base.hooks`; `tests/test_project.py`
counts what is left.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

__all__ = [
    "answers_of",
    "api_of",
    "boxes_of",
    "held_of",
    "keeper_of",
    "last_trouble",
    "link_of",
    "open_push",
    "pipeline_of",
    "refuse",
    "servers_of",
    "session_of",
    "subscriptions_of",
    "tasks_of",
    "transport_of",
    "writer_of",
]


def session_of(connection: Any) -> Any:
    """Return the session below a connection."""
    return connection._session


def link_of(connection: Any) -> Any:
    """Return the link of a connection: its bytes."""
    return session_of(connection)._link


def boxes_of(connection: Any) -> Any:
    """Return the mailboxes of a connection, by the numbers of their subscriptions."""
    return session_of(connection)._boxes


def api_of(jet: Any) -> Any:
    """Return the `Api` of a JetStream context."""
    return jet._api


def held_of(messages: Any) -> Any:
    """Return what keeps the messages of an iterator alive."""
    return messages._held


def keeper_of(owner: Any) -> Any:
    """Return the task that looks after a session, a publisher or held messages."""
    return owner._keeper


def pipeline_of(publisher: Any) -> Any:
    """Return the pipeline of a publisher."""
    return publisher._pipeline


def open_push(push: Any, name: str) -> Any:
    """Let an iterator over pushed messages listen, without a consumer on the server."""
    return push._open(SimpleNamespace(name=name, config=None))


def refuse(connection: Any, text: str) -> None:
    """Let a connection handle an -ERR of the server, in the thread of the caller."""
    session_of(connection)._refused(text)


def subscriptions_of(connection: Any) -> Any:
    """Return the subscriptions that a connection drains."""
    return connection._subscriptions


def servers_of(connection: Any) -> Any:
    """Return the servers that a connection tries in its next round."""
    return session_of(connection)._pool.round()


def last_trouble(connection: Any) -> Any:
    """Return why the last attempt to connect failed."""
    return session_of(connection)._cause


def answers_of(replies: Any) -> Any:
    """Return the requests without a reply, by their tokens."""
    return replies._answers


def writer_of(work: Any) -> Any:
    """Return what publishes for an outbox relay or for exactly-once processing."""
    return work._writer


def tasks_of(consuming: Any) -> Any:
    """Return the background tasks of a handler or of a worker."""
    return consuming._tasks


def transport_of(client: Any) -> Any:
    """Return the transport of asyncio, of a client of nats-py or of a link."""
    return client._transport
