# Generated from src/js_async/api/priority_groups.py by codegen/twin.py. Edit that file instead.
"""Handing over the leadership of a stream, a consumer or the cluster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from twinstream.core.deadline import Deadline
from twinstream.core.api.placement import step_down_body
from js_sync.api.api import Api

if TYPE_CHECKING:
    from twinstream.models import Model

__all__ = ["step_down"]


def step_down(
    api: Api,
    subject: str,
    answer: type[Model],
    preferred: str | None,
    cluster: str | None,
    tags: Sequence[str],
    deadline: Deadline,
) -> None:
    """Ask a leader to step down, in favour of a server where one is described."""
    body = step_down_body(preferred, cluster, tags)
    if body is not None:
        api.require((2, 11, 0), "choosing the next leader")
    api.call(subject, body, answer, deadline)
