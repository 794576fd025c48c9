"""`SourceCheck`: report that the stream of an elastic group does not receive messages any more.

Without the report, the worker of a group whose original stream was deleted would wait silently.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from js_async import JetStream
from twinstream.core.consume.reports import PullWarning
from twinstream.core.deadline import Deadline
from twinstream.errors import PermissionDenied, TwinstreamError

if TYPE_CHECKING:
    from js_async.runtime.concurrency import Signal
    from twinstream.core.groups.names import GroupNames
    from twinstream.core.groups.reports import GroupReport
    from twinstream.core.log.reporter import Reporter
    from twinstream.models import StreamInfo

__all__ = ["SourceCheck"]

# The interval of the checks (seconds). A server needs about 10 s to notice that a source is gone.
_INTERVAL: Final = 10.0


class SourceCheck:
    """The check of the source of a group's stream, which is made while no messages are handled."""

    def __init__(
        self,
        jet: JetStream,
        names: GroupNames,
        report: Reporter[GroupReport],
        handled: Callable[[], int],
        ended: Signal,
    ) -> None:
        self._names: Final = names
        self._stream: Final = jet.bind_stream(names.source)
        self._report: Final = report
        self._handled: Final = handled
        self._ended: Final = ended
        # The problem that was reported last; empty while the source is well.
        self._reported = ""

    async def run(self) -> None:
        """Check the source at intervals, until the work has ended. Report each problem once."""
        before = self._handled()
        while not await self._ended.sleep(Deadline.after(_INTERVAL)):
            now = self._handled()
            if now != before:
                # Messages arrive, or wait in the stream of the group.
                before = now
                continue
            try:
                info = await self._stream.info()
            except PermissionDenied:
                return
            except TwinstreamError:
                # There is no connection or no leader, or the group was deleted, which the worker
                # notices itself.
                continue
            self._report_problem(info)

    def _report_problem(self, info: StreamInfo) -> None:
        names = self._names
        errors = [each.error for each in info.sources or () if each.name == names.stream]
        problem = next((str(each.description) for each in errors if each is not None), "")
        if problem and problem != self._reported:
            text = (
                f"{names} receives no new messages: its stream {names.source} cannot copy from"
                f" stream {names.stream}: {problem}"
            )
            self._report(PullWarning(text), kind=text)
        self._reported = problem
