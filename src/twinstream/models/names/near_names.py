"""Suggestions for unknown names of settings: the name that the caller probably means."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

__all__ = ["did_you_mean", "name_advice", "near_name"]

_DELIVERIES: Final = ("max_deliver", "attempts", "retries")
_PAUSES: Final = ("longest", "max_wait")

# Names of other settings, libraries and message systems, with the settings that mean the same.
# The first setting that exists is suggested.
_MEANT: Final[Mapping[str, tuple[str, ...]]] = {
    "ack_timeout": ("ack_wait",),
    "allow_batch_publish": ("allow_batched",),
    "api_prefix": ("api",),
    "bucket_name": ("bucket",),
    "consumer_name": ("name", "durable_name"),
    "dedup_window": ("duplicate_window",),
    "deduplication_window": ("duplicate_window",),
    "delay": ("first", "wait"),
    "deliver_prefix": ("deliver",),
    "destination": ("dest",),
    "direct": ("allow_direct",),
    "discard_policy": ("discard",),
    "duplicates": ("duplicate_window",),
    "durable": ("durable_name",),
    "expires": ("ttl", "max_age"),
    "filters": ("filter_subjects",),
    "history": ("max_msgs_per_subject",),
    "hostname": ("server_name",),
    "inactive_timeout": ("inactive_threshold",),
    "max_ack": ("max_ack_pending",),
    "max_age": ("ttl",),
    "max_attempts": _DELIVERIES,
    "max_delay": _PAUSES,
    "max_deliveries": _DELIVERIES,
    "max_in_flight": ("max_ack_pending",),
    "max_messages": ("max_msgs",),
    "max_msg_size": ("max_value_size",),
    "max_msgs_per_subject": ("history",),
    "max_pending": ("max_ack_pending",),
    "max_redeliver": _DELIVERIES,
    "max_redeliveries": _DELIVERIES,
    "max_request_batch": ("max_batch",),
    "max_request_expires": ("max_expires",),
    "max_request_max_bytes": ("max_bytes",),
    "max_retries": _DELIVERIES,
    "max_size": ("max_bytes",),
    "max_value_size": ("max_msg_size",),
    "memory_storage": ("mem_storage",),
    "multiplier": ("factor",),
    "name": ("bucket",),
    "persistence": ("persist_mode",),
    "pinned_ttl": ("priority_timeout",),
    "prefetch": ("max_ack_pending",),
    "queue": ("deliver_group",),
    "queue_group": ("deliver_group",),
    "replicas": ("num_replicas",),
    "retention_policy": ("retention",),
    "retries": _DELIVERIES,
    "source": ("src", "sources"),
    "storage_type": ("storage",),
    "stream": ("name",),
    "stream_name": ("name",),
    "subject_delete_marker_ttl": ("limit_marker_ttl",),
    "ttl": ("max_age",),
    "visibility_timeout": ("ack_wait",),
}

# Settings of other clients that no setting replaces, by a setting of the record and their name.
_NEEDLESS: Final[Mapping[tuple[str, str], str]] = {
    ("bucket", "direct"): "direct= of nats-py is not needed: a bucket has direct reads",
    ("external", "domain"): 'a domain is external=ExternalStream(api="$JS.<domain>.API")',
}

# The least similarity of a suggestion. `max_retries` and `max_bytes` have 0.7.
_LEAST: Final = 0.75


def near_name(name: str, known: Collection[str]) -> str:
    """Return the name in `known` that the caller who wrote `name` probably means, or ""."""
    import difflib

    lower = name.lower()
    meant = next((each for each in _MEANT.get(lower, ()) if each in known), "")
    if meant:
        return meant
    close = difflib.get_close_matches(lower, known, n=1, cutoff=_LEAST)
    if close:
        return close[0]
    words = set(lower.split("_"))
    return min((each for each in known if words <= set(each.split("_"))), key=len, default="")


def name_advice(unknown: Iterable[str], known: Collection[str]) -> str:
    """Return a suggestion for the unknown names, or "" if there is none."""
    names = list(unknown)
    for (setting, name), advice in _NEEDLESS.items():
        if setting in known and name in names:
            return advice
    near = {name: near_name(name, known) for name in names}
    return did_you_mean({name: near[name] and repr(near[name]) for name in names})


def did_you_mean(meant: Mapping[str, str]) -> str:
    """Return the sentence that suggests `meant[name]` for each unknown name, or "" without any.

    A suggestion may be "". One that equals that of another name is mentioned once.
    """
    only = len(set(meant.values())) == 1
    shown = [each if only else f"{each} for {name!r}" for name, each in meant.items() if each]
    return f"did you mean {', '.join(dict.fromkeys(shown))}?" if shown else ""
