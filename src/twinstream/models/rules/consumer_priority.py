"""Rules for the priority groups of a consumer."""

from __future__ import annotations

import re

from twinstream.models.error_codes import (
    PRIORITY_GROUP_EMPTY,
    PRIORITY_GROUP_NAME_INVALID,
    PRIORITY_GROUP_WITHOUT_POLICY,
    PRIORITY_POLICY_WITHOUT_GROUP,
    PRIORITY_TIMEOUT_WITHOUT_POLICY,
    PUSH_WITH_PRIORITY_GROUP,
)
from twinstream.models.rules.consumer_case import ConsumerCase
from twinstream.models.rules.rule import ForEach, Found, Hit, Rule

CR = Rule[ConsumerCase]

_GROUP = re.compile(r"[A-Za-z0-9/_=-]{1,16}", re.ASCII)


def _has_policy(case: ConsumerCase) -> bool:
    return case["priority_policy"] not in ("", "none")


class _GroupCase:
    """The input of rules for one item of `priority_groups`."""

    def __init__(self, consumer: ConsumerCase, index: int, group: str) -> None:
        self.settings = consumer.settings
        self.version = consumer.version
        self.pedantic = consumer.pedantic
        self.group = group
        self.path = f"priority_groups[{index}]"


def _groups(case: ConsumerCase) -> list[_GroupCase]:
    if not _has_policy(case):
        return []
    return [_GroupCase(case, *one) for one in enumerate(case["priority_groups"])]


def _empty_group(case: _GroupCase) -> Found:
    return not case.group and [Hit(case.path, case.group)]


def _bad_group(case: _GroupCase) -> Found:
    return bool(case.group) and not _GROUP.fullmatch(case.group) and [Hit(case.path, case.group)]


GR = Rule[_GroupCase]

_GROUP_RULES = (
    GR(
        "C-PRIO-EMPTY",
        PRIORITY_GROUP_EMPTY,
        "",
        "the name of a group is empty.",
        "Use 1 to 16 letters, digits, - _ / or =.",
        _empty_group,
    ),
    GR(
        "C-PRIO-GROUPNAME",
        PRIORITY_GROUP_NAME_INVALID,
        "",
        "{value} is not the name of a group.",
        "Use 1 to 16 letters, digits, - _ / or =.",
        _bad_group,
    ),
)

PRIORITY_RULES = (
    CR(
        "C-PRIO-PUSH",
        PUSH_WITH_PRIORITY_GROUP,
        "priority_policy",
        "priority groups are for pull consumers.",
        "Remove priority_policy or deliver_subject.",
        lambda case: _has_policy(case) and case.is_push,
        since="2.11.7",
    ),
    CR(
        "C-PRIO-NOGROUP",
        PRIORITY_POLICY_WITHOUT_GROUP,
        "priority_groups",
        "a priority_policy needs a group.",
        "Add priority_groups with one name.",
        lambda case: _has_policy(case) and not case["priority_groups"],
    ),
    ForEach(_groups, _GROUP_RULES),
    CR(
        "C-PRIO-POLICY-NONE",
        PRIORITY_GROUP_WITHOUT_POLICY,
        "priority_groups",
        "priority_groups need a priority_policy.",
        "Set priority_policy to overflow, pinned_client or prioritized.",
        lambda case: not _has_policy(case) and bool(case["priority_groups"]),
        since="2.12.0",
    ),
    CR(
        "C-PRIO-TTL-NONE",
        PRIORITY_TIMEOUT_WITHOUT_POLICY,
        "priority_timeout",
        "priority_timeout needs a priority_policy.",
        "Set priority_policy to pinned_client, or remove priority_timeout.",
        lambda case: not _has_policy(case) and case["priority_timeout"] > 0,
        since="2.12.0",
    ),
)
