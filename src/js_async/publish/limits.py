"""The limits of publishers, from the arguments of a call."""

from __future__ import annotations

from js_async.api.api import Api
from twinstream.core.deadline import Seconds, seconds
from twinstream.core.publish.limits import WINDOW, WINDOW_BYTES, PublishLimits
from twinstream.core.publish.retry import retry_policy

__all__ = ["limits_of"]


def limits_of(
    api: Api,
    window: int = WINDOW,
    timeout: Seconds | None = None,
    window_bytes: int = WINDOW_BYTES,
    retries: int | None = None,
    retry_wait: Seconds = 0.25,
) -> PublishLimits:
    """Return the checked limits of a publisher; the default `timeout` is that of the context."""
    return PublishLimits(
        window=window,
        window_bytes=window_bytes,
        timeout=api.timeout if timeout is None else seconds(timeout),
        retry=retry_policy(retries, retry_wait),
    )
