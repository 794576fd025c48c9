"""The subjects that each operation publishes and subscribes to.

`twinstream.permissions` builds the permissions of users from this table.

`P` is a placeholder for the prefix of the API, `K` for the prefix of the subjects to which keys of
buckets are written, and `INBOX` for the inboxes of the connection. Names in braces are arguments.
`[…]` is omitted if its argument is not given. `*` after the name of an argument means any number of
arguments.

`tests/_async/client/test_permissions.py` runs each operation with exactly these permissions, and
shows that the operation fails if any of the permissions is missing.

Source: nats-server 2.11 to 2.15, as observed by that test.
"""

from __future__ import annotations

from typing import Final

from twinstream.core.client.operation import Operation, Pattern
from twinstream.errors import BadArgument

__all__ = ["OPERATIONS", "operation"]


def operation(name: str, *arguments: str) -> Operation:
    """Return the operation with this name and these arguments.

    Raises `BadArgument` for an unknown name or invalid arguments.

    Args:
        name: Name of the operation, as in `twinstream permissions`.
        arguments: Its arguments, such as the name of a stream.
    """
    pattern = OPERATIONS.get(name)
    if pattern is None:
        raise BadArgument(f"unknown operation {name!r}; known ones are: {', '.join(OPERATIONS)}")
    return pattern.of(*arguments)


_WATCH: Final = (
    "P.STREAM.INFO.KV_{bucket} P.CONSUMER.CREATE.KV_{bucket}.*.$KV.{bucket}.{filter}"
    " P.CONSUMER.MSG.NEXT.KV_{bucket}.* P.CONSUMER.DELETE.KV_{bucket}.*"
)

_CONFIG: Final = "P.STREAM.MSG.GET.KV_{kind}-consumer-groups"
_CHANGE: Final = (
    f"{_CONFIG} P.STREAM.INFO.KV_{{kind}}-consumer-groups"
    " K.{kind}-consumer-groups.{stream}.{group}"
)
_MEMBER: Final = (
    "P.CONSUMER.CREATE.{consumer} P.CONSUMER.INFO.{consumer} P.CONSUMER.MSG.NEXT.{consumer}"
    " P.CONSUMER.UNPIN.{consumer} P.CONSUMER.DELETE.{consumer} $JS.ACK.{consumer}.>"
)

# The positions that the worker of an elastic group stores.
_FLOORS: Final = (
    " P.STREAM.INFO.{stream}-{group} P.STREAM.INFO.{stream}"
    " K.elastic-consumer-groups.floors/{stream}.{group}.*"
)


def _of_groups(kind: str, source: str, consumer: str, own: str) -> tuple[Pattern, ...]:
    """Return the table entries of one `kind` of consumer groups.

    `kind` is `static` or `elastic`. `source` is the stream of the group's consumers. `consumer` is
    this stream and the consumer of a member, separated by a dot. `own` are additional subjects that
    this kind needs to create a group.
    """
    bucket = f"KV_{kind}-consumer-groups"
    watch = _WATCH.replace("{bucket}", f"{kind}-consumer-groups")
    key = watch.replace("{filter}", "{stream}.{group}")
    rows = (
        (f"{kind}_groups", "stream", watch.replace("{filter}", "{stream}.*")),
        (
            f"{kind}_group.create",
            "stream group",
            f"P.STREAM.INFO.{{stream}} P.STREAM.CREATE.{bucket} {_CHANGE}{own}",
        ),
        (f"{kind}_group.info", "stream group", _CONFIG),
        (
            f"{kind}_group.active_members",
            "stream group",
            f"{_CONFIG} P.CONSUMER.LIST.{source}",
        ),
        (f"{kind}_group.step_down", "stream group member", "P.CONSUMER.UNPIN.{consumer}"),
        (
            f"{kind}_group.worker",
            "stream group member",
            f"{key} {_CONFIG} {_MEMBER}{_FLOORS if kind == 'elastic' else ''}",
        ),
    )
    return tuple(
        Pattern(name, takes, needs.replace("{kind}", kind).replace("{consumer}", consumer))
        for name, takes, needs in rows
    )


