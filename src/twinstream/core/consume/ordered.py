"""The state of an ordered read: the next consumer to create, and the check for lost messages.

Theory of operation (ADR-17, pull form)
---------------------------------------
An ordered read uses consumers without acknowledgements, with state in memory. A consumer numbers
its messages without gaps. A message whose number is not the previous one plus one shows that
messages were lost. An idle heartbeat reports how many messages the server has sent; a difference to
the number of received messages shows a loss, too. In these cases, and whenever the consumer may
have been deleted, the read creates a new consumer. It starts after the position: the last stream
sequence that the caller has received.

* The first consumer starts where the caller requests. A policy that depends on the current state
  (new, last) is used only for the first consumer. Each later consumer starts after the position,
  which initially is the one at which the first consumer started.
* An idle heartbeat also reports the stream sequence up to which the server has scanned the stream.
  Once the caller has received all messages before the heartbeat, the next consumer starts at this
  sequence, so that it does not scan the same part of the stream again.
* `last_per_subject` is a snapshot, the last message of each subject, followed by every message that
  was stored after the read began. The two parts are divided by the last sequence of the stream,
  which is requested before the first consumer is created. The snapshot is complete when the caller
  has received a message at or above this sequence, or when the server has scanned past it.
  `num_pending` does not show this, because it also counts messages that have been overwritten or
  removed since.
* If the stream keeps one message per subject, each message it still has is the last one of its
  subject. A new consumer continues after the position, during the snapshot and after it.
* If the stream keeps more, a consumer that is created in the middle of the snapshot delivers a new
  snapshot from its start, and the read skips messages that the caller has received. After the
  dividing sequence, a snapshot is not enough, because it lacks messages that have already been
  overwritten. So this consumer is used up to the dividing sequence only. Then another consumer
  delivers every message after this sequence.
* On such a stream the server skips a message of the snapshot that does not fit into the remaining
  bytes of a pull request. So the requests for a snapshot are limited by count. At
  the end of the snapshot the read creates another consumer, for requests limited by bytes.
* A stream that was deleted and re-created counts from 1 again, so earlier positions are invalid.
"""

from __future__ import annotations

from typing import Final

from twinstream.core.consume.metadata import Metadata
from twinstream.core.consume.ordered_config import OrderedConfigs
from twinstream.core.wire.status import Status
from twinstream.models import ConsumerConfig, ConsumerInfo, StreamInfo, Timestamp

__all__ = ["Mark", "OrderedRead"]

Mark = tuple[Timestamp | None, int, int]
"""A saved position: the stream's creation time, `position`, and the last scanned sequence."""


