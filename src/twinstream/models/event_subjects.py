"""The subject of each advisory and metric, by type.

Generated from schema/advisory and schema/metric by codegen/event_subjects.py. Edit those instead.
"""

from __future__ import annotations

from typing import Final

EVENT_SUBJECTS: Final[dict[str, tuple[str, str]]] = {
    "io.nats.jetstream.advisory.v1.api_audit": (
        "ApiAudit",
        "$JS.EVENT.ADVISORY.API",
    ),
    "io.nats.jetstream.advisory.v1.api_limit_reached": (
        "ApiLimitReached",
        "$JS.EVENT.ADVISORY.API.LIMIT_REACHED",
    ),
    "io.nats.jetstream.advisory.v1.consumer_action": (
        "ConsumerAction",
        "$JS.EVENT.ADVISORY.CONSUMER.{action}.{stream}.{consumer}",
    ),
    "io.nats.jetstream.advisory.v1.consumer_group_pinned": (
        "ConsumerGroupPinned",
        "$JS.EVENT.ADVISORY.CONSUMER.PINNED.{stream}.{consumer}",
    ),
    "io.nats.jetstream.advisory.v1.consumer_group_unpinned": (
        "ConsumerGroupUnpinned",
        "$JS.EVENT.ADVISORY.CONSUMER.UNPINNED.{stream}.{consumer}",
    ),
    "io.nats.jetstream.advisory.v1.consumer_leader_elected": (
        "ConsumerLeaderElected",
        "$JS.EVENT.ADVISORY.CONSUMER.LEADER_ELECTED.{stream}.{consumer}",
    ),
    "io.nats.jetstream.advisory.v1.consumer_pause": (
        "ConsumerPause",
        "$JS.EVENT.ADVISORY.CONSUMER.PAUSE.{stream}.{consumer}",
    ),
    "io.nats.jetstream.advisory.v1.consumer_quorum_lost": (
        "ConsumerQuorumLost",
        "$JS.EVENT.ADVISORY.CONSUMER.QUORUM_LOST.{stream}.{consumer}",
    ),
    "io.nats.jetstream.advisory.v1.domain_leader_elected": (
        "DomainLeaderElected",
        "$JS.EVENT.ADVISORY.DOMAIN.LEADER_ELECTED",
    ),
    "io.nats.jetstream.advisory.v1.max_deliver": (
        "MaxDeliver",
        "$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.{stream}.{consumer}",
    ),
    "io.nats.jetstream.advisory.v1.meta_rescue": (
        "MetaRescue",
        "$JS.EVENT.ADVISORY.SERVER.META_RESCUE",
    ),
    "io.nats.jetstream.advisory.v1.nak": (
        "Nak",
        "$JS.EVENT.ADVISORY.CONSUMER.MSG_NAKED.{stream}.{consumer}",
    ),
    "io.nats.jetstream.advisory.v1.restore_complete": (
        "RestoreComplete",
        "$JS.EVENT.ADVISORY.STREAM.RESTORE_COMPLETE.{stream}",
    ),
    "io.nats.jetstream.advisory.v1.restore_create": (
        "RestoreCreate",
        "$JS.EVENT.ADVISORY.STREAM.RESTORE_CREATE.{stream}",
    ),
    "io.nats.jetstream.advisory.v1.server_out_of_space": (
        "ServerOutOfSpace",
        "$JS.EVENT.ADVISORY.SERVER.OUT_OF_STORAGE",
    ),
    "io.nats.jetstream.advisory.v1.server_removed": (
        "ServerRemoved",
        "$JS.EVENT.ADVISORY.SERVER.REMOVED",
    ),
    "io.nats.jetstream.advisory.v1.snapshot_complete": (
        "SnapshotComplete",
        "$JS.EVENT.ADVISORY.STREAM.SNAPSHOT_COMPLETE.{stream}",
    ),
    "io.nats.jetstream.advisory.v1.snapshot_create": (
        "SnapshotCreate",
        "$JS.EVENT.ADVISORY.STREAM.SNAPSHOT_CREATE.{stream}",
    ),
    "io.nats.jetstream.advisory.v1.stream_action": (
        "StreamAction",
        "$JS.EVENT.ADVISORY.STREAM.{action}.{stream}",
    ),
    "io.nats.jetstream.advisory.v1.stream_batch_abandoned": (
        "StreamBatchAbandoned",
        "$JS.EVENT.ADVISORY.STREAM.BATCH_ABANDONED.{stream}",
    ),
    "io.nats.jetstream.advisory.v1.stream_leader_elected": (
        "StreamLeaderElected",
        "$JS.EVENT.ADVISORY.STREAM.LEADER_ELECTED.{stream}",
    ),
    "io.nats.jetstream.advisory.v1.stream_quorum_lost": (
        "StreamQuorumLost",
        "$JS.EVENT.ADVISORY.STREAM.QUORUM_LOST.{stream}",
    ),
    "io.nats.jetstream.advisory.v1.terminated": (
        "Terminated",
        "$JS.EVENT.ADVISORY.CONSUMER.MSG_TERMINATED.{stream}.{consumer}",
    ),
    "io.nats.jetstream.metric.v1.consumer_ack": (
        "ConsumerAck",
        "$JS.EVENT.METRIC.CONSUMER.ACK.{stream}.{consumer}",
    ),
}
"""The class name and the subject of each event type. A name in braces is one token."""
