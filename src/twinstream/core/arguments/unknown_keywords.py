"""Hints in the errors for keyword arguments that a call does not have.

The module is imported when a program makes the mistake.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Final

from twinstream.models.names.near_names import did_you_mean

__all__ = ["ARGUMENTS", "KEYWORDS", "unknown_argument"]

# The least similarity of a suggestion.
_LEAST: Final = 0.75
_ON_EVENT: Final = "on_event="
_RECONNECT: Final = "reconnect=ReconnectPolicy(attempts=, wait=)"
_CREDENTIALS: Final = "credentials=, a function that returns Credentials"

KEYWORDS: Final[Mapping[str, Mapping[str, str]]] = {
    "connect": {
        "allow_reconnect": "reconnect=None, if it is false",
        "closed_cb": _ON_EVENT,
        "disconnected_cb": _ON_EVENT,
        "discovered_server_cb": _ON_EVENT,
        "dont_randomize": "shuffle=False, if it is true",
        "drain_timeout": "drain(timeout=) of the connection",
        "error_cb": _ON_EVENT,
        "lame_duck_mode_cb": _ON_EVENT,
        "max_reconnect_attempts": _RECONNECT,
        "nkeys_seed": "nkey_seed=, with the text of the file",
        "nkeys_seed_str": "nkey_seed=",
        "reconnect_time_wait": _RECONNECT,
        "reconnected_cb": _ON_EVENT,
        "signature_cb": _CREDENTIALS,
        "tls_handshake_first": "tls=TlsOptions(handshake_first=True)",
        "tls_hostname": "tls=TlsOptions(server_name=)",
        "user_credentials": "credentials_file=",
        "user_jwt_cb": _CREDENTIALS,
    },
    "subscribe": {
        "cb": "a loop `for message in messages`",
        "pending_msgs_limit": "max_buffered=",
    },
}
"""Names of nats-py with their equivalents, by function."""

_EXPECTED_SEQ: Final = "expected_last_seq="
_EXPECTED_SUBJECT_SEQ: Final = "expected_last_subject_seq="
_TTL: Final[Mapping[str, str]] = dict.fromkeys(("expires", "key_ttl", "msg_ttl", "max_age"), "ttl=")
_GROUP: Final = "priority=Priority(group=)"
_PULL: Final = {
    "group": _GROUP,
    "idle_heartbeat": "heartbeat=",
    "min_ack_pending": "priority=Priority(group=, min_ack_pending=)",
    "min_pending": "priority=Priority(group=, min_pending=)",
    "priority_group": _GROUP,
}
_MANY: Final = {
    "batch": "max_messages=",
    "batch_size": "max_messages=",
    "max_msgs": "max_messages=",
}
_META: Final = {
    "description": "name=ObjectMeta(name=, description=)",
    "headers": "name=ObjectMeta(name=, headers=)",
    "meta": "name=",
    "metadata": "name=ObjectMeta(name=, metadata=)",
}
_WAIT: Final = {"expires": "timeout=", "max_wait": "timeout="}
_ITERATION: Final = {
    **_PULL,
    **_MANY,
    "consume_err_handler": "on_report=",
    "err_handler": "on_report=",
    "expiry": "expires=",
    "max_pending": "max_messages=",
    "max_wait": "expires=",
    "pull_expiry": "expires=",
    "pull_heartbeat": "heartbeat=",
    "pull_max_bytes": "max_bytes=",
    "pull_max_messages": "max_messages=",
    "pull_threshold_bytes": "threshold_bytes=",
    "pull_threshold_messages": "threshold_messages=",
}

ARGUMENTS: Final[Mapping[str, Mapping[str, str]]] = {
    "connect": {
        "client_cert": "tls=TlsOptions(cert_file=, key_file=)",
        "closed_handler": "on_event=",
        "custom_inbox_prefix": "inbox_prefix=",
        "disconnect_err_handler": "on_event=",
        "disconnect_handler": "on_event=",
        "error_handler": "on_event=",
        "max_reconnects": "reconnect=ReconnectPolicy(attempts=)",
        "no_reconnect": "reconnect=None",
        "reconnect_handler": "on_event=",
        "reconnect_wait": "reconnect=ReconnectPolicy(wait=)",
        "root_cas": "tls=TlsOptions(ca_file=)",
        "timeout": "connect_timeout=",
    },
    "subscribe": {
        "callback": "a loop `for message in messages`",
        "handler": "a loop `for message in messages`",
    },
    "JetStream.publish": {
        "body": "data=",
        "content": "data=",
        "dedup_id": "msg_id=",
        "expect_last_msg_id": "expected_last_msg_id=",
        "expect_last_sequence": _EXPECTED_SEQ,
        "expect_last_sequence_per_subject": _EXPECTED_SUBJECT_SEQ,
        "expect_stream": "expected_stream=",
        "expected_last_seq_per_subject": _EXPECTED_SUBJECT_SEQ,
        "expected_last_sequence": _EXPECTED_SEQ,
        "expected_last_sequence_per_subject": _EXPECTED_SUBJECT_SEQ,
        "expected_last_subject_sequence": _EXPECTED_SUBJECT_SEQ,
        "id": "msg_id=",
        "message": "data=",
        "message_id": "msg_id=",
        "payload": "data=",
        "retry_attempts": "retries=",
        "stream": "expected_stream=",
        "stream_name": "expected_stream=",
        "value": "data=",
        **_TTL,
    },
    "JetStream.publisher": {
        "max_in_flight": "window=",
        "max_pending": "window=",
        "publish_async_max_pending": "window=",
    },
    "Stream.get_message": {
        "next": "get_next_message(subject, seq=)",
        "next_for": "get_next_message(subject, seq=)",
        "subject": "get_last_message(subject)",
    },
    "Stream.info": {
        "deleted": "deleted_details=True",
        "subjects_filter": "subjects(subject)",
    },
    "Stream.ordered": {
        "filter_subject": "subjects=",
        "filter_subjects": "subjects=",
        "opt_start_seq": "start_seq=",
        "opt_start_time": "start_time=",
    },
    "Stream.purge": {
        "filter": "subject=",
        "seq": "before_seq=",
        "sequence": "before_seq=",
        "up_to_seq": "before_seq=",
    },
    "Consumer.fetch": {**_PULL, **_MANY, **_WAIT, "no_wait": 'wait="none"'},
    "Consumer.next": {
        **_PULL,
        **_WAIT,
        "batch": "fetch(max_messages=)",
        "no_wait": 'fetch(1, wait="none")',
    },
    "Consumer.messages": {**_ITERATION, "timeout": "next(timeout=) of the iterator"},
    "Consumer.consume": {**_ITERATION, "callback": "handler=", "cb": "handler="},
    "KeyValue.create": _TTL,
    "KeyValue.put": {
        **_TTL,
        "last": "update(key, value, revision)",
        "revision": "update(key, value, revision)",
    },
    "KeyValue.update": {**_TTL, "last": "revision=", "last_revision": "revision="},
    "KeyValue.watch": {
        "filters": "keys=",
        "headers_only": "meta_only=True",
        "ignore_deletes": "deletes=False",
        "include_history": "history=True",
        "resume_from_revision": "resume_from=",
    },
    "KeyValue.keys": {
        "filters": "keys=",
        "ignore_deletes": "keys(), which returns no deleted keys",
    },
    "ObjectStore.list": {
        "ignore_deletes": "deleted=False, the default",
        "include_deleted": "deleted=True",
        "show_deleted": "deleted=True",
    },
    "ObjectStore.put": {
        "chunk_size": "name=ObjectMeta(name=, chunk_size=)",
        "data": "source=",
        **_META,
    },
    "ObjectStore.put_file": _META,
    "ObjectStore.watch": {
        "ignore_deletes": "deletes=False",
        "include_history": "list(), because a store has no history",
    },
}
"""Names of nats.go, of nats-py's methods and of guesses, with what means the same, by call."""


def unknown_argument(
    function: str, unknown: Sequence[str], own: Iterable[str], instead: str = ""
) -> TypeError:
    """Return the error for keyword arguments that a function with the parameters `own` lacks.

    `instead` is suggested for names that are in no table and similar to no parameter.
    """
    text = f"{function}() got an unexpected keyword argument {unknown[0]!r}"
    equivalent = KEYWORDS.get(function, {}).get(unknown[0])
    if equivalent is not None:
        return TypeError(f"{text}: the equivalent of this nats-py name is {equivalent}")
    known, own = ARGUMENTS.get(function, {}), [each for each in own if each != "self"]
    near = {name: get_close_matches(name, own, 1, _LEAST) for name in unknown}
    similar = {name: f"{found[0]}=" for name, found in near.items() if found}
    advice = did_you_mean(
        {name: known.get(name) or similar.get(name) or instead for name in unknown}
    )
    return TypeError(f"{text}; {advice}" if advice else text)
