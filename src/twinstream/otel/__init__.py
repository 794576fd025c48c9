"""OpenTelemetry: spans, links and metrics of both twins, by the messaging conventions.

`opentelemetry-instrument python app.py` instruments every connection of a program, if the extra
`otel` is installed. `instrument` does the same for one connection or for the process.

The names are imported when they are used: `opentelemetry-instrument` imports this package in every
Python process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from twinstream.otel.instrumenting import instrument
    from twinstream.otel.telemetry import Telemetry

__all__ = ["Telemetry", "instrument"]

_MODULES = {"Telemetry": "telemetry", "instrument": "instrumenting"}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
