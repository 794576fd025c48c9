"""The observers of a connection: the log, `on_call`, those of the program and of the process."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from twinstream.errors import BadArgument

if TYPE_CHECKING:
    from twinstream.core.api.instrumentation import Call
    from twinstream.core.observe.observer import Observer
    from twinstream.core.observe.observers import Observers, Where

__all__ = ["observers_of"]


def observers_of(
    on_call: Callable[[Call], None] | None,
    observers: Iterable[Observer],
    where: Where,
    client_name: str | None,
) -> Observers | None:
    """Return the observers of a new connection, or None if nothing observes it.

    The modules are imported only if something does. Raises `BadArgument` if one of `observers` is
    no `Observer`.
    """
    # Instrumentation that observes all connections of the process has imported this module.
    process_wide: Any = sys.modules.get("twinstream.core.observe.process_wide")
    try:
        given = list(observers)
    except TypeError:
        raise BadArgument(f"observers must be a list of them, got {observers!r}") from None
    if process_wide is not None:
        given += process_wide.all_observers()
    if on_call is None and not given:
        return None
    from twinstream.core.api.call_observers import CallObserver, LogObserver
    from twinstream.core.observe.observers import Observers

    calls = [] if on_call is None else [CallObserver(on_call)]
    return Observers([LogObserver(), *calls, *given], where, client_name)
