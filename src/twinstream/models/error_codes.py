"""The error codes of the server, and tables of their properties.

Generated from schema/errors.json by codegen/error_codes.py. Edit that file instead.
"""

from __future__ import annotations

from typing import Final

ACCOUNT_RESOURCES_EXCEEDED: Final = 10002
"""The account's limit of memory or storage is reached."""

BAD_REQUEST: Final = 10003
"""The request is malformed or its options exclude each other."""

CLUSTER_INCOMPLETE: Final = 10004
"""Not all servers of the cluster responded."""

NO_SUITABLE_PEERS: Final = 10005
"""No servers fit the replicas and the placement."""

CLUSTER_NOT_ASSIGNED: Final = 10007
"""The asset is not assigned to this server."""

CLUSTER_NOT_AVAILABLE: Final = 10008
"""The JetStream cluster is not available now."""

CLUSTER_NOT_LEADER: Final = 10009
"""The server is not the leader."""

CLUSTER_REQUIRED: Final = 10010
"""The request needs a cluster."""

CONSUMER_CREATE: Final = 10012
"""The consumer cannot be created or changed this way."""

CONSUMER_NAME_EXISTS: Final = 10013
"""The consumer is in use or has other settings."""

CONSUMER_NOT_FOUND: Final = 10014
"""There is no such consumer."""

SNAPSHOT_DELIVER_SUBJECT: Final = 10015
"""The snapshot's deliver subject is not valid."""

DURABLE_NAME_MISMATCH: Final = 10017
"""The durable name differs from the name in the subject."""

DURABLE_NAME_MISSING: Final = 10018
"""The durable name is missing."""

EPHEMERAL_WITH_DURABLE_NAME: Final = 10020
"""A request for an ephemeral consumer contains a durable name."""

EXTERNAL_API_OVERLAP: Final = 10021
"""The external API prefix is this account's own."""

EXTERNAL_DELIVER_OVERLAP: Final = 10022
"""The external deliver prefix overlaps a subject of the origin."""

INSUFFICIENT_STORAGE: Final = 10023
"""There is no storage left."""

EXTERNAL_DELIVER_INVALID: Final = 10024
"""The external deliver prefix is not a literal subject."""

INVALID_JSON: Final = 10025
"""The body is not JSON or has a member that the server does not know."""

MAXIMUM_CONSUMERS: Final = 10026
"""The limit of consumers is reached."""

MAXIMUM_STREAMS: Final = 10027
"""The limit of streams is reached."""

MEMORY_EXCEEDED: Final = 10028
"""The memory limit is reached."""

MIRROR_MAX_MSG_SIZE: Final = 10030
"""The mirror's message size limit is lower than the origin's."""

MIRROR_WITH_SOURCES: Final = 10031
"""A mirror cannot have sources."""

MIRROR_WITH_SUBJECTS: Final = 10034
"""A mirror cannot have subjects."""

NO_MESSAGE: Final = 10037
"""There is no such message."""

NO_BODY_EXPECTED: Final = 10038
"""The request must have no body."""

NOT_ENABLED_FOR_ACCOUNT: Final = 10039
"""JetStream is not enabled for the account."""

PEER_NOT_MEMBER: Final = 10040
"""The server has no replica of the stream."""

SEQUENCE_NOT_FOUND: Final = 10043
"""There is no message with this sequence."""

SERVER_NOT_MEMBER: Final = 10044
"""The server is not a member of the cluster."""

SOURCE_MAX_MSG_SIZE: Final = 10046
"""The stream's message size limit is lower than its source's."""

STORAGE_EXCEEDED: Final = 10047
"""The storage limit is reached."""

STREAM_ASSIGNMENT: Final = 10048
"""A server cannot take over the stream that was assigned to it."""

STREAM_CREATE: Final = 10049
"""The stream cannot be created."""

STREAM_INVALID_CONFIG: Final = 10052
"""A setting of the stream, or of a consumer, is not valid."""

MESSAGE_TOO_LARGE: Final = 10054
"""The message is larger than the stream's limit."""

MIRROR_NOT_UPDATABLE: Final = 10055
"""A mirror can be removed from a stream but not changed."""

STREAM_MISMATCH: Final = 10056
"""The stream name in the body differs from the one in the subject."""

MESSAGE_DELETE_FAILED: Final = 10057
"""The message cannot be deleted."""

STREAM_NAME_IN_USE: Final = 10058
"""There is a stream of this name with other settings."""

STREAM_NOT_FOUND: Final = 10059
"""There is no such stream."""

EXPECTED_STREAM_MISMATCH: Final = 10060
"""The message is for another stream than expected."""

RESTORE_FAILED: Final = 10062
"""The stream cannot be restored from what was sent."""

SNAPSHOT_FAILED: Final = 10064
"""The snapshot cannot be created."""

SUBJECT_OVERLAP: Final = 10065
"""Another stream captures one of the subjects."""

