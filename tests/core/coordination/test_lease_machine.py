"""Leases against a small model of a server and a network, with random histories.

The model has a true time. The server's clock and the clocks of the holders differ from it: they run
slightly faster or slower, and the server's clock jumps when another machine becomes the leader.
Requests and responses are slow or lost. Clients are paused between any two steps and do not notice
it. Expired records are removed late, and reads may be answered by a former leader. In each history,
no two clients consider themselves the holder at the same true time, tokens increase from holder to
holder, and after the failures a waiting client gets the slot.
"""

from __future__ import annotations

from math import inf

from attrs import define
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from twinstream.core.coordination.lease_engine import Drop, LeaseEngine, Look, Phase, Put, Terms
from twinstream.core.coordination.lease_record import SlotRecord
from twinstream.models import Timestamp

TTL = 4
TERMS = Terms(TTL, 1.0)
# What clocks may differ over one TTL. Together it stays within the margin: that is the promise.
DRIFT = 0.05
"""How much faster or slower a client's clock runs: 0.2 s over a TTL."""
SKEW = 0.35
"""How far the clock of each server may be off, either way: 0.7 s from leader to leader."""
STEP = 0.05
PATIENCE = 2.5
ASKS_EVERY = 0.1
EPOCH = Timestamp.parse("2026-01-01T00:00:00Z")
# Seconds that requests and answers take.
NETWORKS = {
    "good": (0.0, 0.0),
    "slow requests": (0.6, 0.0),
    "slow answers": (0.0, 0.9),
    "very slow answers": (0.0, 2.0),
    "very slow": (2.5, 2.5),
    "requests lost": (inf, 0.0),
    "answers lost": (0.0, inf),
}
CLIENTS = st.integers(0, 2)


@define
class Stored:
    record: SlotRecord
    stored_at: float
    """What the server's clock said."""


class ModelServer:
    """One slot with compare-and-set and a TTL, measured by the server's own clock."""

    def __init__(self) -> None:
        self.now = 0.0
        self.skew = 0.0
        self.lag = 0.0
        self.is_deposed = False
        self.last_seq = 0
        self.slot: Stored | None = None
        self.past: SlotRecord | None = None
        """What the slot held before, as a deposed leader still sees it."""

    def put(self, tenure: str, put: Put) -> tuple[str, int]:
        if put.expected != (self.slot.record.seq if self.slot is not None else 0):
            return ("refused", 0)
        self.last_seq += 1
        stored = Stored(record(tenure, put, self.last_seq), self.now + self.skew)
        self.change(stored)
        return ("stored", self.last_seq)

    def look(self) -> SlotRecord | None:
        if self.is_deposed:
            return self.past
        return self.slot.record if self.slot is not None else None

    def drop(self, seq: int) -> bool:
        found = self.slot is not None and self.slot.record.seq == seq
        if found:
            self.change(None)
        return found

    def expire(self) -> None:
        if self.slot is not None and self.now + self.skew >= self.slot.stored_at + TTL + self.lag:
            self.change(None)

    def change(self, slot: Stored | None) -> None:
        self.past = self.slot.record if self.slot is not None else None
        self.slot = slot


def record(tenure: str, put: Put, seq: int) -> SlotRecord:
    return SlotRecord(
        subject="s",
        seq=seq,
        token=put.token or seq,
        time=EPOCH,
        ttl=TTL,
        owner=tenure,
        tenure=tenure,
        attempt=put.attempt,
        state="held",
        note="",
        data=b"",
    )


@define(eq=False)
class Letter:
    """A request or its response in flight."""

    client: Client
    engine: LeaseEngine
    action: Put | Look | Drop
    arrives_at: float
    answer: tuple[str, object] | None = None


