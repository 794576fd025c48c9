"""`stored_consumer`: the settings of a consumer as a server stores and returns them."""

from __future__ import annotations

from typing import Any

from twinstream.models.rules.consumer_case import ConsumerCase
from twinstream.models.rules.consumer_defaults import EPHEMERAL_INACTIVE
from twinstream.models.rules.stored import put, stored_metadata
from twinstream.models.times.go_time import GO_ZERO, go_time

_WHERE_SET = (
    "description",
    "opt_start_seq",
    "opt_start_time",
    "ack_wait",
    "max_deliver",
    "filter_subject",
    "rate_limit_bps",
    "sample_freq",
    "max_waiting",
    "max_ack_pending",
    "flow_control",
    "headers_only",
    "max_batch",
    "max_expires",
    "max_bytes",
    "deliver_subject",
    "deliver_group",
    "idle_heartbeat",
    "inactive_threshold",
    "mem_storage",
    "direct",
    "sourcing",
    "pause_until",
    "priority_timeout",
)


def stored_consumer(case: ConsumerCase, *, was_durable: bool = False) -> dict[str, Any]:
    """Return the settings as the server returns them, with all defaults and implicit changes.

    `was_durable` means that the config is an update of a durable consumer. In this case the server
    sets no default for `inactive_threshold`, even if the update has no `durable_name`.
    """
    settings = case.settings
    out: dict[str, Any] = {}
    put(out, settings, *_WHERE_SET)
    name = settings["name"] or settings["durable_name"]
    if name:
        out["name"] = name
    if settings["durable_name"]:
        out["durable_name"] = settings["durable_name"]
    elif settings["inactive_threshold"] <= 0 and not was_durable:
        out["inactive_threshold"] = EPHEMERAL_INACTIVE
    for member in ("backoff", "filter_subjects", "priority_groups"):
        if settings[member]:
            out[member] = list(settings[member])
    out["deliver_policy"] = settings["deliver_policy"] or "all"
    out["ack_policy"] = settings["ack_policy"] or "none"
    out["replay_policy"] = settings["replay_policy"] or "instant"
    out["num_replicas"] = settings["num_replicas"]
    if settings["priority_policy"] not in ("", "none"):
        out["priority_policy"] = settings["priority_policy"]
    out["metadata"] = stored_metadata(settings["metadata"], case.version, _level(case))
    return out


def _level(case: ConsumerCase) -> int:
    """Return the API level that the settings in the request need.

    Implicit changes by the server do not count.
    """
    if case["ack_policy"] == "flow_control":
        return 4
    given = case.given
    paused = given["pause_until"] is not None and go_time(given["pause_until"]) != GO_ZERO
    newer = paused or given["priority_groups"]
    policy = given["priority_policy"] not in ("", "none") or given["priority_timeout"]
    return 1 if newer or policy else 0
