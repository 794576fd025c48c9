"""Watch keys: read the current state of a bucket, then each change, across reconnects."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, Generic, NoReturn, Protocol, Self, TypeAlias, TypeVar

from js_async.api.api import Api
from js_async.api.leader_info import confirmed_info
from js_async.client.closable import Closable
from js_async.consume.item_source import ItemSource
from js_async.consume.message import Message, frame_of
from js_async.consume.ordered import buffer_of
from js_async.kv.bucket_streams import BucketStreams
from js_async.runtime.concurrency import BlockHint, Items, LoopHint, sleep
from js_async.runtime.opening import looped
from js_async.stream import Stream
from twinstream.core.arguments.nats_py_names import hint_attributes
from twinstream.core.consume.batch import BatchEnd
from twinstream.core.consume.metadata import Position, position_of
from twinstream.core.consume.reports import ConsumerRecreated, PullReport
from twinstream.core.deadline import NEVER, Deadline, Seconds, monotonic
from twinstream.core.kv.entries import EntryMaker
from twinstream.core.kv.names import check_revision
from twinstream.core.kv.watch import WatchState
from twinstream.core.on_failure import AsyncOnFailure
from twinstream.core.wire.protocol import Frame
from twinstream.core.wire.subject_match import widest
from twinstream.errors import (
    BadArgument,
    IterationEnded,
    RequestTimeout,
    TwinstreamError,
)
from twinstream.models import DeliverPolicy
from twinstream.records.entry import Entry
from twinstream.records.headers import NO_HEADERS, Headers

if TYPE_CHECKING:
    from twinstream.core.observe.operation import Operation

__all__ = [
    "CAUGHT_UP",
    "CaughtUp",
    "EntrySteps",
    "KeyValueWatch",
    "KeyWatch",
    "Reader",
    "StateWatch",
    "WatchOptions",
    "open_steps",
    "open_watch",
    "returned_revision",
]

S = TypeVar("S")
V = TypeVar("V")

Reader = Callable[[Frame, Position], S | None]
"""A function that converts a message and its position to a result.

