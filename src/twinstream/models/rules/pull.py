"""Rules for pull requests, in the order of the server.

The server answers a pull request that violates a rule with a status, not with an error code.
"""

from __future__ import annotations

import re

from twinstream.models.codec.json_object import JsonObject
from twinstream.models.files.settings import Settings
from twinstream.models.numbers import whole_number
from twinstream.models.rules.consumer_case import ConsumerCase
from twinstream.models.rules.rule import Found, Hit, Rule
from twinstream.models.version import Version

BAD_REQUEST = 400
CONFLICT = 409
HIGHEST_PRIORITY = 9


# The characters that the server strips from a request; `str.strip` would strip a few more.
_BLANKS = "\t\n\v\f\r \u0085\u00a0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(
    chr(code) for code in range(0x2000, 0x200B)
)

_COUNT = re.compile(r"[+-]?\d+", re.ASCII)
_INT64_MAX = 2**63 - 1


def trimmed(text: str | bytes) -> str:
    """Return a request without surrounding blanks, except the newlines before it.

    These newlines stay, so that the line numbers in problems are right.
    """
    if isinstance(text, bytes):
        text = text.decode(errors="replace")
    rest = text.strip(_BLANKS)
    return "\n" * text.count("\n", 0, text.find(rest)) + rest


def members_of_text(text: str) -> JsonObject | None:
    """Return the members that the server reads in a request that is not JSON; None for JSON.

    The server reads a 64-bit integer as `batch`, and any other text as a `batch` of 1.
    """
    text = text.lstrip("\n")
    if text.startswith("{"):
        return None
    count = whole_number(text) if _COUNT.fullmatch(text) else 1
    return {"batch": count if abs(count) <= _INT64_MAX else 1}


class PullCase:
    """The input of rules for pull requests: a request and the consumer that receives it."""

    def __init__(
        self,
        settings: Settings,
        consumer: ConsumerCase | None,
        version: Version,
        *,
        is_json: bool = True,
    ) -> None:
        """Create the input from `settings`; without `consumer`, rules that need it find nothing."""
        self.settings = settings
        self.is_json = is_json
        self.consumer = consumer
        self.version = version
        self.pedantic = False

    def limit(self, member: str) -> int:
        """Return a limit of the consumer; 0 for no limit or no consumer."""
        return 0 if self.consumer is None else int(self.consumer[member])

    @property
    def policy(self) -> str:
        """The priority policy of the consumer; empty if no consumer is given."""
        if self.consumer is None:
            return ""
        return str(self.consumer["priority_policy"] or "none")


PR = Rule[PullCase]


def _heartbeat(case: PullCase) -> Found:
    heartbeat = case.settings["idle_heartbeat"]
    return bool(heartbeat > 0 and 2 * heartbeat > case.settings["expires"])


def _above(rule: str, member: str, limit: str) -> PR:
    """Return the rule that a number in a pull request is at most the consumer's `limit`."""

    def test(case: PullCase) -> Found:
        bound = case.limit(limit)
        asked = case.settings[member]
        return 0 < bound < asked and [Hit(member, asked, str(bound))]

    return PR(
        rule,
        CONFLICT,
        member,
        f"{member} is above the consumer's {limit} of {{detail}}.",
        "Ask for less.",
        test,
    )


def _overflow_only(case: PullCase) -> Found:
    return case.policy not in ("", "overflow") and [
        Hit(member, case.settings[member])
        for member in ("min_pending", "min_ack_pending")
        if case.settings[member]
    ]


def _group(case: PullCase) -> Found:
    # A request that is only a number cannot contain a group, and the server accepts it.
    if case.consumer is None or case.policy == "none" or not case.is_json:
        return False
    group = case.settings["group"]
    return group not in case.consumer["priority_groups"] and [Hit("group", group or None)]


FIRST_RULES = (
    PR(
        "P-PUSH",
        CONFLICT,
        "",
        "a push consumer accepts no pull requests.",
        "Subscribe to its deliver_subject.",
        lambda case: case.consumer is not None and case.consumer.is_push and [Hit("")],
    ),
)
"""Rules that the server checks before it parses the request."""

PULL_RULES = (
    PR(
        "P-HEARTBEAT",
        BAD_REQUEST,
        "idle_heartbeat",
        "idle_heartbeat is more than half of expires.",
        "Shorten it, or set a longer expires.",
        _heartbeat,
    ),
    _above("P-BATCH", "batch", "max_batch"),
    _above("P-EXPIRES", "expires", "max_expires"),
    _above("P-BYTES", "max_bytes", "max_bytes"),
    PR(
        "P-OVERFLOW",
        BAD_REQUEST,
        "",
        "thresholds need a consumer with priority policy overflow.",
        "Remove min_pending and min_ack_pending.",
        _overflow_only,
    ),
    PR(
        "P-PIN",
        BAD_REQUEST,
        "id",
        "a pin needs a consumer with priority policy pinned_client.",
        "Remove id.",
        lambda case: bool(case.settings["id"]) and case.policy not in ("", "pinned_client"),
    ),
    PR(
        "P-PRIORITY",
        BAD_REQUEST,
        "priority",
        "{value} is not a priority from 0 to 9.",
        "Use 0 for first and 9 for last.",
        lambda case: not 0 <= case.settings["priority"] <= HIGHEST_PRIORITY,
        since="2.12.0",
    ),
    PR(
        "P-GROUP",
        BAD_REQUEST,
        "group",
        "the consumer has no priority group {value}.",
        "Name one of its priority_groups.",
        _group,
    ),
)
