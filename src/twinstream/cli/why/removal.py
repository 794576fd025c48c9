"""Why a stream no longer has a message: each possible cause is judged, then the best one is taken.

The server keeps no record of what removed a message. So a cause is proven by what replaced the
message, reported by an advisory, or concluded from the settings and the state of the stream.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from twinstream.cli.why.advisories import AUDITS
from twinstream.cli.why.answer import Claim, Confidence, Finding, Kind, Verdict
from twinstream.cli.why.client_removals import reported_removals
from twinstream.cli.why.consumer_events import most_deliveries, removed_while_pending
from twinstream.cli.why.facts import Facts
from twinstream.cli.why.limits import (
    by_max_age,
    by_max_bytes,
    by_max_msgs,
    by_max_msgs_per_subject,
)
from twinstream.cli.why.removal_cause import Cause, stored_between
from twinstream.cli.why.replacements import by_rollup, by_ttl, from_markers
from twinstream.cli.why.retention import by_acknowledgement, by_no_interest

__all__ = ["removed"]


def removed(facts: Facts) -> Finding | None:
    """Return why the message is not stored, None if it is."""
    if facts.message is not None:
        return None
    causes = list(_causes(facts))
    claims = tuple(cause.claim for cause in causes)
    pending, delivered = removed_while_pending(facts), _by_consumer(facts)
    verdict = _verdict(facts, causes)
    verdict = Verdict(verdict.kind, f"{verdict.text}; {delivered.text}", verdict.confidence)
    clients = _of_clients(facts)
    return Finding(verdict, (*claims, clients, delivered, *([pending] if pending else ())))


def _verdict(facts: Facts, causes: list[Cause]) -> Verdict:
    """Take the best cause, if no other one fits as well."""
    by_client = _by_client(facts)
    for confidence in _FROM_THE_BEST:
        kinds: list[Kind] = list(
            dict.fromkeys(each.kind for each in causes if each.standing == confidence)
        )
        if not kinds:
            continue
        texts = [_TEXTS[kind] for kind in kinds]
        if confidence == "possible" and by_client:
            texts.append(_TEXTS[by_client])
        text = f"not stored any more: {' or '.join(texts)}"
        # Of several purges that may have removed it, the last one is as good as the first one.
        return Verdict(kinds[0], text, confidence) if len(kinds) == 1 else _open(text)
    if by_client:
        text = f"not stored any more: {_TEXTS[by_client]}, as no setting explains it"
        return Verdict(by_client, text, "likely")
    return _open("not stored any more, and no present setting explains it")


_FROM_THE_BEST: Final[tuple[Confidence, ...]] = ("certain", "reported", "likely", "possible")


def _by_consumer(facts: Facts) -> Claim:
    """Return whether the consumer had delivered the message before."""
    last, source = facts.delivered, "consumer info: delivered"
    if most_deliveries(facts):
        assert facts.advisories is not None
        source = f"stream {facts.advisories.stream_name}"
        return Claim("this consumer had delivered it", source, "reported")
    if not last.consumer_seq or facts.seq > last.stream_seq:
        return Claim("this consumer had not delivered it", source)
    text = "whether this consumer had delivered it before is unknown"
    return Claim(text, f"{source}: it skips removed messages, too", "unknown")


def _open(text: str) -> Verdict:
    return Verdict("removed", text, "unknown")


def _causes(facts: Facts) -> Iterator[Cause]:
    for judge in _JUDGES:
        found = judge(facts)
        if isinstance(found, Cause):
            yield found
        else:
            yield from found or ()


def _lost(facts: Facts) -> Cause | None:
    """Judge whether the file of the message is damaged."""
    lost = facts.stream.state.lost
    if lost is None or facts.seq not in (lost.msgs or ()):
        return None
    return Cause("lost", "certain", "the data of the message is damaged", "stream info: state.lost")


def _never_stored(facts: Facts) -> Cause | None:
    first = facts.stream.config.first_seq or 0
    if facts.seq >= first:
        return None
    text = f"the stream began at sequence {first}"
    return Cause("never_stored", "certain", text, "stream info: config.first_seq")


def _not_in_origin(facts: Facts) -> Cause | None:
    """Judge whether a mirror never had the message, because its origin had it no longer."""
    mirror = facts.stream.config.mirror
    if mirror is None:
        return None
    text = f"the stream is a mirror: {mirror.name} may have removed it before it was copied"
    return Cause("not_in_origin", "possible", text, "stream info: config.mirror")


def _schedule_done(facts: Facts) -> Cause | None:
    if not facts.stream.config.allow_msg_schedules:
        return None
    text = "it may be a schedule that was removed when it fired"
    source = "stream info: config.allow_msg_schedules (ADR-51)"
    return Cause("schedule_done", "possible", text, source)


_JUDGES: Final[tuple[Callable[[Facts], Cause | Iterable[Cause] | None], ...]] = (
    _lost,
    _never_stored,
    reported_removals,
    from_markers,
    by_rollup,
    by_acknowledgement,
    by_no_interest,
    by_max_age,
    by_ttl,
    by_max_msgs,
    by_max_bytes,
    by_max_msgs_per_subject,
    _schedule_done,
    _not_in_origin,
)


def _by_client(facts: Facts) -> Kind | None:
    """Return how a client can have removed the message, None if the stream does not allow it."""
    config = facts.stream.config
    if config.sealed or (config.deny_delete and config.deny_purge) or _has_all_calls(facts):
        return None
    if config.deny_delete:
        return "purged"
    if config.deny_purge:
        return "deleted"
    return "removed_by_client" if facts.stream.state.messages else "purged"


def _of_clients(facts: Facts) -> Claim:
    """Return whether a client may have removed the message without an advisory of it."""
    if _has_all_calls(facts) and facts.advisories is not None:
        text = "each purge and deletion by a client since then is reported, or there was none"
        return Claim(text, f"stream {facts.advisories.stream_name}: {AUDITS}", "reported")
    kind = _by_client(facts)
    source = "stream info: config.deny_purge, config.deny_delete, config.sealed"
    if kind is None:
        return Claim("not by a client: the stream allows neither purges nor deletions", source)
    return Claim(f"it may be {_TEXTS[kind]}: the stream allows this", source, "possible")


def _has_all_calls(facts: Facts) -> bool:
    earliest, _ = stored_between(facts)
    return facts.advisories is not None and facts.advisories.has_all_calls(earliest)


_TEXTS: Final[dict[Kind, str]] = {
    "acknowledged_and_removed": "acknowledged, and removed by the retention of the stream",
    "deleted": "deleted by a client",
    "expired": "expired by max_age",
    "lost": "lost, its data is damaged",
    "max_bytes": "removed by max_bytes for newer messages",
    "max_msgs": "removed by max_msgs for newer messages",
    "never_stored": "never stored, its sequence is below the first one",
    "no_interest": "dropped, no consumer wanted it",
    "not_in_origin": "missing in the origin of the mirror",
    "overwritten": "overwritten by later messages of its subject (max_msgs_per_subject)",
    "purged": "purged by a client",
    "removed_by_client": "purged or deleted by a client",
    "rolled_up": "replaced by a rollup",
    "schedule_done": "removed as a schedule that has fired",
    "terminated": "terminated by a client, and removed by the retention of the stream",
    "ttl_expired": "expired by its own TTL",
}
