"""Order the steps whose subjects may belong to only one stream or consumer at a time.

No two streams capture the same subject, and no two consumers of a work queue receive the same
message. So a step that needs a subject must wait until the current holder releases it. Each step is
done as soon as it is possible: waiting longer has no advantage, because the step needs its subjects
in the end anyway.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from itertools import chain

from attrs import define, evolve, field, frozen

from twinstream.cli.deploy.step import Step
from twinstream.cli.deploy.typed import consumer_config, stream_config
from twinstream.models import ConsumerConfig, StreamConfig
from twinstream.models._overlaps import first_related
from twinstream.models._subjects import can_meet


@frozen
class Claim:
    """What a step needs: ``name`` must have ``subjects`` for itself."""

    step: Step
    name: str
    subjects: Sequence[str]


@define
class Holders:
    """The current holders of subjects, updated with each step."""

    subjects: dict[str, Sequence[str]] = field(factory=dict[str, Sequence[str]])

    def rival(self, claim: Claim) -> tuple[str, str] | None:
        """Return another holder of a subject that the claim needs, and the subject, or None."""
        own = self.subjects.get(claim.name, ())
        taken = [subject for subject in claim.subjects if subject not in own]
        if not taken:
            return None
        for name, held in self.subjects.items():
            met = first_related(taken, held, can_meet) if name != claim.name else {}
            if met:
                return name, taken[min(met)]
        return None

    def take(self, claim: Claim) -> None:
        """Record that the claim's step is done."""
        self.subjects[claim.name] = claim.subjects


def in_turn(claims: Iterable[Claim], holders: Holders) -> list[Step]:
    """Return the steps in an order in which each can be done, as close as possible to `claims`.

    Steps that are possible in no order come last, and are refused.
    """
    claims = list(claims)
    done: list[Step] = []
    waiting: dict[str, list[Claim]] = {}  # by the name of the current holder
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
    left = {claim.name: claim for claim in chain(*waiting.values())}
    return [*done, *(_refused(one, holders, left) for one in claims if one.name in left)]


def _refused(claim: Claim, holders: Holders, waiting: dict[str, Claim]) -> Step:
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
    """Return the claim of a stream's step."""
    name = step.config.name
    if not step.is_due:
        return Claim(step, name, holders.subjects.get(name, ()))
    return Claim(step, name, subjects_of(stream_config(step.config)))


def consumer_claim(step: Step, holders: Holders) -> Claim:
    """Return the claim of the step of a work queue's consumer."""
    name = step.config.name
    if not step.is_due:
        return Claim(step, name, holders.subjects.get(name, ()))
    return Claim(step, name, filters_of(consumer_config(step.config)))


def subjects_of(config: StreamConfig) -> Sequence[str]:
    """Return the subjects of a stream: by default its name, unless it copies other streams."""
    default = [] if config.mirror or config.sources else [config.name or ""]
    return config.subjects or default


def filters_of(config: ConsumerConfig) -> Sequence[str]:
    """Return the filter subjects of a consumer; without filters it receives all subjects."""
    if config.direct:  # an internal consumer that copies the stream: it does not count
        return ()
    return [config.filter_subject] if config.filter_subject else config.filter_subjects or [">"]
