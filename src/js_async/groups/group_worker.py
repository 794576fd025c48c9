"""`GroupWorker`: work as a member of a consumer group, and follow changes of the members."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Self, cast

from js_async.api.api import Api
from js_async.client.closing import failure_of
from js_async.consume.message import Message
from js_async.groups.floors import Floors
from js_async.groups.member_join import (
    create_member_consumer,
    delete_member_consumer,
    hand_over,
    release_pin,
)
from js_async.groups.member_worker import MemberWorker
from js_async.groups.message import GroupMessage
from js_async.groups.source_check import SourceCheck
from js_async.runtime.concurrency import (
    Handler,
    Signal,
    Task,
    check_handler,
    here,
    spawn,
)
from js_async.workers.runnable import Runnable
from twinstream.core.deadline import NEVER, Deadline, Seconds, monotonic
from twinstream.core.groups.membership import End, Found, Join, Leave, Membership, Step, Wait
from twinstream.core.groups.names import GroupNames
from twinstream.core.groups.partitions import filters_of
from twinstream.core.groups.reports import (
    GroupReport,
    JoinDelayed,
    PartitionsAssigned,
    PartitionsRevoked,
)
from twinstream.core.hooks import HOOKS, reached
from twinstream.core.log.reporter import Reporter
from twinstream.core.on_failure import AsyncOnError, AsyncOnFailure
from twinstream.errors import (
    BadArgument,
    BadGroupConfig,
    BucketNotFound,
    ConsumerDeleted,
    ConsumerExists,
    IterationEnded,
    JetStreamError,
    NoResponders,
    RequestTimeout,
)
from twinstream.errors.transient import FAILED_REQUEST
from twinstream.models.error_codes import WORKQUEUE_CONSUMER_NOT_UNIQUE
from twinstream.records.entry import Entry

if TYPE_CHECKING:
    from js_async.groups.store import GroupStore
    from js_async.kv.watch import Watch
    from js_async.workers.settings import WorkSettings
    from twinstream.models import ConsumerConfig, Timestamp

__all__ = ["GroupWorker"]

# Errors after which `_end` keeps the consumer: it does not exist, or its positions are needed when
# the configuration has been repaired.
_KEEPS_CONSUMER: Final = (ConsumerDeleted, NoResponders, BadGroupConfig)
_FOREVER: Final = float("inf")
# Seconds until the worker notices that its group is missing in a bucket that was re-created.
_LOOK: Final = 1.0
_FILTERS: Final = {"filter_subject", "filter_subjects"}


class GroupWorker(Runnable):
    """A worker for a member of a consumer group. Created by the group's method `worker`.

    Call `run`, which works until the program receives a signal or the group is deleted. Or use it
    in a `with` block, or call `start` and `stop`. The messages of the member's partitions are
    handled as by a `Worker`. When the members of an elastic group change, the worker switches to
    its member's new partitions.

    Each process that works as the same member is an instance of the member. One instance is active,
    the others stand by. If the work ended with an error that no call has raised, a `RuntimeWarning`
    is issued when the object is garbage-collected.
    """

    _area = "groups"

    def __init__(
        self,
        api: Api,
        names: GroupNames,
        store: GroupStore[Any],
        member: str,
        handler: Handler[GroupMessage],
        settings: WorkSettings,
        template: ConsumerConfig,
        on_report: Callable[[GroupReport], None] | None,
    ) -> None:
        super().__init__()
        check_handler(handler)
        names.consumer(member)
        self._api: Final = api
        self._names: Final = names
        self._store: Final[GroupStore[Any]] = store
        self._member: Final = member
        # `settings.adapt` converts each message to a `GroupMessage` before the handler is called.
        self._handler: Final = cast("Handler[Message]", handler)
        self._settings: Final = settings
        self._template: Final = template
        self._on_end = on_report
        self._report: Final[Reporter[GroupReport]] = Reporter(
            on_report, area="groups", stream=names.stream
        )
        self._membership: Membership | None = None
        self._worker: MemberWorker | None = None
        self._created: Timestamp | None = None
        # The counts of `_counts_of` of all earlier `MemberWorker`s.
        self._counts = (0, 0, 0, 0)
        self._floors: Floors | None = None
        self._changes: Final[deque[Found]] = deque()
        self._watch: Watch[bytes] | None = None
        self._watch_error: Exception | None = None
        self._was_in_use = False
        self._gone: ConsumerDeleted | NoResponders | None = None
        self._woken: Final = Signal()
        self._tasks: list[Task] = []
        self._stopping = False

    def __repr__(self) -> str:
        counts = f"{self.handled} handled{self._ended_by}"
        return f"<GroupWorker {self._member} of {self._names}: {counts}>"

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
        return self._count(0)

    @property
    def retried(self) -> int:
        """Number of handler failures after which the message was, or will be, retried."""
        return self._count(1)

    @property
    def rejected(self) -> int:
        """Number of messages that were rejected and will not be retried."""
        return self._count(2)

    @property
    def skipped(self) -> int:
        """Number of messages that the server copied again, and that were not handled again.

        They were acknowledged, because the group had processed their first copies.
        """
        return self._count(3)

    def _count(self, place: int) -> int:
        worker, counts = self._worker, self._counts
        return counts[place] + (0 if worker is None else _counts_of(worker)[place])

    # ---- lifecycle

    async def start(self) -> None:
        """Start to work in the background.

        Raises:
            GroupNotFound: The group does not exist.
            BadGroupConfig: The stored settings of the group are invalid.
            BadArgument: The worker was started before, or the group is static and does not have the
                member.
            ConsumerExists: The group is static, and the member's consumer exists with other
                settings.
            JetStreamError: The server refused the consumer.
        """
        if self._tasks:
            raise BadArgument("the worker was started already")
        self._note_begun()
        self._home = here()
        self._watch = watch = await self._opened()
        async with AsyncOnFailure(watch.close):
            await self._begin(watch)
        self._tasks.append(spawn(self._run, f"twinstream-member-{self._member}"))
        self._tasks.append(spawn(self._follow, "twinstream-group-watch"))
        if self._names.kind == "elastic":
            self._tasks.append(spawn(self._check_source, "twinstream-group-source"))

    async def _opened(self) -> Watch[bytes]:
        try:
            return await self._store.bucket.watch(self._names.key)
        except BucketNotFound as error:
            raise self._store.missing() from error

    async def _begin(self, watch: Watch[bytes]) -> None:
        """Read the first configuration, and create the consumer if the member has partitions."""
        entry = None
        async for each in watch.initial():
            entry = each
        config = self._judge(entry)
        if config is None:
            raise self._store.missing()
        if isinstance(config, BadGroupConfig):
            raise config
        self._membership = Membership(self._names, self._member, config)
        step = self._membership.due(monotonic())
        if isinstance(step, Join):
            await self._join(self._membership, step, is_first=True)
        elif self._names.kind == "static":
            raise BadArgument(f"{self._names} has no partitions for member {self._member!r}")

    def _judge(self, entry: Entry[bytes] | None) -> Found:
        return self._store.judge(entry)

    async def stop(self, timeout: Seconds = 30.0) -> None:
        """Wait for the running handlers, return other messages to the server, and end the work.

        The server pins another instance of the member at once. If a handler or `on_report` calls
        `stop`, the call returns immediately and the work ends later.

        Raises:
            RequestTimeout: A handler takes longer than `timeout` seconds. The work ends after the
                handler.
            NotStarted: The worker was not started.
            Exception: The error that ended the work, if there was one.
        """
        if self._is_parents:
            return
        self._require_begun(self._what_it_is)
        self._stopping = True
        self._ended.set()
        self._woken.set()
        if not self._is_within():
            await self.wait(timeout)

    def _is_within(self) -> bool:
        """Return whether the caller is a handler or a callback of this worker."""
        worker = self._worker
        if worker is not None and worker.is_handler():
            return True
        return any(task.is_current() for task in self._tasks)

    async def wait(self, timeout: Seconds | None = None) -> None:
        """Wait until the work has ended: by `stop`, by an error, or because the group was deleted.

        Raises:
            RequestTimeout: The work has not ended after `timeout` seconds. It continues.
            NotStarted: The worker was not started.
            Exception: The error that ended the work.
        """
        self._require_begun(self._what_it_is)
        deadline = Deadline.after(timeout)
        for task in self._tasks:
            if not task.is_current() and not await task.join(deadline):
                raise RequestTimeout(f"{self._what_it_is} has not ended")
        self._raise_kept()

    @property
    def _what_it_is(self) -> str:
        return f"member {self._member} of {self._names}"

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    # ---- the stored configuration

    async def _follow(self) -> None:
        watch = self._watch
        if watch is None:
            return
        # `start` has read the first entry, so the group exists.
        generation, is_there = watch.generation, True
        try:
            while not watch.is_ended:
                entry = await watch.next(timeout=_LOOK)
                if watch.generation != generation:
                    # The bucket was re-created. If the watch delivers no entry before the end of
                    # the initial values, the group does not exist any more.
                    generation, is_there = watch.generation, False
                if entry is not None:
                    is_there = True
                    self._note_change(self._judge(entry))
                elif watch.is_current and not is_there:
                    is_there = True
                    self._note_change(None)
        except IterationEnded:
            # `stop` has closed the watch.
            pass
        except Exception as error:
            self._watch_error = error
            self._woken.set()

    async def _check_source(self) -> None:
        check = SourceCheck(self._api, self._names, self._report, lambda: self.handled, self._ended)
        try:
            await check.run()
        except Exception as error:
            # An error of the callback, which ends the work.
            self._watch_error = error
            self._woken.set()

    def _note_change(self, found: Found) -> None:
        self._changes.append(found)
        self._woken.set()
        if HOOKS:
            reached("group: change noted", self)

    # ---- the membership

    async def _run(self) -> None:
        membership = self._membership
        if membership is None:
            return
        try:
            error = await failure_of(partial(self._stay_member, membership))
            if error is not None:
                self._keep_error(error, self._what_it_is)
        finally:
            self._ended.set()

    async def _stay_member(self, membership: Membership) -> None:
        try:
            while True:
                self._woken.clear()
                if self._stopping:
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
        if self._watch_error is not None:
            raise self._watch_error
        # The caller has cleared the signal of everything below. So do not wait before all of it was
        # checked: several changes may have arrived, and the worker may have ended.
        while self._changes:
            step = membership.heard(self._changes.popleft(), monotonic())
            if not isinstance(step, Wait):
                return step
        worker = self._worker
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
            found = await self._store.find(self._api.deadline())
        except FAILED_REQUEST as error:
            return Wait(monotonic() + self._delay(membership, error))
        self._gone = None
        return membership.gone(found, gone, monotonic())

    async def _join(self, membership: Membership, join: Join, *, is_first: bool = False) -> None:
        try:
            consumer = await create_member_consumer(
                self._api,
                self._names,
                self._member,
                join.filters,
                self._template,
                looks_first=self._was_in_use,
            )
        except FAILED_REQUEST as error:
            if is_first and not self._may_pass(error):
                raise
            self._was_in_use = isinstance(error, ConsumerExists)
            self._delay(membership, error)
            return
        self._was_in_use = False
        self._created = consumer.cached_info.created if consumer.cached_info else None
        names = self._names
        floors = None
        if names.kind == "elastic":
            floors = Floors(self._api, names, self._store, self._member, self._report, self._floors)
            self._floors = floors
        worker = MemberWorker(
            self._api, consumer, self._handler, self._settings, self._woken, floors
        )
        self._report(PartitionsAssigned(names.stream, names.group, self._member, join.partitions))
        await worker.start()
        self._worker = worker
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
        worker, partitions, names = self._worker, membership.partitions, self._names
        if worker is None:
            return None

        async def explain(error: BaseException) -> None:
            nonlocal reason
            reason = f"an error ended the work: {str(error) or type(error).__name__}"

        try:
            async with AsyncOnError(explain):
                await worker.stop(_FOREVER)
        finally:
            self._counts = (self.handled, self.retried, self.rejected, self.skipped)
            self._worker = None
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
                await delete_member_consumer(
                    self._api, self._names, self._member, created=self._created
                )
        if end.error is not None:
            raise end.error

    async def _close(self, membership: Membership) -> None:
        try:
            worker = await self._leave(membership, "the worker was stopped", hands_over=False)
            if worker is not None:
                await release_pin(worker)
        finally:
            if self._watch is not None:
                await self._watch.close()


def _counts_of(worker: MemberWorker) -> tuple[int, int, int, int]:
    return worker.handled, worker.retried, worker.rejected, worker.skipped
