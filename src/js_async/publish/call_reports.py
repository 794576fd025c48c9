"""Reports to `on_call` for publishers: one report for each valid message when it has an outcome."""

from __future__ import annotations

from collections.abc import Callable

from js_async.client.instrumentation import OnCall, tell
from js_async.publish.inflight import InFlight, Outcome
from twinstream.core.api.instrumentation import Call
from twinstream.core.deadline import monotonic
from twinstream.errors import BadArgument, PublishFailure

__all__ = ["reporting"]


def reporting(
    on_call: OnCall,
    on_done: Callable[[InFlight, Outcome], bool] | None,
) -> Callable[[InFlight, Outcome], bool]:
    """Return an `on_done` callback for a `Pipeline` that also reports each message to `on_call`.

    `on_done` is the callback of the pipeline's owner, or None. The new callback calls it first.
    """

    def is_first(entry: InFlight, outcome: Outcome) -> bool:
        if on_done is not None:
            return on_done(entry, outcome)
        was_recorded, entry.is_recorded = entry.is_recorded, True
        return not was_recorded

    def done(entry: InFlight, outcome: Outcome) -> bool:
        if not is_first(entry, outcome):
            return False
        call = _call_of(entry, outcome)
        if not isinstance(call.error, BadArgument):
            tell(on_call, call)
        return True

    return done


def _call_of(entry: InFlight, outcome: Outcome) -> Call:
    stream, error = entry.request.expected_stream, None
    if isinstance(outcome, PublishFailure):
        error = outcome.peek()
    else:
        stream = outcome.stream
    return Call(
        kind="publish",
        subject=entry.given[0],
        size=len(entry.headers) + len(entry.data),
        seconds=monotonic() - entry.started,
        attempts=entry.attempts,
        stream_name=stream,
        error=error,
    )
