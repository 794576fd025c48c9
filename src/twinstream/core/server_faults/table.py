"""The faults of nats-server that this SDK works around, one row each.

`docs/server-faults.md` shows the table. A feature that older servers lack is no fault. If code
behaves differently by the version of the server because of a fault, it asks the row.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from twinstream.models.version import NO_PARTITIONS_SINCE

__all__ = [
    "BATCH_REWRITES",
    "FAULTS",
    "FULL_SUBJECT",
    "LAZY_FLOOR",
    "MIXED_FILTERS",
    "PARTIAL_RESTORE",
    "PROBED_ID",
    "START_TIMES",
    "SUBJECT_LISTS",
    "Fault",
]

Version = tuple[int, ...]

_FIRST: Final = (0, 0, 0)
_FIXED: Final = "when a release fixes it"
_NO_2_11: Final = "without support for 2.11"
_NO_2_12: Final = "without support for 2.12"
_NO_2_14: Final = "without support for 2.14"


class Fault(NamedTuple):
    """One fault of the server.

    Programs load the table at their start, so it is a named tuple: attrs would be imported for it.
    """

    happens: str
    """What happens."""
    done: str
    """What the SDK does."""
    test: str
    """The test that proves it: the path of the file below `tests`, and the name."""
    goes: str
    """When the work-around may be removed."""
    spans: tuple[tuple[Version, Version | None], ...] = ()
    """The versions with the fault, if known: the first, and the first without it (or None)."""
    seen: str = ""
    """Otherwise the versions in which the fault was seen, with figures."""

    @property
    def versions(self) -> str:
        """The versions as text."""
        return "; ".join(map(_span_text, self.spans)) or self.seen

    def affects(self, version: Version) -> bool:
        """Return whether a server of this version has the fault; `spans` must be known."""
        return any(first <= version and (end is None or version < end) for first, end in self.spans)


def _span_text(span: tuple[Version, Version | None]) -> str:
    first, end = span
    start = "" if first == _FIRST else f"from {_text(first)}"
    return " ".join(filter(None, (start, "" if end is None else f"before {_text(end)}")))


def _text(version: Version) -> str:
    return ".".join(map(str, version))


# ---- faults by which code asks for the version

PROBED_ID: Final = Fault(
    happens="a cluster keeps the id of a probe (a refused message) as one that is being stored",
    done="older servers get no probe: the last message of the subject is read, and if it is another"
    " one, the outcome is reported as unknown",
    test="_async/publish/test_publish_trouble::test_outcome_of_an_attempt_can_be_requested",
    goes=_NO_2_11,
    spans=((_FIRST, (2, 12, 0)),),
)

FULL_SUBJECT: Final = Fault(
    happens="with `discard_new_per_subject`, a full subject refuses even a rollup, which would"
    " replace its message",
    done="updates and upserts of such a stream are refused, with the settings to change",
    test="_async/exactly_once/test_subject_writes::test_a_full_subject_is_replaced_by_a_rollup",
    goes=_NO_2_12,
    spans=((_FIRST, (2, 14, 0)),),
)

BATCH_REWRITES: Final = Fault(
    happens="a stream without replicas stores the messages of an atomic batch without the value of"
    " a counter, and without the rollup of a schedule",
    done="such messages in a batch raise `Unsupported`",
    test="core/publish/test_atomic_batch::test_what_older_servers_lack",
    goes=_NO_2_14,
    spans=((_FIRST, (2, 12, 12)), ((2, 14, 0), (2, 14, 3))),
)

LAZY_FLOOR: Final = Fault(
    happens="the ack floor of a consumer stays where it is after a message was given up",
    done="`twinstream why` does not conclude from the floor that a message is pending",
    test="cli/why/test_decision"
    "::test_the_ack_floor_of_an_older_server_proves_nothing_after_max_deliver",
    goes=_NO_2_12,
    spans=((_FIRST, (2, 14, 0)),),
)

MIXED_FILTERS: Final = Fault(
    happens="a consumer with several filters skips messages, if one filter has `*` where another"
    " one has a word, such as `a.*` and `a.b.c`",
    done="reads receive all messages and select them; other consumers with such filters, ordered"
    " reads included, are refused",
    test="_async/read/test_mixed_filters::test_a_read_with_mixed_filters_is_complete",
    goes="without support for 2.12.3",
    spans=((_FIRST, (2, 12, 4)),),
)

START_TIMES: Final = Fault(
    happens="after messages were removed between others, the first message from a time on may be a"
    " message before this time, or a later one than the first",
    done="reads and snapshots by time search the sequence of a time themselves;"
    " `get_next_message(start_time=...)` returns what the server does",
    test="_async/read/test_start_times::test_a_time_has_its_sequence_after_removals",
    goes="without support for 2.12.3",
    spans=((_FIRST, (2, 12, 4)),),
)

SUBJECT_LISTS: Final = Fault(
    happens="after single messages were deleted, a list of the last messages of subjects may lack"
    " subjects or contain a removed message; direct gets from file storage were right",
    done="a snapshot reads all messages instead",
    test="_async/read/test_snapshots::test_a_snapshot_after_deletions_has_every_subject",
    goes="without support for 2.12.4",
    spans=((_FIRST, (2, 12, 5)),),
)

PARTIAL_RESTORE: Final = Fault(
    happens="the server creates the stream when a restore begins; a restore that fails leaves an"
    " incomplete stream, and a cluster keeps the name until it is deleted",
    done="the stream is deleted, unless it may belong to another client",
    test="_async/backup/test_backup::test_failed_restore_deletes_no_stream_of_another_client",
    goes=_FIXED,
    spans=(((2, 15, 0), None),),
)

_PARTITIONS: Final = Fault(
    happens="a subject transform to 0 partitions crashes the server at the first message",
    done="`lint_stream` warns; `transform_subject` raises an error",
    test="models/test_transforms::test_no_partition_ends_older_servers",
    goes=_NO_2_11,
    spans=((_FIRST, NO_PARTITIONS_SINCE),),
)


# ---- the table

_FINAL_REPLY: Final = (
    Fault(
        happens="a former leader that was cut off refuses an expected last sequence that the leader"
        " accepts, or has a write in flight; often its refusal arrives first",
        seen="2.15.1: 4 of 5,129 refusals while leaders were cut off",
        done="such a refusal is not final: the acknowledgement is waited for, and a message that"
        " the replica lacks is sent once more",
        test="_async/exactly_once/test_subject_writes::test_a_former_leaders_refusal_is_not_the_outcome",
        goes=_FIXED,
    ),
    Fault(
        happens="a former leader replies that it has no message, or returns a removed one",
        seen="see the first row",
        done="the end of a read and the holder of a slot count only after a leader that most"
        " replicas follow has confirmed them",
        test="_async/api/test_who_leads::test_end_of_data_counts_only_from_a_proven_leader",
        goes=_FIXED,
    ),
    Fault(
        happens="a replica without a leader, a candidate, or a former leader replies to STREAM.INFO"
        " with its own state",
        seen="2.11 to 2.15",
        done="the request is repeated until a response is certainly the leader's",
        test="_async/api/test_who_leads::test_response_of_a_replica_is_requested_again_from_the_leader",
        goes=_FIXED,
    ),
    Fault(
        happens="a former leader refuses the record of a lease, and then returns an old one, or"
        " none",
        seen="see the first row",
        done="older records are ignored; other replies that would end a lease or an acquisition"
        " need proof",
        test="_async/coordination/test_lease_trouble::test_a_former_leader_does_not_end_a_lease",
        goes=_FIXED,
    ),
    Fault(
        happens="a former leader refuses the commit of an atomic batch as incomplete, because it"
        " lacks the earlier messages",
        seen="see the first row",
        done="the stream is read to find out whether the batch is stored",
        test="_async/publish/test_atomic_batch"
        "::test_a_commit_that_a_former_leader_refused_is_verified_by_reading",
        goes=_FIXED,
    ),
    Fault(
        happens="a former leader does not know the ids of the messages that it lacks",
        seen="see the first row",
        done="an unknown id is final if no acknowledgement arrives within 0.1 s",
        test="_async/publish/test_fake_publish"
        "::test_a_former_leader_does_not_know_the_id_of_a_stored_message",
        goes=_FIXED,
    ),
    PROBED_ID,
    Fault(
        happens="a single server checks the condition of a repeated write before its id, and"
        " refuses what it has already stored",
        seen="2.12 to 2.15, for streams without replicas",
        done="after a lost response, a refusal is checked against the stored message",
        test="_async/exactly_once/test_subject_writes::test_an_insert_survives_losses",
        goes=_FIXED,
    ),
    Fault(
        happens="a server that lost and regained the leadership refuses an id as being stored"
        " (10158), though it never stored the message, until the duplicate window has passed",
        seen="2.15.1",
        done="`MessageIdInProcess` is retried; its text names the duplicate window",
        test="_async/publish/test_fake_publish::test_an_id_in_process_is_waited_for",
        goes=_FIXED,
    ),
    Fault(
        happens="fast ingest counts refused messages as handled, also those whose"
        " `expected_last_msg_id` failed",
        seen="2.15.1",
        done="refusals are read before the counts; `expected_last_msg_id` is refused",
        test="core/publish/test_fast_ingest::test_headers_that_cannot_be_used",
        goes=_FIXED,
    ),
)

_REPEATS: Final = (
    Fault(
        happens="when the meta leader changes, the cluster loses the requests in progress, and"
        " sends no response",
        seen="2.15.1: 2 of 100 creations while the leader stepped down every second",
        done="idempotent requests are sent again after 1, 2, 4 … s",
        test="_async/api/test_fake_api::test_a_creation_that_is_forgotten_is_sent_again",
        goes=_FIXED,
    ),
    Fault(
        happens="a server that does not know the leader of a new consumer yet drops the request to"
        " reset it, without a response",
        seen="2.15.1: 9 of 40 right after the creation",
        done="the request is idempotent, and sent again",
        test="_async/api/test_fake_api::test_a_reset_that_no_server_passes_on_is_sent_again",
        goes=_FIXED,
    ),
    Fault(
        happens="an update of a replicated stream that another client is creating gets no response",
        seen="2.15.1",
        done="`create_or_update_stream` gives each attempt a share of its timeout",
        test="_async/api/test_timeouts::test_an_update_without_an_answer_is_tried_again",
        goes=_FIXED,
    ),
    Fault(
        happens="a leader that has just stepped down refuses messages without an error code",
        seen="2.11",
        done="the text `raft: not leader` counts as a transient error",
        test="errors/test_transient::test_which_errors_are_transient",
        goes=_NO_2_11,
    ),
    Fault(
        happens="the failure of an earlier restore is the response to the next one of that name,"
        " which the cluster then removes",
        seen="2.15.1: once, on a busy machine",
        done="the request is repeated for 2 s",
        test="_async/backup/test_backup::test_failure_of_an_earlier_restore_is_not_that_of_the_next",
        goes=_FIXED,
    ),
    Fault(
        happens="a restore right after an interrupted one of that name may find its messages, and"
        " fails: `expected sequence does not match store`",
        seen="2.15.1: once in some hundred runs, on a busy machine",
        done="the error has a note that advises to restore again",
        test="_async/backup/test_backup::test_a_restore_that_finds_messages_of_another_says_what_to_do",
        goes=_FIXED,
    ),
    Fault(
        happens="a pull request is lost without a response when the leader of the consumer changes",
        seen="2.15.1: 9 of 30",
        done="pulls have a heartbeat every 5 s; two missed ones void all requests",
        test="_async/consume/test_fake_messages::test_silence_is_reported_once_and_pulled_over",
        goes=_FIXED,
    ),
    Fault(
        happens="a pull request above `max_waiting` is dropped without a response",
        seen="from 2.11.5",
        done="no more requests are open at once",
        test="core/consume/test_pull_engine::test_open_requests_are_limited_by_max_waiting",
        goes=_FIXED,
    ),
)

_SPREADING: Final = (
    Fault(
        happens="right after a creation is confirmed, other servers of the cluster, and leaf nodes"
        " that have just started, reply that there are no responders",
        seen="2.15.1: 6 to 22 of 100 requests, and 8 of 60 first chunks of a restore",
        done="the request is repeated for 0.3 s; for 0.5 s if the responder surely exists, and for"
        " 2 s in a restore",
        test="_async/api/test_cluster::test_what_another_client_created_is_reached_at_once",
        goes=_FIXED,
    ),
    Fault(
        happens="the meta leader does not list a stream yet whose creation is confirmed",
        seen="2.12 and 2.14",
        done="a lookup by subject that finds nothing is repeated after 0.25 s",
        test="_async/api/test_fake_api::test_stream_that_the_cluster_does_not_know_yet_is_found",
        goes=_FIXED,
    ),
)

_DELETIONS: Final = (
    Fault(
        happens="the server reports the deletion of a consumer before it removes its folder. A"
        " consumer of that name that is created in between disappears at the next restart, or"
        " continues with the old delivery state",
        seen="2.15.1, up to 20 ms: 113 and 13 of 600",
        done="iterations and members of groups create it 0.3 s later",
        test="_async/consume/test_fake_messages"
        "::test_deleted_consumer_is_recreated_after_its_deletion_is_complete",
        goes=_FIXED,
    ),
    PARTIAL_RESTORE,
    Fault(
        happens="the server removes expired records up to 0.3 s late",
        seen="2.11 to 2.15",
        done="a waiter for a lock tries again every 0.1 s after the end of the TTL",
        test="_async/coordination/test_lease_trouble"
        "::test_disconnected_holder_stops_believing_before_the_next_one_starts",
        goes=_FIXED,
    ),
)

_READS: Final = (
    SUBJECT_LISTS,
    LAZY_FLOOR,
    MIXED_FILTERS,
    START_TIMES,
    Fault(
        happens="a consumer of the last messages by subject skips a message that does not fit into"
        " the remaining bytes of a pull request",
        seen="2.11 to 2.15, if the stream keeps several messages of a subject",
        done="pulls of such a snapshot are limited by count",
        test="_async/consume/test_ordered::test_a_snapshot_by_bytes_is_whole",
        goes=_FIXED,
    ),
    Fault(
        happens="such a consumer stalls at a message that was removed before its delivery, until"
        " something wakes it",
        seen="2.11 to 2.15",
        done="additional pulls with frequent heartbeats wake it",
        test="_async/consume/test_ordered::test_messages_that_are_removed_before_they_come_cause_no_pause",
        goes=_FIXED,
    ),
    Fault(
        happens="a file store acknowledges and counts messages from sequence `2**62` on, but"
        " returns none of them",
        seen="2.11 to 2.15",
        done="a read that may lack them raises `UnsuitableSettings`",
        test="_async/read/test_reading::test_what_a_file_store_hides_is_no_complete_read",
        goes=_FIXED,
    ),
    Fault(
        happens="headers of a publisher that begin like a status are stored, and returned by direct"
        " gets",
        seen="2.11",
        done="a message is recognised by the lines that the server appends",
        test="core/read/test_range_read::test_headers_that_begin_like_a_status_are_a_messages",
        goes=_NO_2_11,
    ),
    Fault(
        happens="a pull request of a closed inbox may be used for a returned message, which then"
        " moves behind the other returned ones",
        seen="2.11 to 2.15",
        done="a worker with an order requests the consumer's info before it returns messages",
        test="_async/workers/test_workers::test_an_end_in_the_middle_loses_nothing_and_doubles_nothing",
        goes=_FIXED,
    ),
    Fault(
        happens="if a subscription ends while messages for it are in a queue inside of the server,"
        " they are dropped, but count as delivered",
        seen="2.15.1: in 7 of 7,200 drains on a busy machine",
        done="what arrives is handed over; the others are redelivered after ack_wait, if"
        " max_deliver permits it",
        test="fake/test_drain_races::"
        "test_pulled_messages_that_arrive_during_the_last_look_are_returned",
        goes=_FIXED,
    ),
    Fault(
        happens="a NAK with a delay for a consumer with a backoff is delayed by the difference of"
        " two backoff steps, too",
        seen="2.11 to 2.15",
        done="the difference is subtracted from the delay",
        test="_async/workers/test_workers::test_a_backoff_of_the_consumer_does_not_skew_the_delays",
        goes=_FIXED,
    ),
)

_STORES: Final = (
    FULL_SUBJECT,
    BATCH_REWRITES,
    Fault(
        happens="a purge up to sequence 1 removes all messages",
        seen="before 2.14",
        done="a purge that keeps all messages is sent instead",
        test="_async/api/test_streams::test_purge_accepts_a_subject_a_bound_or_a_rest",
        goes=_NO_2_12,
    ),
    Fault(
        happens="the end of a schedule whose subject is a filter, such as `S.>`, purges all"
        " matching messages",
        seen="2.15.1",
        done="`Schedules.finish` refuses such a schedule; `cancel` deletes it by sequence",
        test="_async/schedules/test_schedules::test_a_forged_wildcard_does_not_remove_other_messages",
        goes=_FIXED,
    ),
    Fault(
        happens="the message that ends a schedule purges its subject even if the schedule was"
        " replaced",
        seen="2.12",
        done="the message expects the sequence of the schedule",
        test="_async/schedules/test_schedules::test_a_result_is_stored_and_its_schedule_cancelled_or_neither",
        goes=_NO_2_12,
    ),
    Fault(
        happens="after a clean stop and a later kill, the stream of an elastic group copies"
        " acknowledged messages again",
        seen="2.15.1",
        done="members share floors, up to which second copies are acknowledged without handling",
        test="_async/groups/test_group_floors::test_a_server_that_was_stopped_and_then_killed",
        goes=_FIXED,
    ),
    Fault(
        happens="a stream with sources takes the header `Nats-Stream-Source` of a publisher for its"
        " own position, and skips the messages before it",
        seen="before 2.15",
        done="headers that only servers write are not copied",
        test="_async/publish/test_copied_headers"
        "::test_a_copy_does_not_move_the_position_of_a_stream_with_sources",
        goes=_NO_2_14,
    ),
    Fault(
        happens="a mirror of an object store without `allow_rollup_hdrs` stops at the first rollup",
        seen="2.11",
        done="such mirrors get the setting",
        test="_async/object_store/test_object_store::test_mirrors_and_copies_of_all_kinds_have_the_objects",
        goes=_NO_2_11,
    ),
    Fault(
        happens="blanks around the value of a header are removed, so that two ids may become equal,"
        " or a condition empty",
        seen="2.11 to 2.15",
        done="such conditions are refused",
        test="core/publish/test_request::test_promises_that_cannot_be_kept",
        goes=_FIXED,
    ),
    Fault(
        happens="a time after 2262 counts as past, so that a message is removed or delivered at"
        " once",
        seen="2.11 to 2.15",
        done="durations are finite, and at most 100 years",
        test="core/consume/test_pull_request::test_invalid_fetch_is_refused",
        goes=_FIXED,
    ),
    Fault(
        happens="the start time of a mirror is compared as text: an update with the same time in"
        " another zone is refused, also after a restart, when the server has stored Z",
        seen="2.11 to 2.15",
        done="the time is written as the server stores it; `lint_stream` warns",
        test="_async/api/test_exists::test_the_start_of_a_mirror_may_be_written_in_any_zone",
        goes=_FIXED,
    ),
    _PARTITIONS,
)

FAULTS: Final = {
    "Is this reply final?": _FINAL_REPLY,
    "May this request be repeated?": _REPEATS,
    "How long does it take to spread?": _SPREADING,
    "How long after a deletion?": _DELETIONS,
    "What is read": _READS,
    "What is stored and removed": _STORES,
}
"""All faults, by the question that code asks because of them."""
