"""The pull engine against a small model of a server, with random histories.

The model serves requests in turn, as the real server does: a message may belong to any of them. A
completed request ends without a status, and so does a lost one. After each history, the engine must
have a request that is open on the server, and its counts must be correct.
"""

from __future__ import annotations

from collections import deque
from itertools import count

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from tests.core.frames import status_frame
from twinstream.core.consume.buffer_limits import buffer_limits
from twinstream.core.consume.pull_engine import Finish, PullEngine, SendPull
from twinstream.core.wire.status import Status, read_status

EXPIRES = 30.0
HEARTBEAT = 15.0


class Request:
    """The state of a pull request on the server."""

    def __init__(self, pull: SendPull, now: float) -> None:
        self.token = pull.token
        self.left = pull.batch
        self.bytes_left = pull.max_bytes
        self.expires_at = now + EXPIRES
        self.beat_at = now + HEARTBEAT

    @property
    def due_at(self) -> float:
        return min(self.expires_at, self.beat_at)


class ModelServer:
    """A server with a queue of requests, stored messages, and frames in flight to the client."""

    def __init__(self) -> None:
        self.now = 0.0
        self.requests: deque[Request] = deque()
        self.stock: deque[int] = deque()
        self.wire: deque[int | Status] = deque()
        self.connected = True

    def say(self, code: int, text: str, request: Request, *, pending: bool) -> None:
        headers: dict[str, object] = {}
        if pending:
            headers["Nats_Pending_Messages"] = request.left
            headers["Nats_Pending_Bytes"] = request.bytes_left or 0
        if self.connected:
            self.wire.append(read_status(status_frame(code, text, request.token, **headers)))

    def pull(self, pull: SendPull) -> None:
        assert self.connected
        self.requests.append(Request(pull, self.now))
        self.serve()

    def serve(self) -> None:
        while self.stock and self.requests:
            request = self.requests.popleft()
            size = self.stock[0]
            if request.bytes_left is not None and size > request.bytes_left:
                self.say(409, "Message Size Exceeds MaxBytes", request, pending=True)
                continue
            self.wire.append(self.stock.popleft())
            request.left -= 1
            if request.bytes_left is not None:
                request.bytes_left -= size
            if request.left and request.bytes_left != 0:
                self.requests.append(request)

    def end_all(self, code: int, text: str, *, pending: bool) -> None:
        while self.requests:
            self.say(code, text, self.requests.popleft(), pending=pending)

    def advance(self, seconds: float) -> None:
        self.now += seconds
        for request in list(self.requests):
            if request.expires_at <= self.now:
                self.requests.remove(request)
                self.say(408, "Request Timeout", request, pending=True)
            elif request.beat_at <= self.now:
                request.beat_at = self.now + HEARTBEAT
                self.say(100, "Idle Heartbeat", request, pending=False)


