"""One step of a plan for one stream or consumer, and the decision whether it is allowed."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from attrs import evolve, frozen

from twinstream.cli.deploy.typed import untyped
from twinstream.models import FileConfig, Plan
from twinstream.models.files import Kind

TITLES: Final[dict[Kind, str]] = {
    "stream": "stream",
    "consumer": "consumer",
    "key_value": "key-value bucket",
    "object_store": "object store",
}
Verb: TypeAlias = Literal["create", "update", "recreate", "nothing", "refused"]


@frozen
class Step:
    """The step for one stream or consumer."""

    config: FileConfig
    verb: Verb
    plan: Plan
    refusal: str = ""
    """Why the step is refused, and which option would allow it."""

    @property
    def is_due(self) -> bool:
        """Whether the step changes something and is not refused."""
        return self.verb not in ("nothing", "refused")

    @property
    def kind(self) -> Kind:
        """The kind of the file's configuration: a stream, a consumer, or a kind of bucket."""
        return self.config.kind if self.config.bucket is None else self.config.bucket.kind

    @property
    def name(self) -> str:
        """The name in the file. For a bucket, this is not the name of its stream."""
        return self.config.name if self.config.bucket is None else self.config.bucket.name

    @property
    def title(self) -> str:
        """Kind and name of the changed object, such as ``stream ORDERS``."""
        if self.kind == "consumer":
            return f"consumer {self.config.stream_name}/{self.name}"
        return f"{TITLES[self.kind]} {self.name}"


@frozen
class Allowed:
    """The changes that the user allows in addition to harmless ones."""

    loss: bool = False
    """Whether to allow changes that remove messages or cannot be undone."""

    recreation: bool = False
    """Whether to allow re-creation of a stream or consumer that cannot be updated."""


def step_of(config: FileConfig, plan: Plan, creation: Plan, allowed: Allowed, lost: str) -> Step:
    """Decide about one config: ``plan`` is for an update, ``creation`` for a re-creation.

    ``lost`` describes what a re-creation loses.
    """
    step = _judged(config, plan, creation, allowed, lost)
    odd = untyped(config) if step.is_due else []
    if not odd:
        return step
    return Step(config, "refused", Plan("impossible", problems=odd), "it cannot be sent as it is")


def _judged(config: FileConfig, plan: Plan, creation: Plan, allowed: Allowed, lost: str) -> Step:
    if plan.action == "impossible":
        if creation.action == "impossible":
            return Step(config, "refused", plan, "every server would refuse it")
        if not allowed.recreation:
            refusal = f"it must be re-created, without {lost}; --allow-recreate allows this"
            return Step(config, "refused", plan, refusal)
        return Step(config, "recreate", evolve(plan, losses=[f"It is re-created without {lost}."]))
    if plan.losses and not allowed.loss:
        return Step(config, "refused", plan, "this cannot be undone; --allow-loss allows it")
    return Step(config, plan.action, plan)
