"""What tests look at behind the objects that programs hold. No other module has these names.

Prefer what programs use, then the hooks of `twinstream.core.base.hooks`; `tests/test_project.py`
counts what is left.
"""

from __future__ import annotations

from typing import Any

__all__ = ["api_of", "boxes_of", "held_of", "keeper_of", "link_of", "pipeline_of", "session_of"]


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
