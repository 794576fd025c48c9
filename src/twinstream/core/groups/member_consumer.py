"""The consumer of a member: its configuration, and its pinned instance (ADR-42)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from twinstream.core.arguments.check_arguments import check_kind, check_whole
from twinstream.core.groups.names import GroupNames
from twinstream.errors import BadArgument
from twinstream.models import AckPolicy, ConsumerConfig, ConsumerInfo, PriorityPolicy, evolve

__all__ = [
    "PRIORITY_GROUP",
    "check_template",
    "is_of_member",
    "member_consumer",
    "pin_holder",
    "stored_filters",
]

PRIORITY_GROUP: Final = "PCG"
"""The priority group of each consumer. All clients use this name."""

_ACK_WAIT: Final = timedelta(seconds=5)
# Lower limit of `priority_timeout`, the time within which a pinned instance must pull. A pull
# request lasts at least this long.
_LEAST: Final = timedelta(seconds=1)
# Maximum number of messages that a paused or killed client delays.
_MAX_ACK_PENDING: Final = 100
_OURS: Final = (
    "name",
    "durable_name",
    "filter_subject",
    "filter_subjects",
    "priority_groups",
    "priority_policy",
    "priority_timeout",
    "deliver_subject",
)


def check_template(names: GroupNames, template: ConsumerConfig | None) -> ConsumerConfig:
    """Return the caller's settings for a member's consumer, with defaults for missing settings.

    Raises `BadArgument` for a setting that the group itself sets, and for an invalid setting.
    """
    given = ConsumerConfig() if template is None else template
    check_kind(given, ConsumerConfig, "config", "a ConsumerConfig")
    ours = [*_OURS, *(["inactive_threshold"] if names.kind == "elastic" else [])]
    wrong = [name for name in ours if getattr(given, name) is not None]
    if wrong:
        raise BadArgument(f"{names}: the group itself sets {', '.join(wrong)} of the consumer")
    if given.ack_policy not in {None, AckPolicy.EXPLICIT}:
        raise BadArgument(f"{names}: a member needs ack_policy explicit, got {given.ack_policy}")
    if given.max_ack_pending is not None:
        # Without a limit, a pinned instance that is paused could receive any number of messages
        # before it loses its pin.
        check_whole(given.max_ack_pending, "max_ack_pending")
    defaults: dict[str, Any] = {"ack_policy": AckPolicy.EXPLICIT}
    if not given.ack_wait:
        defaults["ack_wait"] = _ACK_WAIT
    if given.max_ack_pending is None:
        defaults["max_ack_pending"] = _MAX_ACK_PENDING
    return evolve(given, **defaults)


def member_consumer(
    names: GroupNames, member: str, filters: tuple[str, ...], template: ConsumerConfig
) -> ConsumerConfig:
    """Return the configuration of a member's consumer.

    `template` is the result of `check_template`.
    """
    name, ack_wait = names.consumer(member), template.ack_wait
    own: dict[str, Any] = (
        {"durable_name": name}
        if names.kind == "static"
        else {"name": name, "inactive_threshold": ack_wait}
    )
    return evolve(
        template,
        filter_subjects=list(filters),
        priority_groups=[PRIORITY_GROUP],
        priority_policy=PriorityPolicy.PINNED_CLIENT,
        priority_timeout=max(ack_wait or _ACK_WAIT, _LEAST),
        **own,
    )


def pin_holder(info: ConsumerInfo) -> str:
    """Return the id of the current pin, an empty string if no instance is pinned."""
    for state in info.priority_groups or ():
        if state.group == PRIORITY_GROUP:
            return state.pinned_client_id or ""
    return ""


def is_of_member(info: ConsumerInfo, name: str, filters: tuple[str, ...]) -> bool:
    """Return whether a consumer has the settings that a group gives the consumer of a member.

    Any client may have stored the member's name, so it may be that of another consumer.
    """
    found = info.config
    return (
        found is not None
        and found.durable_name == name
        and found.ack_policy is AckPolicy.EXPLICIT
        and found.deliver_subject is None
        and found.priority_policy is PriorityPolicy.PINNED_CLIENT
        and found.priority_groups == [PRIORITY_GROUP]
        and set(stored_filters(info)) == set(filters)
    )


def stored_filters(info: ConsumerInfo) -> tuple[str, ...]:
    """Return the subject filters of a consumer on the server."""
    config = info.config
    if config is None:
        return ()
    one = [config.filter_subject] if config.filter_subject else []
    return tuple(config.filter_subjects or one)
