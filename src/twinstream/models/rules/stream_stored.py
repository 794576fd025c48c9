"""`stored_stream`: the settings of a stream as a server stores and returns them."""

from __future__ import annotations

from typing import Any, Final

from twinstream.models.files.settings import Settings
from twinstream.models.rules.stored import put, stored_metadata
from twinstream.models.rules.stream import SOURCES_WITHOUT_WINDOW_SINCE
from twinstream.models.rules.stream_case import StreamCase
from twinstream.models.rules.stream_subjects import is_implicit_republish
from twinstream.models.version import Version

RESETS_SINCE: Version = (2, 12, 0)
"""The first server version that changes limits below -1 to -1."""

MARKER_TURNS_ON_SINCE: Version = (2, 11, 2)
"""The first server version that enables the settings that a delete marker needs."""

EMPTY_PLACEMENT_GONE_SINCE: Version = (2, 11, 9)
"""The first server version that does not store an empty `placement`."""

DEFAULT_WINDOW = 120_000_000_000
"""The default of `duplicate_window`: two minutes, in nanoseconds."""

_LIMITS = ("max_consumers", "max_msgs", "max_bytes", "max_msgs_per_subject", "max_msg_size")
_ALWAYS = ("max_age", "allow_direct", "mirror_direct", "sealed", "deny_delete")
_WHERE_SET = (
    "description",
    "no_ack",
    "first_seq",
    "discard_new_per_subject",
    "subject_delete_marker_ttl",
    "allow_msg_counter",
    "allow_atomic",
    "allow_msg_schedules",
    "allow_batched",
)

SEALED: Final[dict[str, Any]] = {
    "discard": "new",
    "max_age": 0,
    "deny_delete": True,
    "deny_purge": True,
    "allow_rollup_hdrs": False,
}
"""The settings that the server gives to every sealed stream."""


def stored_stream(case: StreamCase) -> dict[str, Any]:
    """Return the settings as the server returns them, with all defaults and implicit changes."""
    settings = case.settings
    out: dict[str, Any] = {"name": settings["name"]}
    put(out, settings, *_WHERE_SET)
    for member in _ALWAYS:
        out[member] = settings[member]
    for member in _LIMITS:
        out[member] = _limit(settings[member], case.version)
    if case.subjects:
        out["subjects"] = case.subjects
    out["retention"] = settings["retention"] or "limits"
    out["discard"] = settings["discard"] or "old"
    out["storage"] = settings["storage"] or "file"
    out["compression"] = settings["compression"] or "none"
    out["num_replicas"] = settings["num_replicas"] or 1
    out["consumer_limits"] = _limits(settings["consumer_limits"])
    if settings["persist_mode"] == "async":
        out["persist_mode"] = "async"
    window = _window(case)
    if window:
        out["duplicate_window"] = window
    _flags(case, out)
    _put_records(case, out)
    out["metadata"] = stored_metadata(settings["metadata"], case.version, _level(case, out))
    return out


def _limit(given: int, version: Version) -> int:
    if given < 0 and version < RESETS_SINCE:
        return given
    return given if given > 0 else -1


def _window(case: StreamCase) -> int:
    """Return the duplicate window that the server stores; a default depends on `max_age`."""
    given: int = case["duplicate_window"]
    if given or case.mirror is not None:
        return given
    if case.sources and case.version >= SOURCES_WITHOUT_WINDOW_SINCE:
        return 0
    age: int = case["max_age"]
    return min(DEFAULT_WINDOW, age) if age else DEFAULT_WINDOW


def _flags(case: StreamCase, out: dict[str, Any]) -> None:
    """Set the flags in `out`.

    Delete markers and schedules enable the flags that they need, and disable `deny_purge`.
    """
    marker = case["subject_delete_marker_ttl"] > 0 and case.version >= MARKER_TURNS_ON_SINCE
    rollup = case["allow_rollup_hdrs"]
    needs_rollup = marker or (case["allow_msg_schedules"] and not rollup)
    out["allow_msg_ttl"] = case["allow_msg_ttl"] or marker
    out["allow_rollup_hdrs"] = rollup or needs_rollup
    out["deny_purge"] = case["deny_purge"] and not needs_rollup


def _put_records(case: StreamCase, out: dict[str, Any]) -> None:
    """Set the settings in `out` that are objects, as the server stores them."""
    settings = case.settings
    placement = settings["placement"]
    stores_empty = case.version < EMPTY_PLACEMENT_GONE_SINCE
    if placement is not None and (placement["cluster"] or "tags" in placement or stores_empty):
        where: dict[str, Any] = {}
        put(where, placement, "cluster", "tags")
        out["placement"] = where
    if case.mirror is not None:
        out["mirror"] = _stored_origin(case.mirror)
    if case.sources:
        out["sources"] = [_stored_origin(source) for source in case.sources]
    if settings["subject_transform"] is not None:
        out["subject_transform"] = _transform(settings["subject_transform"])
    if settings["republish"] is not None:
        out["republish"] = _republish(case)


def _stored_origin(origin: Settings) -> dict[str, Any]:
    """Return a mirror or a source as the server stores it, without empty settings."""
    out: dict[str, Any] = {"name": origin["name"]}
    put(out, origin, "opt_start_seq", "opt_start_time", "filter_subject")
    if origin["subject_transforms"]:
        out["subject_transforms"] = [_transform(one) for one in origin["subject_transforms"]]
    external = origin["external"]
    if external is not None:
        out["external"] = {"api": external["api"], "deliver": external["deliver"]}
    consumer = origin["consumer"]
    if consumer is not None:
        stored_consumer: dict[str, Any] = {}
        put(stored_consumer, consumer, "name", "deliver_subject")
        out["consumer"] = stored_consumer
    return out


def _transform(transform: Settings) -> dict[str, Any]:
    return {"src": transform["src"], "dest": transform["dest"]}


def _republish(case: StreamCase) -> dict[str, Any]:
    republish = case["republish"]
    out = {"src": republish["src"] or ">", "dest": republish["dest"]}
    if is_implicit_republish(case):
        target = case["subject_transform"]["dest"]
        out = {"src": target, "dest": target} if target else {"dest": ""}
    put(out, republish, "headers_only")
    return out


def _limits(limits: Settings | None) -> dict[str, Any]:
    out: dict[str, Any] = {}
    if limits is not None:
        put(out, limits, "inactive_threshold", "max_ack_pending")
    return out


def _level(case: StreamCase, out: dict[str, Any]) -> int:
    """Return the API level of the server that the settings need."""
    if case["allow_batched"]:
        return 4
    newer = ("allow_msg_counter", "allow_atomic", "allow_msg_schedules")
    if any(case[member] for member in newer) or case["persist_mode"] == "async":
        return 2
    return 1 if out["allow_msg_ttl"] else 0
