# Generated from src/js_async/workers/worker.py by codegen/twin.py. Edit that file instead.
"""Workers: a handler for the messages of a consumer, with retry, order, and a clean end."""

from __future__ import annotations

from collections.abc import Hashable
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING, Final, Self

from twinstream.core.deadline import NEVER, Deadline, Seconds, monotonic
from twinstream.errors import (
    AlreadyAcknowledged,
    BadArgument,
    ConnectionLost,
    JetStreamError,
    NoResponders,
    PermissionDenied,
    RequestTimeout,
    WrongHandler,
)
from twinstream.core.log.events import WorkerStarted, WorkerStopped
from twinstream.core.workers.work_queue import WorkQueue
from twinstream.models import AckPolicy, ConsumerConfig
from js_sync.consume.delivery import ack_wait_of
from js_sync.runtime.concurrency import (
    Handler,
    Home,
    Interrupts,
    Lock,
    Signal,
    Task,
    call,
    check_handler,
    here,
    set_from_anywhere,
    spawn,
)
from js_sync.workers.jobs import Job, JobsHere, is_repeated
from js_sync.client.closing import WorksBeside
from js_sync.workers.job_outcome import Outcomes
from js_sync.client.owned import Owned
from js_sync.workers.settings import WorkSettings
from js_sync.consumer import Consumer
from js_sync.workers.dead_letters import DeadLetters
from js_sync.consume.message import Message
from js_sync.consume.messages import Messages

if TYPE_CHECKING:
    from js_sync.jetstream import JetStream

__all__ = ["Worker"]

_NOT_NOW: Final = (NoResponders, RequestTimeout, ConnectionLost, JetStreamError, PermissionDenied)
# Redeliveries are a reason to look at the consumer's settings, once in so many seconds at most.
_BETWEEN_LOOKS: Final = 5.0


