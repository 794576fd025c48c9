"""`instrument`: OpenTelemetry for one connection, or for all of them."""

from __future__ import annotations

from typing import Protocol, Unpack

from twinstream.core.observe import process_wide
from twinstream.core.observe.observer import Observer
from twinstream.otel.telemetry import Settings, Telemetry

__all__ = ["instrument"]


class Observable(Protocol):
    """A connection of either twin."""

    def observe(self, observer: Observer) -> None:
        """Let an observer see what begins from now on."""
        ...


def instrument(nc: Observable | None = None, **settings: Unpack[Settings]) -> Telemetry:
    """Emit spans and metrics of what a connection does from now on.

    Args:
        nc: The connection. None stands for all connections that the process opens from now on, and
            for the events that it adds to outboxes.
        **settings: The arguments of `Telemetry`.

    Returns:
        The observer. Pass it as `observers=[...]` for connections of nats-py.

    Raises:
        BadArgument: A setting is invalid.
    """
    telemetry = Telemetry(**settings)
    if nc is None:
        process_wide.add(lambda: telemetry)
    else:
        nc.observe(telemetry)
    return telemetry
