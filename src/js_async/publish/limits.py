"""Make the limits of a publisher from the arguments of a public method."""

from __future__ import annotations

from js_async.api.api import Api
from twinstream.core.deadline import Seconds, response_seconds
from twinstream.core.publish.limits import WINDOW, WINDOW_BYTES, PublishLimits
from twinstream.core.publish.retry_pauses import retry_policy

__all__ = ["limits_of"]


def limits_of(
    api: Api,
    window: int = WINDOW,
    timeout: Seconds | None = None,
    window_bytes: int = WINDOW_BYTES,
    retries: int | None = None,
    retry_wait: Seconds = 0.25,
) -> PublishLimits:
    """Check the arguments and return them as `PublishLimits`.

    Without `timeout`, the timeout of `api` is used. Raises `BadArgument` for invalid values.
    """
    return PublishLimits(
        window=window,
        window_bytes=window_bytes,
        timeout=response_seconds(timeout, api.timeout),
        retry=retry_policy(retries, retry_wait),
    )
