# Generated from src/js_async/coordination/leader.py by codegen/twin.py. Edit that file instead.
"""One leader among many candidates: campaigning, leading, stepping down."""

from __future__ import annotations

from typing import Final, Self

from twinstream.core.coordination.coordination import check_coordination
from twinstream.core.deadline import NEVER, Deadline, Seconds, seconds
from twinstream.errors import BadArgument, RequestTimeout, StreamNotFound, TwinstreamError
from twinstream.core.coordination.lease_engine import Terms
from twinstream.core.coordination.lease_record import SlotRecord
from twinstream.core.log.logger import Log
from twinstream.core.log.events import Elected, WillRetry
from js_sync.coordination.acquire import SlotAsking
from js_sync.runtime.concurrency import Handler, Signal, Task, call, check_handler, spawn
from js_sync.client.closing import WorksBeside
from js_sync.client.owned import Owned
from js_sync.coordination.slot import Place, Slots, passes
from js_sync.coordination.lease import Lease

__all__ = ["Leader"]

# Seconds between two looks whether a stream that is gone is there again.
_GONE: Final = 1.0


class Leader(Owned, WorksBeside):
    """A candidate of an election; made by `Coordination.leader`. Campaigns while it is open.

    A stream that is deleted meanwhile is waited for. An error out of a handler, a stream that came
    back with other settings, and what waiting cannot mend, end the campaign; `wait` and `stop`
    raise it.

    Use it in a `with` block, or call `start` and `stop`.
    """

    _area = "coordination"

    def __init__(
        self,
        place: Place,
        name: str,
        terms: Terms,
        note: str,
        on_elected: Handler[Lease] | None,
        on_lost: Handler[Lease] | None,
    ) -> None:
        super().__init__()
        for what, handler in {"on_elected": on_elected, "on_lost": on_lost}.items():
            if handler is not None:
                check_handler(handler, what)
        self._place: Final = place
        self._name: Final = name
        self._terms: Final = terms
        self._note: Final = note
        self._on_elected: Final = on_elected
        self._on_lost: Final = on_lost
        self._subject: Final = place.subjects.slot("leader", name)
        self._asking: SlotAsking | None = None
        self._lease: Lease | None = None
        self._campaign: Task | None = None
        self._term: _Term | None = None
        self._stopping: Final = Signal()
        self._pause = 0.0
        self._gone = False
        self._log: Final = Log("coordination")
        self.terms = 0
        """How often it was elected."""

    # ---- what it says

    @property
    def name(self) -> str:
        """The name that all candidates agree on."""
        return self._name

    @property
    def lease(self) -> Lease | None:
        """The lease of the present term, with its token; None while others lead."""
        lease = self._lease
        return lease if lease is not None and lease.is_held else None

    @property
    def is_leader(self) -> bool:
        """Tell whether nobody else can be the leader at this moment, by this machine's clock."""
        return self.lease is not None

    def __repr__(self) -> str:
        state = "leads" if self.is_leader else "does not lead"
        return f"<Leader {self._place.stream} {self._name}: {state}>"

    def leader(self) -> SlotRecord | None:
        """Ask who leads now; None while nobody does."""
        return Slots(self._place).look(self._subject)

    # ---- life

    def start(self) -> None:
        """Begin to campaign."""
        if self._campaign is not None:
            raise BadArgument(f"leader {self._name}: the campaign was started already")
        self._note_begun()
        self._campaign = spawn(self._run, f"twinstream-leader-{self._name}")

    def step_down(self, pause: Seconds = 0.0) -> bool:
        """Give the present term up, then stay out of the race for `pause` seconds.

        Tells whether the server confirmed it. Does nothing while others lead.
        """
        wanted = seconds(pause, "pause")
        # Not a term that was given up a moment ago: its pause is not to be forgotten.
        lease = self.lease
        if lease is None:
            return False
        self._pause = wanted
        return lease.release()

    def stop(self, timeout: Seconds = 30.0) -> None:
        """Give up the term and the campaign; returns when the handlers have.

        Raises `RequestTimeout` after `timeout` seconds, the error that ended the campaign, and
        `NotStarted`. A handler that calls it is not waited for: the campaign ends when it has
        returned.
        """
        self._require_begun(f"the campaign for leader {self._name}")
        self._stopping.set()
        if self._asking is not None:
            self._asking.give_up()
        if self._lease is not None:
            self._lease.release()
        self.wait(timeout)

    def wait(self, timeout: Seconds | None = None) -> None:
        """Return when the campaign has ended: by `stop`, or by an error, raised here.

        Raises `RequestTimeout` after `timeout` seconds; the campaign goes on then. Raises
        `NotStarted`.
        """
        self._require_begun(f"the campaign for leader {self._name}")
        campaign, term = self._campaign, self._term
        if campaign is None or campaign.is_current() or (term is not None and term.is_current()):
            return
        if not campaign.join(Deadline.after(timeout)):
            raise RequestTimeout(f"leader {self._name}: the campaign goes on, or a handler runs")
        self._raise_kept()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        if not self._is_parents:
            self.stop()

    # ---- the campaign

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                self._campaign_once()
                pause, self._pause = self._pause, 0.0
                self._stopping.sleep(Deadline.after(pause))
        except BaseException as error:
            self._keep_error(error, f"the campaign for leader {self._name}")

    def _campaign_once(self) -> None:
        asking = SlotAsking(self._place, "leader", self._name, self._terms, self._note)
        self._asking = asking
        # `stop` may have come before there was anything to give up.
        if self._stopping.is_set():
            return
        try:
            if self._gone:
                self._check_stream()
            slot = asking.wait(NEVER)
        except TwinstreamError as error:
            if self._stopping.is_set() and isinstance(error, RequestTimeout):
                return
            if not self._waits_for_stream(error):
                raise
        else:
            self._lead(Lease(slot))

    def _check_stream(self) -> None:
        """Look whether the stream is there again, with settings that keep the promises."""
        info = self._place.api.stream_info(self._place.stream)
        check_coordination(info.config, self._place.subjects)
        self._gone = False

    def _waits_for_stream(self, error: TwinstreamError) -> bool:
        """Pause where the stream was deleted: it may be made anew, and must have a leader then."""
        if isinstance(error, StreamNotFound):
            self._gone = True
        elif not self._gone or not passes(error):
            return False
        self._log(WillRetry(f"the campaign for leader {self._name}", error))
        self._stopping.sleep(Deadline.after(_GONE))
        return True

    def _lead(self, lease: Lease) -> None:
        self._lease = lease
        lease._start()
        self.terms += 1
        self._log(Elected(self._name, lease.token))
        self._term = term = _Term(self._on_elected, lease)
        term.start()
        if self._stopping.is_set():
            lease.release()
        lease.wait_lost()
        self._lease = None
        try:
            if self._on_lost is not None:
                call(self._on_lost, lease)
        finally:
            term.ended()


class _Term:
    """Runs the handler of an election beside the campaign."""

    def __init__(self, handler: Handler[Lease] | None, lease: Lease) -> None:
        self._handler: Final = handler
        self._lease: Final = lease
        self._task: Task | None = None
        self._is_known: Final = Signal()
        self._error: BaseException | None = None

    def start(self) -> None:
        if self._handler is not None:
            self._task = spawn(self._run, f"twinstream-term-{self._lease.name}")
            self._is_known.set()

    def is_current(self) -> bool:
        """Tell whether the handler is the caller."""
        return self._task is not None and self._task.is_current()

    def _run(self) -> None:
        # Not before the task is noted: a handler that stops the campaign would wait for itself.
        self._is_known.sleep(NEVER)
        try:
            if self._handler is not None:
                call(self._handler, self._lease)
        except BaseException as error:
            # Also of a handler that exits: who waits for the end is who exits then.
            self._error = error
            self._lease.release()

    def ended(self) -> None:
        """Return when the handler has; raises its error."""
        if self._task is not None:
            self._task.join(NEVER)
        if self._error is not None:
            raise self._error
