"""Compare the configurations of a folder with those of a server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, cast

from attrs import evolve, frozen

from twinstream.cli.deploy.account_limits import (
    Account,
    Reserves,
    account_of,
    frees_room,
    needs_room,
)
from twinstream.cli.deploy.bounds import bounded
from twinstream.cli.deploy.buckets import bucket_step, with_kept_settings
from twinstream.cli.deploy.contracts import contract_changes, stored_contracts
from twinstream.cli.deploy.current_state import CurrentState, current_state
from twinstream.cli.deploy.folder import Wanted
from twinstream.cli.deploy.recreation import judged
from twinstream.cli.deploy.step import Allowed, Step, step_of, with_contract_changes
from twinstream.cli.deploy.step_order import (
    Holders,
    consumer_claim,
    filters_of,
    in_turn,
    stream_claim,
    subjects_of,
)
from twinstream.cli.deploy.typed_config import stream_config
from twinstream.models import (
    AccountInfo,
    ConsumerConfig,
    FileConfig,
    JsonObject,
    Plan,
    Problem,
    RetentionPolicy,
    StreamConfig,
    plan_consumer,
    plan_stream,
)
from twinstream.models.mirror_start import keep_start

if TYPE_CHECKING:
    from js_sync import JetStream


def compare(jet: JetStream, wanted: Wanted, server: str, allowed: Allowed) -> list[Step]:
    """Return a step for each stream and consumer of a folder, in the order of execution."""
    names = list(dict.fromkeys(one.stream_name for one in (*wanted.streams, *wanted.consumers)))
    existing = {name: current_state(jet, name) for name in names}
    streams = [_stream_step(one, existing[one.name], server, allowed) for one in wanted.streams]
    by_name = {step.config.name: step for step in streams}
    steps = {name: list[Step]() for name in names}
    parents = {name: _parent(by_name.get(name), existing[name]) for name in names}
    for one in wanted.consumers:
        step = _consumer_step(one, parents[one.stream_name], server, allowed)
        steps[one.stream_name].append(step)
    any_due = any(step.is_due for step in (*streams, *chain(*steps.values())))
    account = account_of(jet) if any_due else Account(AccountInfo())
    streams = [account.sized(step) for step in streams]
    consumers = (_settled_consumers(steps[name], parents[name], account) for name in names)
    subjects = {name: subjects_of(one.config) for name, one in existing.items() if one is not None}
    others, unknown = _overlapping_streams(jet, streams, subjects)
    if not account.is_known:
        unknown = "the limits of the account"
    configs = {name: one.config for name, one in existing.items() if one is not None}
    settled = _settled_streams(streams, {**others, **subjects}, account, configs)
    settled = [judged(step, configs.get(step.config.name), unknown) for step in settled]
    return [*map(bucket_step, settled), *chain(*consumers)]


def _overlapping_streams(
    jet: JetStream, steps: list[Step], subjects_before: Mapping[str, Sequence[str]]
) -> tuple[dict[str, list[str]], str]:
    """Find streams on the server whose subjects overlap those that the steps add.

    Return the added subjects by the name of the stream that overlaps them. If a request fails, this
    is incomplete, and the second item of the result says what is unknown.
    """
    from js_sync import TwinstreamError

    found: dict[str, list[str]] = {}
    try:
        for step in (each for each in steps if each.is_due):
            wanted = subjects_of(stream_config(step.config))
            had = subjects_before.get(step.config.name, ())
            for subject in (each for each in wanted if each not in had):
                for name in jet.stream_names(subject):
                    found.setdefault(name, []).append(subject)
    except TwinstreamError:  # the user may lack the permission for the request
        return found, "the streams that have its subjects"
    return found, ""


def _settled_streams(
    steps: list[Step],
    subjects: dict[str, Sequence[str]],
    account: Account,
    existing: Mapping[str, StreamConfig],
) -> list[Step]:
    """Order the steps of streams. Refuse steps that conflict with others or exceed a limit."""
    holders = Holders(subjects)
    ordered = in_turn([stream_claim(step, holders) for step in _ordered(steps, existing)], holders)
    stream_limits = {copies: account.for_streams(copies) for copies in map(_copies, steps)}
    counted = [stream_limits[_copies(step)].judged(step) for step in ordered]
    reserves = Reserves(account)
    return [reserves.judged(step, existing.get(step.config.name)) for step in counted]


def _settled_consumers(steps: list[Step], parent: Parent | None, account: Account) -> list[Step]:
    """Order the steps of a stream's consumers. Refuse steps that conflict or exceed a limit."""
    steps = [account.sized(step) for step in steps]
    if parent is None or parent.typed is None:
        return steps
    counted = {name: one for name, one in parent.consumers.items() if not one.direct}
    if parent.typed.retention == RetentionPolicy.WORKQUEUE:
        holders = Holders({name: filters_of(one) for name, one in counted.items()})
        steps = in_turn([consumer_claim(step, holders) for step in steps], holders)
    consumer_limits = account.for_consumers(parent.typed, len(counted))
    return [consumer_limits.judged(step) for step in steps]