_TABLE: Final = (
    # Messages.
    Pattern("publish", "subject*", "{subject}"),
    Pattern(
        "consume",
        "stream consumer",
        "P.CONSUMER.INFO.{stream}.{consumer} P.CONSUMER.MSG.NEXT.{stream}.{consumer}"
        " $JS.ACK.{stream}.{consumer}.>",
    ),
    Pattern(
        "consume_bound",
        "stream consumer",
        "P.CONSUMER.MSG.NEXT.{stream}.{consumer} $JS.ACK.{stream}.{consumer}.>",
    ),
    Pattern(
        "ordered",
        "stream [filter]",
        "P.STREAM.INFO.{stream} P.CONSUMER.CREATE.{stream}.*[.{filter}]"
        " P.CONSUMER.MSG.NEXT.{stream}.* P.CONSUMER.DELETE.{stream}.*",
    ),
    Pattern(
        "ordered_info",
        "stream [filter]",
        "P.STREAM.INFO.{stream} P.CONSUMER.CREATE.{stream}.*[.{filter}]"
        " P.CONSUMER.MSG.NEXT.{stream}.* P.CONSUMER.DELETE.{stream}.* P.CONSUMER.INFO.{stream}.*",
    ),
    Pattern(
        "create_push_messages",
        "stream consumer [deliver_subject]",
        "P.CONSUMER.CREATE.{stream}.{consumer} $JS.ACK.{stream}.{consumer}.>"
        " $JS.FC.{stream}.{consumer}.*",
        "INBOX [{deliver_subject}]",
    ),
    Pattern(
        "push_messages",
        "stream consumer deliver_subject",
        "P.CONSUMER.INFO.{stream}.{consumer} $JS.ACK.{stream}.{consumer}.>"
        " $JS.FC.{stream}.{consumer}.*",
        "INBOX {deliver_subject}",
    ),
    Pattern("atomic_batch", "subject*", "{subject}"),
    Pattern("fast_ingest", "stream subject", "P.STREAM.INFO.{stream} {subject}"),
    Pattern("subject_writer.insert", "stream subject", "P.STREAM.INFO.{stream} {subject}"),
    Pattern("subject_writer.update", "stream subject", "P.STREAM.INFO.{stream} {subject}"),
    Pattern("subject_writer.upsert", "stream subject", "P.STREAM.INFO.{stream} {subject}"),
    Pattern(
        "counters",
        "stream subject",
        "P.STREAM.INFO.{stream} P.STREAM.MSG.GET.{stream} {subject}",
    ),
    Pattern(
        "schedules",
        "stream subject",
        "P.STREAM.INFO.{stream} P.STREAM.MSG.GET.{stream} P.STREAM.MSG.DELETE.{stream} {subject}",
    ),
    Pattern("outbox", "stream subject", "P.STREAM.INFO.{stream} {subject}"),
    Pattern(
        "processing",
        "stream consumer into subject",
        "P.CONSUMER.INFO.{stream}.{consumer} P.CONSUMER.MSG.NEXT.{stream}.{consumer}"
        " $JS.ACK.{stream}.{consumer}.> P.STREAM.INFO.{stream} P.STREAM.INFO.{into} {subject}",
    ),
    Pattern(
        "dead_letters.create",
        "stream",
        "P.STREAM.INFO.{stream} P.STREAM.INFO.{stream}-dead P.STREAM.CREATE.{stream}-dead"
        " P.STREAM.INFO.{stream}-failures P.STREAM.CREATE.{stream}-failures"
        " P.CONSUMER.CREATE.{stream}-failures.dead-letters-{stream}-all",
    ),
    Pattern(
        "dead_letters",
        "stream",
        "P.STREAM.INFO.{stream} P.STREAM.MSG.GET.{stream} P.STREAM.MSG.GET.{stream}-dead"
        " P.CONSUMER.CREATE.{stream}-failures.dead-letters-{stream}-all"
        " P.CONSUMER.MSG.NEXT.{stream}-failures.dead-letters-{stream}-all"
        " $JS.ACK.{stream}-failures.dead-letters-{stream}-all.> dead.{stream}.>",
    ),
    Pattern("events", "", "", "$JS.EVENT.>"),
    Pattern(
        "events_of_stream",
        "stream",
        "",
        "$JS.EVENT.*.STREAM.*.{stream} $JS.EVENT.*.CONSUMER.*.{stream}.*",
    ),
    Pattern("check_health", "", "P.STREAM.LIST P.CONSUMER.LIST.* P.STREAM.MSG.GET.*"),
    Pattern(
        "check_health_of_stream",
        "stream",
        "P.STREAM.INFO.{stream} P.CONSUMER.LIST.{stream} P.STREAM.MSG.GET.{stream}",
    ),
    # A client that waits for a slot subscribes to messages about released slots.
    Pattern(
        "coordination",
        "stream",
        "P.STREAM.INFO.{stream} P.STREAM.MSG.GET.{stream} P.STREAM.MSG.DELETE.{stream}"
        " {stream}.held.> {stream}.freed.>",
        "INBOX {stream}.freed.>",
    ),
    Pattern(
        "coordination_create",
        "stream",
        "P.STREAM.INFO.{stream} P.STREAM.CREATE.{stream} P.STREAM.MSG.GET.{stream}",
    ),
    Pattern("get_message", "stream", "P.STREAM.MSG.GET.{stream}"),
    Pattern("get_message_direct", "stream", "P.DIRECT.GET.{stream}"),
    Pattern("get_last_message_direct", "stream subject", "P.DIRECT.GET.{stream}.{subject}"),
    Pattern(
        "read",
        "stream",
        "P.STREAM.INFO.{stream} P.DIRECT.GET.{stream} P.STREAM.MSG.GET.{stream}",
    ),
    Pattern(
        "read_by_consumer",
        "stream",
        "P.STREAM.INFO.{stream} P.CONSUMER.CREATE.{stream}.* P.CONSUMER.MSG.NEXT.{stream}.*"
        " P.CONSUMER.DELETE.{stream}.* P.STREAM.MSG.GET.{stream}",
    ),
    Pattern("read_by_leader", "stream", "P.STREAM.INFO.{stream} P.STREAM.MSG.GET.{stream}"),
    Pattern("snapshot", "stream", "P.STREAM.INFO.{stream} P.DIRECT.GET.{stream}"),
    Pattern("delete_message", "stream", "P.STREAM.MSG.DELETE.{stream}"),
    Pattern("backup_stream", "stream", "P.STREAM.SNAPSHOT.{stream} $JS.SNAPSHOT.ACK.{stream}.>"),
    Pattern(
        "restore_stream", "stream", "P.STREAM.RESTORE.{stream} $JS.SNAPSHOT.RESTORE.{stream}.>"
    ),
    # Streams.
    Pattern("account_info", "", "P.INFO"),
    Pattern("create_stream", "stream", "P.STREAM.CREATE.{stream}"),
    Pattern("update_stream", "stream", "P.STREAM.UPDATE.{stream}"),
    Pattern(
        "create_or_update_stream", "stream", "P.STREAM.UPDATE.{stream} P.STREAM.CREATE.{stream}"
    ),
    Pattern("get_stream", "stream", "P.STREAM.INFO.{stream}"),
    Pattern("delete_stream", "stream", "P.STREAM.DELETE.{stream}"),
    Pattern("streams", "", "P.STREAM.LIST"),
    Pattern("stream_names", "", "P.STREAM.NAMES"),
    Pattern("stream_name_by_subject", "", "P.STREAM.NAMES"),
    Pattern("purge", "stream", "P.STREAM.PURGE.{stream}"),
    Pattern("change", "stream", "P.STREAM.INFO.{stream} P.STREAM.UPDATE.{stream}"),
    Pattern("seal", "stream", "P.STREAM.INFO.{stream} P.STREAM.UPDATE.{stream}"),
    Pattern("subjects", "stream", "P.STREAM.INFO.{stream}"),
    Pattern("replicas.step_down", "stream", "P.STREAM.LEADER.STEPDOWN.{stream}"),
    Pattern("replicas.remove", "stream", "P.STREAM.PEER.REMOVE.{stream}"),
    Pattern("replicas.evacuate", "stream", "P.STREAM.PEER.EVACUATE.{stream}"),
    Pattern("replicas.cancel_move", "stream", "P.STREAM.CANCEL_MOVE.{stream}"),
    # Object stores. An upload whose chunks were stored out of order also deletes messages. Without
    # the permission to delete messages, such an upload fails and removes all its chunks.
    Pattern("create_object_store", "bucket", "P.STREAM.CREATE.OBJ_{bucket}"),
    Pattern("get_object_store", "bucket", "P.STREAM.INFO.OBJ_{bucket}"),
    Pattern(
        "update_object_store", "bucket", "P.STREAM.INFO.OBJ_{bucket} P.STREAM.UPDATE.OBJ_{bucket}"
    ),
    Pattern(
        "create_or_update_object_store",
        "bucket",
        "P.STREAM.INFO.OBJ_{bucket} P.STREAM.UPDATE.OBJ_{bucket} P.STREAM.CREATE.OBJ_{bucket}",
    ),
    Pattern("delete_object_store", "bucket", "P.STREAM.DELETE.OBJ_{bucket}"),
    Pattern("object_stores", "", "P.STREAM.LIST"),
    Pattern("object_store_names", "", "P.STREAM.LIST"),
    Pattern(
        "object.put",
        "bucket",
        "P.STREAM.INFO.OBJ_{bucket} P.STREAM.MSG.GET.OBJ_{bucket} P.STREAM.PURGE.OBJ_{bucket}"
        " P.DIRECT.GET.OBJ_{bucket} $O.{bucket}.C.* $O.{bucket}.M.*",
    ),
    Pattern(
        "object.get",
        "bucket",
        "P.STREAM.INFO.OBJ_{bucket} P.STREAM.MSG.GET.OBJ_{bucket} P.DIRECT.GET.OBJ_{bucket}",
    ),
    Pattern(
        "object.get_part",
        "bucket",
        "P.STREAM.INFO.OBJ_{bucket} P.STREAM.MSG.GET.OBJ_{bucket} P.DIRECT.GET.OBJ_{bucket}"
        " P.CONSUMER.CREATE.OBJ_{bucket}.*.$O.{bucket}.C.*"
        " P.CONSUMER.MSG.NEXT.OBJ_{bucket}.* P.CONSUMER.DELETE.OBJ_{bucket}.*",
    ),
    Pattern("object.info", "bucket", "P.STREAM.INFO.OBJ_{bucket} P.STREAM.MSG.GET.OBJ_{bucket}"),
    Pattern("object.list", "bucket", "P.STREAM.INFO.OBJ_{bucket} P.DIRECT.GET.OBJ_{bucket}"),
    Pattern(
        "object.watch",
        "bucket",
        "P.STREAM.INFO.OBJ_{bucket} P.CONSUMER.CREATE.OBJ_{bucket}.*.$O.{bucket}.M.>"
        " P.CONSUMER.MSG.NEXT.OBJ_{bucket}.* P.CONSUMER.DELETE.OBJ_{bucket}.*",
    ),
    Pattern(
        "object.update_meta",
        "bucket",
        "P.STREAM.INFO.OBJ_{bucket} P.STREAM.MSG.GET.OBJ_{bucket} P.STREAM.PURGE.OBJ_{bucket}"
        " $O.{bucket}.M.*",
    ),
    Pattern(
        "object.delete",
        "bucket",
        "P.STREAM.INFO.OBJ_{bucket} P.STREAM.MSG.GET.OBJ_{bucket} P.STREAM.PURGE.OBJ_{bucket}"
        " P.DIRECT.GET.OBJ_{bucket} $O.{bucket}.M.*",
    ),
    Pattern(
        "object.add_link",
        "bucket",
        "P.STREAM.INFO.OBJ_{bucket} P.STREAM.MSG.GET.OBJ_{bucket} $O.{bucket}.M.*",
    ),
    Pattern("object.status", "bucket", "P.STREAM.INFO.OBJ_{bucket}"),
    Pattern("object.change", "bucket", "P.STREAM.INFO.OBJ_{bucket} P.STREAM.UPDATE.OBJ_{bucket}"),
    Pattern("object.seal", "bucket", "P.STREAM.INFO.OBJ_{bucket} P.STREAM.UPDATE.OBJ_{bucket}"),
    Pattern(
        "object.sweep",
        "bucket",
        "P.STREAM.INFO.OBJ_{bucket} P.STREAM.MSG.GET.OBJ_{bucket} P.DIRECT.GET.OBJ_{bucket}"
        " P.STREAM.PURGE.OBJ_{bucket}",
    ),
    # Consumers.
    Pattern(
        "create_consumer",
        "stream consumer [filter]",
        "P.CONSUMER.CREATE.{stream}.{consumer}[.{filter}]",
    ),
    Pattern("get_consumer", "stream consumer", "P.CONSUMER.INFO.{stream}.{consumer}"),
    Pattern("delete_consumer", "stream consumer", "P.CONSUMER.DELETE.{stream}.{consumer}"),
    Pattern("consumers", "stream", "P.CONSUMER.LIST.{stream}"),
    Pattern("consumer_names", "stream", "P.CONSUMER.NAMES.{stream}"),
    Pattern("pause", "stream consumer", "P.CONSUMER.PAUSE.{stream}.{consumer}"),
    Pattern("resume", "stream consumer", "P.CONSUMER.PAUSE.{stream}.{consumer}"),
    Pattern("reset", "stream consumer", "P.CONSUMER.RESET.{stream}.{consumer}"),
    Pattern("unpin", "stream consumer", "P.CONSUMER.UNPIN.{stream}.{consumer}"),
    Pattern("step_down", "stream consumer", "P.CONSUMER.LEADER.STEPDOWN.{stream}.{consumer}"),
    # Key-value buckets.
    Pattern("create_key_value", "bucket", "P.STREAM.CREATE.KV_{bucket} P.STREAM.INFO.KV_{bucket}"),
    Pattern("update_key_value", "bucket", "P.STREAM.INFO.KV_{bucket} P.STREAM.UPDATE.KV_{bucket}"),
    Pattern(
        "create_or_update_key_value",
        "bucket",
        "P.STREAM.INFO.KV_{bucket} P.STREAM.UPDATE.KV_{bucket} P.STREAM.CREATE.KV_{bucket}",
    ),
    Pattern("get_key_value", "bucket", "P.STREAM.INFO.KV_{bucket}"),
    Pattern("delete_key_value", "bucket", "P.STREAM.DELETE.KV_{bucket}"),
    Pattern("key_values", "", "P.STREAM.LIST"),
    Pattern("key_value_names", "", "P.STREAM.LIST"),
    Pattern(
        "key_value.get",
        "bucket key",
        "P.DIRECT.GET.KV_{bucket}.$KV.{bucket}.{key} P.STREAM.MSG.GET.KV_{bucket}",
    ),
    Pattern(
        "key_value.get_revision",
        "bucket",
        "P.DIRECT.GET.KV_{bucket} P.STREAM.MSG.GET.KV_{bucket}",
    ),
    Pattern("key_value.put", "bucket key", "K.{bucket}.{key}"),
    Pattern("key_value.put_many", "bucket key", "K.{bucket}.{key}"),
    Pattern(
        "key_value.create",
        "bucket key",
        "P.STREAM.INFO.KV_{bucket} P.STREAM.MSG.GET.KV_{bucket} K.{bucket}.{key}",
    ),
    Pattern("key_value.update", "bucket key", "P.STREAM.INFO.KV_{bucket} K.{bucket}.{key}"),
    Pattern("key_value.delete", "bucket key", "K.{bucket}.{key}"),
    Pattern("key_value.purge", "bucket key", "K.{bucket}.{key}"),
    Pattern("key_value.revert", "bucket filter", "P.STREAM.INFO.KV_{bucket} K.{bucket}.{filter}"),
    Pattern("key_value.delete_many", "bucket filter", _WATCH + " K.{bucket}.{filter}"),
    *(
        Pattern(f"key_value.{name}", "bucket filter", _WATCH)
        for name in ("keys", "watch", "cached")
    ),
    *(
        # The headers of all revisions are read to find out whether some were removed.
        Pattern(
            f"key_value.{name}",
            "bucket",
            _WATCH.replace("{filter}", ">")
            + " P.DIRECT.GET.KV_{bucket} P.STREAM.MSG.GET.KV_{bucket}",
        )
        for name in ("at", "diff")
    ),
    Pattern(
        "key_value.history",
        "bucket",
        "P.STREAM.INFO.KV_{bucket} P.DIRECT.GET.KV_{bucket} P.STREAM.MSG.GET.KV_{bucket}",
    ),
    Pattern("key_value.get_many", "bucket", "P.STREAM.INFO.KV_{bucket} P.DIRECT.GET.KV_{bucket}"),
    Pattern(
        "key_value.purge_deletes",
        "bucket",
        _WATCH.replace("{filter}", ">") + " P.STREAM.PURGE.KV_{bucket}",
    ),
    Pattern("key_value.status", "bucket", "P.STREAM.INFO.KV_{bucket}"),
    Pattern("key_value.change", "bucket", "P.STREAM.INFO.KV_{bucket} P.STREAM.UPDATE.KV_{bucket}"),
    # Partitioned consumer groups. The configuration of a group is the value of a key in a bucket.
    *_of_groups("static", "{stream}", "{stream}.{group}-{member}", ""),
    *_of_groups(
        "elastic",
        "{stream}-{group}",
        "{stream}-{group}.{member}",
        " P.STREAM.INFO.{stream}-{group} P.STREAM.CREATE.{stream}-{group}",
    ),
    Pattern(
        "static_group.delete",
        "stream group",
        "P.STREAM.MSG.GET.KV_static-consumer-groups K.static-consumer-groups.{stream}.{group}"
        " P.CONSUMER.INFO.{stream}.* P.CONSUMER.DELETE.{stream}.*",
    ),
    Pattern(
        "elastic_group.delete",
        "stream group",
        "P.STREAM.MSG.GET.KV_elastic-consumer-groups"
        " K.elastic-consumer-groups.{stream}.{group} P.STREAM.INFO.{stream}-{group}"
        " P.STREAM.INFO.{stream} P.STREAM.DELETE.{stream}-{group}",
    ),
    *(
        Pattern(f"elastic_group.{name}", "stream group", _CHANGE.replace("{kind}", "elastic"))
        for name in ("add_members", "remove_members", "set_mappings", "delete_mappings")
    ),
    # Operations on the cluster, which need the system account.
    Pattern("cluster.step_down", "", "P.META.LEADER.STEPDOWN"),
    Pattern("cluster.remove_server", "", "P.SERVER.REMOVE"),
    Pattern("cluster.evacuate_server", "", "P.SERVER.EVACUATE"),
    Pattern("cluster.rescue", "", "P.META.RESCUE"),
    Pattern("cluster.purge_account", "account", "P.ACCOUNT.PURGE.{account}"),
    Pattern("cluster.move_stream", "account stream", "P.ACCOUNT.STREAM.MOVE.{account}.{stream}"),
    Pattern(
        "cluster.cancel_move", "account stream", "P.ACCOUNT.STREAM.CANCEL_MOVE.{account}.{stream}"
    ),
)

OPERATIONS: Final = {pattern.name: pattern for pattern in _TABLE}
"""The table entries by name."""
