"""A NATS JetStream client. There are two packages: for event loops, and for blocking code.

Both packages have the same names. Start with `connect`. The package imports a name when it is first
used, so that a program that uses only some of the names starts quickly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from js_async._index import MODULES, PACKAGES
from twinstream.core.lazy_imports import on_demand

if TYPE_CHECKING:
    from js_async.client.core_message import CoreMessage
    from js_async.client.subscription import Subscription
    from js_async.connection import Connection, ConnectionStats, connect
    from js_async.consume.advisories import Events
    from js_async.consume.consume import Consuming
    from js_async.consume.message import Message
    from js_async.consume.messages import Messages
    from js_async.consume.ordered import OrderedMessages
    from js_async.consume.push import PushMessages
    from js_async.consumer import Consumer
    from js_async.jetstream import JetStream
    from js_async.kv.bucket import KeyValue
    from js_async.kv.cache import KeyValueCache
    from js_async.kv.watch import KeyValueWatch
    from js_async.nats_py.client import from_nats  # asyncio only
    from js_async.object_store.reader import ObjectReader
    from js_async.object_store.store import ObjectStore
    from js_async.object_store.watch import ObjectWatch
    from js_async.publish.atomic_batch import AtomicBatch
    from js_async.publish.publish_many import PublishMany
    from js_async.publish.publisher import Publisher, PublishHandle
    from js_async.read.stream_read import StreamRead
    from js_async.stream import Stream
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
    from twinstream.core.client.options import ConnectOptions
    from twinstream.core.client.server_pool import ReconnectPolicy
    from twinstream.core.client.tls import TlsOptions
    from twinstream.core.consume.advisories import Event
    from twinstream.core.consume.batch import Batch, BatchEnd
    from twinstream.core.consume.pull_request import Priority
    from twinstream.core.consume.reports import (
        ConsumerRecreated,
        Pinned,
        PullReport,
        PullWarning,
        Unpinned,
        WorkEnded,
    )
    from twinstream.core.kv.status import KeyValueStatus
    from twinstream.core.object_store.chunks import ObjectProgress
    from twinstream.core.object_store.config import ObjectStoreStatus
    from twinstream.core.object_store.info import ObjectMeta
    from twinstream.core.read.read_report import ReadReport
    from twinstream.core.read.snapshot import Snapshot
    from twinstream.core.read.stream_message import StreamMessage
    from twinstream.errors import (
        AlreadyAcknowledged,
        AtomicBatchFailed,
        AuthenticationFailed,
        BadArgument,
        BadPayload,
        BucketExists,
        BucketNotFound,
        ConnectionClosed,
        ConnectionFailed,
        ConnectionLost,
        ConsumerDeleted,
        ConsumerExists,
        ConsumerNotFound,
        DigestMismatch,
        InvalidKey,
        IterationEnded,
        JetStreamError,
        JetStreamNotEnabled,
        KeyDeleted,
        KeyExists,
        KeyNotFound,
        MessageExists,
        MessageNotFound,
        NoLeader,
        NoResponders,
        NoStream,
        ObjectChanged,
        ObjectExists,
        ObjectNotFound,
        OutcomeUnknown,
        PermissionDenied,
        PublishFailure,
        PublishFailures,
        RequestTimeout,
        RevisionMismatch,
        StoreFailed,
        StreamExists,
        StreamNotFound,
        TwinstreamError,
        Unsupported,
        WrongLastMessageId,
        WrongLastSequence,
        WrongStream,
    )
    from twinstream.models import (
        ConsumerConfig,
        ConsumerInfo,
        KeyValueConfig,
        ObjectInfo,
        ObjectStoreConfig,
        Placement,
        PubAck,
        Republish,
        StreamConfig,
        StreamInfo,
        StreamSource,
        SubjectTransform,
        evolve,
    )
    from twinstream.records.atomic_outcome import AtomicOutcome
    from twinstream.records.entry import Entry, KeyValueOperation
    from twinstream.records.headers import Headers
    from twinstream.records.publish_request import PublishRequest

__all__ = [
    "AlreadyAcknowledged",
    "AtomicBatch",
    "AtomicBatchFailed",
    "AtomicOutcome",
    "AuthenticationFailed",
    "BadArgument",
    "BadPayload",
    "Batch",
    "BatchEnd",
    "BucketExists",
    "BucketNotFound",
    "Call",
    "Closed",
    "ConnectOptions",
    "Connected",
    "Connection",
    "ConnectionClosed",
    "ConnectionEvent",
    "ConnectionFailed",
    "ConnectionLost",
    "ConnectionStats",
    "Consumer",
    "ConsumerConfig",
    "ConsumerDeleted",
    "ConsumerExists",
    "ConsumerInfo",
    "ConsumerNotFound",
    "ConsumerRecreated",
    "Consuming",
    "CoreMessage",
    "Credentials",
    "DigestMismatch",
    "Disconnected",
    "Entry",
    "Event",
    "Events",
    "Headers",
    "InvalidKey",
    "IterationEnded",
    "JetStream",
    "JetStreamError",
    "JetStreamNotEnabled",
    "KeyDeleted",
    "KeyExists",
    "KeyNotFound",
    "KeyValue",
    "KeyValueCache",
    "KeyValueConfig",
    "KeyValueOperation",
    "KeyValueStatus",
    "KeyValueWatch",
    "LameDuck",
    "Message",
    "MessageExists",
    "MessageNotFound",
    "Messages",
    "MessagesDropped",
    "NoLeader",
    "NoResponders",
    "NoStream",
    "ObjectChanged",
    "ObjectExists",
    "ObjectInfo",
    "ObjectMeta",
    "ObjectNotFound",
    "ObjectProgress",
    "ObjectReader",
    "ObjectStore",
    "ObjectStoreConfig",
    "ObjectStoreStatus",
    "ObjectWatch",
    "OrderedMessages",
    "OutcomeUnknown",
    "PermissionDenied",
    "Pinned",
    "Placement",
    "Priority",
    "PubAck",
    "PublishFailure",
    "PublishFailures",
    "PublishHandle",
    "PublishMany",
    "PublishRequest",
    "Publisher",
    "PullReport",
    "PullWarning",
    "PushMessages",
    "ReadReport",
    "ReconnectPolicy",
    "Republish",
    "RequestTimeout",
    "RevisionMismatch",
    "ServerReported",
    "ServersDiscovered",
    "Snapshot",
    "StoreFailed",
    "Stream",
    "StreamConfig",
    "StreamExists",
    "StreamInfo",
    "StreamMessage",
    "StreamNotFound",
    "StreamRead",
    "StreamSource",
    "SubjectTransform",
    "Subscription",
    "TlsOptions",
    "TwinstreamError",
    "Unpinned",
    "Unsupported",
    "WorkEnded",
    "WrongLastMessageId",
    "WrongLastSequence",
    "WrongStream",
    "connect",
    "evolve",
    "from_nats",  # asyncio only
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = on_demand(__name__, MODULES, PACKAGES)