STREAM_UPDATE: Final = 10069
"""The stream cannot be changed this way."""

WRONG_LAST_MSG_ID: Final = 10070
"""The last message id is not the expected one."""

WRONG_LAST_SEQUENCE: Final = 10071
"""The last sequence is not the expected one."""

REPLICAS_NOT_SUPPORTED: Final = 10074
"""More than one replica needs a cluster."""

PEER_REMAP_FAILED: Final = 10075
"""No other server can store the stream's replica."""

NOT_ENABLED: Final = 10076
"""JetStream is not enabled on the server."""

STORE_REFUSED: Final = 10077
"""The message exceeds the stream's limits."""

DELIVER_SUBJECT_WILDCARD: Final = 10079
"""The deliver subject has a wildcard."""

PUSH_MAX_WAITING: Final = 10080
"""A push consumer cannot have max_waiting."""

DELIVER_CYCLE: Final = 10081
"""The deliver subject is one of the stream's own."""

MAX_ACK_PENDING_NEEDS_ACKS: Final = 10082
"""max_ack_pending needs an ack policy other than none."""

HEARTBEAT_TOO_SMALL: Final = 10083
"""The heartbeat is below 100 milliseconds."""

PULL_REQUIRES_ACK: Final = 10084
"""A pull consumer of a work queue needs explicit acknowledgement."""

PULL_RATE_LIMIT: Final = 10086
"""A pull consumer cannot have a rate limit."""

MAX_WAITING_NEGATIVE: Final = 10087
"""max_waiting is negative."""

PULL_HEARTBEAT: Final = 10088
"""A pull consumer cannot have a heartbeat."""

PULL_FLOW_CONTROL: Final = 10089
"""A pull consumer cannot have flow control."""

DIRECT_REQUIRES_PUSH: Final = 10090
"""A direct consumer must be a push consumer."""

DIRECT_REQUIRES_EPHEMERAL: Final = 10091
"""A direct consumer cannot be durable."""

FILTER_NOT_SUBSET: Final = 10093
"""The filter lies outside the stream's subjects."""

DELIVER_POLICY_INVALID: Final = 10094
"""The start options do not fit the deliver policy."""

SAMPLE_FREQ_INVALID: Final = 10095
"""The sampling frequency is not valid."""

HEADERS_TOO_LARGE: Final = 10097
"""The headers are larger than 64 KiB."""

WORKQUEUE_REQUIRES_EXPLICIT_ACK: Final = 10098
"""A work queue needs explicit acknowledgement."""

WORKQUEUE_MULTIPLE_UNFILTERED: Final = 10099
"""A work queue can have one consumer without filter."""

WORKQUEUE_CONSUMER_NOT_UNIQUE: Final = 10100
"""Filters of a work queue's consumers cannot overlap."""

WORKQUEUE_REQUIRES_DELIVER_ALL: Final = 10101
"""A consumer of a work queue must deliver all."""

CONSUMER_NAME_TOO_LONG: Final = 10102
"""The consumer's name is longer than 255 bytes."""

CONSUMER_NAME_INVALID: Final = 10103
"""The consumer's name is not valid."""

CONSUMER_ACTIVE: Final = 10105
"""The consumer is active."""

CONSUMER_REPLACEMENT_DIFFERS: Final = 10106
"""The replacement has another name."""

CONSUMER_DESCRIPTION_TOO_LONG: Final = 10107
"""The description is longer than 4096 bytes."""

FLOW_CONTROL_NEEDS_HEARTBEAT: Final = 10108
"""Flow control needs a heartbeat."""

STREAM_SEALED: Final = 10109
"""The stream is sealed."""

PURGE_DENIED: Final = 10110
"""The stream cannot be purged."""

ROLLUP_NOT_PERMITTED: Final = 10111
"""The stream does not accept rollups."""

DELIVER_SUBJECT_INVALID: Final = 10112
"""The deliver subject is not valid."""

MAX_BYTES_REQUIRED: Final = 10113
"""The account requires max_bytes."""

MAX_BATCH_NEGATIVE: Final = 10114
"""max_batch is negative."""

MAX_EXPIRES_TOO_SMALL: Final = 10115
"""max_expires is below one millisecond."""

BACKOFF_EXCEEDS_MAX_DELIVER: Final = 10116
"""There are more backoff values than deliveries."""

TOO_MANY_SUBJECTS: Final = 10117
"""The stream has more subjects than one response can contain."""

STREAM_OFFLINE: Final = 10118
"""The stream is offline."""

CONSUMER_OFFLINE: Final = 10119
"""The consumer is offline."""

NO_LIMITS: Final = 10120
"""The account has no limits for this number of replicas."""

MAX_ACK_PENDING_EXCEEDED: Final = 10121
"""max_ack_pending is above the limit."""

MAX_STREAM_BYTES_EXCEEDED: Final = 10122
"""max_bytes is above the account's limit for a stream."""