It returns None for a message that the watch has to skip.
"""


# Pause before the next info request if the last response changed nothing (seconds).
_PAUSE: Final = 0.01
# Messages per pull request of a watch without values. Such a watch is twice as fast as with the
# default number.
_WITHOUT_VALUES: Final = 5000
# Seconds to wait for the next message if the server reported that more messages are pending. After
# this time, the watch sends a request for the message.
_EXPECTED: Final = 0.05


class CaughtUp:
    """The type of `CAUGHT_UP`, which a `KeyWatch` returns after the initial values."""


CAUGHT_UP: Final = CaughtUp()


class WatchOptions:
    """The options of a watch.

    Raises `BadArgument` if more than one of `history`, `updates_only` and `resume_from` is given,
    or if `resume_from` is not a revision.
    """

    def __init__(
        self,
        *,
        history: bool = False,
        updates_only: bool = False,
        deletes: bool = True,
        meta_only: bool = False,
        resume_from: int | None = None,
    ) -> None:
        starts = {
            "history": history,
            "updates_only": updates_only,
            "resume_from": resume_from is not None,
        }
        chosen = [name for name, wanted in starts.items() if wanted]
        if len(chosen) > 1:
            raise BadArgument(f"{' and '.join(chosen)} exclude each other: give one")
        if resume_from is not None:
            check_revision(resume_from)
        self.updates_only: Final = updates_only
        self.deletes: Final = deletes
        self.meta_only: Final = meta_only
        self.resume_from: Final = resume_from
        self.policy: Final = _policy(history, updates_only)


def _policy(history: bool, updates_only: bool) -> DeliverPolicy:
    if history:
        return DeliverPolicy.ALL
    return DeliverPolicy.NEW if updates_only else DeliverPolicy.LAST_PER_SUBJECT


async def open_watch(
    place: BucketStreams,
    maker: EntryMaker[V],
    filters: Sequence[str],
    options: WatchOptions,
    on_report: Callable[[PullReport], None] | None,
) -> KeyValueWatch[V]:
    """Create the consumer of a watch and return the watch.

    The consumer exists when the call returns, so the watch also covers every write after the call.
    """
    steps = await open_steps(place, maker, filters, options, on_report)
    return KeyValueWatch(steps)


async def open_steps(
    place: BucketStreams,
    maker: EntryMaker[V],
    filters: Sequence[str],
    options: WatchOptions,
    on_report: Callable[[PullReport], None] | None,
) -> EntrySteps[V]:
    """Create the consumer of a watch, and return the entries and the ends of initial values."""
    steps = KeyWatch(place, _reader(maker, options), filters, options, on_report)
    await steps.follow()
    return steps


def _reader(maker: EntryMaker[V], options: WatchOptions) -> Reader[Entry[V]]:
    """Return a function that converts a message to an entry.

    If the option `deletes` is false, the function returns None for a marker.
    """
    make, deletes, has_value = maker.make, options.deletes, not options.meta_only

    def read(frame: Frame, position: Position) -> Entry[V] | None:
        subject, _, size, body = frame
        revision, _, timestamp_ns, pending = position
        headers = Headers.parse(body[:size]) if size else NO_HEADERS
        key = subject.decode("utf-8", "surrogateescape")
        entry = make(key, body[size:-2], headers, revision, timestamp_ns, pending, has_value)
        return entry if deletes or entry.is_value else None

    return read


class Watched(Protocol):
    """The bucket of a watch: a `BucketStreams`, or the `ObjectPlace` of an object store."""

    @property
    def api(self) -> Api:
        """The context of requests."""
        ...

    @property
    def bucket(self) -> str:
        """The name of the bucket."""
        ...

    @property
    def stream(self) -> Stream:
        """The stream that stores the bucket."""
        ...

    @property
    def prefix(self) -> str:
        """The prefix of the subjects of all messages."""
        ...

    def raise_for(self, error: TwinstreamError) -> NoReturn:
        """Raise the error of the bucket for an error of its stream."""
        ...


class KeyWatch(ItemSource["S | CaughtUp"], Generic[S]):
    """The results of `read` for the messages that match the filters.

    It returns `CAUGHT_UP` after the initial values. If the bucket is re-created, it returns the new
    initial values, and then `CAUGHT_UP` again. After `hold_last`, the last of the initial values is
    returned instead of `CAUGHT_UP`, if there is one: its return shows that they are complete.
    """

    def __init__(
        self,
        place: Watched,
        read: Reader[S],
        filters: Sequence[str],
        options: WatchOptions,
        on_report: Callable[[PullReport], None] | None = None,
    ) -> None:
        super().__init__(place.bucket)
        self._place: Final = place
        self._read: Final = read
        self._options: Final = options
        self._on_report: Final = on_report
        self.is_followed = False
        """Whether revisions are requested although no caller waits for one.

        Otherwise, a revision that is overwritten between two calls would not be delivered.
        """
        self.state: Final = WatchState(updates_only=options.updates_only)
        self.ready: Final[deque[S]] = deque()
        """Results of `read` that were not returned yet."""
        # The number of results in `ready` that are held back while it is unknown whether one of
        # them is the last initial value: 0 or 1.
        self._held_back = 0
        self._holds_back_last = False
        # The revision of the last message that was passed to `read`, and whether more messages were
        # pending when the server sent this message.
        self._revision = 0
        self._has_more = False
        stored = place.prefix
        subjects = [stored + each for each in widest(filters)] if filters else [f"{stored}>"]
        self._subjects: Final = subjects
        self._operation: Operation | None = None
        resumes = options.resume_from is not None
        messages = place.stream.ordered(
            subjects=subjects,
            deliver_policy=None if resumes else options.policy,
            start_seq=options.resume_from,
            headers_only=options.meta_only,
            max_messages=_WITHOUT_VALUES if options.meta_only else None,
            on_report=self._report,
        )
        self.messages: Final = buffer_of(messages)
        self.messages.stops_at_new_stream = True

    def _report(self, report: PullReport) -> None:
        if isinstance(report, ConsumerRecreated) and report.name == self._place.stream.name:
            self.state.restart()
            self._revision = 0
            if self._held_back:
                # An initial value of the old bucket, whose state is incomplete for ever.
                self.ready.clear()
            self._held_back = int(self._holds_back_last)
        if self._on_report is not None:
            self._on_report(report)

    async def follow(self) -> None:
        """Create the consumer, and request revisions also while no caller waits for one."""
        self.is_followed = True
        async with AsyncOnFailure(self.close):
            await self.open()

    def hold_last(self) -> None:
        """Hold each initial value back until it is known whether it is the last one."""
        self._holds_back_last, self._held_back = True, 1

    @property
    def is_current(self) -> bool:
        """Whether all initial values were returned. With `updates_only` there are none."""
        return self.state.is_marked or self._options.updates_only

    async def open(self) -> None:
        """Create the consumer.

        Raises `BucketNotFound`, or `BadArgument` if the bucket has not reached `resume_from`.
        """
        resume_from = self._options.resume_from
        try:
            if resume_from is not None:
                info = await confirmed_info(self._place.api, self._place.stream.name)
                if resume_from > info.state.last_seq + 1:
                    raise BadArgument(
                        f"resume_from is {resume_from}, bucket {self._place.bucket} is at"
                        f" {info.state.last_seq}: it was deleted and created again, or restored"
                    )
            deadline = self._place.api.deadline()
            await self.messages.open(deadline)
            if self.is_followed:
                await self.messages.pull_ahead(deadline)
        except TwinstreamError as error:
            self._place.raise_for(error)
        observers, place = self._place.api.transport.observers, self._place
        if observers is not None:
            subjects = " ".join(self._subjects)
            self._operation = observers.begin("watch", "watch", subjects, stream=place.stream.name)

    @property
    def is_ended(self) -> bool:
        """Whether the watch was closed."""
        return self.messages.is_ended

    @property
    def buffered(self) -> int:
        """The number of revisions that were received and not returned yet."""
        return len(self.ready) + self.messages.buffered

    async def close(self) -> None:
        """End the watch and delete its consumer."""
        if self._is_parents:
            return
        try:
            await self.messages.close()
        finally:
            self.ready.clear()
            if self._operation is not None:
                self._operation.end()

    def take_nowait(self) -> S | None:
        """Remove and return the first result in `ready`, or return None if there is none.

        A result that is held back counts as none.
        """
        if len(self.ready) > self._held_back:
            try:
                return self.ready.popleft()
            except IndexError:
                # Another thread took the last result, or closed the watch.
                pass
        return None

    async def take_initial(self) -> S | CaughtUp | None:
        """Return the next initial value as `take` does.

        Return `CAUGHT_UP` if another caller has taken the last one while this one waited for it.
        """
        has_turn = False
        try:
            has_turn = await self.acquire(NEVER)
            return CAUGHT_UP if self.is_current else await self._take_next(NEVER)
        finally:
            self.turn.release(has_turn)

    async def _take_next(self, deadline: Deadline) -> S | CaughtUp | None:
        """Return the next result or `CAUGHT_UP`, or None if the watch was closed.

        Before `state.is_live`, it also checks whether the initial values are complete.
        """
        state, messages = self.state, self.messages
        try:
            while True:
                if messages.is_ended:
                    # The watch was closed, possibly by another caller during the wait.
                    self.ready.clear()
                    return None
                step = self.take_nowait()
                if step is not None:
                    return step
                if not state.is_live and self._revision >= messages.last_at_start:
                    await self._check_completeness(deadline)
                if state.is_live and not state.is_marked:
                    if self.is_followed:
                        # Before the mark is taken, so that an interrupted call loses no mark.
                        within = self._place.api.deadline().earlier(deadline.at)
                        await messages.pull_ahead(within)
                    if state.take_mark():
                        held_back, self._held_back = self._take_held_back(), 0
                        return CAUGHT_UP if held_back is None else held_back
                messages.take_run(self._read_message)
                if len(self.ready) > self._held_back:
                    continue
                message = await (
                    messages.take(deadline) if state.is_live else self._initial(deadline)
                )
                if message is not None:
                    self._read_message(frame_of(message), position_of(message.metadata))
                    if len(self.ready) <= self._held_back and deadline.expired():
                        raise RequestTimeout("no entry in time")
                elif not (state.is_live or messages.is_ended):
                    await self._check_completeness(deadline)
        except TwinstreamError as error:
            held_back = self._take_held_back()
            if held_back is not None:
                # The next call raises the error, unless the reason has passed.
                return held_back
            if isinstance(error, RequestTimeout):
                # The request that was in progress is only the cause.
                reason = "no entry in time" if "$JS" in str(error) else error
                raise RequestTimeout(f"bucket {self._place.bucket}: {reason}") from error
            self._place.raise_for(error)

    def _take_held_back(self) -> S | None:
        """Return the result that is held back, or None."""
        held_back, self._held_back = self._held_back, 0
        step = self.take_nowait() if held_back else None
        self._held_back = held_back
        return step

    def _read_message(self, frame: Frame, position: Position) -> None:
        """Pass a message to `read`, and append the result to `ready`.

        A message that was passed before is skipped: `messages` may return a message again if a call
        was interrupted.
        """
        revision = position[0]
        if revision > self._revision:
            step = self._read(frame, position)
            if step is not None:
                self.ready.append(step)
            self._revision, self._has_more = revision, position[3] > 0

    async def _initial(self, deadline: Deadline) -> Message | None:
        """Return the next message, or None if one request returned no message.

        After None, the caller checks whether the initial values are complete. The result is also
        None if the watch was closed.
        """
        if self._has_more:
            # The next message is almost always in flight, so wait before sending a request for it.
            self._has_more = False
            try:
                return await self.messages.take(deadline.earlier(monotonic() + _EXPECTED))
            except RequestTimeout:
                pass
        try:
            batch = await self.messages.fetch(1, wait="none")
            if batch:
                return batch[0]
            if batch.reason is BatchEnd.EXPIRED:
                # The server may respond with errors only. Then the ordered consumer misses no
                # heartbeat and does not notice the failure, so it is replaced.
                await self.messages.renew("it did not answer within the time of a request")
                if deadline.expired():
                    raise RequestTimeout("no entry in time: the consumer did not answer")
        except IterationEnded:
            return None
        except RequestTimeout:
            # One request got no response in time. The caller may wait longer, up to `deadline`.
            if deadline.expired():
                raise
        return None

    async def _check_completeness(self, deadline: Deadline) -> None:
        """Check whether the initial values are complete, and if so, set `state.is_live`.

        If the watch has read up to the last sequence known so far, this requests the stream's
        current last sequence. If the bucket was re-created meanwhile, the last sequence is that of
        the new bucket and shows nothing about this read, which then starts over.
        """
        place, messages, state = self._place, self.messages, self.state
        # Without a consumer, the next one first has to show which bucket it reads.
        is_due = messages.name is not None and messages.is_current
        if not (is_due and state.reached(messages.scanned)):
            return
        within = place.api.deadline().earlier(deadline.at)
        try:
            info = await confirmed_info(place.api, place.stream.name, within)
        except RequestTimeout:
            if deadline.expired():
                raise
            return
        if await messages.leave_earlier_stream(info):
            return
        before = state.target
        state.judge(info.state.last_seq, messages.scanned)
        if state.target == before and not state.is_live:
            await sleep(_PAUSE)


EntrySteps: TypeAlias = KeyWatch[Entry[V]]
"""The entries of a watch, and the ends of its initial values."""


class Revised(Protocol):
    """A value with a revision: an `Entry` or an `ObjectInfo`."""

    @property
    def revision(self) -> int | None:
        """The revision."""
        ...


R = TypeVar("R", bound=Revised)


def returned_revision(steps: KeyWatch[R]) -> int:
    """Return the revision up to which a watch has returned all matching revisions."""
    scanned = steps.messages.scanned
    try:
        following = steps.ready[0].revision
    except IndexError:
        return scanned
    return scanned if following is None else min(scanned, following - 1)


class StateWatch(Closable, BlockHint, LoopHint, Generic[R]):
    """The base class of the watches of keys and of objects."""

    def __init__(self, steps: KeyWatch[R]) -> None:
        super().__init__()
        self._steps: Final = steps
        steps.hold_last()

    def __repr__(self) -> str:
        state = "ended" if self._steps.is_ended else f"at {self.revision}"
        return f"<{type(self).__name__} of {self._steps.label}: {state}>"

    @property
    def is_current(self) -> bool:
        """Whether the watch has returned all initial values.

        This becomes true with the last of them; if there are none, when `initial` ends or while a
        call waits for an entry. If a call ends early, for example because of its timeout, the last
        of them may be returned before it is known to be the last. If the bucket is re-created, this
        is false until the new initial values were returned.
        """
        return self._steps.is_current

    @property
    def is_ended(self) -> bool:
        """Whether the watch was closed."""
        return self._steps.is_ended

    @property
    def generation(self) -> int:
        """A number that starts with 1 and increases each time the bucket is re-created."""
        return self._steps.state.generation

    @property
    def revision(self) -> int:
        """The revision up to which the watch has returned all matching revisions.

        To resume a watch later, pass `revision + 1` as `resume_from`.
        """
        return returned_revision(self._steps)

    @property
    def buffered(self) -> int:
        """The number of revisions that were received and not returned yet."""
        return self._steps.buffered

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> R:
        """Return the next entry. The iteration ends after `close`."""
        entry = self._steps.take_nowait()
        if entry is None:
            entry = await self._take(NEVER)
        if entry is None:
            raise StopAsyncIteration
        return entry

    async def next(self, *, timeout: Seconds | None = None) -> R | None:
        """Return the next entry, or None if there is none in time.

        Args:
            timeout: Maximum time to wait in seconds; by default there is no limit.

        Raises:
            IterationEnded: The watch was closed.
        """
        deadline = Deadline.after(timeout)
        try:
            entry = await self._take(deadline)
        except RequestTimeout:
            if not deadline.expired():
                raise
            return None
        if entry is None:
            raise IterationEnded("the iteration has ended: it was drained or closed")
        return entry

    async def _take(self, deadline: Deadline) -> R | None:
        """Return the next entry, or None when the watch was closed."""
        while True:
            step = await self._steps.take(deadline)
            if not isinstance(step, CaughtUp):
                return step

    @looped
    async def initial(self) -> Items[R]:
        """Iterate over the initial values only. Ends at once if they were returned before.

        The watch stays open. Iterate over the watch itself to get the updates.
        """
        steps = self._steps
        while not steps.is_current:
            step = steps.take_nowait() or await steps.take_initial()
            if step is None or isinstance(step, CaughtUp):
                return
            yield step

    async def close(self) -> None:
        """End the watch and delete its consumer."""
        if not self._is_parents:
            await self._steps.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        if not self._is_parents:
            await self.close()


@hint_attributes
class KeyValueWatch(StateWatch[Entry[V]], Generic[V]):
    """An iterator over the revisions of keys, until `close`. Created by `KeyValue.watch`.

    The watch returns the initial values, then each new revision: `initial` iterates over the
    initial values only, and `is_current` becomes true with the last of them. Revisions are returned
    in order and never twice, even if the connection, the consumer or its leader is lost. Revisions
    are delivered while the program does other work: hundreds, and for up to half a minute after the
    last call. A revision is left out if the bucket removes it before the server can deliver it. If
    the bucket is deleted and re-created, the watch returns the new initial values. Tasks or threads
    may share a watch.

    The iteration raises `BucketNotFound` if the bucket was deleted, and `ConnectionClosed` if the
    connection was closed.
    """
