"""Rules for changes of a stream's config that a server refuses, in the order of the server.

An update replaces the whole config: a setting that the new config omits gets its default. So both
configs are compared as the server stores them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

from twinstream.models.error_codes import (
    MIRROR_NOT_UPDATABLE,
    MOVE_AND_SCALE,
    STREAM_INVALID_CONFIG,
    STREAM_MISMATCH,
    STREAM_UPDATE,
)
from twinstream.models.files.settings import Settings
from twinstream.models.names.transform_rules import transform_fault
from twinstream.models.rules.origin_case import origins
from twinstream.models.rules.rule import Found, Hit, Rule
from twinstream.models.rules.stream_case import StreamCase
from twinstream.models.rules.stream_environment import turns_counter_ttl_on
from twinstream.models.rules.stream_lint import mirror_zone
from twinstream.models.rules.stream_origin import unbuildable, unseen_transforms
from twinstream.models.rules.stream_stored import SEALED, stored_stream
from twinstream.models.version import Version


class StreamUpdateCase:
    """The input of rules for updates: the config of a stream, and the config that replaces it."""

    def __init__(self, old: Settings, new: StreamCase) -> None:
        """Create the input from `old`, as returned by a server, and `new` from the caller."""
        self.new_case = new
        self.settings = new.settings
        self.version: Version = new.version
        self.pedantic = new.pedantic
        self.old_settings = old

    @cached_property
    def old(self) -> dict[str, Any]:
        """The old config as the server stores it."""
        stored = stored_stream(StreamCase(self.old_settings, self.version))
        return {**stored, **SEALED} if stored["sealed"] else stored

    @cached_property
    def new(self) -> dict[str, Any]:
        """The new config as the server would store it."""
        return stored_stream(self.new_case)


UR = Rule[StreamUpdateCase]


def _differs(member: str) -> Callable[[StreamUpdateCase], Found]:
    def test(case: StreamUpdateCase) -> Found:
        differs = case.old.get(member) != case.new.get(member)
        return differs and [Hit(member, case.new.get(member), repr(case.old.get(member)))]

    return test


def _turned_off(member: str) -> Callable[[StreamUpdateCase], Found]:
    return lambda case: bool(case.old.get(member)) and not case.new.get(member)


def _work_queue(case: StreamUpdateCase) -> Found:
    old, new = case.old["retention"], case.new["retention"]
    return old != new and "workqueue" in (old, new) and [Hit("retention", new, repr(old))]


def _mirror(case: StreamUpdateCase) -> Found:
    # The server also distinguishes an empty list of transforms from an absent one. Its responses do
    # not contain this difference, so the stored forms are compared.
    new = case.new.get("mirror")
    return new is not None and new != case.old.get("mirror")


def _mirror_zone(case: StreamUpdateCase) -> Found:
    """Whether the mirror's start time has a zero offset.

    Only the server can compare such a time, because it compares texts and may have stored the time
    with Z instead of the offset.
    """
    return mirror_zone(case.new_case)


def _unseen_transforms(case: StreamUpdateCase) -> Found:
    return [
        Hit(f"{path}.dest", one["dest"])
        for origin in origins(case.new_case)
        for path, one in unseen_transforms(origin)
        if unbuildable(one, case.version)
    ]


def _moves_and_scales(case: StreamUpdateCase) -> Found:
    moves = case.new.get("placement") not in (None, case.old.get("placement"))
    return moves and case.new["num_replicas"] != case.old["num_replicas"] and [Hit("placement")]


def _republish(case: StreamUpdateCase) -> Found:
    """Whether an update fails because of a `republish` without a destination.

    The first check of the server accepts such a `republish`, but the update itself fails.
    """
    republish = case.settings["republish"]
    if republish is None or republish["dest"]:
        return False
    fault = transform_fault(republish["src"], ">", case.version, strict=False)
    return fault is not None and [Hit("republish.dest", None, fault)]


UPDATE_RULES = (
    UR(
        # The server checks an update again after its implicit changes. One of these changes enables
        # `allow_msg_ttl` because of the marker, so the second check refuses the update.
        "U-CTR-MARKER",
        STREAM_INVALID_CONFIG,
        "subject_delete_marker_ttl",
        "counters and subject_delete_marker_ttl exclude each other in an update.",
        "Remove one of them.",
        lambda case: turns_counter_ttl_on(case.new_case),
        since="2.12.0",
    ),
    UR(
        "U-NAME",
        STREAM_MISMATCH,
        "name",
        "the stream is called {detail}; a stream cannot be renamed.",
        "Make a new stream with the old one as source.",
        _differs("name"),
    ),
    UR(
        "U-MAX-CONSUMERS",
        STREAM_INVALID_CONFIG,
        "max_consumers",
        "max_consumers is {detail} and cannot change before server 2.12.5.",
        "Keep it, or use a newer server.",
        _differs("max_consumers"),
        until="2.12.5",
    ),
    UR(
        "U-STORAGE",
        STREAM_INVALID_CONFIG,
        "storage",
        "storage is {detail} and cannot change.",
        "Write the old value; left out it means file.",
        _differs("storage"),
    ),
    UR(
        "U-RETENTION",
        STREAM_INVALID_CONFIG,
        "retention",
        "retention is {detail} and cannot become {value}; only limits and interest can change.",
        "Make a new stream with the old one as source.",
        _work_queue,
    ),
    UR(
        "U-UNSEAL",
        STREAM_INVALID_CONFIG,
        "sealed",
        "the stream is sealed, which cannot be undone.",
        "Set sealed.",
        _turned_off("sealed"),
    ),
    UR(
        "U-DENY-DELETE",
        STREAM_INVALID_CONFIG,
        "deny_delete",
        "deny_delete is on and cannot be turned off.",
        "Set deny_delete.",
        _turned_off("deny_delete"),
    ),
    UR(
        "U-DENY-PURGE",
        STREAM_INVALID_CONFIG,
        "deny_purge",
        "deny_purge is on and cannot be turned off, but schedules and markers turn it off.",
        "Set deny_purge.",
        _turned_off("deny_purge"),
    ),
    UR(
        "U-MIRROR",
        MIRROR_NOT_UPDATABLE,
        "mirror",
        "a mirror can be removed, but neither changed nor added.",
        "Keep it, or make a new stream.",
        _mirror,
    ),
    UR(
        "U-MIRROR",
        MIRROR_NOT_UPDATABLE,
        "mirror",
        "a mirror cannot become an independent stream before server 2.12.",
        "Keep mirror, or use a newer server.",
        _turned_off("mirror"),
        until="2.12.0",
    ),
    UR(
        "U-TTL",
        STREAM_INVALID_CONFIG,
        "allow_msg_ttl",
        "allow_msg_ttl cannot change before server 2.11.2.",
        "Keep it, or use a newer server.",
        _differs("allow_msg_ttl"),
        until="2.11.2",
    ),
    UR(
        "U-TTL-OFF",
        STREAM_INVALID_CONFIG,
        "allow_msg_ttl",
        "allow_msg_ttl is on and cannot be turned off; a delete marker may have turned it on.",
        "Set allow_msg_ttl.",
        _turned_off("allow_msg_ttl"),
        since="2.11.2",
    ),
    UR(
        "U-COUNTER",
        STREAM_INVALID_CONFIG,
        "allow_msg_counter",
        "allow_msg_counter cannot change.",
        "Make a new stream.",
        _differs("allow_msg_counter"),
        since="2.12.0",
    ),
    UR(
        "U-SCHED-OFF",
        STREAM_INVALID_CONFIG,
        "allow_msg_schedules",
        "allow_msg_schedules is on and cannot be turned off.",
        "Set allow_msg_schedules.",
        _turned_off("allow_msg_schedules"),
        since="2.12.0",
    ),
    UR(
        "U-PERSIST",
        STREAM_INVALID_CONFIG,
        "persist_mode",
        "persist_mode cannot change.",
        "Make a new stream.",
        _differs("persist_mode"),
        since="2.12.0",
    ),
    UR(
        "U-SOURCE-TR",
        STREAM_UPDATE,
        "",
        "the transform to {value} is not valid.",
        "Compare source and destination token by token.",
        _unseen_transforms,
    ),
    UR(
        "U-REPUB-DEST",
        STREAM_UPDATE,
        "",
        "an update reads a missing destination as >, and {detail}.",
        "Write dest.",
        _republish,
    ),
)

UPDATE_ENVIRONMENT = (
    UR(
        "U-MOVE-SCALE",
        MOVE_AND_SCALE,
        "placement",
        "a cluster does not change placement and num_replicas in one update.",
        "Change one first, and the other when the server has finished.",
        _moves_and_scales,
    ),
    UR(
        "U-MIRROR-ZONE",
        MIRROR_NOT_UPDATABLE,
        "mirror.opt_start_time",
        "{value} differs from the same time with Z, unless the mirror was created with it and the"
        " server has not restarted since.",
        "Write Z.",
        _mirror_zone,
    ),
)