MOVE_AND_SCALE: Final = 10123
"""A stream cannot move and change its replicas at once."""

STREAM_MOVE_IN_PROGRESS: Final = 10124
"""The stream is being moved."""

MAX_BATCH_EXCEEDED: Final = 10125
"""max_batch is above the server's limit."""

CONSUMER_REPLICAS_EXCEED_STREAM: Final = 10126
"""The consumer has more replicas than its stream."""

CONSUMER_NAME_PATH_SEPARATOR: Final = 10127
"""The consumer's name has a path separator."""

STREAM_NAME_PATH_SEPARATOR: Final = 10128
"""The stream's name has a path separator."""

STREAM_MOVE_NOT_IN_PROGRESS: Final = 10129
"""The stream is not being moved."""

STREAM_NAME_EXISTS_RESTORE: Final = 10130
"""The stream to restore exists already."""

FILTER_SUBJECT_MISMATCH: Final = 10131
"""The filter in the subject differs from the one in the body."""

CONSUMER_NAMES_DIFFER: Final = 10132
"""Name and durable name differ."""

REPLICAS_NEGATIVE: Final = 10133
"""The number of replicas is negative."""

CONSUMER_REPLICAS_MUST_MATCH: Final = 10134
"""The consumer must have as many replicas as its stream."""

METADATA_TOO_LARGE: Final = 10135
"""The metadata is larger than 128 KiB."""

FILTER_SUBJECT_AND_SUBJECTS: Final = 10136
"""filter_subject and filter_subjects exclude each other."""

MULTIPLE_FILTERS_IN_SUBJECT: Final = 10137
"""Several filters and a filter in the subject exclude each other."""

OVERLAPPING_FILTERS: Final = 10138
"""Two filters overlap."""

EMPTY_FILTER: Final = 10139
"""A filter is empty."""

SOURCE_DUPLICATE: Final = 10140
"""Two sources are the same."""

SOURCE_NAME_INVALID: Final = 10141
"""The name of a source is not valid."""

MIRROR_NAME_INVALID: Final = 10142
"""The name of the mirror's origin is not valid."""

MIRROR_WITH_FIRST_SEQ: Final = 10143
"""A mirror cannot have a first sequence."""

SOURCE_MULTIPLE_FILTERS: Final = 10144
"""A source has a filter and transforms."""

SOURCE_FILTER_INVALID: Final = 10145
"""The filter of a source is not valid."""

SOURCE_TRANSFORM_INVALID: Final = 10146
"""The transform of a source is not valid."""

SOURCE_FILTERS_OVERLAP: Final = 10147
"""The transforms of a source overlap."""

CONSUMER_EXISTS: Final = 10148
"""The consumer exists with other settings."""

CONSUMER_DOES_NOT_EXIST: Final = 10149
"""The consumer to update does not exist."""

MIRROR_MULTIPLE_FILTERS: Final = 10150
"""The mirror has a filter and transforms."""

MIRROR_FILTER_INVALID: Final = 10151
"""The filter of the mirror is not valid."""

MIRROR_FILTERS_OVERLAP: Final = 10152
"""The transforms of the mirror overlap."""

INACTIVE_THRESHOLD_EXCEEDED: Final = 10153
"""inactive_threshold is above the stream's limit."""

MIRROR_TRANSFORM_INVALID: Final = 10154
"""The transform of the mirror is not valid."""

TRANSFORM_SOURCE_INVALID: Final = 10155
"""The source of the subject transform is not valid."""

TRANSFORM_DESTINATION_INVALID: Final = 10156
"""The destination of the subject transform is not valid."""

PEDANTIC: Final = 10157
"""The server would have changed a value."""

MESSAGE_ID_IN_PROCESS: Final = 10158
"""A message with this id is being stored."""

PRIORITY_POLICY_WITHOUT_GROUP: Final = 10159
"""A priority policy needs a group."""

PRIORITY_GROUP_UNKNOWN: Final = 10160
"""The consumer has no such priority group."""

PRIORITY_GROUP_EMPTY: Final = 10161
"""The name of a priority group is empty."""

PRIORITY_GROUP_NAME_INVALID: Final = 10162
"""The name of a priority group is not valid."""

EXPECTATION_UNDECIDED: Final = 10163
"""The expected last sequence of the subject cannot be checked yet."""

WRONG_LAST_SEQUENCE_CONSTANT: Final = 10164
"""The last sequence of the subject is not the expected one."""

TTL_INVALID: Final = 10165
"""The message's time to live is not valid."""

TTL_DISABLED: Final = 10166
"""The stream does not accept messages with a time to live."""

TOO_MANY_REQUESTS: Final = 10167
"""The server is overloaded."""

COUNTER_DISABLED: Final = 10168
"""Counters are disabled in the stream."""

COUNTER_INCREMENT_MISSING: Final = 10169
"""The increment is missing."""

