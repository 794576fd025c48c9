"""Rules for changes of a consumer's config that a server refuses."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from twinstream.models.error_codes import (
    CONSUMER_CREATE,
    CONSUMER_NAME_EXISTS,
    DURABLE_NAME_MISMATCH,
)
from twinstream.models.rules.consumer_case import ConsumerCase
from twinstream.models.rules.consumer_stored import stored_consumer
from twinstream.models.rules.rule import Found, Hit, Rule
from twinstream.models.times.go_time import go_time
from twinstream.models.version import Version

_ALWAYS: Version = (0, 0, 0)

# The members that an update cannot change, with the first server version that refuses a change.
_MEMBERS: dict[str, Version] = {
    "deliver_policy": _ALWAYS,
    "opt_start_seq": _ALWAYS,
    "opt_start_time": _ALWAYS,
    "ack_policy": _ALWAYS,
    "replay_policy": _ALWAYS,
    "idle_heartbeat": _ALWAYS,
    "flow_control": _ALWAYS,
    "max_waiting": _ALWAYS,
    "mem_storage": (2, 14, 4),
    "direct": (2, 14, 6),
    "sourcing": (2, 14, 6),
}


class ConsumerUpdateCase:
    """The input of rules for updates: the config of a consumer and the config that replaces it."""

    def __init__(self, old: ConsumerCase, new: ConsumerCase) -> None:
        """Create the input from `old`, as returned by a server, and `new` from the caller."""
        self.old_case = old
        self.new_case = new
        self.settings = new.settings
        self.version = new.version
        self.pedantic = new.pedantic

    @cached_property
    def old(self) -> dict[str, Any]:
        """The old config as the server stores it."""
        return stored_consumer(self.old_case)

    @cached_property
    def new(self) -> dict[str, Any]:
        """The new config as the server would store it."""
        return stored_consumer(self.new_case)

    def pair(self, member: str) -> tuple[Any, Any]:
        """Return the old and the new value of a member.

        The values of `opt_start_time` are converted to numbers, so that they can be compared.
        """
        old, new = self.old.get(member), self.new.get(member)
        if member == "opt_start_time":
            return old and go_time(old), new and go_time(new)
        return old, new


UR = Rule[ConsumerUpdateCase]


def _name(case: ConsumerUpdateCase) -> Found:
    old, new = case.pair("name")
    return bool(old) and old != new and [Hit("name", new, repr(old))]


def _fixed(case: ConsumerUpdateCase) -> Found:
    hits: list[Hit] = []
    for member, since in _MEMBERS.items():
        old, new = case.pair(member)
        if old != new and case.version >= since:
            hits.append(Hit(member, new, f"{member} is {old!r}"))
    return hits


def _mode(case: ConsumerUpdateCase) -> Found:
    old, new = case.pair("deliver_subject")
    return bool(old) != bool(new) and [Hit("deliver_subject", new)]


def _moved(case: ConsumerUpdateCase) -> Found:
    old, new = case.pair("deliver_subject")
    return bool(old) and bool(new) and old != new and [Hit("deliver_subject", new, repr(old))]


UPDATE_RULES = (
    UR(
        "U-NAME",
        DURABLE_NAME_MISMATCH,
        "name",
        "the consumer is called {detail}; a consumer cannot be renamed.",
        "Make a new consumer.",
        _name,
    ),
    UR(
        "U-FIXED",
        CONSUMER_CREATE,
        "",
        "{detail} and cannot change.",
        "Keep the old value, or make a new consumer.",
        _fixed,
    ),
    UR(
        "U-PUSH-PULL",
        CONSUMER_CREATE,
        "deliver_subject",
        "a pull consumer cannot become a push consumer, or the reverse.",
        "Make a new consumer.",
        _mode,
    ),
)

UPDATE_ENVIRONMENT = (
    UR(
        "C-IN-USE",
        CONSUMER_NAME_EXISTS,
        "deliver_subject",
        "deliver_subject can only change while no client subscribes to {detail}.",
        "Stop the subscribers first.",
        _moved,
    ),
)
