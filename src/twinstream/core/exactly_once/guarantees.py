"""Check whether a stream's settings guarantee the effect of conditional writes.

Each function returns the settings that break one guarantee, an empty list if there are none.
Sources: nats-server `processJetStreamMsg`, `store.go`; tested on 2.11.11, 2.12.8, 2.14.6 and
2.15.1, with and without replicas.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from twinstream.core.server_faults.table import FULL_SUBJECT
from twinstream.models import DiscardPolicy, RetentionPolicy, StorageType, StreamConfig
from twinstream.records.guarantee_gap import GuaranteeGap

__all__ = [
    "identity_gaps",
    "insert_gaps",
    "rolls_up",
    "update_gaps",
    "upsert_gaps",
    "write_gaps",
]

_ZERO: Final = timedelta()
# The duplicate window must be at least this many times the timeout of an attempt. Retries start in
# the first half of the window. The last one must reach the server before the window ends.
_WINDOW_SHARE: Final = 4


def write_gaps(config: StreamConfig) -> list[GuaranteeGap]:
    """Return the settings with which a write fails, is not confirmed or cannot be looked up."""
    gaps: list[GuaranteeGap] = []
    if config.no_ack:
        gaps.append(GuaranteeGap("no_ack", True, "writes are not confirmed", "set no_ack=False"))
    if config.mirror is not None:
        origin = config.mirror.name
        gaps.append(GuaranteeGap("mirror", origin, "it accepts no writes", f"write to {origin}"))
    if config.sealed:
        gaps.append(GuaranteeGap("sealed", True, "it accepts no writes", "use another stream"))
    if config.subject_transform is not None:
        gaps.append(
            GuaranteeGap(
                "subject_transform",
                config.subject_transform.dest,
                "messages are stored under another subject than they were written to",
                "write to the final subject, without a transform",
            )
        )
    return gaps


def insert_gaps(config: StreamConfig, lasting: float | None = None) -> list[GuaranteeGap]:
    """Return the settings that allow a subject to be inserted twice.

    The server must refuse a second insert for `lasting` seconds; None means forever.
    """
    return [*write_gaps(config), *_keeping_gaps(config, lasting)]


def _keeping_gaps(config: StreamConfig, lasting: float | None = None) -> list[GuaranteeGap]:
    """Return the settings that allow the stream to remove a message by itself.

    The stream must keep the message for `lasting` seconds; None means forever.
    """
    gaps = _lossy_settings(config)
    age = config.max_age or _ZERO
    if age and (lasting is None or age.total_seconds() < lasting):
        wanted = "max_age=0" if lasting is None else f"max_age to {lasting:g} s or more, or 0"
        because = "messages older than that are removed"
        gaps.append(GuaranteeGap("max_age", age, because, f"set {wanted}"))
    if config.discard is not DiscardPolicy.NEW:
        for limit in ("max_msgs", "max_bytes"):
            value = getattr(config, limit)
            if value is not None and value > 0:
                because = "a full stream drops its oldest messages, which could be stored again"
                gaps.append(GuaranteeGap(limit, value, because, f"set discard=new, or {limit}=-1"))
    return gaps


def _lossy_settings(config: StreamConfig) -> list[GuaranteeGap]:
    """Return the settings with which a stream loses or removes messages that it has stored."""
    gaps: list[GuaranteeGap] = []
    if config.storage is StorageType.MEMORY:
        gaps.append(
            GuaranteeGap("storage", "memory", "a restart loses stored messages", "set storage=file")
        )
    if config.retention not in {None, RetentionPolicy.LIMITS}:
        gaps.append(
            GuaranteeGap(
                "retention",
                config.retention,
                "acknowledged messages are removed, and could be stored again",
                "set retention=limits",
            )
        )
    return gaps


def identity_gaps(config: StreamConfig, timeout: float) -> list[GuaranteeGap]:
    """Return the settings that allow a message to be stored twice despite its id.

    Within the duplicate window the server recognises the message id. After the window the client
    looks up the stored message, so the stream must still have it. An attempt may take `timeout`
    seconds.
    """
    gaps = [*write_gaps(config), *_lossy_settings(config)]
    window = config.duplicate_window
    if window is not None and window.total_seconds() < _WINDOW_SHARE * timeout:
        gaps.append(
            GuaranteeGap(
                "duplicate_window",
                window,
                f"a retry after {timeout:g} s without a response could come too late",
                f"set duplicate_window to {_WINDOW_SHARE * timeout:g} s or more",
            )
        )
    if config.max_msgs_per_subject is not None and config.max_msgs_per_subject > 0:
        gaps.append(
            GuaranteeGap(
                "max_msgs_per_subject",
                config.max_msgs_per_subject,
                "a stored message may be removed before it is looked up",
                "set max_msgs_per_subject=-1, or give each message a subject of its own",
            )
        )
    return gaps


def rolls_up(config: StreamConfig, *, history: bool) -> bool:
    """Return whether a write needs a rollup to replace the message of its subject.

    `history` is true if older messages of the subject may stay in the stream.
    """
    keeps_more = config.max_msgs_per_subject != 1
    return bool(config.discard_new_per_subject) or (keeps_more and not history)


def update_gaps(config: StreamConfig, server: tuple[int, int, int]) -> list[GuaranteeGap]:
    """Return the settings that prevent the conditional replacement of a message."""
    gaps = write_gaps(config)
    if config.discard_new_per_subject:
        gaps.extend(_full_subject(config, server))
    return gaps


def upsert_gaps(config: StreamConfig, server: tuple[int, int, int]) -> list[GuaranteeGap]:
    """Return the settings that allow a subject to keep more than the newest message."""
    gaps = write_gaps(config)
    if config.discard_new_per_subject:
        gaps.extend(_full_subject(config, server))
    elif config.max_msgs_per_subject != 1 and not config.allow_rollup_hdrs:
        gaps.append(
            GuaranteeGap(
                "max_msgs_per_subject",
                config.max_msgs_per_subject,
                "older messages of the subject stay",
                "set max_msgs_per_subject=1, or allow_rollup_hdrs=True to keep the history of"
                " other writers",
            )
        )
    return gaps


def _full_subject(config: StreamConfig, server: tuple[int, int, int]) -> list[GuaranteeGap]:
    if config.allow_rollup_hdrs and not FULL_SUBJECT.affects(server):
        return []
    return [
        GuaranteeGap(
            "discard_new_per_subject",
            True,
            "a subject that has a message refuses the next one",
            "set discard_new_per_subject=False (insert works without it), or"
            " allow_rollup_hdrs=True on server 2.14",
        )
    ]