COUNTER_PAYLOAD: Final = 10170
"""An increment cannot have a payload."""

COUNTER_INCREMENT_INVALID: Final = 10171
"""The increment is not valid."""

COUNTER_BROKEN: Final = 10172
"""The stored counter is not readable."""

MIRROR_WITH_COUNTERS: Final = 10173
"""A mirror cannot have counters."""

BATCH_DISABLED: Final = 10174
"""The stream does not accept atomic batches."""

BATCH_SEQUENCE_MISSING: Final = 10175
"""The sequence inside the batch is missing."""

BATCH_INCOMPLETE: Final = 10176
"""The batch is incomplete."""

BATCH_HEADER_UNSUPPORTED: Final = 10177
"""A header is not allowed inside a batch."""

PUSH_WITH_PRIORITY_GROUP: Final = 10178
"""A push consumer cannot have priority groups."""

BATCH_ID_INVALID: Final = 10179
"""The id of the batch is not valid."""

ACK_POLICY_INVALID: Final = 10181
"""The ack policy is not valid."""

REPLAY_POLICY_INVALID: Final = 10182
"""The replay policy is not valid."""

ACK_WAIT_NEGATIVE: Final = 10183
"""ack_wait is negative."""

BACKOFF_NEGATIVE: Final = 10184
"""A backoff value is negative."""

REQUIRED_API_LEVEL: Final = 10185
"""The server's API level is too low."""

MIRROR_WITH_SCHEDULES: Final = 10186
"""A mirror cannot have schedules."""

SOURCE_WITH_SCHEDULES: Final = 10187
"""A stream with sources cannot have schedules."""

SCHEDULES_DISABLED: Final = 10188
"""The stream does not accept schedules."""

SCHEDULE_PATTERN_INVALID: Final = 10189
"""The schedule is not valid."""

SCHEDULE_TARGET_INVALID: Final = 10190
"""The schedule's target is not valid."""

SCHEDULE_TTL_INVALID: Final = 10191
"""The schedule's time to live is not valid."""

SCHEDULE_ROLLUP_INVALID: Final = 10192
"""The schedule's rollup is not valid."""

EXPECTED_SEQUENCE_MISSING: Final = 10193
"""The expected sequence for the subject is missing."""

STREAM_OFFLINE_REASON: Final = 10194
"""The stream is offline for the reason given."""

CONSUMER_OFFLINE_REASON: Final = 10195
"""The consumer is offline for the reason given."""

PRIORITY_GROUP_WITHOUT_POLICY: Final = 10196
"""Priority groups need a policy."""

PRIORITY_TIMEOUT_WITHOUT_POLICY: Final = 10197
"""The priority timeout needs a policy."""

MIRROR_WITH_ATOMIC: Final = 10198
"""A mirror does not accept atomic batches."""

BATCH_TOO_LARGE: Final = 10199
"""The batch has too many messages."""

BATCH_COMMIT_INVALID: Final = 10200
"""The commit of the batch is not valid."""

BATCH_DUPLICATE_MESSAGE_ID: Final = 10201
"""Two messages of the batch have the same id."""

MEMBER_CHANGE_IN_PROGRESS: Final = 10202
"""Another member of the cluster is being added or removed."""

SCHEDULE_SOURCE_INVALID: Final = 10203
"""The schedule's source is not valid."""

CONSUMER_RESET_INVALID: Final = 10204
"""The consumer cannot be reset to this position."""

FAST_BATCH_DISABLED: Final = 10205
"""The stream does not accept fast batches."""

FAST_BATCH_PATTERN: Final = 10206
"""The reply subject of the fast batch is not valid."""

FAST_BATCH_ID_INVALID: Final = 10207
"""The id of the fast batch is not valid."""

FAST_BATCH_ID_UNKNOWN: Final = 10208
"""There is no such fast batch."""

MIRROR_WITH_BATCHED: Final = 10209
"""A mirror does not accept fast batches."""

BATCH_TOO_MANY: Final = 10210
"""Too many batches are open."""

FAST_BATCH_TOO_MANY: Final = 10211
"""Too many fast batches are open."""

SCHEDULER_INVALID: Final = 10212
"""The scheduler header is not valid."""

MIRROR_CONSUMER_INVALID: Final = 10213
"""The consumer for the mirror is not valid."""

MIRROR_CONSUMER_ACK_POLICY: Final = 10214
"""The consumer for the mirror needs acknowledgement by flow control."""

SOURCE_CONSUMER_INVALID: Final = 10215
"""The consumer for the source is not valid."""

SOURCE_CONSUMER_DUPLICATE: Final = 10216
"""Two sources use the same consumer."""

SOURCE_CONSUMER_ACK_POLICY: Final = 10217
"""The consumer for the source needs acknowledgement by flow control."""

ACK_FLOW_CONTROL_REQUIRES_PUSH: Final = 10218
"""Acknowledgement by flow control needs a push consumer."""

