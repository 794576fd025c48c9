"""The entry point of `opentelemetry-instrument`, which imports it in every Python process.

So this module imports neither twin, and nothing else that takes time.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from opentelemetry.instrumentation.instrumentor import (  # type: ignore[attr-defined]
    BaseInstrumentor,
)

from twinstream.core.observe import process_wide

if TYPE_CHECKING:
    from twinstream.core.observe.observer import Observer

__all__ = ["TwinstreamInstrumentor"]


class TwinstreamInstrumentor(BaseInstrumentor):  # type: ignore[misc]
    """Instruments all connections that the process opens, and the events that it adds to outboxes.

    `instrument` takes the arguments of `Telemetry`.
    """

    def instrumentation_dependencies(self) -> Collection[str]:
        """Return the requirement for this instrumentation."""
        return ("twinstream >= 0.1",)

    def _instrument(self, **settings: Any) -> None:
        # The command starts without arguments; others may pass what every instrumentation gets.
        self._make = cache(partial(_telemetry, settings))
        process_wide.add(self._make)

    def _uninstrument(self, **_: Any) -> None:
        process_wide.remove(self._make)


def _telemetry(settings: dict[str, Any]) -> Observer:
    from twinstream.otel.telemetry import Telemetry

    return Telemetry(**settings)
