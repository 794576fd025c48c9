"""Generated from schema/advisory and schema/metric by codegen/event_types.py.

Edit those files instead, then run `make gen`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from twinstream.spark.decode.event import Event
from twinstream.spark.decode.fields import (
    BOOLEAN,
    LONG,
    STRING,
    TIMESTAMP,
    array_of,
    map_of,
    optional,
    record,
    required,
)

_PEER_INFO: Final = record(
    required("name", STRING, "Name of the server."),
    optional("current", BOOLEAN, "Whether it is up to date with the leader."),
    optional("offline", BOOLEAN, "Whether the leader counts it as gone."),
    optional("active", LONG, "Time since it was last heard, in nanoseconds."),
    optional("lag", LONG, "Operations that it is behind the leader. Unit: messages."),
    optional("peer", STRING, "Identity of the server inside the group."),
    optional("pending", BOOLEAN, "Whether it takes part in a move that is not finished."),
    optional("observer", BOOLEAN, "Whether it follows without a vote."),
)

_CLIENT_INFO: Final = record(
    optional("start", TIMESTAMP, "When it connected."),
    optional("host", STRING, "Address of the client."),
    optional("id", LONG, "Number of the connection on its server."),
    optional("acc", STRING, "Account."),
    optional("svc", STRING, "Account of the service that passed the request on."),
    optional("user", STRING, "User name or public key."),
    optional("name", STRING, "Name that the client gave itself."),
    optional("lang", STRING, "Language of its library."),
    optional("ver", STRING, "Version of its library."),
    optional("rtt", LONG, "Last measured round trip, in nanoseconds."),
    optional("server", STRING, "Server that it is connected to."),
    optional("cluster", STRING, "Cluster of that server."),
    optional("alts", array_of(STRING), "Other clusters that hold the service."),
    optional("stop", TIMESTAMP, "When it disconnected."),
    optional("jwt", STRING, "User token."),
    optional("issuer_key", STRING, "Public key of the issuer."),
    optional("name_tag", STRING, "Name in the user token."),
    optional("tags", array_of(STRING), "Tags in the user token."),
    optional("kind", STRING, "Kind of connection, such as Client or Leafnode."),
    optional("client_type", STRING, "Protocol, such as nats, websocket or mqtt."),
    optional("client_id", STRING, "MQTT client identity."),
    optional("nonce", STRING, "Challenge of the connection."),
)

API_AUDIT: Final = Event(
    "api_audit",
    "io.nats.jetstream.advisory.v1.api_audit",
    "$JS.EVENT.ADVISORY.API",
    record(
        required("type", STRING, "Name of the type."),
        required("id", STRING, "Unique text of this event."),
        required("timestamp", TIMESTAMP, "When it happened."),
        required("server", STRING, "Server that answered."),
        optional("client", _CLIENT_INFO, "Connection that asked for it."),
        required("subject", STRING, "Subject of the request."),
        optional("request", STRING, "Body of the request as text."),
        required("response", STRING, "Body of the answer as text."),
        optional("domain", STRING, "JetStream domain of the server."),
    ),
)
"""A JetStream request was answered."""

API_LIMIT_REACHED: Final = Event(
    "api_limit_reached",
    "io.nats.jetstream.advisory.v1.api_limit_reached",
    "$JS.EVENT.ADVISORY.API.LIMIT_REACHED",
    record(
        required("type", STRING, "Name of the type."),
        required("id", STRING, "Unique text of this event."),
        required("timestamp", TIMESTAMP, "When it happened."),
        required("server", STRING, "Server that dropped them."),
        required("dropped", LONG, "Number of requests dropped."),
        optional("domain", STRING, "JetStream domain of the server."),
    ),
)
"""A server dropped JetStream requests because too many were waiting."""

CONSUMER_ACTION: Final = Event(
    "consumer_action",
    "io.nats.jetstream.advisory.v1.consumer_action",
    "$JS.EVENT.ADVISORY.CONSUMER.*.*.*",
    record(
        required("type", STRING, "Name of the type."),
        required("id", STRING, "Unique text of this event."),
        required("timestamp", TIMESTAMP, "When it happened."),
        required("stream", STRING, "Name of the stream."),
        required("consumer", STRING, "Name of the consumer."),
        required("action", STRING, "What happened to it."),
        optional("domain", STRING, "JetStream domain of the server."),
    ),
)
"""A consumer was made or removed."""

CONSUMER_GROUP_PINNED: Final = Event(
    "consumer_group_pinned",
    "io.nats.jetstream.advisory.v1.consumer_group_pinned",
    "$JS.EVENT.ADVISORY.CONSUMER.PINNED.*.*",
    record(
        required("type", STRING, "Name of the type."),
        required("id", STRING, "Unique text of this event."),
        required("timestamp", TIMESTAMP, "When it happened."),
        optional("account", STRING, "Account of the asset."),
        required("stream", STRING, "Name of the stream."),
        required("consumer", STRING, "Name of the consumer."),
        required("group", STRING, "Name of the group."),
        required("pinned_id", STRING, "Pin of the client."),
        optional("domain", STRING, "JetStream domain of the server."),
    ),
)
"""A client was pinned to a priority group."""

CONSUMER_GROUP_UNPINNED: Final = Event(
    "consumer_group_unpinned",
    "io.nats.jetstream.advisory.v1.consumer_group_unpinned",
    "$JS.EVENT.ADVISORY.CONSUMER.UNPINNED.*.*",
    record(
        required("type", STRING, "Name of the type."),
        required("id", STRING, "Unique text of this event."),
        required("timestamp", TIMESTAMP, "When it happened."),
        optional("account", STRING, "Account of the asset."),
        required("stream", STRING, "Name of the stream."),
        required("consumer", STRING, "Name of the consumer."),
        required("group", STRING, "Name of the group."),
        required("reason", STRING, "Why it was lost."),
        optional("domain", STRING, "JetStream domain of the server."),
    ),
)
"""A priority group lost its pinned client."""

CONSUMER_LEADER_ELECTED: Final = Event(
    "consumer_leader_elected",
    "io.nats.jetstream.advisory.v1.consumer_leader_elected",
    "$JS.EVENT.ADVISORY.CONSUMER.LEADER_ELECTED.*.*",
    record(
        required("type", STRING, "Name of the type."),
        required("id", STRING, "Unique text of this event."),
        required("timestamp", TIMESTAMP, "When it happened."),
        optional("account", STRING, "Account of the asset."),
        required("stream", STRING, "Name of the stream."),
        required("consumer", STRING, "Name of the consumer."),
        optional("leader", STRING, "Server that leads now."),
        optional("replicas", array_of(_PEER_INFO), "The followers."),
        optional("domain", STRING, "JetStream domain of the server."),
    ),
)
"""A consumer has a new leader."""

CONSUMER_PAUSE: Final = Event(
    "consumer_pause",
    "io.nats.jetstream.advisory.v1.consumer_pause",
    "$JS.EVENT.ADVISORY.CONSUMER.PAUSE.*.*",
    record(
        required("type", STRING, "Name of the type."),
        required("id", STRING, "Unique text of this event."),
        required("timestamp", TIMESTAMP, "When it happened."),
        required("stream", STRING, "Name of the stream."),
        required("consumer", STRING, "Name of the consumer."),
        required("paused", BOOLEAN, "Whether it is paused."),
        optional("pause_until", TIMESTAMP, "End of the pause."),
        optional("domain", STRING, "JetStream domain of the server."),
    ),
)
"""A consumer was paused or went on."""

CONSUMER_QUORUM_LOST: Final = Event(
    "consumer_quorum_lost",
    "io.nats.jetstream.advisory.v1.consumer_quorum_lost",
    "$JS.EVENT.ADVISORY.CONSUMER.QUORUM_LOST.*.*",
    record(
        required("type", STRING, "Name of the type."),
        required("id", STRING, "Unique text of this event."),
        required("timestamp", TIMESTAMP, "When it happened."),
        optional("account", STRING, "Account of the asset."),
        required("stream", STRING, "Name of the stream."),
        required("consumer", STRING, "Name of the consumer."),
        optional("replicas", array_of(_PEER_INFO), "The servers of the group as far as known."),
        optional("domain", STRING, "JetStream domain of the server."),
    ),
)
"""A consumer lost the majority of its servers."""

DOMAIN_LEADER_ELECTED: Final = Event(
    "domain_leader_elected",
    "io.nats.jetstream.advisory.v1.domain_leader_elected",
    "$JS.EVENT.ADVISORY.DOMAIN.LEADER_ELECTED",
    record(
        required("type", STRING, "Name of the type."),
        required("id", STRING, "Unique text of this event."),
        required("timestamp", TIMESTAMP, "When it happened."),
        optional("leader", STRING, "Server that leads now."),
        optional("replicas", array_of(_PEER_INFO), "The followers."),
        optional("cluster", STRING, "Cluster of the server."),
        optional("domain", STRING, "JetStream domain of the server."),
    ),
)
"""A JetStream domain has a new meta leader."""

MAX_DELIVER: Final = Event(
    "max_deliver",
    "io.nats.jetstream.advisory.v1.max_deliver",
    "$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.*.*",
    record(
        required("type", STRING, "Name of the type."),
        required("id", STRING, "Unique text of this event."),
        required("timestamp", TIMESTAMP, "When it happened."),
        required("stream", STRING, "Name of the stream."),
        required("consumer", STRING, "Name of the consumer."),
        required("stream_seq", LONG, "Sequence of the message in the stream."),
        required("deliveries", LONG, "How often it was delivered."),
        optional("domain", STRING, "JetStream domain of the server."),
    ),
)
"""A message reached its delivery limit without acknowledgement."""

META_RESCUE: Final = Event(
    "meta_rescue",
    "io.nats.jetstream.advisory.v1.meta_rescue",
    "$JS.EVENT.ADVISORY.SERVER.META_RESCUE",
    record(
        required("type", STRING, "Name of the type."),
        required("id", STRING, "Unique text of this event."),
        required("timestamp", TIMESTAMP, "When it happened."),
        required("server", STRING, "Name of the server."),
        required("server_id", STRING, "Identity of the server."),
        required("prev_quorum", LONG, "Servers that made a quorum before."),
        required("new_quorum", LONG, "Servers that make one now."),
        optional("cluster", STRING, "Cluster of the server."),
        optional("domain", STRING, "JetStream domain of the server."),
    ),
)
"""A server goes on with a smaller quorum."""

NAK: Final = Event(
    "nak",
    "io.nats.jetstream.advisory.v1.nak",
    "$JS.EVENT.ADVISORY.CONSUMER.MSG_NAKED.*.*",
    record(
        required("type", STRING, "Name of the type."),
        required("id", STRING, "Unique text of this event."),
        required("timestamp", TIMESTAMP, "When it happened."),
        required("stream", STRING, "Name of the stream."),
        required("consumer", STRING, "Name of the consumer."),
        required("consumer_seq", LONG, "Sequence of the delivery."),
        required("stream_seq", LONG, "Sequence of the message in the stream."),
        required("deliveries", LONG, "How often it was delivered."),
        optional("domain", STRING, "JetStream domain of the server."),
    ),
)
"""A message was acknowledged negatively."""

RESTORE_COMPLETE: Final = Event(
    "restore_complete",
    "io.nats.jetstream.advisory.v1.restore_complete",
    "$JS.EVENT.ADVISORY.STREAM.RESTORE_COMPLETE.*",
    record(
        required("type", STRING, "Name of the type."),
        required("id", STRING, "Unique text of this event."),
        required("timestamp", TIMESTAMP, "When it happened."),
        required("stream", STRING, "Name of the stream."),
        required("start", TIMESTAMP, "When it began."),
        required("end", TIMESTAMP, "When it ended."),
        optional("bytes", LONG, "Size that was received, in bytes."),
        optional("client", _CLIENT_INFO, "Connection that asked for it."),
        optional("domain", STRING, "JetStream domain of the server."),
    ),
)
"""The restore of a stream ended."""

RESTORE_CREATE: Final = Event(
    "restore_create",
    "io.nats.jetstream.advisory.v1.restore_create",
    "$JS.EVENT.ADVISORY.STREAM.RESTORE_CREATE.*",
    record(
        required("type", STRING, "Name of the type."),
        required("id", STRING, "Unique text of this event."),
        required("timestamp", TIMESTAMP, "When it happened."),
        required("stream", STRING, "Name of the stream."),
        optional("client", _CLIENT_INFO, "Connection that asked for it."),
        optional("domain", STRING, "JetStream domain of the server."),
    ),
)
"""The restore of a stream began."""

SERVER_OUT_OF_SPACE: Final = Event(
    "server_out_of_space",
    "io.nats.jetstream.advisory.v1.server_out_of_space",
    "$JS.EVENT.ADVISORY.SERVER.OUT_OF_STORAGE",
    record(
        required("type", STRING, "Name of the type."),
        required("id", STRING, "Unique text of this event."),
        required("timestamp", TIMESTAMP, "When it happened."),
        required("server", STRING, "Name of the server."),
        required("server_id", STRING, "Identity of the server."),
        optional("stream", STRING, "Stream that met the limit."),
        optional("cluster", STRING, "Cluster of the server."),
        optional("domain", STRING, "JetStream domain of the server."),
    ),
)
"""A server has no room left for JetStream."""

SERVER_REMOVED: Final = Event(
    "server_removed",
    "io.nats.jetstream.advisory.v1.server_removed",
    "$JS.EVENT.ADVISORY.SERVER.REMOVED",
    record(
        required("type", STRING, "Name of the type."),
        required("id", STRING, "Unique text of this event."),
        required("timestamp", TIMESTAMP, "When it happened."),
        required("server", STRING, "Name of the server."),
        required("server_id", STRING, "Identity of the server."),
        optional("cluster", STRING, "Cluster of the server."),
        optional("domain", STRING, "JetStream domain of the server."),
    ),
)
"""A server was taken out of the cluster."""

SNAPSHOT_COMPLETE: Final = Event(
    "snapshot_complete",
    "io.nats.jetstream.advisory.v1.snapshot_complete",
    "$JS.EVENT.ADVISORY.STREAM.SNAPSHOT_COMPLETE.*",
    record(
        required("type", STRING, "Name of the type."),
        required("id", STRING, "Unique text of this event."),
        required("timestamp", TIMESTAMP, "When it happened."),
        required("stream", STRING, "Name of the stream."),
        required("start", TIMESTAMP, "When it began."),
        required("end", TIMESTAMP, "When it ended."),
        optional("client", _CLIENT_INFO, "Connection that asked for it."),
        optional("error", STRING, "Why it failed."),
        optional("domain", STRING, "JetStream domain of the server."),
    ),
)
"""A snapshot of a stream ended."""

SNAPSHOT_CREATE: Final = Event(
    "snapshot_create",
    "io.nats.jetstream.advisory.v1.snapshot_create",
    "$JS.EVENT.ADVISORY.STREAM.SNAPSHOT_CREATE.*",
    record(
        required("type", STRING, "Name of the type."),
        required("id", STRING, "Unique text of this event."),
        required("timestamp", TIMESTAMP, "When it happened."),
        required("stream", STRING, "Name of the stream."),
        optional(
            "state",
            record(
                required("messages", LONG, "Number of messages."),
                required("bytes", LONG, "Size in bytes."),
                required("first_seq", LONG, "Sequence of the first message."),
                optional(
                    "first_ts",
                    TIMESTAMP,
                    "When the first message was stored, the zero time in an empty stream.",
                ),
                required("last_seq", LONG, "Sequence of the last message ever stored."),
                optional(
                    "last_ts",
                    TIMESTAMP,
                    "When the last message was stored, the zero time in a new stream.",
                ),
                optional("num_subjects", LONG, "Number of different subjects."),
                optional(
                    "subjects", map_of(LONG), "Number of messages by subject, when asked for."
                ),
                optional("num_deleted", LONG, "Number of gaps between first and last sequence."),
                optional("deleted", array_of(LONG), "Sequences of the gaps, when asked for."),
                optional(
                    "lost",
                    record(
                        optional("msgs", array_of(LONG), "Their sequences."),
                        optional("bytes", LONG, "Their size in bytes."),
                    ),
                    "Messages that the store could not read back.",
                ),
                required("consumer_count", LONG, "Number of consumers."),
            ),
            "What the stream held.",
        ),
        optional("client", _CLIENT_INFO, "Connection that asked for it."),
        optional("domain", STRING, "JetStream domain of the server."),
    ),
)
"""A snapshot of a stream began."""

STREAM_ACTION: Final = Event(
    "stream_action",
    "io.nats.jetstream.advisory.v1.stream_action",
    "$JS.EVENT.ADVISORY.STREAM.*.*",
    record(
        required("type", STRING, "Name of the type."),
        required("id", STRING, "Unique text of this event."),
        required("timestamp", TIMESTAMP, "When it happened."),
        required("stream", STRING, "Name of the stream."),
        required("action", STRING, "What happened to it."),
        optional("template", STRING, "Template that made it, on old servers."),
        optional("domain", STRING, "JetStream domain of the server."),
    ),
)
"""A stream was made, changed or removed."""

STREAM_BATCH_ABANDONED: Final = Event(
    "stream_batch_abandoned",
    "io.nats.jetstream.advisory.v1.stream_batch_abandoned",
    "$JS.EVENT.ADVISORY.STREAM.BATCH_ABANDONED.*",
    record(
        required("type", STRING, "Name of the type."),
        required("id", STRING, "Unique text of this event."),
        required("timestamp", TIMESTAMP, "When it happened."),
        optional("account", STRING, "Account of the asset."),
        required("stream", STRING, "Name of the stream."),
        required("batch", STRING, "Identity of the batch."),
        required("reason", STRING, "Why it was given up."),
        optional("domain", STRING, "JetStream domain of the server."),
    ),
)
"""A batch of messages was given up."""

STREAM_LEADER_ELECTED: Final = Event(
    "stream_leader_elected",
    "io.nats.jetstream.advisory.v1.stream_leader_elected",
    "$JS.EVENT.ADVISORY.STREAM.LEADER_ELECTED.*",
    record(
        required("type", STRING, "Name of the type."),
        required("id", STRING, "Unique text of this event."),
        required("timestamp", TIMESTAMP, "When it happened."),
        optional("account", STRING, "Account of the asset."),
        required("stream", STRING, "Name of the stream."),
        optional("leader", STRING, "Server that leads now."),
        optional("replicas", array_of(_PEER_INFO), "The followers."),
        optional("domain", STRING, "JetStream domain of the server."),
    ),
)
"""A stream has a new leader."""

STREAM_QUORUM_LOST: Final = Event(
    "stream_quorum_lost",
    "io.nats.jetstream.advisory.v1.stream_quorum_lost",
    "$JS.EVENT.ADVISORY.STREAM.QUORUM_LOST.*",
    record(
        required("type", STRING, "Name of the type."),
        required("id", STRING, "Unique text of this event."),
        required("timestamp", TIMESTAMP, "When it happened."),
        optional("account", STRING, "Account of the asset."),
        required("stream", STRING, "Name of the stream."),
        optional("replicas", array_of(_PEER_INFO), "The servers of the group as far as known."),
        optional("domain", STRING, "JetStream domain of the server."),
    ),
)
"""A stream lost the majority of its servers."""

TERMINATED: Final = Event(
    "terminated",
    "io.nats.jetstream.advisory.v1.terminated",
    "$JS.EVENT.ADVISORY.CONSUMER.MSG_TERMINATED.*.*",
    record(
        required("type", STRING, "Name of the type."),
        required("id", STRING, "Unique text of this event."),
        required("timestamp", TIMESTAMP, "When it happened."),
        required("stream", STRING, "Name of the stream."),
        required("consumer", STRING, "Name of the consumer."),
        required("consumer_seq", LONG, "Sequence of the delivery."),
        required("stream_seq", LONG, "Sequence of the message in the stream."),
        required("deliveries", LONG, "How often it was delivered."),
        optional("reason", STRING, "Why, in the words of the client or of the server."),
        optional("domain", STRING, "JetStream domain of the server."),
    ),
)
"""A message will not be delivered again."""

CONSUMER_ACK: Final = Event(
    "consumer_ack",
    "io.nats.jetstream.metric.v1.consumer_ack",
    "$JS.EVENT.METRIC.CONSUMER.ACK.*.*",
    record(
        required("type", STRING, "Name of the type."),
        required("id", STRING, "Unique text of this event."),
        required("timestamp", TIMESTAMP, "When it happened."),
        required("stream", STRING, "Name of the stream."),
        required("consumer", STRING, "Name of the consumer."),
        required("consumer_seq", LONG, "Sequence of the delivery."),
        required("stream_seq", LONG, "Sequence of the message in the stream."),
        required("ack_time", LONG, "Time between delivery and acknowledgement, in nanoseconds."),
        required("deliveries", LONG, "How often it was delivered."),
        optional("domain", STRING, "JetStream domain of the server."),
    ),
)
"""A sampled acknowledgement."""

EVENTS: Final[Mapping[str, Event]] = MappingProxyType(
    {
        event.type: event
        for event in (
            API_AUDIT,
            API_LIMIT_REACHED,
            CONSUMER_ACTION,
            CONSUMER_GROUP_PINNED,
            CONSUMER_GROUP_UNPINNED,
            CONSUMER_LEADER_ELECTED,
            CONSUMER_PAUSE,
            CONSUMER_QUORUM_LOST,
            DOMAIN_LEADER_ELECTED,
            MAX_DELIVER,
            META_RESCUE,
            NAK,
            RESTORE_COMPLETE,
            RESTORE_CREATE,
            SERVER_OUT_OF_SPACE,
            SERVER_REMOVED,
            SNAPSHOT_COMPLETE,
            SNAPSHOT_CREATE,
            STREAM_ACTION,
            STREAM_BATCH_ABANDONED,
            STREAM_LEADER_ELECTED,
            STREAM_QUORUM_LOST,
            TERMINATED,
            CONSUMER_ACK,
        )
    }
)
"""All events, by their `type`."""