ACK_FLOW_CONTROL_REQUIRES_FLOW_CONTROL: Final = 10219
"""Acknowledgement by flow control needs flow control."""

ACK_FLOW_CONTROL_REQUIRES_MAX_ACK_PENDING: Final = 10220
"""Acknowledgement by flow control needs max_ack_pending."""

ACK_FLOW_CONTROL_REQUIRES_NO_ACK_WAIT: Final = 10221
"""Acknowledgement by flow control excludes ack_wait and backoff."""

ACK_FLOW_CONTROL_REQUIRES_NO_MAX_DELIVER: Final = 10222
"""Acknowledgement by flow control excludes max_deliver."""

SCHEDULE_TIME_ZONE_INVALID: Final = 10223
"""The schedule's time zone is not valid."""

CLUSTER_RESCUE: Final = 10224
"""The rescue of the cluster was not applied."""

CONSUMER_STREAM_MISMATCH: Final = 10225
"""The stream is not the one that the request expects."""

STREAM_RECONFIGURATION_IN_PROGRESS: Final = 10226
"""The stream is being moved or scaled."""

STREAM_SOURCE_HEADER: Final = 10227
"""A client cannot set the header of sourced messages."""

NAMES: Final[dict[int, str]] = {
    10002: "ACCOUNT_RESOURCES_EXCEEDED",
    10003: "BAD_REQUEST",
    10004: "CLUSTER_INCOMPLETE",
    10005: "NO_SUITABLE_PEERS",
    10007: "CLUSTER_NOT_ASSIGNED",
    10008: "CLUSTER_NOT_AVAILABLE",
    10009: "CLUSTER_NOT_LEADER",
    10010: "CLUSTER_REQUIRED",
    10012: "CONSUMER_CREATE",
    10013: "CONSUMER_NAME_EXISTS",
    10014: "CONSUMER_NOT_FOUND",
    10015: "SNAPSHOT_DELIVER_SUBJECT",
    10017: "DURABLE_NAME_MISMATCH",
    10018: "DURABLE_NAME_MISSING",
    10020: "EPHEMERAL_WITH_DURABLE_NAME",
    10021: "EXTERNAL_API_OVERLAP",
    10022: "EXTERNAL_DELIVER_OVERLAP",
    10023: "INSUFFICIENT_STORAGE",
    10024: "EXTERNAL_DELIVER_INVALID",
    10025: "INVALID_JSON",
    10026: "MAXIMUM_CONSUMERS",
    10027: "MAXIMUM_STREAMS",
    10028: "MEMORY_EXCEEDED",
    10030: "MIRROR_MAX_MSG_SIZE",
    10031: "MIRROR_WITH_SOURCES",
    10034: "MIRROR_WITH_SUBJECTS",
    10037: "NO_MESSAGE",
    10038: "NO_BODY_EXPECTED",
    10039: "NOT_ENABLED_FOR_ACCOUNT",
    10040: "PEER_NOT_MEMBER",
    10043: "SEQUENCE_NOT_FOUND",
    10044: "SERVER_NOT_MEMBER",
    10046: "SOURCE_MAX_MSG_SIZE",
    10047: "STORAGE_EXCEEDED",
    10048: "STREAM_ASSIGNMENT",
    10049: "STREAM_CREATE",
    10052: "STREAM_INVALID_CONFIG",
    10054: "MESSAGE_TOO_LARGE",
    10055: "MIRROR_NOT_UPDATABLE",
    10056: "STREAM_MISMATCH",
    10057: "MESSAGE_DELETE_FAILED",
    10058: "STREAM_NAME_IN_USE",
    10059: "STREAM_NOT_FOUND",
    10060: "EXPECTED_STREAM_MISMATCH",
    10062: "RESTORE_FAILED",
    10064: "SNAPSHOT_FAILED",
    10065: "SUBJECT_OVERLAP",
    10069: "STREAM_UPDATE",
    10070: "WRONG_LAST_MSG_ID",
    10071: "WRONG_LAST_SEQUENCE",
    10074: "REPLICAS_NOT_SUPPORTED",
    10075: "PEER_REMAP_FAILED",
    10076: "NOT_ENABLED",
    10077: "STORE_REFUSED",
    10079: "DELIVER_SUBJECT_WILDCARD",
    10080: "PUSH_MAX_WAITING",
    10081: "DELIVER_CYCLE",
    10082: "MAX_ACK_PENDING_NEEDS_ACKS",
    10083: "HEARTBEAT_TOO_SMALL",
    10084: "PULL_REQUIRES_ACK",
    10086: "PULL_RATE_LIMIT",
    10087: "MAX_WAITING_NEGATIVE",
    10088: "PULL_HEARTBEAT",
    10089: "PULL_FLOW_CONTROL",
    10090: "DIRECT_REQUIRES_PUSH",
    10091: "DIRECT_REQUIRES_EPHEMERAL",
    10093: "FILTER_NOT_SUBSET",
    10094: "DELIVER_POLICY_INVALID",
    10095: "SAMPLE_FREQ_INVALID",
    10097: "HEADERS_TOO_LARGE",
    10098: "WORKQUEUE_REQUIRES_EXPLICIT_ACK",
    10099: "WORKQUEUE_MULTIPLE_UNFILTERED",
    10100: "WORKQUEUE_CONSUMER_NOT_UNIQUE",
    10101: "WORKQUEUE_REQUIRES_DELIVER_ALL",
    10102: "CONSUMER_NAME_TOO_LONG",
    10103: "CONSUMER_NAME_INVALID",
    10105: "CONSUMER_ACTIVE",
    10106: "CONSUMER_REPLACEMENT_DIFFERS",
    10107: "CONSUMER_DESCRIPTION_TOO_LONG",
    10108: "FLOW_CONTROL_NEEDS_HEARTBEAT",
    10109: "STREAM_SEALED",
    10110: "PURGE_DENIED",
    10111: "ROLLUP_NOT_PERMITTED",
    10112: "DELIVER_SUBJECT_INVALID",
    10113: "MAX_BYTES_REQUIRED",
    10114: "MAX_BATCH_NEGATIVE",
    10115: "MAX_EXPIRES_TOO_SMALL",
    10116: "BACKOFF_EXCEEDS_MAX_DELIVER",
    10117: "TOO_MANY_SUBJECTS",
    10118: "STREAM_OFFLINE",
    10119: "CONSUMER_OFFLINE",
    10120: "NO_LIMITS",
    10121: "MAX_ACK_PENDING_EXCEEDED",
    10122: "MAX_STREAM_BYTES_EXCEEDED",
    10123: "MOVE_AND_SCALE",
    10124: "STREAM_MOVE_IN_PROGRESS",
    10125: "MAX_BATCH_EXCEEDED",
    10126: "CONSUMER_REPLICAS_EXCEED_STREAM",
    10127: "CONSUMER_NAME_PATH_SEPARATOR",
    10128: "STREAM_NAME_PATH_SEPARATOR",
    10129: "STREAM_MOVE_NOT_IN_PROGRESS",
    10130: "STREAM_NAME_EXISTS_RESTORE",
    10131: "FILTER_SUBJECT_MISMATCH",
    10132: "CONSUMER_NAMES_DIFFER",
    10133: "REPLICAS_NEGATIVE",
    10134: "CONSUMER_REPLICAS_MUST_MATCH",
    10135: "METADATA_TOO_LARGE",
    10136: "FILTER_SUBJECT_AND_SUBJECTS",
    10137: "MULTIPLE_FILTERS_IN_SUBJECT",
    10138: "OVERLAPPING_FILTERS",
    10139: "EMPTY_FILTER",
    10140: "SOURCE_DUPLICATE",
    10141: "SOURCE_NAME_INVALID",
    10142: "MIRROR_NAME_INVALID",
    10143: "MIRROR_WITH_FIRST_SEQ",
    10144: "SOURCE_MULTIPLE_FILTERS",
    10145: "SOURCE_FILTER_INVALID",
    10146: "SOURCE_TRANSFORM_INVALID",
    10147: "SOURCE_FILTERS_OVERLAP",
    10148: "CONSUMER_EXISTS",
    10149: "CONSUMER_DOES_NOT_EXIST",
    10150: "MIRROR_MULTIPLE_FILTERS",
    10151: "MIRROR_FILTER_INVALID",
    10152: "MIRROR_FILTERS_OVERLAP",
    10153: "INACTIVE_THRESHOLD_EXCEEDED",
    10154: "MIRROR_TRANSFORM_INVALID",
    10155: "TRANSFORM_SOURCE_INVALID",
    10156: "TRANSFORM_DESTINATION_INVALID",
    10157: "PEDANTIC",
    10158: "MESSAGE_ID_IN_PROCESS",
    10159: "PRIORITY_POLICY_WITHOUT_GROUP",
    10160: "PRIORITY_GROUP_UNKNOWN",
    10161: "PRIORITY_GROUP_EMPTY",
    10162: "PRIORITY_GROUP_NAME_INVALID",
    10163: "EXPECTATION_UNDECIDED",
    10164: "WRONG_LAST_SEQUENCE_CONSTANT",
    10165: "TTL_INVALID",
    10166: "TTL_DISABLED",
    10167: "TOO_MANY_REQUESTS",
    10168: "COUNTER_DISABLED",
    10169: "COUNTER_INCREMENT_MISSING",
    10170: "COUNTER_PAYLOAD",
    10171: "COUNTER_INCREMENT_INVALID",
    10172: "COUNTER_BROKEN",
    10173: "MIRROR_WITH_COUNTERS",
    10174: "BATCH_DISABLED",
    10175: "BATCH_SEQUENCE_MISSING",
    10176: "BATCH_INCOMPLETE",
    10177: "BATCH_HEADER_UNSUPPORTED",
    10178: "PUSH_WITH_PRIORITY_GROUP",
    10179: "BATCH_ID_INVALID",
    10181: "ACK_POLICY_INVALID",
    10182: "REPLAY_POLICY_INVALID",
    10183: "ACK_WAIT_NEGATIVE",
    10184: "BACKOFF_NEGATIVE",
    10185: "REQUIRED_API_LEVEL",
    10186: "MIRROR_WITH_SCHEDULES",
    10187: "SOURCE_WITH_SCHEDULES",
    10188: "SCHEDULES_DISABLED",
    10189: "SCHEDULE_PATTERN_INVALID",
    10190: "SCHEDULE_TARGET_INVALID",
    10191: "SCHEDULE_TTL_INVALID",
    10192: "SCHEDULE_ROLLUP_INVALID",
    10193: "EXPECTED_SEQUENCE_MISSING",
    10194: "STREAM_OFFLINE_REASON",
    10195: "CONSUMER_OFFLINE_REASON",
    10196: "PRIORITY_GROUP_WITHOUT_POLICY",
    10197: "PRIORITY_TIMEOUT_WITHOUT_POLICY",
    10198: "MIRROR_WITH_ATOMIC",
    10199: "BATCH_TOO_LARGE",
    10200: "BATCH_COMMIT_INVALID",
    10201: "BATCH_DUPLICATE_MESSAGE_ID",
    10202: "MEMBER_CHANGE_IN_PROGRESS",
    10203: "SCHEDULE_SOURCE_INVALID",
    10204: "CONSUMER_RESET_INVALID",
    10205: "FAST_BATCH_DISABLED",
    10206: "FAST_BATCH_PATTERN",
    10207: "FAST_BATCH_ID_INVALID",
    10208: "FAST_BATCH_ID_UNKNOWN",
    10209: "MIRROR_WITH_BATCHED",
    10210: "BATCH_TOO_MANY",
    10211: "FAST_BATCH_TOO_MANY",
    10212: "SCHEDULER_INVALID",
    10213: "MIRROR_CONSUMER_INVALID",
    10214: "MIRROR_CONSUMER_ACK_POLICY",
    10215: "SOURCE_CONSUMER_INVALID",
    10216: "SOURCE_CONSUMER_DUPLICATE",
    10217: "SOURCE_CONSUMER_ACK_POLICY",
    10218: "ACK_FLOW_CONTROL_REQUIRES_PUSH",
    10219: "ACK_FLOW_CONTROL_REQUIRES_FLOW_CONTROL",
    10220: "ACK_FLOW_CONTROL_REQUIRES_MAX_ACK_PENDING",
    10221: "ACK_FLOW_CONTROL_REQUIRES_NO_ACK_WAIT",
    10222: "ACK_FLOW_CONTROL_REQUIRES_NO_MAX_DELIVER",
    10223: "SCHEDULE_TIME_ZONE_INVALID",
    10224: "CLUSTER_RESCUE",
    10225: "CONSUMER_STREAM_MISMATCH",
    10226: "STREAM_RECONFIGURATION_IN_PROGRESS",
    10227: "STREAM_SOURCE_HEADER",
}
"""The name of each error code."""

