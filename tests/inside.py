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
    "held_of",
    "link_of",
    "open_push",
    "pipeline_of",
    "refuse",
    "session_of",
    "writer_of",
]


def session_of(connection: Any) -> Any:
    """Return the session below a connection."""
    return connection._session


def link_of(connection: Any) -> Any:
    """Return the link of a connection: its bytes."""
    return session_of(connection)._link


def api_of(jet: Any) -> Any:
    """Return the `Api` of a JetStream context."""
    return jet._api


def held_of(messages: Any) -> Any:
    """Return what keeps the messages of an iterator alive."""
    return messages._held


def pipeline_of(publisher: Any) -> Any:
    """Return the pipeline of a publisher."""
    return publisher._pipeline


def open_push(push: Any, name: str) -> Any:
    """Let an iterator over pushed messages listen, without a consumer on the server."""
    return push._open(SimpleNamespace(name=name, config=None))


def refuse(connection: Any, text: str) -> None:
    """Let a connection handle an -ERR of the server, in the thread of the caller."""
    session_of(connection)._refused(text)


def answers_of(replies: Any) -> Any:
    """Return the requests without a reply, by their tokens."""
    return replies._answers


def writer_of(work: Any) -> Any:
    """Return what publishes for an outbox relay or for exactly-once processing."""
    return work._writer
