"""`GroupWorker`: work as a member of a consumer group, and follow changes of the members."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Self, cast

from js_async import JetStream, Message
from js_async.extension import BackgroundWork, api_of
from js_async.groups.config_watch import ConfigWatch
from js_async.groups.member_join import hand_over, release_pin
from js_async.groups.member_work import MemberSettings, MemberWork
from js_async.groups.member_worker import MemberWorker
from js_async.groups.message import GroupMessage
from js_async.groups.source_check import SourceCheck
from js_async.groups.subject_check import SubjectCheck
from js_async.runtime.concurrency import (
    Handler,
    Signal,
    Work,
    check_handler,
)
from js_async.workers.worker import payloads_of_handler
from twinstream.core.deadline import NEVER, monotonic
from twinstream.core.groups.membership import End, Join, Leave, Membership, Step, Wait
from twinstream.core.groups.names import GroupNames
from twinstream.core.groups.partitions import GroupConfig, filters_of
from twinstream.core.groups.reports import (
    GroupReport,
    JoinDelayed,
    PartitionsAssigned,
    PartitionsRevoked,
)
from twinstream.core.log.reporter import Reporter
from twinstream.core.on_failure import AsyncOnError, AsyncOnFailure
from twinstream.errors import (
    BadArgument,
    ConsumerDeleted,
    ConsumerExists,
    InvalidGroupConfig,
    JetStreamError,
    NoResponders,
)
from twinstream.errors.transient import FAILED_REQUEST
from twinstream.models.error_codes import WORKQUEUE_CONSUMER_NOT_UNIQUE

if TYPE_CHECKING:
    from js_async.groups.store import GroupStore
    from js_async.workers.settings import WorkSettings
    from twinstream.models import ConsumerConfig

__all__ = ["GroupWorker"]

# Errors after which `_end` keeps the consumer: it does not exist, or its positions are needed when
# the configuration has been repaired.
_KEEPS_CONSUMER: Final = (ConsumerDeleted, NoResponders, InvalidGroupConfig)
_FILTERS: Final = {"filter_subject", "filter_subjects"}


class GroupWorker(BackgroundWork):
    """A worker for a member of a consumer group. Created by the group's method `worker`.

    Call `run`, which works until the program receives a signal or the group is deleted. Or use it
    in a `with` block, or call `start` and `stop`. The messages of the member's partitions are
    handled as by a `Worker`. When the members of an elastic group change, the worker switches to
    its member's new partitions.

    Each process that works as the same member is an instance of the member. One instance is active,
    the others stand by.

    After `stop`, the server pins another instance of the member at once.
    """

    _area = "groups"

    def __init__(
        self,
        jet: JetStream,
        names: GroupNames,
        store: GroupStore[Any],
        member: str,
        handler: Handler[GroupMessage[Any]],
        settings: WorkSettings,
        template: ConsumerConfig,
        on_report: Callable[[GroupReport], None] | None,
    ) -> None:
        super().__init__(on_report)
        check_handler(handler)
        # Refuse an annotation now, and not when the member joins.
        payloads_of_handler(cast("Handler[Any]", handler))
        names.consumer(member)
        self._jet: Final = jet
        self._names: Final = names
        self._store: Final[GroupStore[Any]] = store
        self._member: Final = member
        self._report: Final[Reporter[GroupReport]] = Reporter(
            on_report, area="groups", stream=names.stream
        )
        self._woken: Final = Signal()
        self._watch: Final = ConfigWatch(jet, names, store, self._woken)
        work = MemberSettings(names, member, cast("Handler[Message]", handler), settings, template)
        self._member_work: Final = MemberWork(jet, work, store, self._report, self._woken)
        self._membership: Membership | None = None
        # The error of the watch, or of a callback, which ends the work.
        self._failure: Exception | None = None
        self._gone: ConsumerDeleted | NoResponders | None = None
        self._is_unstarted = True

    @property
    def _label(self) -> str:
        return f"{self._member} of {self._names}"

    @property
    def member(self) -> str:
        """The name of the member."""
        return self._member

    @property
    def partitions(self) -> tuple[int, ...]:
        """The member's partitions while this instance is active or stands by, otherwise empty."""
        return () if self._membership is None else self._membership.partitions

    @property
    def handled(self) -> int:
        """Number of messages whose handler has returned."""
        return self._member_work.counts[0]

    @property
    def retried(self) -> int:
        """Number of handler failures after which the message was, or will be, retried."""
        return self._member_work.counts[1]

    @property
    def rejected(self) -> int:
        """Number of messages that were rejected and will not be retried."""
        return self._member_work.counts[2]

    @property
    def skipped(self) -> int:
        """Number of messages that the server copied again, and that were not handled again.

        They were acknowledged, because the group had processed their first copies.
        """
        return self._member_work.counts[3]

    # ---- lifecycle

    async def start(self) -> None:
        """Start to work in the background.

        Raises:
            GroupNotFound: The group does not exist.
            InvalidGroupConfig: The stored settings of the group are invalid.
            BadArgument: The worker was started before, or the group is static and does not have the
                member.
            ConsumerExists: The group is static, and the member's consumer exists with other
                settings.
            JetStreamError: The server refused the consumer.
        """
        await super().start()

    async def _begin(self) -> None:
        # Not only the worker of the current membership, after whose end this object joins again.
        api_of(self._jet).transport.drainables.add(self, self._end_soon, self._ended_by)
        config = await self._watch.open()
        async with AsyncOnFailure(self._watch.close):
            await self._begin_as(config)

    async def _begin_as(self, config: GroupConfig) -> None:
        """Create the consumer if the member has partitions."""
        self._membership = Membership(self._names, self._member, config)
        step = self._membership.due(monotonic())
        if isinstance(step, Join):
            await self._join(self._membership, step, is_first=True)
        elif self._names.kind == "static":
            raise BadArgument(f"{self._names} has no partitions for member {self._member!r}")

    async def _request_stop(self) -> None:
        self._woken.set()

    def _is_within(self) -> bool:
        return super()._is_within() or self._member_work.is_handler()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    # ---- the membership

    async def _work(self) -> None:
        self._spawn_beside(self._watch.follow, "twinstream-group-watch")
        jet, names, report, membership = self._jet, self._names, self._report, self._membership
        if names.kind == "elastic":
            source = SourceCheck(jet, names, report, lambda: self.handled, self._ended)
            self._spawn_beside(source.run, "twinstream-group-source")
        if membership is not None:
            subjects = SubjectCheck(
                jet, names, membership, report, lambda: self.handled, self._ended
            )
            self._spawn_beside(subjects.run, "twinstream-group-subjects")
            await self._stay_member(membership)

    def _spawn_beside(self, work: Work, name: str) -> None:
        """Run `work` in the background. If it fails, the member's work ends with its error."""

        async def run() -> None:
            try:
                await work()
            except Exception as error:
                self._failure = error
                self._woken.set()

        self._spawn(run, name)

    async def _stay_member(self, membership: Membership) -> None:
        """Carry out the steps of the membership until `stop` or the end of the group."""
        try:
            while True:
                self._woken.clear()
                if self._stopping.is_set():
                    return
                match await self._next_step(membership):
                    case Join() as join:
                        await self._join(membership, join)
                    case Leave(reason):
                        await self._leave(membership, reason)
                    case Wait(until):
                        await self._woken.sleep(NEVER.earlier(until))
                    case End() as end:
                        await self._end(membership, end)
                        return
        finally:
            await self._close(membership)

    async def _next_step(self, membership: Membership) -> Step:
        """Return the next step, after all changes of the group and of the worker were read."""
        if self._failure is not None:
            raise self._failure
        # The caller has cleared the signal of everything below. So do not wait before all of it was
        # checked: several changes may have arrived, and the worker may have ended.
        while self._watch.has_changes:
            step = membership.heard(self._watch.next_change(), monotonic())
            if not isinstance(step, Wait):
                return step
        worker = self._member_work.worker
        if worker is not None and worker.has_ended:
            self._gone = worker.gone
            await self._leave(membership, "the consumer was deleted", hands_over=False)
        if self._gone is not None:
            return await self._explain_loss(membership, self._gone)
        if worker is not None and worker.lost_pin:
            # The server will deliver the buffered messages to the pinned instance.
            return Leave("another instance is pinned")
        return membership.due(monotonic())

    async def _explain_loss(self, membership: Membership, gone: Exception) -> Step:
        """Return the next step after the consumer was deleted. The group may be deleted, too."""
        try:
            found = await self._store.find(api_of(self._jet).deadline())
        except FAILED_REQUEST as error:
            return Wait(monotonic() + self._delay(membership, error))
        self._gone = None
        return membership.gone(found, gone, monotonic())

    async def _join(self, membership: Membership, join: Join, *, is_first: bool = False) -> None:
        try:
            consumer = await self._member_work.create_consumer(join.filters)
        except FAILED_REQUEST as error:
            if is_first and not self._may_pass(error):
                raise
            self._delay(membership, error)
            return
        names = self._names
        self._report(PartitionsAssigned(names.stream, names.group, self._member, join.partitions))
        await self._member_work.start(consumer)
        membership.joined(join)

    def _may_pass(self, error: Exception) -> bool:
        """Return whether a refusal of the consumer is temporary.

        A temporary refusal ends when other members or instances have left.
        """
        if self._names.kind == "static" or not isinstance(error, JetStreamError):
            return False
        not_unique = error.err_code == WORKQUEUE_CONSUMER_NOT_UNIQUE
        return not_unique or isinstance(error, ConsumerExists)

    def _is_usual(self, error: Exception) -> bool:
        """Return whether a refusal of the consumer is expected while the members change."""
        if isinstance(error, ConsumerExists):
            # If more than the filters differs, the instances were started with different settings.
            return {each.field for each in error.differences} <= _FILTERS
        return self._may_pass(error)

    def _delay(self, membership: Membership, error: Exception) -> float:
        pause = membership.refused(monotonic())
        report = JoinDelayed(
            self._names.stream, self._names.group, self._member, error, pause, self._is_usual(error)
        )
        self._report(report, kind=type(error).__name__)
        return pause

    async def _leave(
        self, membership: Membership, reason: str, *, hands_over: bool = True
    ) -> MemberWorker | None:
        """Stop consuming, and wait until the running handlers have ended.

        With `hands_over`, this instance deletes the consumer of an elastic group if it is
        responsible for the consumer. Returns the ended worker, or None if there was no worker.
        """
        worker, partitions, names = self._member_work.worker, membership.partitions, self._names
        if worker is None:
            return None

        async def explain(error: BaseException) -> None:
            nonlocal reason
            reason = f"an error ended the work: {str(error) or type(error).__name__}"

        try:
            async with AsyncOnError(explain):
                await self._member_work.stop()
        finally:
            membership.left(monotonic())
            self._report(
                PartitionsRevoked(names.stream, names.group, self._member, partitions, reason)
            )
        if worker.lost_pin:
            # The server may have pinned this instance again, for an older pull request.
            await release_pin(worker)
        elif hands_over and names.kind == "elastic":
            wanted = filters_of(membership.config, self._member)
            membership.left(monotonic(), await hand_over(worker, wanted))
        return worker

    async def _end(self, membership: Membership, end: End) -> None:
        await self._leave(membership, end.reason, hands_over=False)
        if self._names.kind == "static" and not isinstance(end.error, _KEEPS_CONSUMER):
            # The consumer has filters of a configuration that is no longer valid.
            with suppress(*FAILED_REQUEST):
                await self._member_work.delete_consumer()
        if end.error is not None:
            raise end.error

    async def _close(self, membership: Membership) -> None:
        try:
            worker = await self._leave(membership, "the worker was stopped", hands_over=False)
            if worker is not None:
                await release_pin(worker)
        finally:
            await self._watch.close()
