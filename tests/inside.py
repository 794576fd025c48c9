"""Private attributes that tests use. No other module of the tests names them.

Prefer public names, then the hooks of `twinstream.core.hooks`. `tests/test_project.py` counts
the remaining accesses.
"""

from __future__ import annotations

from importlib import import_module
from types import SimpleNamespace
from typing import Any

__all__ = [
    "answers_of",
    "api_of",
    "buffer_of",
    "held_of",
    "link_of",
    "open_push",
    "outstanding",
    "pipeline_of",
    "refuse",
    "requests_of",
    "session_of",
    "stream_in",
    "writer_of",
]


def outstanding(messages: Any) -> int:
    """Return the number of messages that an iterator has requested and that have not arrived."""
    count: int = import_module(type(messages).__module__).buffer_of(messages).outstanding
    return count


def session_of(connection: Any) -> Any:
    """Return the session below a connection."""
    return connection._session


def link_of(connection: Any) -> Any:
    """Return the link of a connection, which sends and receives its bytes."""
    return session_of(connection)._link


def api_of(jet: Any) -> Any:
    """Return the `Api` of a JetStream context."""
    return jet._api


def stream_in(store: Any) -> Any:
    """Return the `Stream` of an object store."""
    return store._stream


def buffer_of(messages: Any) -> Any:
    """Return the buffer from which an iterator takes its messages."""
    return messages._buffer


def held_of(messages: Any) -> Any:
    """Return the object that sends `in_progress` for the buffered messages of an iterator."""
    return buffer_of(messages).progress


def pipeline_of(publisher: Any) -> Any:
    """Return the pipeline of a publisher."""
    return publisher._pipeline


def requests_of(messages: Any) -> Any:
    """Return the open pull requests of an iterator, by their tokens."""
    return buffer_of(messages)._engine.requests.open


def open_push(push: Any, name: str) -> Any:
    """Let an iterator over pushed messages subscribe, without a consumer on the server."""
    return buffer_of(push).open(SimpleNamespace(name=name, config=None))


def refuse(connection: Any, text: str) -> None:
    """Let a connection process an -ERR of the server, in the thread of the caller."""
    session_of(connection)._refused(text)


def answers_of(replies: Any) -> Any:
    """Return the requests in flight, by their tokens."""
    return replies._answers


def writer_of(work: Any) -> Any:
    """Return the writer of exactly-once processing."""
    return work._results.writer
