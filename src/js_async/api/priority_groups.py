"""Move the leadership of a stream, a consumer or the cluster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from js_async.api.api import Api
from twinstream.core.api.placement import step_down_body
from twinstream.core.deadline import Deadline

if TYPE_CHECKING:
    from twinstream.models import Model

__all__ = ["step_down"]


async def step_down(
    api: Api,
    subject: str,
    answer: type[Model],
    preferred: str | None,
    cluster: str | None,
    tags: Sequence[str],
    deadline: Deadline,
) -> None:
    """Request that a leader steps down.

    `preferred` is the name of the server that becomes the leader. `cluster` is the name of the
    cluster in which the next leader must be. `tags` are the tags that the next leader's server must
    have. Without these arguments, the servers may elect any other leader. Raises `Unsupported` if
    an argument is given and the server is older than 2.11, and `JetStreamError` or another error as
    `Api.call` does.
    """
    body = step_down_body(preferred, cluster, tags)
    if body is not None:
        api.require((2, 11, 0), "choosing the next leader")
    await api.call(subject, body, answer, deadline)