def _stream_step(
    config: FileConfig, existing: CurrentState | None, server: str, allowed: Allowed
) -> Step:
    """Return the step that makes a stream on the server equal to its config.

    `existing` is None if the stream does not exist. A step that is not allowed is refused.
    """
    creation = plan_stream(None, config.members, server)
    if existing is None:
        return step_of(config, creation, creation, allowed, "")
    wanted = with_kept_settings(config, existing.config)
    plan = plan_stream(existing.config, wanted.members, server)
    kept = keep_start(existing.config, wanted.members)
    if plan.action == "update":
        config = wanted if kept is None else evolve(wanted, members=dict(kept))
    step = step_of(config, plan, creation, allowed, f"its {existing.contents}")
    step = bounded(step, existing.config, existing.consumers)
    metadata = wanted.members.get("metadata")
    new = stored_contracts(cast("Any", metadata) if isinstance(metadata, dict) else None)
    changes = contract_changes(stored_contracts(existing.config.metadata), new)
    return with_contract_changes(step, changes, allowed)


@frozen
class Parent:
    """The state of a stream when the steps of its consumers are carried out."""

    config: JsonObject | StreamConfig
    """The config of the stream: from its file, or from the server if no file contains it."""

    typed: StreamConfig | None
    """The config as a model; None if the step of the stream is refused."""

    consumers: Mapping[str, ConsumerConfig]
    """The consumers that exist at that time, by name; empty if the stream is new or re-created."""


def _parent(step: Step | None, existing: CurrentState | None) -> Parent | None:
    """Return the state of a stream when the steps of its consumers are carried out.

    Return None if the stream exists neither in the files nor on the server.
    """
    there: Mapping[str, ConsumerConfig] = {} if existing is None else existing.consumers
    if step is None:
        return None if existing is None else Parent(existing.config, existing.config, there)
    if step.verb == "refused":  # in this case, `apply` carries out no step
        return Parent(step.config.members, None, there)
    if step.verb == "nothing" and existing is not None:
        return Parent(step.config.members, existing.config, there)
    typed = stream_config(step.config)
    if step.verb == "recreate":
        there = {}
    return Parent(step.config.members, typed, there)


def _consumer_step(
    config: FileConfig, parent: Parent | None, server: str, allowed: Allowed
) -> Step:
    if parent is None:
        return Step(config, "refused", _no_stream(config), "its stream is missing")
    old = parent.consumers.get(config.name)
    creation = plan_consumer(None, config.members, parent.config, server)
    plan = creation
    if old is not None:
        plan = plan_consumer(old, config.members, parent.config, server)
    return step_of(config, plan, creation, allowed, _lost(parent.config))


def _lost(stream: JsonObject | StreamConfig) -> str:
    """Return a text that describes what is lost if a consumer of the stream is re-created."""
    retention = stream.retention if isinstance(stream, StreamConfig) else stream.get("retention")
    if retention == "interest":
        return "its position and the messages that all other consumers have acknowledged"
    return "its position"


def _no_stream(config: FileConfig) -> Plan:
    message = f"stream {config.stream_name!r} exists neither in the files nor on the server."
    problem = Problem("stream_name", config.stream_name, "D-NO-STREAM", message, "Add its config.")
    return Plan("impossible", problems=[problem])


def _ordered(steps: list[Step], existing: Mapping[str, StreamConfig]) -> list[Step]:
    """Sort the steps of streams, without regard to conflicts between their subjects.

    Updates come first, so that subjects can move to new streams, then re-creations, then creations.
    Within each of these groups, origins precede the streams that copy them. Otherwise, the steps
    are sorted by storage. Streams that need more come last. New streams without `max_bytes` come
    first, because the server requires one free byte for them. A re-creation that frees storage
    counts as an update.
    """
    first = ("nothing", "refused", "update", "recreate", "create")
    depths = _depths({step.config.name: _origins(step) for step in steps})

    def rank(step: Step) -> tuple[int, int, bool, bool]:
        name, old = step.config.name, existing.get(step.config.name)
        recreates = step.verb == "recreate"
        # A re-creation that frees storage has the rank of an update, because later steps may need
        # the storage. This does not apply to a stream with origins: its origins must come first.
        frees = recreates and not depths[name] and frees_room(step, old)
        verb = "update" if frees else step.verb
        return first.index(verb), depths[name], needs_room(step, old) and not frees, recreates

    return sorted(steps, key=rank)


def _depths(origins: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """Return, for each stream, the number of origins in its longest chain of origins."""
    depths = dict.fromkeys(origins, 0)
    for _ in origins:  # a bounded loop, because streams may copy each other in a cycle
        deeper = {
            name: max((depths[one] + 1 for one in of if one in depths and one != name), default=0)
            for name, of in origins.items()
        }
        if deeper == depths:
            break
        depths = deeper
    return depths


def _origins(step: Step) -> list[str]:
    """Return the names of the streams that the stream of a step copies.

    Invalid values in its file are ignored.
    """
    members = step.config.members
    sources: list[Any] = members["sources"] if isinstance(members.get("sources"), list) else []
    found: list[Any] = [members.get("mirror"), *sources]
    names: list[Any] = [
        cast("JsonObject", one).get("name") for one in found if isinstance(one, dict)
    ]
    return [name for name in names if isinstance(name, str)]


def _copies(step: Step) -> int:
    """Return the number of replicas of the stream that a step creates; 1 for other steps."""
    return stream_config(step.config).num_replicas or 1 if step.verb == "create" else 1