STATUS: Final[dict[int, int]] = {
    10002: 400,
    10003: 400,
    10004: 503,
    10005: 400,
    10007: 500,
    10008: 503,
    10009: 500,
    10010: 503,
    10012: 500,
    10013: 400,
    10014: 404,
    10015: 400,
    10017: 400,
    10018: 400,
    10020: 400,
    10021: 400,
    10022: 400,
    10023: 503,
    10024: 400,
    10025: 400,
    10026: 400,
    10027: 400,
    10028: 500,
    10030: 400,
    10031: 400,
    10034: 400,
    10037: 404,
    10038: 400,
    10039: 503,
    10040: 400,
    10043: 400,
    10044: 400,
    10046: 400,
    10047: 500,
    10048: 500,
    10049: 500,
    10052: 500,
    10054: 400,
    10055: 400,
    10056: 400,
    10057: 500,
    10058: 400,
    10059: 404,
    10060: 400,
    10062: 500,
    10064: 500,
    10065: 400,
    10069: 500,
    10070: 400,
    10071: 400,
    10074: 500,
    10075: 503,
    10076: 503,
    10077: 503,
    10079: 400,
    10080: 400,
    10081: 400,
    10082: 400,
    10083: 400,
    10084: 400,
    10086: 400,
    10087: 400,
    10088: 400,
    10089: 400,
    10090: 400,
    10091: 400,
    10093: 400,
    10094: 400,
    10095: 400,
    10097: 400,
    10098: 400,
    10099: 400,
    10100: 400,
    10101: 400,
    10102: 400,
    10103: 400,
    10105: 400,
    10106: 400,
    10107: 400,
    10108: 400,
    10109: 400,
    10110: 500,
    10111: 500,
    10112: 400,
    10113: 400,
    10114: 400,
    10115: 400,
    10116: 400,
    10117: 500,
    10118: 500,
    10119: 500,
    10120: 400,
    10121: 400,
    10122: 400,
    10123: 400,
    10124: 400,
    10125: 400,
    10126: 400,
    10127: 400,
    10128: 400,
    10129: 400,
    10130: 400,
    10131: 400,
    10132: 400,
    10133: 400,
    10134: 400,
    10135: 400,
    10136: 400,
    10137: 400,
    10138: 400,
    10139: 400,
    10140: 400,
    10141: 400,
    10142: 400,
    10143: 400,
    10144: 400,
    10145: 400,
    10146: 400,
    10147: 400,
    10148: 400,
    10149: 400,
    10150: 400,
    10151: 400,
    10152: 400,
    10153: 400,
    10154: 400,
    10155: 400,
    10156: 400,
    10157: 400,
    10158: 409,
    10159: 400,
    10160: 400,
    10161: 400,
    10162: 400,
    10163: 503,
    10164: 400,
    10165: 400,
    10166: 400,
    10167: 429,
    10168: 400,
    10169: 400,
    10170: 400,
    10171: 400,
    10172: 400,
    10173: 400,
    10174: 400,
    10175: 400,
    10176: 400,
    10177: 400,
    10178: 400,
    10179: 400,
    10181: 400,
    10182: 400,
    10183: 400,
    10184: 400,
    10185: 412,
    10186: 400,
    10187: 400,
    10188: 400,
    10189: 400,
    10190: 400,
    10191: 400,
    10192: 400,
    10193: 400,
    10194: 500,
    10195: 500,
    10196: 400,
    10197: 400,
    10198: 400,
    10199: 400,
    10200: 400,
    10201: 400,
    10202: 400,
    10203: 400,
    10204: 400,
    10205: 400,
    10206: 400,
    10207: 400,
    10208: 400,
    10209: 400,
    10210: 429,
    10211: 429,
    10212: 400,
    10213: 400,
    10214: 400,
    10215: 400,
    10216: 400,
    10217: 400,
    10218: 400,
    10219: 400,
    10220: 400,
    10221: 400,
    10222: 400,
    10223: 400,
    10224: 400,
    10225: 400,
    10226: 400,
    10227: 400,
}
"""The HTTP-like `code` of each error code."""