class Worker(Owned, WorksBeside):
    """Works on the messages of a consumer with a handler; made by `JetStream.worker`.

    `run` works until the program is told to end. Or use it in a `with` block, or `start` and
    `stop` it. A message is acknowledged when its handler returns, unless the handler did so itself.
    An error that ended the work, while nobody ran or stopped it, is a `RuntimeWarning` when it is
    dropped.
    """

    _area = "worker"

    def __init__(
        self,
        jet: JetStream,
        stream: str,
        consumer: str | ConsumerConfig,
        handler: Handler[Message],
        settings: WorkSettings,
    ) -> None:
        super().__init__()
        check_handler(handler)
        self._jet: Final = jet
        self._stream: Final = stream
        self._wanted: Final = consumer
        self._handler: Final = handler
        self._settings: Final = settings
        self._outcomes = Outcomes(settings, ConsumerConfig())
        self._queue: Final[WorkQueue[Job]] = WorkQueue()
        self._lock: Final = Lock()
        self._filled: Final = Signal()
        self._emptied: Final = Signal()
        self._ended: Final = Signal()
        self._tasks: list[Task] = []
        self._home: Home = None
        self._consumer: Consumer | None = None
        self._messages: Messages | None = None
        self._letters: DeadLetters | None = None
        self._stopping = False
        self._end_is_logged = False
        self._numbers = 0
        self._here: Final = JobsHere(settings.room)
        self._next_look = Deadline.after(0)

    def __repr__(self) -> str:
        counts = f"{self.handled} handled, {self.in_hand} in progress, {self.waiting} waiting"
        return f"<Worker {self._stream}: {counts}>"

    @property
    def handled(self) -> int:
        """Messages whose handler returned."""
        return self._outcomes.handled

    @property
    def retried(self) -> int:
        """Failures after which the message was, or will be, tried again."""
        return self._outcomes.retried

    @property
    def rejected(self) -> int:
        """Messages that were given up."""
        return self._outcomes.rejected

    @property
    def in_hand(self) -> int:
        """Messages that are worked on now."""
        return self._queue.in_hand

    @property
    def waiting(self) -> int:
        """Messages that are here and wait to be worked on."""
        return self._queue.waiting

    # ---- life

    def run(self, *, signals: bool = True, timeout: Seconds = 30.0) -> None:
        """Work until SIGINT or SIGTERM come, `ask_to_stop` is called, or an error is raised here.

        Then it ends as `stop` does. A second signal acts as it would without a worker. Signals
        reach the main thread only: elsewhere pass `signals=False`.
        """
        with Interrupts(self._ended) if signals else nullcontext():
            self.start()
            try:
                self._ended.sleep(NEVER)
            except BaseException:
                # Once the caller was cancelled or interrupted, nothing may go on unseen.
                self.stop(timeout)
                raise
        self.stop(timeout)

    def start(self) -> None:
        """Start to work beside the caller. Raises `ConsumerNotFound`, or `BadArgument`."""
        if self._tasks:
            raise BadArgument("the worker was started already")
        self._note_begun()
        consumer = self._bound()
        info = consumer.cached_info
        config = info.config if info is not None else None
        if config is None or config.ack_policy != AckPolicy.EXPLICIT:
            raise BadArgument(f"{consumer}: a worker needs ack_policy explicit")
        self._consumer = consumer
        self._outcomes = Outcomes(self._settings, config, consumer.stream, consumer.name)
        # No more than needed: what goes back unhandled at the end counts as delivered all the same.
        messages = consumer.messages(
            max_messages=self._settings.room,
            priority=self._settings.priority,
            on_report=self._settings.on_report,
        )
        messages._held.keep_all |= self._settings.is_ordered
        if self._settings.dead_letters is not None:
            self._settings.dead_letters.start()
            self._letters = self._settings.dead_letters
        self._home = here()
        self._messages = messages
        self._tasks.append(spawn(self._dispatch, "twinstream-dispatch"))
        for number in range(self._settings.concurrency):
            self._tasks.append(spawn(self._work, f"twinstream-worker-{number}"))
        self._outcomes.report.log(WorkerStarted(self._settings.concurrency))

    def _bound(self) -> Consumer:
        if isinstance(self._wanted, str):
            return self._jet.get_consumer(self._stream, self._wanted)
        return self._jet.create_consumer(self._stream, self._wanted)

    def ask_to_stop(self) -> None:
        """Have `run` end, and return at once; for handlers and other threads."""
        set_from_anywhere(self._ended, self._home)

    def stop(self, timeout: Seconds = 30.0) -> None:
        """End in good order: handlers that run may finish, everything else goes back.

        The server has all acknowledgements when it returns. Raises `RequestTimeout` when a handler
        takes longer than `timeout` seconds, the error that ended the work, if one did, and
        `NotStarted`.
        """
        self._require_begun(f"the worker on {self._stream}")
        deadline = Deadline.after(timeout)
        self._stop_taking()
        try:
            self._end_work(deadline)
        finally:
            # Once: others may use them, too.
            letters, self._letters = self._letters, None
            if letters is not None:
                letters.close()
            self._log_end()
        self._confirm()
        self._raise_kept()

    def _log_end(self) -> None:
        if self._tasks and not self._end_is_logged:
            self._end_is_logged = True
            totals = WorkerStopped(self.handled, self.retried, self.rejected)
            self._outcomes.report.log(totals)

    def _end_work(self, deadline: Deadline) -> None:
        """Return when no handler runs and the rest went back."""
        if not self._settings.is_ordered:
            self._give_back(deadline)
        try:
            for task in self._tasks[1:]:
                if not task.is_current() and not task.join(deadline):
                    raise RequestTimeout("a handler is still running")
        finally:
            # In order: nobody may get the message behind one that is still worked on here.
            self._give_back(deadline)

    def _confirm(self) -> None:
        """Ask the server anything: its answer shows that it has all acknowledgements before."""
        try:
            if self._consumer is not None and self._error is None:
                self._consumer.info()
        except _NOT_NOW:
            # Without a link, or the permission to ask, nothing can be confirmed. A message whose
            # acknowledgement was lost is delivered again.
            return

    def _stop_taking(self) -> None:
        self._stopping = True
        self._ended.set()
        self._filled.set()
        self._emptied.set()

    def _give_back(self, deadline: Deadline) -> None:
        if self._messages is not None:
            self._messages.close()
        for dispatcher in self._tasks[:1]:
            # It may have a message that is not in the queue yet.
            dispatcher.join(deadline)
        with self._lock:
            jobs = self._queue.clear()
        if jobs and self._settings.is_ordered:
            # When asked for the consumer, the server drops the pulls of the closed inbox. If it met
            # them with a message to deliver again, that would go to the end of the line (2.11 to
            # 2.15).
            self._confirm()
        for job in sorted(jobs, key=_place):
            self._outcomes.give_back(job)
            self._release(job)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        if not self._is_parents:
            self.stop()

    # ---- from the consumer to the queue

    def _dispatch(self) -> None:
        messages = self._messages
        if messages is None:
            return
        try:
            while self._has_room():
                message = messages._take(NEVER)
                if message is None:
                    return
                if self._is_known(messages, message):
                    continue
                messages._held.hold(message)
                self._numbers += 1
                key = self._settings.key(message, self._numbers)
                with self._lock:
                    self._queue.put(key, self._here.add(message))
                self._filled.set()
        except Exception as error:
            self._fail(error)

    def _is_known(self, messages: Messages, message: Message) -> bool:
        """Tell whether an earlier delivery of the message is here; its outcome counts for both.

        That happens when the link was broken for long, or the consumer's ack_wait was shortened.
        """
        if not is_repeated(message):
            return False
        self._look_again(messages)
        with self._lock:
            earlier = self._here.waiting(message)
            is_over = self._here.is_over(message)
        with suppress(AlreadyAcknowledged, *_NOT_NOW):
            if is_over:
                message.ack()
            elif earlier is not None:
                # It is not late any more.
                earlier.in_progress()
        return is_over or earlier is not None

    def _look_again(self, messages: Messages) -> None:
        """Ask for the consumer's settings, now and then: somebody may have changed them."""
        if self._consumer is None or not self._next_look.expired():
            return
        self._next_look = Deadline.after(_BETWEEN_LOOKS)
        try:
            info = self._consumer.info()
        except PermissionDenied:
            self._next_look = NEVER
            return
        except _NOT_NOW:
            return
        ack_wait = ack_wait_of(info)
        if info.config is not None and ack_wait is not None:
            self._outcomes.config = info.config
            messages._hurry(ack_wait)

    def _has_room(self) -> bool:
        """Return once there is room for another message; False when none is wanted any more."""
        while not self._stopping:
            self._emptied.clear()
            if len(self._queue) < self._settings.room:
                return True
            if not self._stopping:
                self._emptied.sleep(NEVER)
        return False

    def _fail(self, error: BaseException) -> None:
        """Keep the first error, and end."""
        self._keep_error(error, f"the worker on {self._stream}")
        self._stop_taking()

    # ---- from the queue to the handler

    def _work(self) -> None:
        try:
            while True:
                taken = self._next()
                if taken is None:
                    return
                self._handle(*taken)
        except BaseException as error:
            # Also for a handler that raises `SystemExit`: who waits for the end gets it.
            self._fail(error)

    def _next(self) -> tuple[Hashable, Job] | None:
        """Return a message that may be worked on, or None at the end."""
        while True:
            # The flag goes down before the queue is looked into: nothing is missed.
            self._filled.clear()
            if self._stopping:
                self._filled.set()
                return None
            with self._lock:
                taken = self._queue.take(monotonic())
                wake_at = self._queue.wake_at
                more = self._queue.has_free
            if more:
                # Another worker may have lowered the flag in between.
                self._filled.set()
            if taken is not None:
                return taken
            self._filled.sleep(NEVER.earlier(wake_at))

    def _handle(self, key: Hashable, job: Job) -> None:
        again: float | None = None
        try:
            again = self._attempt(job)
        finally:
            if again is None:
                self._release(job)
            with self._lock:
                if again is None:
                    self._here.done(job)
                    self._queue.done(key)
                else:
                    job.tries += 1
                    self._queue.again(key, job, monotonic() + again)
            self._filled.set()
            self._emptied.set()

    def _attempt(self, job: Job) -> float | None:
        """Run the handler once; return the seconds until the next try here, or None for none."""
        message = job.message
        if message.is_late and not job.tries:
            # The server delivers it anew, or has done so.
            return None
        try:
            call(self._handler, message)
        except WrongHandler:
            # The handler is wrong for every message.
            raise
        except Exception as error:
            return self._outcomes.failed(job, error)
        self._outcomes.succeeded(job)
        return None

    def _release(self, job: Job) -> None:
        if self._messages is not None:
            self._messages._held.release(job.message)


def _place(job: Job) -> int:
    return job.message.metadata.stream_seq