class Client:
    """A client with its own clock, and at most one engine at a time."""

    def __init__(self, name: str, rate: float, offset: float) -> None:
        self.name = name
        self.rate = rate
        self.offset = offset
        self.network = "good"
        self.is_paused = False
        self.wants = True
        self.engine: LeaseEngine | None = None
        self.waits_for: Letter | None = None
        self.gives_up_at = inf
        self.asks_at = 0.0
        self.tenures = 0

    def clock(self, now: float) -> float:
        return now * self.rate + self.offset

    def believes(self, now: float) -> bool:
        return self.engine is not None and self.engine.believes(self.clock(now))

    def work(self, now: float) -> Letter | None:
        """Do what is due; return the request to send, or None."""
        clock = self.clock(now)
        if self.waits_for is not None and now >= self.gives_up_at and self.engine is not None:
            self.waits_for = None
            self.engine.unanswered("no answer", clock)
        if self.waits_for is not None:
            return None
        self.ask(clock)
        action = self.engine.poll(clock) if self.engine is not None else None
        if action is None or self.engine is None:
            assert self.engine is None or self.engine.is_over or self.engine.wake_at() < inf
            return None
        self.waits_for = Letter(self, self.engine, action, now + NETWORKS[self.network][0])
        self.gives_up_at = now + min(PATIENCE, self.engine.patience(clock))
        return self.waits_for

    def ask(self, clock: float) -> None:
        if not self.wants:
            return
        if self.engine is None or self.engine.phase in {Phase.LEFT, Phase.LOST}:
            self.tenures += 1
            self.engine = LeaseEngine(TERMS, f"{self.name}{self.tenures}", clock)
        elif self.engine.phase is Phase.REFUSED and clock >= self.asks_at:
            self.asks_at = clock + ASKS_EVERY
            self.engine.ask_again(clock)

    def hear(self, letter: Letter, now: float) -> None:
        """Process a response, unless the client no longer waits for it."""
        if self.waits_for is not letter or letter.answer is None:
            return
        self.waits_for = None
        clock = self.clock(now)
        kind, value = letter.answer
        engine = letter.engine
        if isinstance(letter.action, Put) and kind == "stored":
            assert isinstance(value, int)
            engine.stored(letter.action.attempt, value, clock)
        elif kind == "refused":
            engine.refused(clock)
        elif kind == "looked":
            assert value is None or isinstance(value, SlotRecord)
            engine.looked(value, clock)
        else:
            engine.dropped(bool(value), clock)

    def leave(self, now: float) -> None:
        self.wants = False
        if self.engine is not None:
            self.engine.leave(self.clock(now))


