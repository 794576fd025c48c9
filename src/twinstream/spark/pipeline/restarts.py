"""When a source is started again after a failure."""

from __future__ import annotations

from typing import Final

from twinstream.core.deadline import Backoff, Failures
from twinstream.spark.pipeline.run_errors import is_lasting
from twinstream.spark.pipeline.settings.config import PipelineConfig

__all__ = ["Restarts"]

# The number of restarts in a row with `once`, if the configuration does not limit them.
_MOST_ONCE: Final = 5


class Restarts:
    """The restarts of one source, of which the pauses grow until a batch is landed."""

    def __init__(self, config: PipelineConfig, *, once: bool) -> None:
        limits = config.restarts
        self._most: Final = _MOST_ONCE if limits.most is None and once else limits.most
        self._failures: Final = Failures(Backoff(limits.first, limits.longest))

    def landed(self) -> None:
        """Begin to count failures again, because a batch was landed."""
        self._failures.clear()

    def failed(self, error: Exception) -> float | None:
        """Return the seconds until the restart, or `None` if the source has to end."""
        pause = self._failures.add()
        if is_lasting(error) or (self._most is not None and self._failures.count > self._most):
            return None
        return pause
