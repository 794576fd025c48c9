"""A NATS JetStream client. There are two packages: for event loops, and for blocking code.

Both packages have the same names. Start with `connect`. The package imports a name when it is first
used, so that a program that uses only some of the names starts quickly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from js_async._index import MODULES
from twinstream.core.lazy_imports import on_demand

if TYPE_CHECKING:
    from js_async.api.cluster import Cluster
    from js_async.api.listing import Listing
    from js_async.api.replicas import Replicas
    from js_async.client.connection_events import ConnectionEvents
    from js_async.client.core_message import CoreMessage
    from js_async.client.subscription import Subscription
    from js_async.connection import Connection, Stats, connect, connect_with
    from js_async.consume.advisories import Events
    from js_async.consume.consume import Consuming
    from js_async.consume.message import Message
    from js_async.consume.messages import Messages
    from js_async.consume.ordered import OrderedMessages
    from js_async.consume.push import PushMessages
    from js_async.consumer import Consumer
    from js_async.exactly_once.outbox_relay import OutboxRelay
    from js_async.exactly_once.outbox_store import OutboxStore
    from js_async.exactly_once.processing import Processing
    from js_async.exactly_once.sqlite_outbox import SqliteOutbox
    from js_async.groups.consumer_group import ElasticConsumerGroup, StaticConsumerGroup
    from js_async.groups.group_worker import GroupWorker
    from js_async.groups.message import GroupMessage
    from js_async.jetstream import JetStream
    from js_async.kv.bucket import KeyValue
    from js_async.kv.cache import KeyValueCache
    from js_async.kv.keys import PurgedMarkers
    from js_async.kv.put_many import PutMany
    from js_async.kv.watch import Watch
    from js_async.nats_py.client import from_nats  # asyncio only
    from js_async.object_store.reader import ObjectReader
    from js_async.object_store.store import ObjectStore
    from js_async.object_store.watch import ObjectWatch
    from js_async.publish.atomic_batch import AtomicBatch
    from js_async.publish.publish_many import PublishMany
    from js_async.publish.publisher import Publisher, PublishHandle
    from js_async.read.stream_read import StreamRead
    from js_async.stream import Stream
    from js_async.workers.dead_letters import DeadLetters
    from js_async.workers.worker import Worker
    from twinstream.core.api.instrumentation import Call
    from twinstream.core.client.auth import Credentials
    from twinstream.core.client.connection_events import (
        Closed,
        Connected,
        ConnectionEvent,
        Disconnected,
        LameDuck,
        MessagesDropped,
        ServerReported,
        ServersDiscovered,
    )
    from twinstream.core.client.handshake import ServerInfo
    from twinstream.core.client.options import ConnectOptions
    from twinstream.core.client.server_pool import ReconnectPolicy
    from twinstream.core.client.tls import TlsOptions
    from twinstream.core.consume.advisories import Event
    from twinstream.core.consume.batch import Batch, BatchEnd
    from twinstream.core.consume.metadata import Metadata
    from twinstream.core.consume.pull_request import Priority
    from twinstream.core.consume.reports import (
        Pinned,
        PullReport,
        PullWarning,
        Recreated,
        Unpinned,
        WorkEnded,
    )
    from twinstream.core.exactly_once.conditional_write import AlreadyThere, Stored
    from twinstream.core.exactly_once.outbox import OutboxEvent, OutboxReport
    from twinstream.core.exactly_once.processing import ProcessReport, Reject
    from twinstream.core.groups.info import GroupInfo
    from twinstream.core.groups.reports import (
        CopiesSkipped,
        GroupReport,
        JoinDelayed,
        PartitionsAssigned,
        PartitionsRevoked,
    )
    from twinstream.core.kv.codecs import (
        Base64Keys,
        JsonValues,
        KeyCodec,
        KeyCodecs,
        PathKeys,
        ValueCodec,
        ValueCodecs,
    )
    from twinstream.core.kv.put_many import KeyPutFailure
    from twinstream.core.kv.status import KeyValueStatus
    from twinstream.core.object_store.changes import KEEP, Swept
    from twinstream.core.object_store.chunks import ObjectProgress
    from twinstream.core.object_store.config import ObjectStoreStatus
    from twinstream.core.object_store.info import ObjectMeta
    from twinstream.core.publish.copied_headers import copied_headers
    from twinstream.core.read.arrow import arrow_schema
    from twinstream.core.read.read_report import ReadEnd, ReadReport
    from twinstream.core.read.snapshot import Snapshot
    from twinstream.core.read.stream_message import StreamMessage
    from twinstream.core.workers.dead_letter import DeadLetter
    from twinstream.core.workers.reports import HandlerFailed, WorkReport
    from twinstream.core.workers.retry import Retry, TryLater
    from twinstream.errors import (
        AcknowledgementError,
        AlreadyAcknowledged,
        AtomicBatchFailed,
        AtomicBatchUnknown,
        AuthenticationFailed,
        BadAnswer,
        BadArgument,
        BadGroupConfig,
        BadObjectInfo,
        BadPayload,
        BadPull,
        BucketExists,
        BucketNotFound,
        ConnectionClosed,
        ConnectionFailed,
        ConnectionLost,
        ConsumerDeleted,
        ConsumerExists,
        ConsumerIsPush,
        ConsumerNotFound,
        DigestMismatch,
        GroupChanged,
        GroupExists,
        GroupNotFound,
        InvalidConfig,
        InvalidKey,
        IterationEnded,
        JetStreamError,
        JetStreamNotEnabled,
        JetStreamOff,
        KeyDeleted,
        KeyExists,
        KeyNotFound,
        LinkError,
        MessageExists,
        MessageIdInProcess,
        MessageNotFound,
        NoLeader,
        NoResponders,
        NoStream,
        NotABucket,
        NotAcknowledgeable,
        NotAnObjectStore,
        ObjectChanged,
        ObjectDeleted,
        ObjectExists,
        ObjectIncomplete,
        ObjectNotFound,
        ObjectStoreNotFound,
        OutcomeUnknown,
        PermissionDenied,
        ProtocolError,
        PublishFailure,
        PublishFailures,
        PullError,
        PullRefused,
        PutFailed,
        RequestTimeout,
        RevisionMismatch,
        ServerError,
        StoreRefused,
        StreamExists,
        StreamNotFound,
        SubjectOverlap,
        SubjectTaken,
        TwinstreamError,
        Unsupported,
        ValueTooLarge,
        WrongHandler,
        WrongLastMessageId,
        WrongLastSequence,
        WrongOwner,
        WrongStream,
    )
    from twinstream.models import (
        AccountInfo,
        AckPolicy,
        ClusterInfo,
        Compression,
        ConsumerConfig,
        ConsumerInfo,
        ConsumerLimits,
        DeliverPolicy,
        DiscardPolicy,
        Duration,
        ElasticGroupConfig,
        ExternalStream,
        KeyValueConfig,
        MemberMapping,
        ObjectInfo,
        ObjectStoreConfig,
        PartitioningFilter,
        PeerInfo,
        PersistMode,
        Placement,
        PriorityPolicy,
        PubAck,
        ReplayPolicy,
        Republish,
        RetentionPolicy,
        SequenceInfo,
        SourceConsumer,
        StaticGroupConfig,
        StorageType,
        StreamConfig,
        StreamInfo,
        StreamSource,
        StreamSourceInfo,
        StreamState,
        SubjectTransform,
        Timestamp,
        evolve,
    )
    from twinstream.records.atomic_outcome import AtomicOutcome
    from twinstream.records.difference import Difference
    from twinstream.records.entry import Entries, Entry, KeyValueOperation
    from twinstream.records.guarantee_gap import GuaranteeGap
    from twinstream.records.headers import Headers
    from twinstream.records.publish_request import PublishRequest

__all__ = [
    "KEEP",
    "AccountInfo",
    "AckPolicy",
    "AcknowledgementError",
    "AlreadyAcknowledged",
    "AlreadyThere",
    "AtomicBatch",
    "AtomicBatchFailed",
    "AtomicBatchUnknown",
    "AtomicOutcome",
    "AuthenticationFailed",
    "BadAnswer",
    "BadArgument",
    "BadGroupConfig",
    "BadObjectInfo",
    "BadPayload",
    "BadPull",
    "Base64Keys",
    "Batch",
    "BatchEnd",
    "BucketExists",
    "BucketNotFound",
    "Call",
    "Closed",
    "Cluster",
    "ClusterInfo",
    "Compression",
    "ConnectOptions",
    "Connected",
    "Connection",
    "ConnectionClosed",
    "ConnectionEvent",
    "ConnectionEvents",
    "ConnectionFailed",
    "ConnectionLost",
    "Consumer",
    "ConsumerConfig",
    "ConsumerDeleted",
    "ConsumerExists",
    "ConsumerInfo",
    "ConsumerIsPush",
    "ConsumerLimits",
    "ConsumerNotFound",
    "Consuming",
    "CopiesSkipped",
    "CoreMessage",
    "Credentials",
    "DeadLetter",
    "DeadLetters",
    "DeliverPolicy",
    "Difference",
    "DigestMismatch",
    "DiscardPolicy",
    "Disconnected",
    "Duration",
    "ElasticConsumerGroup",
    "ElasticGroupConfig",
    "Entries",
    "Entry",
    "Event",
    "Events",
    "ExternalStream",
    "GroupChanged",
    "GroupExists",
    "GroupInfo",
    "GroupMessage",
    "GroupNotFound",
    "GroupReport",
    "GroupWorker",
    "GuaranteeGap",
    "HandlerFailed",
    "Headers",
    "InvalidConfig",
    "InvalidKey",
    "IterationEnded",
    "JetStream",
    "JetStreamError",
    "JetStreamNotEnabled",
    "JetStreamOff",
    "JoinDelayed",
    "JsonValues",
    "KeyCodec",
    "KeyCodecs",
    "KeyDeleted",
    "KeyExists",
    "KeyNotFound",
    "KeyPutFailure",
    "KeyValue",
    "KeyValueCache",
    "KeyValueConfig",
    "KeyValueOperation",
    "KeyValueStatus",
    "LameDuck",
    "LinkError",
    "Listing",
    "MemberMapping",
    "Message",
    "MessageExists",
    "MessageIdInProcess",
    "MessageNotFound",
    "Messages",
    "MessagesDropped",
    "Metadata",
    "NoLeader",
    "NoResponders",
    "NoStream",
    "NotABucket",
    "NotAcknowledgeable",
    "NotAnObjectStore",
    "ObjectChanged",
    "ObjectDeleted",
    "ObjectExists",
    "ObjectIncomplete",
    "ObjectInfo",
    "ObjectMeta",
    "ObjectNotFound",
    "ObjectProgress",
    "ObjectReader",
    "ObjectStore",
    "ObjectStoreConfig",
    "ObjectStoreNotFound",
    "ObjectStoreStatus",
    "ObjectWatch",
    "OrderedMessages",
    "OutboxEvent",
    "OutboxRelay",
    "OutboxReport",
    "OutboxStore",
    "OutcomeUnknown",
    "PartitioningFilter",
    "PartitionsAssigned",
    "PartitionsRevoked",
    "PathKeys",
    "PeerInfo",
    "PermissionDenied",
    "PersistMode",
    "Pinned",
    "Placement",
    "Priority",
    "PriorityPolicy",
    "ProcessReport",
    "Processing",
    "ProtocolError",
    "PubAck",
    "PublishFailure",
    "PublishFailures",
    "PublishHandle",
    "PublishMany",
    "PublishRequest",
    "Publisher",
    "PullError",
    "PullRefused",
    "PullReport",
    "PullWarning",
    "PurgedMarkers",
    "PushMessages",
    "PutFailed",
    "PutMany",
    "ReadEnd",
    "ReadReport",
    "ReconnectPolicy",
    "Recreated",
    "Reject",
    "ReplayPolicy",
    "Replicas",
    "Republish",
    "RequestTimeout",
    "RetentionPolicy",
    "Retry",
    "RevisionMismatch",
    "SequenceInfo",
    "ServerError",
    "ServerInfo",
    "ServerReported",
    "ServersDiscovered",
    "Snapshot",
    "SourceConsumer",
    "SqliteOutbox",
    "StaticConsumerGroup",
    "StaticGroupConfig",
    "Stats",
    "StorageType",
    "StoreRefused",
    "Stored",
    "Stream",
    "StreamConfig",
    "StreamExists",
    "StreamInfo",
    "StreamMessage",
    "StreamNotFound",
    "StreamRead",
    "StreamSource",
    "StreamSourceInfo",
    "StreamState",
    "SubjectOverlap",
    "SubjectTaken",
    "SubjectTransform",
    "Subscription",
    "Swept",
    "Timestamp",
    "TlsOptions",
    "TryLater",
    "TwinstreamError",
    "Unpinned",
    "Unsupported",
    "ValueCodec",
    "ValueCodecs",
    "ValueTooLarge",
    "Watch",
    "WorkEnded",
    "WorkReport",
    "Worker",
    "WrongHandler",
    "WrongLastMessageId",
    "WrongLastSequence",
    "WrongOwner",
    "WrongStream",
    "arrow_schema",
    "connect",
    "connect_with",
    "copied_headers",
    "evolve",
    "from_nats",  # asyncio only
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = on_demand(__name__, MODULES)