class Leasing(RuleBasedStateMachine):
    """A state machine in which failures begin and end, and time passes."""

    @initialize(rates=st.tuples(*[st.sampled_from([1 - DRIFT, 1.0, 1 + DRIFT])] * 3))
    def begin(self, rates: tuple[float, ...]) -> None:
        self.server = ModelServer()
        self.clients = [
            Client(name, rate, 1000.0 * number)
            for number, (name, rate) in enumerate(zip("abc", rates, strict=True))
        ]
        self.letters: list[Letter] = []
        self.holder: LeaseEngine | None = None
        self.greatest_token = 0

    # ---- trouble

    @rule(client=CLIENTS, network=st.sampled_from(sorted(NETWORKS)))
    def the_network_changes(self, client: int, network: str) -> None:
        self.clients[client].network = network

    @rule(
        client=CLIENTS,
        alone=st.booleans(),
        network=st.sampled_from(sorted(NETWORKS)),
        seconds=st.sampled_from([0.3, 1.5, 2.6]),
        good_for=st.sampled_from([0.0, 0.2, 1.0]),
        skews=st.sampled_from([(-SKEW, SKEW), (SKEW, SKEW)]),
    )
    def a_client_has_trouble_and_is_cut_off(
        self,
        client: int,
        alone: bool,
        network: str,
        seconds: float,
        good_for: float,
        skews: tuple[float, float],
    ) -> None:
        """Hold the slot over a bad network, then lose all requests while others want the slot."""
        who = self.clients[client]
        others = [each for each in self.clients if each is not who]
        if alone:
            for other in self.clients:
                other.leave(self.server.now)
            self.time_passes(0.2)
        self.server.skew = skews[0]
        who.wants, who.network = True, network
        self.time_passes(seconds)
        who.network = "good"
        self.time_passes(good_for)
        who.network, self.server.skew = "requests lost", skews[1]
        for other in others:
            other.wants = True
        self.time_passes(5.0)
        who.network = "good"

    @rule(network=st.sampled_from(sorted(NETWORKS)))
    def the_holder_leaves_in_trouble(self, network: str) -> None:
        for client in [each for each in self.clients if each.believes(self.server.now)]:
            client.network = network
            client.leave(self.server.now)
            self.time_passes(1.2)
            client.network = "good"

    @rule(client=CLIENTS)
    def a_client_is_paused_or_goes_on(self, client: int) -> None:
        self.clients[client].is_paused ^= True

    @rule(client=CLIENTS)
    def a_client_leaves(self, client: int) -> None:
        self.clients[client].leave(self.server.now)

    @rule(client=CLIENTS)
    def a_client_wants_the_slot(self, client: int) -> None:
        self.clients[client].wants = True

    @rule(skew=st.sampled_from([-SKEW, SKEW]))
    def another_server_leads(self, skew: float) -> None:
        self.server.skew = skew

    @rule(lag=st.sampled_from([0.0, 0.3, 5.0]))
    def what_runs_out_is_removed_late(self, lag: float) -> None:
        self.server.lag = lag

    @rule()
    def a_deposed_leader_answers_looks_or_does_not(self) -> None:
        self.server.is_deposed ^= True

    @rule(seconds=st.sampled_from([0.05, 0.5, 1.0, 3.0, 5.0]))
    def time_passes(self, seconds: float) -> None:
        ends = self.server.now + seconds
        while self.server.now < ends:
            self.step()

    # ---- what happens by itself

    def step(self) -> None:
        server = self.server
        server.expire()
        self.check()
        for client in self.clients:
            if not client.is_paused:
                self.turn(client)
        server.now += STEP
        self.check()

    def turn(self, client: Client) -> None:
        """Let a client do everything that it can do without a passage of time."""
        while True:
            self.deliver()
            letter = client.work(self.server.now)
            if letter is None:
                return
            self.letters.append(letter)

    def deliver(self) -> None:
        now = self.server.now
        for letter in [each for each in self.letters if each.arrives_at <= now]:
            if letter.answer is None:
                letter.answer = self.serve(letter)
                letter.arrives_at = now + NETWORKS[letter.client.network][1]
            if letter.arrives_at <= now and not letter.client.is_paused:
                self.letters.remove(letter)
                letter.client.hear(letter, now)

    def serve(self, letter: Letter) -> tuple[str, object]:
        match letter.action:
            case Put() as put:
                return self.server.put(letter.engine.tenure, put)
            case Look():
                return ("looked", self.server.look())
            case Drop(seq):
                return ("dropped", self.server.drop(seq))

    # ---- invariants

    def check(self) -> None:
        believers = [each for each in self.clients if each.believes(self.server.now)]
        assert len(believers) <= 1, [each.name for each in believers]
        for client in believers:
            assert client.engine is not None
            if client.engine is not self.holder:
                # Whoever held before has a smaller token.
                assert client.engine.token > self.greatest_token
                self.holder, self.greatest_token = client.engine, client.engine.token
            assert client.engine.token == self.greatest_token

    def teardown(self) -> None:
        """When the failures end, a waiting client gets the slot, and keeps it."""
        if not hasattr(self, "clients"):
            return
        waiting, *others = self.clients
        for client in self.clients:
            client.network, client.is_paused = "good", False
        self.server.lag, self.server.is_deposed = 0.0, False
        for client in others:
            client.leave(self.server.now)
        waiting.wants = True
        # What was on the way may still arrive and take the slot, for one TTL more.
        self.time_passes(3.0 * TTL)
        assert waiting.believes(self.server.now)
        engine, token = waiting.engine, self.greatest_token
        self.time_passes(3.0 * TTL)
        assert waiting.believes(self.server.now)
        assert (waiting.engine, self.greatest_token) == (engine, token)


TestLeasing = Leasing.TestCase
TestLeasing.settings = settings(max_examples=100, stateful_step_count=12)
