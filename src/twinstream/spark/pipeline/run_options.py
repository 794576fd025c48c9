"""How a pipeline is run."""

from __future__ import annotations

from collections.abc import Callable

from attrs import frozen

__all__ = ["RunOptions"]


@frozen(kw_only=True)
class RunOptions:
    """The options of a run, which `run` explains.

    `is_to_end` returns true after a stop was requested. From then on, failed requests are not
    retried, and waits for a lock end.
    """

    once: bool
    accept_stream: bool
    accept_subjects: bool
    is_to_end: Callable[[], bool]
