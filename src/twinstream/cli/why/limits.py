"""Whether a limit of the stream removed a message."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from twinstream.cli.value_text import in_bytes, in_time
from twinstream.cli.why.facts import Facts
from twinstream.cli.why.removal_cause import Cause, has_older_message, stored_between
from twinstream.models import DiscardPolicy

__all__ = ["by_max_age", "by_max_bytes", "by_max_msgs", "by_max_msgs_per_subject"]

_OLDEST_FIRST: Final = "an older message is stored, and this limit removes the oldest first"
_REFUSES: Final = "the stream refuses new messages at this limit, and removes none"
# The share of `max_age` from which the age of the next message shows that the limit is at work.
_NEARLY: Final = 0.9


def by_max_age(facts: Facts) -> Cause | None:
    """Judge `max_age`; None if it is not set."""
    limit = facts.stream.config.max_age
    if not limit or facts.now is None:
        return None
    source = f"stream info: config.max_age = {in_time(limit)}"
    if has_older_message(facts):
        return Cause("expired", "excluded", f"not by max_age: {_OLDEST_FIRST}", source)
    earliest, latest = stored_between(facts)
    if facts.now - earliest < limit:
        text = "not by max_age: the stream, and so the message, is younger than that"
        return Cause("expired", "excluded", text, f"{source}, created")
    if latest is not None and facts.now - latest >= limit * _NEARLY:
        age = in_time(timedelta(seconds=round((facts.now - latest).total_seconds())))
        text = f"max_age has passed: the message was at least {age} old"
        if facts.now - latest < limit:
            text = f"max_age is at work: the next message is {age} old, and will be removed soon"
        return Cause("expired", "likely", text, f"{source}, state.last_ts")
    text = "max_age may have passed: the time of the message is not known"
    return Cause("expired", "possible", text, source)


def by_max_msgs(facts: Facts) -> Cause | None:
    """Judge `max_msgs`; None if it is not set."""
    limit, state = facts.stream.config.max_msgs or 0, facts.stream.state
    if limit <= 0:
        return None
    source = f"stream info: config.max_msgs = {limit}"
    if _refuses(facts):
        return Cause("max_msgs", "excluded", f"not by max_msgs: {_REFUSES}", f"{source}, discard")
    if has_older_message(facts):
        return Cause("max_msgs", "excluded", f"not by max_msgs: {_OLDEST_FIRST}", source)
    if state.last_seq - facts.seq < limit:
        text = f"not by max_msgs: {_fewer_came(facts)}"
        return Cause("max_msgs", "excluded", text, f"{source}, state.last_seq")
    if state.messages >= limit:
        text = f"the stream is at max_msgs: it has {state.messages} messages"
        return Cause("max_msgs", "likely", text, f"{source}, state.messages")
    text = f"the stream is below max_msgs now: it has {state.messages} messages"
    return Cause("max_msgs", "unlikely", text, f"{source}, state.messages")


def by_max_bytes(facts: Facts) -> Cause | None:
    """Judge `max_bytes`; None if it is not set.

    A stream at this limit has less free space than the message that was removed last needs.
    """
    limit, state = facts.stream.config.max_bytes or 0, facts.stream.state
    if limit <= 0:
        return None
    source = f"stream info: config.max_bytes = {limit}"
    if _refuses(facts):
        return Cause("max_bytes", "excluded", f"not by max_bytes: {_REFUSES}", f"{source}, discard")
    if has_older_message(facts):
        return Cause("max_bytes", "excluded", f"not by max_bytes: {_OLDEST_FIRST}", source)
    free = limit - state.bytes
    if state.messages and free < 2 * state.bytes / state.messages:
        text = f"the stream is at max_bytes: {in_bytes(free)} are free"
        return Cause("max_bytes", "likely", text, f"{source}, state.bytes")
    text = f"the stream is below max_bytes now: {in_bytes(free)} are free"
    return Cause("max_bytes", "unlikely", text, f"{source}, state.bytes")


def by_max_msgs_per_subject(facts: Facts) -> Cause | None:
    """Judge `max_msgs_per_subject`; None if it is not set."""
    limit = facts.stream.config.max_msgs_per_subject or 0
    if limit <= 0:
        return None
    source = f"stream info: config.max_msgs_per_subject = {limit}"
    name = "max_msgs_per_subject"
    if _refuses(facts) and facts.stream.config.discard_new_per_subject:
        return Cause("overwritten", "excluded", f"not by {name}: {_REFUSES}", f"{source}, discard")
    if facts.stream.state.last_seq - facts.seq < limit:
        text = f"not by {name}: {_fewer_came(facts)}"
        return Cause("overwritten", "excluded", text, f"{source}, state.last_seq")
    if facts.subject is None:
        text = (
            f"{name} may have removed it for a later message of its subject, which is not known:"
            " give --subject"
        )
        return Cause("overwritten", "possible", text, source)
    return _by_known_subject(facts, limit, source)


def _by_known_subject(facts: Facts, limit: int, source: str) -> Cause:
    later, name = facts.later.messages, "max_msgs_per_subject"
    if facts.has_older_of_subject:
        text = f"not by {name}: an older message of {facts.subject} is stored"
        return Cause("overwritten", "excluded", text, source)
    if len(later) >= limit:
        text = f"{len(later)} later messages of {facts.subject} are stored, the first at"
        return Cause("overwritten", "likely", f"{text} {later[0].seq}", f"{source}, messages")
    text = f"{facts.subject} is below {name} now: {len(later)} later messages are stored"
    return Cause("overwritten", "unlikely", text, f"{source}, messages")


def _fewer_came(facts: Facts) -> str:
    return f"only {facts.stream.state.last_seq - facts.seq} messages came after it"


def _refuses(facts: Facts) -> bool:
    return facts.stream.config.discard == DiscardPolicy.NEW
