"""`SubjectCheck`: report that no stored message matches the subjects of a consumer group.

Without the report, the worker of a group with a mistake in its filters, or of a static group whose
stream adds no partition numbers, would wait silently.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from js_async import JetStream
from twinstream.core.consume.reports import PullWarning
from twinstream.core.deadline import Deadline
from twinstream.core.groups.partitions import is_partitioned, subjects_of
from twinstream.errors import MessageNotFound, PermissionDenied, TwinstreamError

if TYPE_CHECKING:
    from js_async.runtime.concurrency import Signal
    from twinstream.core.groups.membership import Membership
    from twinstream.core.groups.names import GroupNames
    from twinstream.core.groups.reports import GroupReport
    from twinstream.core.log.reporter import Reporter

__all__ = ["SubjectCheck"]

# The interval of the checks (seconds), of which there are several only if the stream is empty.
_INTERVAL: Final = 10.0


class SubjectCheck:
    """The check of the stream of a group whose worker has handled no message yet."""

    def __init__(
        self,
        jet: JetStream,
        names: GroupNames,
        membership: Membership,
        report: Reporter[GroupReport],
        handled: Callable[[], int],
        ended: Signal,
    ) -> None:
        self._names: Final = names
        self._stream: Final = jet.bind_stream(names.stream)
        self._membership: Final = membership
        self._report: Final = report
        self._handled: Final = handled
        self._ended: Final = ended

    async def run(self) -> None:
        """Check the stream once it has messages. End when the worker has handled a message."""
        while not await self._ended.sleep(Deadline.after(_INTERVAL)) and not self._handled():
            try:
                if await self._last_subject(">") is None:
                    continue
                problem = await self._problem()
            except PermissionDenied:
                return
            except TwinstreamError:
                # There is no connection or no leader, or the stream was deleted, which the worker
                # notices itself.
                continue
            if problem:
                text = f"{self._names} receives no messages: {problem}"
                self._report(PullWarning(text), kind=text)
            return

    async def _last_subject(self, filter_: str) -> str | None:
        """Return the subject of the last message that matches a filter, or None."""
        try:
            message = await self._stream.get_last_message(filter_, headers=False)
        except MessageNotFound:
            return None
        return message.subject

    async def _problem(self) -> str:
        """Return why no message of the stream reaches the group; empty if one does."""
        config = self._membership.config
        is_static = self._names.kind == "static"
        example = None
        for subject in subjects_of(config):
            found = await self._last_subject(f"*.{subject}" if is_static else subject)
            if found is not None and (not is_static or is_partitioned(found, config)):
                return ""
            example = found or example
        if not is_static:
            filters = ", ".join(subjects_of(config))
            return (
                f"no message of the stream matches the filters of the group ({filters}); compare"
                " them with the subjects of the stream"
            )
        if example is None:
            example = await self._last_subject(">")
        return (
            f"the stream stored its last message as {example}, without a partition number (0 to"
            f" {config.max_members - 1}) and one of the filters of the group after it; give the"
            " stream a subject_transform that adds the number, or create an elastic group"
        )