class Pulling(RuleBasedStateMachine):
    """A state machine with events in any order."""

    @initialize(
        limit=st.sampled_from([1, 2, 3, 10]),
        bound=st.sampled_from(["count", "bytes", "both"]),
        threshold=st.sampled_from([None, 0, 1, 9]),
    )
    def begin(self, limit: int, bound: str, threshold: int | None) -> None:
        by_bytes = bound == "bytes"
        self.most = None if by_bytes else limit
        self.most_bytes = None if bound == "count" else limit * 100
        limits = buffer_limits(
            max_messages=self.most,
            max_bytes=self.most_bytes,
            expires=EXPIRES,
            heartbeat=HEARTBEAT,
            threshold_messages=None if by_bytes or threshold is None else min(threshold, limit),
            threshold_bytes=threshold if by_bytes else None,
        )
        numbers = count(1)
        self.server = ModelServer()
        self.engine = PullEngine(limits, lambda: b"%d" % next(numbers), 0.0)
        self.buffer: deque[int] = deque()
        self.pulls = 0

    # ---- the client's side

    def poll(self, *, watch: bool = True) -> None:
        for action in self.engine.poll(self.server.now, watch=watch):
            assert not isinstance(action, Finish)
            if isinstance(action, SendPull):
                assert action.batch > 0
                assert action.max_bytes is None or action.max_bytes > 0
                self.check_limit()
                self.pulls += 1
                self.server.pull(action)

    def check_limit(self) -> None:
        if self.most_bytes is not None:
            wanted = self.engine.budget.buffered_bytes + self.engine.requests.outstanding_bytes
            assert wanted <= self.most_bytes
        if self.most is not None:
            assert self.engine.budget.buffered + self.engine.requests.outstanding <= self.most

    def read(self, frames: int) -> None:
        for _ in range(min(frames, len(self.server.wire))):
            frame = self.server.wire.popleft()
            self.engine.note_response(self.server.now)
            if isinstance(frame, int):
                self.buffer.append(frame)
                self.engine.arrived(1, frame)
            else:
                self.engine.status(frame, self.server.now)

    def take(self, number: int) -> None:
        for _ in range(min(number, len(self.buffer))):
            self.engine.handed_over(self.buffer.popleft(), self.server.now)

    @rule()
    def decide(self) -> None:
        self.poll()

    @rule(frames=st.integers(1, 20))
    def receive(self, frames: int) -> None:
        self.read(frames)

    @rule(number=st.integers(1, 10))
    def hand_over(self, number: int) -> None:
        self.take(number)

    @rule()
    def pass_on(self) -> None:
        """Return an awaited message before the engine is notified, if the engine permits it."""
        wire = self.server.wire
        if wire and isinstance(wire[0], int) and self.engine.may_pass():
            size = wire.popleft()
            assert isinstance(size, int)
            self.engine.arrived(1, size)
            self.engine.handed_over(size, self.server.now)
            assert not self.engine.due(self.server.now)

    @rule()
    def hand_over_what_is_granted(self) -> None:
        granted = self.engine.grant(self.buffer)
        self.take(granted)
        assert not granted or not self.engine.due(self.server.now)

    # ---- what happens

    @rule(sizes=st.lists(st.integers(1, 100), min_size=1, max_size=12))
    def publish(self, sizes: list[int]) -> None:
        self.server.stock += sizes
        if self.server.connected:
            self.server.serve()

    @rule(seconds=st.sampled_from([0.01, 0.2, 5.0, 15.0, 30.0]))
    def wait(self, seconds: float) -> None:
        self.server.advance(seconds)

    @rule()
    def leader_moves(self) -> None:
        self.server.end_all(409, "Leadership Change", pending=False)

    @rule(pending=st.booleans())
    def something_new_happens(self, pending: bool) -> None:
        self.server.end_all(409, "Something New", pending=pending)

    @precondition(lambda self: self.server.requests)
    @rule()
    def a_request_is_forgotten(self) -> None:
        self.server.requests.popleft()

    @precondition(lambda self: self.server.connected)
    @rule()
    def the_link_breaks(self) -> None:
        self.server.connected = False
        self.server.requests.clear()
        self.server.stock += [frame for frame in self.server.wire if isinstance(frame, int)]
        self.server.wire.clear()
        self.engine.lost()

    @precondition(lambda self: not self.server.connected)
    @rule()
    def a_new_link_is_made(self) -> None:
        self.server.connected = True
        self.engine.restored(self.server.now)

    # ---- invariants

    @invariant()
    def books_are_sound(self) -> None:
        engine = self.engine
        assert engine.budget.buffered == len(self.buffer)
        assert engine.budget.buffered_bytes == sum(self.buffer)
        assert engine.requests.outstanding >= 0
        assert engine.requests.outstanding_bytes >= 0
        assert (engine.requests.outstanding == 0) == (len(engine.requests.open) == 0)
        assert len(engine.requests.open) <= (self.most or self.most_bytes or 0)

    def teardown(self) -> None:
        """Every history ends with a request that is open on the server."""
        server = self.server
        if not server.connected:
            self.a_new_link_is_made()
        # A user who takes all, and waits as the engine says. A round may deliver only one message,
        # so there are more rounds than a history has messages.
        for _ in range(1000):
            self.read(1000)
            self.take(1000)
            self.poll()
            if server.requests and not server.wire and not server.stock:
                break
            # Time goes to what comes next: the engine's alarm, or an event of the server's.
            coming = [self.engine.wake_at(), *(each.due_at for each in server.requests)]
            assert min(coming) < float("inf"), "stalled: nobody will ever do anything again"
            server.advance(max(min(coming) - server.now, 0.0))
        assert server.requests
        assert not server.stock
        assert not self.buffer
        self.engine.stop()
        server.advance(60.0)
        self.read(1000)
        self.poll()
        assert (self.engine.budget.buffered, self.engine.budget.buffered_bytes) == (0, 0)


TestPulling = Pulling.TestCase
TestPulling.settings = settings(max_examples=150, stateful_step_count=30)