class OrderedRead:
    """The state of one ordered read.

    `by_bytes` is true if its pull requests have a byte limit.
    """

    def __init__(self, config: ConsumerConfig, prefix: str, *, by_bytes: bool = False) -> None:
        self._configs: Final = OrderedConfigs(config, prefix)
        self._by_bytes: Final = by_bytes
        # Whether a consumer was created. Each later consumer starts after the position.
        self._began = False
        self._created: Timestamp | None = None
        self.recreations = 0
        """The number of times that the stream was re-created during the read."""
        self._keeps_one = False
        self.last_at_start = 0
        """The last sequence of the stream when the read began."""
        self._consumer_seq = 0
        self._scanned_seq = 0
        # The position at which the first consumer of the stream started.
        self._before = 0
        # The values of the last heartbeat. `_scanned_at_heartbeat` becomes valid for `_scanned_seq`
        # once the caller has received the first `_sent` messages of the consumer.
        self._sent = -1
        self._scanned_at_heartbeat = 0
        self.position = 0
        """The stream sequence of the last message that the caller received; 0 before the first."""
        self.is_bounded = False
        """Whether the current consumer is used only for messages up to `last_at_start`."""
        self.is_outdated = False
        """Whether the next messages need another consumer."""

    @property
    def name(self) -> str:
        """The name of the current consumer, or of the next consumer before it is created."""
        return self._configs.name

    @property
    def begins_now(self) -> bool:
        """Whether the read is one of new messages, and no consumer was created yet."""
        return self._configs.is_of_new and not self._began

    @property
    def scanned(self) -> int:
        """The stream sequence up to which the caller has received every requested message."""
        return max(self.position, self._scanned_seq)

    @property
    def is_current(self) -> bool:
        """Whether the caller has received all requested messages up to `last_at_start`."""
        return self._began and self.scanned >= self.last_at_start

    @property
    def has_list(self) -> bool:
        """Whether the consumer iterates over a list of sequences and may stall (see `probing`)."""
        is_list = self._configs.is_snapshot and not self._keeps_one
        return is_list and self.scanned < self.last_at_start

    @property
    def progress(self) -> tuple[int, int]:
        """The values of the last heartbeat, which change when the consumer makes progress.

        They are the number of sent messages (-1 before the first heartbeat of a consumer), and the
        stream sequence up to which the server had scanned.
        """
        return self._sent, self._scanned_at_heartbeat

    # ---- consumers

    def is_another(self, stream: StreamInfo) -> bool:
        """Return whether the stream was re-created since the last call of `found_stream`."""
        return self._created is not None and self._created != stream.created

    def found_stream(self, stream: StreamInfo) -> bool:
        """Record the state of the stream; return whether it was re-created since the last call.

        After a re-creation, a read of the last message of each subject takes a new snapshot. Other
        reads start again at the stream's beginning.
        """
        another = self.is_another(stream)
        self._created = stream.created
        self._keeps_one = stream.config.max_msgs_per_subject == 1
        self._configs.found_stream(stream.config)
        if another:
            self.recreations += 1
            self.position = self._scanned_seq = self._before = 0
            self._began = not self._configs.is_snapshot
        if another or not self._began:
            self.last_at_start = stream.state.last_seq
        return another

    def next_config(self) -> ConsumerConfig:
        """Return the configuration of the next consumer, within the limits of its stream."""
        in_list = self.has_list
        self.is_bounded = in_list and (self._began or self._by_bytes)
        return self._configs.next(self.scanned + 1 if self._began and not in_list else None)

    def rename(self) -> None:
        """Choose another name for the next consumer."""
        self._configs.rename()

    def made(self, info: ConsumerInfo) -> None:
        """Record that the consumer was created, and the position at which it starts."""
        if not self._began and not self._configs.is_snapshot and info.delivered is not None:
            # For the next consumer, this position replaces the policies "new" and "last".
            self.position = self._before = max(self.position, info.delivered.stream_seq)
        self._began = True
        self._configs.made()
        self.is_outdated = False
        self._consumer_seq = 0
        self._sent = -1

    # ---- going back

    def mark(self) -> Mark:
        """Return the position of the read, for `go_back`."""
        return self._created, self.position, self._scanned_seq

    def go_back(self, mark: Mark) -> None:
        """Go back to the position `mark`. Another consumer delivers the messages after it again.

        If the stream was re-created since, the read goes back to the beginning of the stream.
        """
        created, position, looked = mark
        if created is not None and created != self._created:
            position = looked = 0
        self.position = max(position, self._before)
        self._scanned_seq = looked
        self.is_outdated = True

    # ---- messages and heartbeats

    def is_in_order(self, metadata: Metadata) -> bool:
        """Return whether a message is the next one in order, without recording it."""
        return metadata.consumer_seq == self._consumer_seq + 1

    def wants(self, metadata: Metadata) -> bool:
        """Return whether to deliver a message that is in order, without recording the message."""
        seq = metadata.stream_seq
        return seq > self.position and not (self.is_bounded and seq > self.last_at_start)

    def take(self, metadata: Metadata) -> bool:
        """Record a message that is in order; return whether to deliver it to the caller."""
        self._consumer_seq = metadata.consumer_seq
        seq = metadata.stream_seq
        is_new = seq > self.position
        if self.is_bounded and seq >= self.last_at_start:
            self.is_outdated = True
            if seq > self.last_at_start:
                self._scanned_seq = max(self._scanned_seq, self.last_at_start)
                is_new = False
        if is_new:
            self.position = seq
        if self._sent == self._consumer_seq:
            self._look()
        return is_new

    @property
    def takes_runs(self) -> bool:
        """Whether to deliver each message that is in order and after the position.

        If so, `take_run` may record several messages at once.
        """
        return not (self.is_bounded or self.is_outdated)

    @property
    def next_consumer_seq(self) -> int:
        """The consumer sequence that the next message in order has."""
        return self._consumer_seq + 1

    def take_run(self, consumer_seq: int, stream_seq: int) -> None:
        """Record all messages in order up to these sequences. `takes_runs` must be true."""
        before, self._consumer_seq = self._consumer_seq, consumer_seq
        if stream_seq > self.position:
            self.position = stream_seq
        if before < self._sent <= consumer_seq:
            self._look()

    def note_heartbeat(self, heartbeat: Status, buffered: int) -> str | None:
        """Record a heartbeat; return an error text if earlier messages were lost, else None.

        `buffered` is the number of messages that arrived before the heartbeat and are still
        buffered.
        """
        sent, looked = heartbeat.last_consumer, heartbeat.last_stream
        if sent is None or looked is None:
            return None
        arrived = self._consumer_seq + buffered
        if sent != arrived:
            return f"the server has sent {sent} messages with the consumer, {arrived} arrived"
        self._sent, self._scanned_at_heartbeat = sent, looked
        if not buffered:
            self._look()
        return None

    def _look(self) -> None:
        """Record how far the server had scanned the stream at the last heartbeat."""
        looked = self._scanned_at_heartbeat
        if self.is_bounded and looked >= self.last_at_start:
            # The consumer scans only the last message of each subject. So the value does not show
            # that the caller has every message after `last_at_start`.
            looked = self.last_at_start
            self.is_outdated = True
        self._scanned_seq = max(self._scanned_seq, looked)

    def has_all(self, sent: int) -> bool:
        """Return whether the caller has received the first `sent` messages of the consumer."""
        return self._consumer_seq >= sent
