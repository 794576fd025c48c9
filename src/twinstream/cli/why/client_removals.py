"""Purges and deletions by clients, as stored advisories of the API report them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from twinstream.cli.value_text import rfc3339
from twinstream.cli.why.advisories import Advisories, ApiCall, Stored, call_of
from twinstream.cli.why.facts import Facts
from twinstream.cli.why.removal_cause import Cause, Standing, has_older_message, stored_between
from twinstream.core.wire.subject_match import covers
from twinstream.models import ApiAudit, Timestamp

__all__ = ["reported_removals"]

_LONG: Final = 200


def reported_removals(facts: Facts) -> Iterator[Cause]:
    """Yield a cause for each reported request that can have removed the message."""
    if facts.advisories is None:
        return
    for stored, audit in facts.advisories.of_kind(ApiAudit):
        call = call_of(audit)
        cause = call and _cause_of_call(facts, call, stored, facts.advisories)
        if cause:
            yield cause


def _cause_of_call(
    facts: Facts, call: ApiCall, stored: Stored, advisories: Advisories
) -> Cause | None:
    """Return the cause if a reported call can have removed the message, else None.

    A deletion must name the sequence. A purge must have removed messages.
    """
    source, time = advisories.source(stored), rfc3339(stored.time)
    if call.name == "STREAM.MSG.DELETE" and call.request.get("seq") == facts.seq:
        return Cause(
            "deleted", "reported", f"a client deleted message {facts.seq} at {time}", source
        )
    if call.name != "STREAM.PURGE" or not call.response.get("purged"):
        return None
    standing = _standing(facts, call.request, stored.time)
    if standing is None:
        return None
    text = f"a client purged {_what(call.request)} at {time}: {_shown(call.response, 'purged')}"
    return Cause("purged", standing, f"{text} messages", source)


def _standing(facts: Facts, request: Mapping[str, Any], time: Timestamp) -> Standing | None:
    """Return how well a purge explains the removal, None if it cannot have removed the message."""
    if _had_expired(facts, time):
        return None
    given, bound, keep = request.get("filter"), request.get("seq"), request.get("keep")
    if isinstance(bound, int) and bound and bound <= facts.seq:
        return None
    if isinstance(given, str) and given:
        if facts.subject is None:
            return "possible"
        return "reported" if covers(given, facts.subject) else None
    if keep:
        return "possible" if has_older_message(facts) else "reported"
    # A purge of all subjects leaves no older message that was stored before it.
    first = facts.stream.state.first_ts
    if has_older_message(facts) and first is not None and first < time:
        return None
    if not bound and facts.next is not None and facts.next.time < time:
        return None
    return "reported"


def _had_expired(facts: Facts, time: Timestamp) -> bool:
    """Return whether the message was older than `max_age` at a time."""
    limit, (_, latest) = facts.stream.config.max_age, stored_between(facts)
    return limit is not None and bool(limit) and latest is not None and time - latest > limit


def _what(request: Mapping[str, Any]) -> str:
    """Describe what a purge selected."""
    which = f"the subjects {_shown(request, 'filter')}" if request.get("filter") else "the stream"
    if request.get("seq"):
        return f"{which} below {_shown(request, 'seq')}"
    return f"{which} but the last {_shown(request, 'keep')}" if request.get("keep") else which


def _shown(members: Mapping[str, Any], name: str) -> str:
    """Return a member as text. A forged advisory can have anything there, of any length."""
    return str(members[name])[:_LONG]