CLASSES: Final[dict[int, str]] = {
    10012: "InvalidConfig",
    10013: "ConsumerExists",
    10014: "ConsumerNotFound",
    10025: "InvalidConfig",
    10037: "MessageNotFound",
    10039: "JetStreamNotEnabled",
    10043: "MessageNotFound",
    10052: "InvalidConfig",
    10057: "MessageNotFound",
    10058: "StreamExists",
    10059: "StreamNotFound",
    10060: "WrongStream",
    10065: "SubjectOverlap",
    10070: "WrongLastMessageId",
    10071: "WrongLastSequence",
    10076: "JetStreamNotEnabled",
    10077: "StoreFailed",
    10105: "ConsumerExists",
    10130: "StreamExists",
    10148: "ConsumerExists",
    10149: "ConsumerNotFound",
    10158: "MessageIdInProcess",
    10164: "WrongLastSequence",
}
"""The name of the class in `twinstream.errors` for an error code."""

ADVICE: Final[dict[int, str]] = {
    10060: "another stream has this subject: correct the subject or the expected stream",
    10099: "let the programs share one consumer, or give each consumer a filter of its own",
    10100: "let the programs share one consumer, or give each consumer a filter of its own",
    10111: "set allow_rollup_hdrs of the stream",
    10130: "a backup is restored under its own name only: delete the stream first",
    10166: "set allow_msg_ttl of the stream, which cannot be undone",
    10168: "create the stream with allow_msg_counter, which cannot be set later",
    10169: "the stream contains counters: use counters(stream).add of a JetStream context",
    10174: "set allow_atomic of the stream",
    10188: "set allow_msg_schedules of the stream, which cannot be undone",
    10212: "Nats-Scheduler and Nats-Schedule-Next only cancel a schedule together; to publish a received message again, pass message.headers.to_publish()",
    10227: "only servers write Nats-Stream-Source; to publish a received message again, pass message.headers.to_publish()",
}
"""What to try, for errors whose text does not contain it."""

TRANSIENT: Final[dict[int, str]] = {
    10004: "request",
    10007: "request",
    10008: "request",
    10009: "request",
    10158: "request",
    10163: "request",
    10167: "request",
    10176: "batch",
    10208: "batch",
    10210: "batch",
    10211: "batch",
}
"""Errors after which a retry may succeed: of the `request`, or of the whole `batch`."""
