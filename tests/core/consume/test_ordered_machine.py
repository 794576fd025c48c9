"""Ordered reads against a model of a stream that removes old messages, with random histories.

Messages are stored, overwritten, purged and lost in transit. Consumers are lost at any time and
created on replicas that lag behind. In each history, every message is returned at most once and in
order, and every wanted message that still exists is returned.
"""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from tests.core.consume.ordered_model import ModelConsumer, ModelStream
from twinstream.core.consume.metadata import Metadata
from twinstream.core.consume.ordered import OrderedRead
from twinstream.core.consume.ordered_config import ordered_config
from twinstream.models import DeliverPolicy

SUBJECTS = st.sampled_from("abc")
# Mostly none: a replica that is behind may show more than the snapshot.
LAGS = st.sampled_from([0, 0, 0, 0, 1, 2])
POLICIES = st.sampled_from(
    [DeliverPolicy.LAST_PER_SUBJECT] * 4 + [DeliverPolicy.ALL, DeliverPolicy.NEW, "from 3"]
)


class OrderedMachine(RuleBasedStateMachine):
    """The caller of an ordered read, its connection, and the server."""

    @initialize(
        policy=POLICIES,
        keeps=st.sampled_from([0, 1, 2]),
        subjects=st.text("abc", min_size=1, max_size=8),
        by_bytes=st.booleans(),
        lag=LAGS,
    )
    def begin(self, policy: str, keeps: int, subjects: str, by_bytes: bool, lag: int) -> None:
        self.policy, self.by_bytes = policy, by_bytes
        self.stream = ModelStream(keeps, subjects)
        start = 3 if policy == "from 3" else None
        config = ordered_config(None, None if start else policy, start, None, headers_only=False)
        self.read = OrderedRead(config, "x", by_bytes=by_bytes)
        self.handed: list[int] = []
        self.names: set[str] = set()
        self.first_after = 0
        self.allowed: set[int] = set()
        self.first = True
        self.most_lag = 0
        self.create(lag)

    # ---- what an owner does

    def create(self, lag: int = 0) -> None:
        """Create the next consumer."""
        fresh = self.read.found_stream(self.stream.info()) or self.first
        if fresh:
            self.handed = []
            self.dividing_seq = self.stream.last_seq
        self.most_lag = max(self.most_lag, lag)
        config = self.read.next_config()
        self.consumer = ModelConsumer(self.stream, config, lag)
        assert config.name is not None
        assert config.name not in self.names
        self.names.add(config.name)
        self.read.made(self.consumer.info)
        if self.first:
            start = {"from 3": 2, DeliverPolicy.NEW: self.read.position}
            self.first_after = start.get(self.policy, 0)
        elif fresh:
            self.first_after = 0
        self.first = False
        if config.deliver_policy == DeliverPolicy.LAST_PER_SUBJECT:
            up_to = max(0, self.stream.last_seq - lag)
            self.allowed |= set(self.stream.last_per_subject(up_to))
        self.wire: list[Metadata] = []

    def hand_over(self, message: Metadata) -> None:
        if not self.read.is_in_order(message):
            self.create()
            return
        wanted = self.read.wants(message)
        assert self.read.take(message) == wanted
        if wanted:
            self.handed.append(message.stream_seq)

    def take_all(self) -> None:
        while self.wire:
            self.hand_over(self.wire.pop(0))
            if self.read.is_outdated:
                self.create()

    # ---- what happens

    @rule(subjects=st.text("abc", min_size=1, max_size=3))
    def store(self, subjects: str) -> None:
        for subject in subjects:
            self.stream.store(subject)

    @rule(subject=SUBJECTS)
    def purge(self, subject: str) -> None:
        self.stream.purge(subject)

    @rule(seq=st.integers(1, 20))
    def delete(self, seq: int) -> None:
        # Without the last message of a subject an older one is the last again. A read that was cut
        # short in between does not go back to that one.
        if seq not in self.stream.last_per_subject(self.stream.last_seq):
            self.stream.delete(seq)

    @rule(count=st.integers(1, 4))
    def deliver(self, count: int) -> None:
        for _ in range(count):
            message = self.consumer.step()
            if message is not None:
                self.wire.append(message)

    @rule(count=st.integers(1, 3))
    def take(self, count: int) -> None:
        for _ in range(count):
            if not self.wire:
                # Nothing came, or a gap made a new consumer, which begins with an empty wire.
                break
            self.hand_over(self.wire.pop(0))
            if self.read.is_outdated:
                self.create()
                break

    @rule()
    def lose(self) -> None:
        if self.wire:
            self.wire.pop(len(self.wire) // 2)

    @rule()
    def heartbeat(self) -> None:
        # What is on the wire arrives before it and is buffered.
        lost = self.read.note_heartbeat(self.consumer.heartbeat(), len(self.wire))
        if lost is not None:
            self.take_all()
            self.create()
        elif self.read.is_outdated:
            self.create()

    @rule(lag=LAGS)
    def break_off(self, lag: int) -> None:
        self.create(lag)

    @precondition(lambda self: self.stream.day == 1 and len(self.handed) > 5)
    @rule(subjects=st.text("abc", max_size=4))
    def stream_created_again(self, subjects: str) -> None:
        self.stream = ModelStream(self.stream.keeps, subjects, self.stream.day + 1)
        self.allowed = set()
        self.create()

    # ---- what must be so

    @invariant()
    def in_order_and_once(self) -> None:
        if hasattr(self, "handed"):
            assert self.handed == sorted(set(self.handed))

    @invariant()
    def handed_messages_are_wanted(self) -> None:
        if not hasattr(self, "handed"):
            return
        assert all(seq > self.first_after for seq in self.handed)
        if self.policy == DeliverPolicy.LAST_PER_SUBJECT and self.stream.keeps != 1:
            # The snapshot contains only messages that were the last of their subject for a replica.
            snapshot = [seq for seq in self.handed if seq <= self.dividing_seq]
            # One that was behind takes what it did not have for messages after its snapshot.
            late = range(self.dividing_seq - self.most_lag + 1, self.dividing_seq + 1)
            assert set(snapshot) <= self.allowed | set(late)

    def teardown(self) -> None:
        if not hasattr(self, "handed"):
            return
        for _ in range(200):
            message = self.consumer.step()
            if message is not None:
                self.wire.append(message)
            else:
                self.heartbeat()
            self.take_all()
        missing = set(self.due()) - set(self.handed)
        assert not missing
        assert self.read.is_current
        assert self.read.scanned >= self.stream.last_seq

    def due(self) -> list[int]:
        """Return the existing messages that must have been returned."""
        if self.policy != DeliverPolicy.LAST_PER_SUBJECT:
            return [seq for seq in self.stream.messages if seq > self.first_after]
        after = [seq for seq in self.stream.messages if seq > self.dividing_seq]
        return self.stream.last_per_subject(self.stream.last_seq) + after


TestOrderedReads = OrderedMachine.TestCase
TestOrderedReads.settings = settings(max_examples=500, stateful_step_count=30)
