"""Typed models of the JetStream API, usable without a connection.

Generated from schema/ by codegen/exports.py. Edit that file instead.

Each name is imported on first use, so that an import of the package is fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from twinstream.models.index import MODULES

if TYPE_CHECKING:
    from twinstream.models.codec.codec import (
        decode,
        decode_response,
        encode,
        encode_json,
    )
    from twinstream.models.codec.decode_error import (
        DecodeError,
    )
    from twinstream.models.codec.evolve import (
        evolve,
    )
    from twinstream.models.codec.json_object import (
        JsonObject,
    )
    from twinstream.models.codec.json_schema import (
        json_schema,
        schema_names,
    )
    from twinstream.models.codec.model import (
        Model,
    )
    from twinstream.models.codec.open_enum import (
        OpenEnum,
    )
    from twinstream.models.files.config_files import (
        FileConfig,
        FileConfigs,
        FileProblem,
        load_configs,
    )
    from twinstream.models.generated.advisory.api import (
        ApiAudit,
        ApiLimitReached,
    )
    from twinstream.models.generated.advisory.consumer import (
        ConsumerAction,
        ConsumerActionKind,
        ConsumerActionKindWord,
        ConsumerGroupPinned,
        ConsumerGroupUnpinned,
        ConsumerLeaderElected,
        ConsumerPause,
        ConsumerQuorumLost,
        MaxDeliver,
        Nak,
        Terminated,
        UnpinReason,
        UnpinReasonWord,
    )
    from twinstream.models.generated.advisory.server import (
        DomainLeaderElected,
        MetaRescue,
        ServerOutOfSpace,
        ServerRemoved,
    )
    from twinstream.models.generated.advisory.stream import (
        BatchAbandonReason,
        BatchAbandonReasonWord,
        RestoreComplete,
        RestoreCreate,
        SnapshotComplete,
        SnapshotCreate,
        StreamAction,
        StreamActionKind,
        StreamActionKindWord,
        StreamBatchAbandoned,
        StreamLeaderElected,
        StreamQuorumLost,
    )
    from twinstream.models.generated.api.account import (
        AccountInfo,
        AccountInfoResponse,
        AccountLimits,
        AccountPurgeResponse,
        AccountTier,
        ApiStats,
    )
    from twinstream.models.generated.api.consumer import (
        ConsumerCreateAction,
        ConsumerCreateActionWord,
        ConsumerCreateRequest,
        ConsumerCreateResponse,
        ConsumerDeleteResponse,
        ConsumerInfo,
        ConsumerInfoResponse,
        ConsumerLeaderStepdownRequest,
        ConsumerLeaderStepdownResponse,
        ConsumerListRequest,
        ConsumerListResponse,
        ConsumerNamesRequest,
        ConsumerNamesResponse,
        ConsumerPauseRequest,
        ConsumerPauseResponse,
        ConsumerResetRequest,
        ConsumerResetResponse,
        ConsumerUnpinRequest,
        ConsumerUnpinResponse,
        NakOptions,
        PriorityGroupState,
        PullRequest,
        SequenceInfo,
    )
    from twinstream.models.generated.api.group import (
        ElasticGroupConfig,
        MemberMapping,
        PartitioningFilter,
        StaticGroupConfig,
    )
    from twinstream.models.generated.api.message import (
        BatchFlowAck,
        BatchFlowError,
        BatchFlowGap,
        DirectGetRequest,
        PubAck,
        PublishResponse,
        StoredMessage,
        StreamMessageDeleteRequest,
        StreamMessageDeleteResponse,
        StreamMessageGetRequest,
        StreamMessageGetResponse,
    )
    from twinstream.models.generated.api.meta import (
        MetaLeaderStepdownRequest,
        MetaLeaderStepdownResponse,
        MetaRescueRequest,
        MetaRescueResponse,
        MetaServerEvacuateRequest,
        MetaServerEvacuateResponse,
        MetaServerRemoveRequest,
        MetaServerRemoveResponse,
        StreamMoveRequest,
        SystemResponse,
    )
    from twinstream.models.generated.api.object import (
        ObjectInfo,
        ObjectLink,
        ObjectOptions,
    )
    from twinstream.models.generated.api.stream import (
        LostStreamData,
        StreamAlternate,
        StreamCancelMoveResponse,
        StreamCreateRequest,
        StreamCreateResponse,
        StreamDeleteResponse,
        StreamEvacuatePeerRequest,
        StreamEvacuatePeerResponse,
        StreamInfo,
        StreamInfoRequest,
        StreamInfoResponse,
        StreamLeaderStepdownRequest,
        StreamLeaderStepdownResponse,
        StreamListRequest,
        StreamListResponse,
        StreamNamesRequest,
        StreamNamesResponse,
        StreamPurgeRequest,
        StreamPurgeResponse,
        StreamRemovePeerRequest,
        StreamRemovePeerResponse,
        StreamRestoreRequest,
        StreamRestoreResponse,
        StreamSnapshotRequest,
        StreamSnapshotResponse,
        StreamSourceInfo,
        StreamState,
        StreamUpdateRequest,
        StreamUpdateResponse,
    )
    from twinstream.models.generated.common import (
        ApiError,
        ClientInfo,
        ClusterInfo,
        ErrorResponse,
        MigrationOrigin,
        MigrationStatus,
        MigrationTarget,
        PeerInfo,
        Placement,
        UnknownEvent,
    )
    from twinstream.models.generated.config.consumer import (
        AckPolicy,
        AckPolicyWord,
        ConsumerConfig,
        DeliverPolicy,
        DeliverPolicyWord,
        PriorityPolicy,
        PriorityPolicyWord,
        ReplayPolicy,
        ReplayPolicyWord,
    )
    from twinstream.models.generated.config.stream import (
        Compression,
        CompressionWord,
        ConsumerLimits,
        DiscardPolicy,
        DiscardPolicyWord,
        ExternalStream,
        KeyValueConfig,
        ObjectStoreConfig,
        PersistMode,
        PersistModeWord,
        Republish,
        RetentionPolicy,
        RetentionPolicyWord,
        SourceConsumer,
        StorageType,
        StorageTypeWord,
        StreamConfig,
        StreamSource,
        SubjectTransform,
    )
    from twinstream.models.generated.metric.consumer import (
        ConsumerAck,
    )
    from twinstream.models.lint import (
        lint_consumer,
        lint_stream,
    )
    from twinstream.models.names.transforms import (
        partition,
        transform_subject,
    )
    from twinstream.models.plan import (
        Change,
        Plan,
        plan_consumer,
        plan_stream,
    )
    from twinstream.models.problem import (
        Problem,
    )
    from twinstream.models.size import (
        headers_size,
        storage_size,
    )
    from twinstream.models.stored_config import (
        ConfigError,
        effective_consumer,
        effective_stream,
    )
    from twinstream.models.times.duration import (
        Duration,
    )
    from twinstream.models.times.timestamp import (
        Timestamp,
    )
    from twinstream.models.updates import (
        validate_consumer_update,
        validate_stream_update,
    )
    from twinstream.models.validation import (
        validate_consumer,
        validate_pull,
        validate_stream,
    )

__all__ = [
    "AccountInfo",
    "AccountInfoResponse",
    "AccountLimits",
    "AccountPurgeResponse",
    "AccountTier",
    "AckPolicy",
    "AckPolicyWord",
    "ApiAudit",
    "ApiError",
    "ApiLimitReached",
    "ApiStats",
    "BatchAbandonReason",
    "BatchAbandonReasonWord",
    "BatchFlowAck",
    "BatchFlowError",
    "BatchFlowGap",
    "Change",
    "ClientInfo",
    "ClusterInfo",
    "Compression",
    "CompressionWord",
    "ConfigError",
    "ConsumerAck",
    "ConsumerAction",
    "ConsumerActionKind",
    "ConsumerActionKindWord",
    "ConsumerConfig",
    "ConsumerCreateAction",
    "ConsumerCreateActionWord",
    "ConsumerCreateRequest",
    "ConsumerCreateResponse",
    "ConsumerDeleteResponse",
    "ConsumerGroupPinned",
    "ConsumerGroupUnpinned",
    "ConsumerInfo",
    "ConsumerInfoResponse",
    "ConsumerLeaderElected",
    "ConsumerLeaderStepdownRequest",
    "ConsumerLeaderStepdownResponse",
    "ConsumerLimits",
    "ConsumerListRequest",
    "ConsumerListResponse",
    "ConsumerNamesRequest",
    "ConsumerNamesResponse",
    "ConsumerPause",
    "ConsumerPauseRequest",
    "ConsumerPauseResponse",
    "ConsumerQuorumLost",
    "ConsumerResetRequest",
    "ConsumerResetResponse",
    "ConsumerUnpinRequest",
    "ConsumerUnpinResponse",
    "DecodeError",
    "DeliverPolicy",
    "DeliverPolicyWord",
    "DirectGetRequest",
    "DiscardPolicy",
    "DiscardPolicyWord",
    "DomainLeaderElected",
    "Duration",
    "ElasticGroupConfig",
    "ErrorResponse",
    "ExternalStream",
    "FileConfig",
    "FileConfigs",
    "FileProblem",
    "JsonObject",
    "KeyValueConfig",
    "LostStreamData",
    "MaxDeliver",
    "MemberMapping",
    "MetaLeaderStepdownRequest",
    "MetaLeaderStepdownResponse",
    "MetaRescue",
    "MetaRescueRequest",
    "MetaRescueResponse",
    "MetaServerEvacuateRequest",
    "MetaServerEvacuateResponse",
    "MetaServerRemoveRequest",
    "MetaServerRemoveResponse",
    "MigrationOrigin",
    "MigrationStatus",
    "MigrationTarget",
    "Model",
    "Nak",
    "NakOptions",
    "ObjectInfo",
    "ObjectLink",
    "ObjectOptions",
    "ObjectStoreConfig",
    "OpenEnum",
    "PartitioningFilter",
    "PeerInfo",
    "PersistMode",
    "PersistModeWord",
    "Placement",
    "Plan",
    "PriorityGroupState",
    "PriorityPolicy",
    "PriorityPolicyWord",
    "Problem",
    "PubAck",
    "PublishResponse",
    "PullRequest",
    "ReplayPolicy",
    "ReplayPolicyWord",
    "Republish",
    "RestoreComplete",
    "RestoreCreate",
    "RetentionPolicy",
    "RetentionPolicyWord",
    "SequenceInfo",
    "ServerOutOfSpace",
    "ServerRemoved",
    "SnapshotComplete",
    "SnapshotCreate",
    "SourceConsumer",
    "StaticGroupConfig",
    "StorageType",
    "StorageTypeWord",
    "StoredMessage",
    "StreamAction",
    "StreamActionKind",
    "StreamActionKindWord",
    "StreamAlternate",
    "StreamBatchAbandoned",
    "StreamCancelMoveResponse",
    "StreamConfig",
    "StreamCreateRequest",
    "StreamCreateResponse",
    "StreamDeleteResponse",
    "StreamEvacuatePeerRequest",
    "StreamEvacuatePeerResponse",
    "StreamInfo",
    "StreamInfoRequest",
    "StreamInfoResponse",
    "StreamLeaderElected",
    "StreamLeaderStepdownRequest",
    "StreamLeaderStepdownResponse",
    "StreamListRequest",
    "StreamListResponse",
    "StreamMessageDeleteRequest",
    "StreamMessageDeleteResponse",
    "StreamMessageGetRequest",
    "StreamMessageGetResponse",
    "StreamMoveRequest",
    "StreamNamesRequest",
    "StreamNamesResponse",
    "StreamPurgeRequest",
    "StreamPurgeResponse",
    "StreamQuorumLost",
    "StreamRemovePeerRequest",
    "StreamRemovePeerResponse",
    "StreamRestoreRequest",
    "StreamRestoreResponse",
    "StreamSnapshotRequest",
    "StreamSnapshotResponse",
    "StreamSource",
    "StreamSourceInfo",
    "StreamState",
    "StreamUpdateRequest",
    "StreamUpdateResponse",
    "SubjectTransform",
    "SystemResponse",
    "Terminated",
    "Timestamp",
    "UnknownEvent",
    "UnpinReason",
    "UnpinReasonWord",
    "decode",
    "decode_response",
    "effective_consumer",
    "effective_stream",
    "encode",
    "encode_json",
    "evolve",
    "headers_size",
    "json_schema",
    "lint_consumer",
    "lint_stream",
    "load_configs",
    "partition",
    "plan_consumer",
    "plan_stream",
    "schema_names",
    "storage_size",
    "transform_subject",
    "validate_consumer",
    "validate_consumer_update",
    "validate_pull",
    "validate_stream",
    "validate_stream_update",
]


def __getattr__(name: str) -> object:
    module = MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
