"""Order steps that need a subject which only one stream or consumer can have at a time.

Two streams cannot capture the same subject, and two consumers of a work queue cannot have
overlapping filters. So a step that needs a subject must follow the step in which the current holder
releases the subject. Each step is placed as early as possible. A later place would have no
advantage: no other step can get a subject that this step needs.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from itertools import chain

from attrs import define, evolve, field, frozen

from twinstream.cli.deploy.step import Step
from twinstream.cli.deploy.typed_config import consumer_config, stream_config
from twinstream.models import ConsumerConfig, StreamConfig
from twinstream.models.names.overlaps import first_related
from twinstream.models.names.subjects import can_meet


@frozen
class Claim:
    """The subjects that the stream or consumer `name` has after a step, and no other may have."""

    step: Step
    name: str
    subjects: Sequence[str]


@define
class Holders:
    """The subjects of each stream or consumer, updated after each step."""

    subjects: dict[str, Sequence[str]] = field(factory=dict[str, Sequence[str]])

    def rival(self, claim: Claim) -> tuple[str, str] | None:
        """Return the name of another stream or consumer that has a subject of the claim.

        The second item of the result is this subject. Return None if all subjects are free.
        """
        own = self.subjects.get(claim.name, ())
        taken = [subject for subject in claim.subjects if subject not in own]
        if not taken:
            return None
        for name, owned in self.subjects.items():
            overlaps = first_related(taken, owned, can_meet) if name != claim.name else {}
            if overlaps:
                return name, taken[min(overlaps)]
        return None

    def take(self, claim: Claim) -> None:
        """Record that the stream or consumer of the claim now has the subjects of the claim."""
        self.subjects[claim.name] = claim.subjects


def in_turn(claims: Iterable[Claim], holders: Holders) -> list[Step]:
    """Return the steps in an order in which each step is possible.

    The order is as close as possible to the order of `claims`. Steps that are possible in no order
    are refused, and are last in the list.
    """
    claims = list(claims)
    done: list[Step] = []
    waiting: dict[str, list[Claim]] = {}  # the key is the current holder of their subject
    for claim in claims:
        ready = deque([claim])
        while ready:
            one = ready.popleft()
            rival = holders.rival(one)
            if rival is not None:
                waiting.setdefault(rival[0], []).append(one)
                continue
            holders.take(one)
            done.append(one.step)
            ready.extend(waiting.pop(one.name, ()))
    blocked = {claim.name: claim for claim in chain(*waiting.values())}
    return [*done, *(_refused(one, holders, blocked) for one in claims if one.name in blocked)]


def _refused(claim: Claim, holders: Holders, waiting: dict[str, Claim]) -> Step:
    """Return a refused step, with the reason that no order makes the step possible."""
    found = holders.rival(claim)
    assert found is not None
    name, subject = found
    kind = claim.step.config.kind
    reason = f"{subject!r} is for one {kind} alone, and {kind} {name} has it"
    rival = waiting.get(name)
    if rival is not None and not any(can_meet(subject, one) for one in rival.subjects):
        hint = f"apply first a folder in which {name} leaves it and takes nothing"
        reason = f"{reason} until that can change, too, which waits for another; {hint}"
    return evolve(claim.step, verb="refused", refusal=reason)


def stream_claim(step: Step, holders: Holders) -> Claim:
    """Return the claim of a stream's step.

    A step that changes nothing keeps the current subjects.
    """
    name = step.config.name
    if not step.is_due:
        return Claim(step, name, holders.subjects.get(name, ()))
    return Claim(step, name, subjects_of(stream_config(step.config)))


def consumer_claim(step: Step, holders: Holders) -> Claim:
    """Return the claim of the step of a work queue's consumer.

    A step that changes nothing keeps the current filters.
    """
    name = step.config.name
    if not step.is_due:
        return Claim(step, name, holders.subjects.get(name, ()))
    return Claim(step, name, filters_of(consumer_config(step.config)))


def subjects_of(config: StreamConfig) -> Sequence[str]:
    """Return the subjects of a stream.

    The default is the name of the stream; a mirror and a stream with sources have no default.
    """
    default = [] if config.mirror or config.sources else [config.name or ""]
    return config.subjects or default


def filters_of(config: ConsumerConfig) -> Sequence[str]:
    """Return the filter subjects of a consumer; `[">"]` if it has no filter.

    A direct consumer, which the server uses to copy the stream, has no exclusive filters: the
    result is empty.
    """
    if config.direct:
        return ()
    return [config.filter_subject] if config.filter_subject else config.filter_subjects or [">"]
