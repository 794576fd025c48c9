"""The defaults that the server sets in a consumer's config before it checks the config."""

from __future__ import annotations

from twinstream.models.files.settings import Settings
from twinstream.models.version import Version

SECOND = 1_000_000_000
ACK_WAIT = 30 * SECOND
MAX_ACK_PENDING = 1_000
MAX_WAITING = 512
PINNED_TIMEOUT = 120 * SECOND
EPHEMERAL_INACTIVE = 5 * SECOND

NEVER_NEGATIVE = (
    "max_waiting",
    "max_batch",
    "max_expires",
    "max_bytes",
    "idle_heartbeat",
    "inactive_threshold",
    "priority_timeout",
)
"""The members that the server sets to 0 if they are negative, in the order of the server.

Servers before `RESETS_SINCE` do not change them.
"""

RESETS_SINCE: Version = (2, 12, 0)
"""The first server version that resets negative numbers. Older servers keep or refuse them."""


def as_prepared(given: Settings) -> Settings:
    """Return the settings of a consumer on a stream with `interest` or `workqueue` retention.

    Another stream can copy such a stream. No message may be removed before the other stream has
    copied it. So before the server checks the config, it changes a named consumer with `direct` and
    `sourcing` to a durable consumer with flow control. The settings of other consumers are returned
    unchanged.
    """
    name = given["name"] or given["durable_name"]
    if not (given["direct"] and given["sourcing"] and name):
        return given
    cleared = dict.fromkeys(("ack_wait", "max_deliver", "inactive_threshold"), 0)
    prepared = {"durable_name": name, "direct": False, "ack_policy": "flow_control"}
    return Settings(given.record, {**given, **cleared, **prepared})


def with_start_of(old: Settings, new: Settings) -> Settings:
    """Return the settings `new` with the start position of `old`."""
    start = ("deliver_policy", "opt_start_seq", "opt_start_time")
    kept = {name: value for name, value in new.items() if name not in start}
    return Settings(new.record, {**kept, **{name: old[name] for name in start if name in old}})


def with_defaults(
    given: Settings, limits: Settings, version: Version, *, filled: bool = True
) -> Settings:
    """Return `given` with the defaults that the server sets before its checks.

    With `filled`, the ack policy `flow_control` sets `flow_control` and `idle_heartbeat`; the
    server does not do this for pedantic requests. `limits` is the stream's `consumer_limits`.
    """
    done = given.filled()
    _numbers(done, version)
    _acks(done)
    if not done["max_ack_pending"] and limits["max_ack_pending"]:
        done["max_ack_pending"] = limits["max_ack_pending"]
    if not done["inactive_threshold"] and limits["inactive_threshold"]:
        done["inactive_threshold"] = limits["inactive_threshold"]
    if not done["max_ack_pending"] and done["ack_policy"] not in ("", "none"):
        done["max_ack_pending"] = MAX_ACK_PENDING
    if done["priority_policy"] == "pinned_client" and not done["priority_timeout"]:
        done["priority_timeout"] = PINNED_TIMEOUT
    if done["ack_policy"] == "flow_control" and filled:
        done["flow_control"] = True
        done["idle_heartbeat"] = SECOND
    return done


def _numbers(done: Settings, version: Version) -> None:
    """Set numbers that are absent or negative to the values that the server stores."""
    if not done["max_deliver"]:
        done["max_deliver"] = -1
    if version >= RESETS_SINCE:
        if done["max_deliver"] < -1:
            done["max_deliver"] = -1
        for member in NEVER_NEGATIVE:
            if done[member] < 0:
                done[member] = 0
        if done["max_ack_pending"] < -1:
            done["max_ack_pending"] = -1
    if not done["deliver_subject"] and not done["max_waiting"]:
        done["max_waiting"] = MAX_WAITING


def _acks(done: Settings) -> None:
    if not done["ack_wait"] and done["ack_policy"] in ("explicit", "all"):
        done["ack_wait"] = ACK_WAIT
    if done["backoff"]:
        done["ack_wait"] = done["backoff"][0]
