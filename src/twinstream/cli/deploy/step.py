"""A step of a plan for one stream or consumer, and the decision whether it is allowed."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from attrs import Factory, evolve, frozen

from twinstream.cli.deploy.contracts import ContractChange
from twinstream.cli.deploy.typed_config import untyped
from twinstream.models import FileConfig, Plan
from twinstream.models.files.config_files import Kind

TITLES: Final[dict[Kind, str]] = {
    "stream": "stream",
    "consumer": "consumer",
    "key_value": "key-value bucket",
    "object_store": "object store",
}
Verb: TypeAlias = Literal["create", "update", "recreate", "nothing", "refused"]


@frozen
class Step:
    """A step of a plan for one stream or consumer. The step of a bucket is that of its stream."""

    config: FileConfig
    verb: Verb
    plan: Plan
    refusal: str = ""
    """Why the step is refused, and which option allows it; empty if it is not refused."""

    contracts: list[ContractChange] = Factory(list[ContractChange])
    """How the schemas of the stream's payloads differ from those on the server."""

    @property
    def is_due(self) -> bool:
        """Whether the step changes something and is not refused."""
        return self.verb not in ("nothing", "refused")

    @property
    def kind(self) -> Kind:
        """The kind of the configuration in the file; for a bucket, the kind of bucket."""
        return self.config.kind if self.config.bucket is None else self.config.bucket.kind

    @property
    def name(self) -> str:
        """The name in the file; for a bucket, its own name, not the name of its stream."""
        return self.config.name if self.config.bucket is None else self.config.bucket.name

    @property
    def title(self) -> str:
        """The kind and the name of the object, such as `stream ORDERS`."""
        if self.kind == "consumer":
            return f"consumer {self.config.stream_name}/{self.name}"
        return f"{TITLES[self.kind]} {self.name}"


@frozen
class Allowed:
    """The harmful changes that the user allows."""

    loss: bool = False
    """Whether to allow changes that remove messages or cannot be undone."""

    recreation: bool = False
    """Whether to allow re-creation of a stream or consumer that cannot be updated."""

    breaks: bool = False
    """Whether to allow schemas of payloads that refuse messages which the old ones accepted."""


def step_of(config: FileConfig, plan: Plan, creation: Plan, allowed: Allowed, lost: str) -> Step:
    """Return the step for a config. It is refused if the models do not accept the config.

    Args:
        config: The config in the file.
        plan: The plan for the stream or consumer; for its creation if it does not exist.
        creation: The plan for the creation of the stream or consumer.
        allowed: The harmful changes that the user allows.
        lost: What a re-creation loses, for the message.
    """
    step = _decide(config, plan, creation, allowed, lost)
    problems = untyped(config) if step.is_due else []
    if not problems:
        return step
    return Step(
        config, "refused", Plan("impossible", problems=problems), "it cannot be sent as it is"
    )


def _decide(config: FileConfig, plan: Plan, creation: Plan, allowed: Allowed, lost: str) -> Step:
    """Return the step for a plan, or a refused one if `allowed` does not allow what it loses.

    If the plan is impossible as an update, the step is to delete and create the object again.
    """
    if plan.action == "impossible":
        if creation.action == "impossible":
            return Step(config, "refused", plan, "every server would refuse it")
        if not allowed.recreation:
            refusal = f"it must be re-created, without {lost}; --allow-recreate allows this"
            return Step(config, "refused", plan, refusal)
        # The new object must be accepted as a creation, so the notes for an update do not matter.
        problems = [one for one in plan.problems if not one.needs_server]
        problems += [one for one in creation.problems if one.needs_server]
        losses = [f"It is re-created without {lost}."]
        return Step(config, "recreate", evolve(plan, problems=problems, losses=losses))
    if plan.losses and not allowed.loss:
        return Step(config, "refused", plan, "this cannot be undone; --allow-loss allows it")
    return Step(config, plan.action, plan)


def with_contract_changes(step: Step, changes: list[ContractChange], allowed: Allowed) -> Step:
    """Return the step of a stream whose contracts change. A break needs the permission."""
    step = evolve(step, contracts=changes)
    if not step.is_due or allowed.breaks or not any(one.is_break for one in changes):
        return step
    refusal = "stored messages may not fit the schema any more; --allow-break allows it"
    return evolve(step, verb="refused", refusal=refusal)
