"""Compare the rules with the responses of a real server to random configs.

`python tests/models/differential.py [kind...] [--count N] [--seed S] [--server V]` prints the
share of agreement and each kind of disagreement with an example. The same seed gives the same
configs.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

import nats
from config_makers import PARENTS, ConsumerMaker, StreamMaker
from config_strategies import drawn
from known_differences import known, known_stored
from pull_fuzz import CONSUMERS, PullMaker, available, open_puller

from twinstream.models import (
    ConfigError,
    Model,
    Plan,
    effective_consumer,
    effective_stream,
    encode,
    plan_consumer,
    plan_stream,
    validate_consumer,
    validate_consumer_update,
    validate_pull,
    validate_stream,
    validate_stream_update,
)
from twinstream.testing import NatsServer

LANES = 8
"""Accounts that work side by side; streams of one account could meet each other."""

VERSIONS = ("2.11.11", "2.12.8", "2.14.6", "2.15.1")

ORIGINS = ("O1", "O2", "O3")

Step: TypeAlias = tuple[dict[str, Any], list[str]]
"""What an update changes, and the names of what it takes away."""


@dataclass
class Verdict:
    """The result of one side: an error code, or 0 for a valid config."""

    code: int
    why: str = ""
    config: dict[str, Any] = field(default_factory=dict)


@dataclass
class Tally:
    """The numbers of agreements and disagreements."""

    total: int = 0
    accepted: int = 0
    verdict: int = 0
    """Configs on which both sides agree whether they are fine."""

    code: int = 0
    """Configs that both refuse with the same code."""

    refused: int = 0
    explained: int = 0
    """Disagreements that `known_differences` has a name for."""

    compared: int = 0
    """Accepted configs whose stored form was compared."""

    equal: int = 0
    changes: list[Any] = field(default_factory=list)
    odd: dict[tuple[int, int, str], list[Any]] = field(default_factory=dict)
    differ: dict[tuple[str, str], list[Any]] = field(default_factory=dict)

    def add(self, config: Any, ours: Verdict, theirs: Verdict) -> None:
        """Count one config."""
        if ours.code != theirs.code and known(ours.code, theirs.code, config):
            self.explained += 1
            return
        self.total += 1
        same = bool(ours.code) == bool(theirs.code)
        self.verdict += same
        self.accepted += not theirs.code
        if theirs.code:
            self.refused += 1
            self.code += ours.code == theirs.code
        if ours.code != theirs.code:
            key = (ours.code, theirs.code, theirs.why if theirs.code else ours.why)
            self.odd.setdefault(key, []).append(config)

    def stored(self, config: Any, ours: Callable[[], Model], theirs: Verdict) -> None:
        """Compare the config that the server stored with the expected one."""
        if theirs.code:
            return
        try:
            mine = encode(ours())
        except ConfigError:
            return  # counted as a disagreement of verdicts
        if mine != theirs.config and known_stored(config, theirs.config):
            self.explained += 1
            return
        self.compared += 1
        if mine == theirs.config:
            self.equal += 1
            return
        for key in mine.keys() | theirs.config.keys():
            pair = (mine.get(key, "absent"), theirs.config.get(key, "absent"))
            if pair[0] != pair[1]:
                self.differ.setdefault((key, str(pair)[:150]), []).append(config)

    def planned(self, config: Any, plan: Callable[[], Plan], theirs: Verdict) -> None:
        """Check that the plan for a config that was just created contains no change."""
        bare = config[1] if isinstance(config, list) else config
        if theirs.code or known_stored(bare, theirs.config):
            return
        found = plan()
        if found.action != "nothing":
            changes = [str(one) for one in (*found.changes, *found.problems)]
            self.differ.setdefault((f"plan {found.action}", str(changes)[:150]), []).append(config)

    def report(self) -> str:
        """Return the shares and an example of each disagreement."""
        lines = [
            f"{self.total} configs, {self.accepted} accepted, "
            f"{self.explained} known differences, "
            f"verdict agrees {self.verdict / max(1, self.total):.4%}, "
            f"code agrees {self.code / max(1, self.refused):.4%} of {self.refused} refused"
        ]
        if self.compared:
            share = self.equal / self.compared
            lines.append(f"stored form equal {share:.4%} of {self.compared}")
        for (ours, theirs, why), configs in sorted(self.odd.items(), key=lambda i: -len(i[1])):
            shortest = min(configs, key=lambda one: len(json.dumps(one)))
            lines.append(f"{len(configs):5} ours {ours} theirs {theirs} {why[:100]}")
            lines.append(f"      {shown(shortest)}")
        for (key, pair), configs in sorted(self.differ.items(), key=lambda i: -len(i[1])):
            shortest = min(configs, key=lambda one: len(json.dumps(one)))
            lines.append(f"{len(configs):5} {key} ours, theirs {pair}")
            lines.append(f"      {shown(shortest)}")
        return "\n".join(lines)


def shown(config: Any) -> str:
    """Return a config as text, with long runs of one character shortened."""
    return re.sub(r"(.)\1{60,}", lambda run: f"{run[1]}*{len(run[0])}", json.dumps(config))[:900]


def lanes_config() -> str:
    """Return a server configuration with one account for each parallel run."""
    accounts = "\n".join(
        f"  A{n}: {{ jetstream: enabled, users: [{{user: u{n}, password: p}}] }}"
        for n in range(LANES)
    )
    return f"accounts {{\n{accounts}\n}}\n"


async def ask(nc: Any, subject: str, body: Any) -> dict[str, Any]:
    """Send one API request; a missing response is returned as an error, too."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode() if body != "" else b""
    try:
        reply = await nc.request(subject, data, timeout=5)
    except Exception as error:
        return {"error": {"err_code": -1, "description": f"{type(error).__name__}"}}
    return json.loads(reply.data) if reply.data else {}


def theirs(answer: dict[str, Any]) -> Verdict:
    """Return the result of the server."""
    error = answer.get("error")
    if error:
        return Verdict(error.get("err_code") or error["code"], error.get("description", ""))
    return Verdict(0, config=answer.get("config", {}))


def first(problems: list[Any]) -> Verdict:
    """Return the result of the rules."""
    for problem in problems:
        if not problem.needs_server:
            return Verdict(problem.err_code, f"{problem.rule} {problem}")
    return Verdict(0)


def member(config: dict[str, Any], name: str) -> Any:
    """Return a member as the server reads it: keys without case, the last one that is not null."""
    found = (config[key] for key in reversed(config) if key.lower() == name)
    return next((value for value in found if value is not None), None)


def token(name: Any) -> str:
    """Return a name if it is valid in a subject, else a valid one."""
    usable = isinstance(name, str) and name and not set(name) & set(" \t\r\n\f.*>")
    return name if usable else "TOKEN"


def our_stream(config: dict[str, Any], version: str) -> Verdict:
    """Return the result of the rules for a stream, adjusted to a server without a cluster."""
    verdict = first(validate_stream(config, version))
    name = member(config, "name")
    if token(name) != name and isinstance(name, (str, type(None))) and verdict.code != 10025:
        return Verdict(10056, "name cannot stand in the subject")
    replicas = member(config, "num_replicas")
    if verdict.code in (0, 10049) and isinstance(replicas, int) and replicas > 1:
        return Verdict(10074, "no cluster")
    return verdict


async def stream_lane(url: str, lane: int, configs: list[Any], version: str, tally: Tally) -> None:
    """Try configs one after the other in one account."""
    nc = await nats.connect(url, user=f"u{lane}", password="p")
    for origin in ORIGINS:
        await ask(
            nc,
            f"$JS.API.STREAM.CREATE.{origin}",
            {"name": origin, "subjects": [f"origin.{origin}"], "storage": "memory"},
        )
    for config in configs:
        name = token(member(config, "name"))
        verdict = theirs(await create(nc, name, config))
        tally.stored(config, partial(effective_stream, config, version), verdict)
        tally.planned(config, partial(plan_stream, verdict.config, config, version), verdict)
        if not verdict.code:
            await ask(nc, f"$JS.API.STREAM.DELETE.{name}", "")
        tally.add(config, our_stream(config, version), verdict)
    await nc.close()


def route(config: dict[str, Any]) -> str:
    """Return the end of the subject to which a client would send this consumer."""
    name = member(config, "name") or member(config, "durable_name")
    if not isinstance(name, str) or not name:
        return ""
    if token(name) != name and not member(config, "durable_name"):
        return ""
    only = member(config, "filter_subject")
    plain = isinstance(only, str) and not set(only) & set(" \t\r\n\f") and all(only.split("."))
    return f".{token(name)}" + (
        f".{only}" if plain and not member(config, "filter_subjects") else ""
    )


def our_consumer(
    parent: str, config: dict[str, Any], version: str, *, pedantic: bool = False
) -> Verdict:
    """Return the result of the rules for a consumer, adjusted to a server without a cluster."""
    verdict = first(validate_consumer(config, PARENTS[parent], version, pedantic=pedantic))
    replicas = member(config, "num_replicas")
    durable = member(config, "durable_name")
    if (
        verdict.code not in (0, 10025)
        and isinstance(durable, str)
        and durable != token(durable)
        and durable
    ):
        return Verdict(10017, "durable name cannot stand in the subject")
    routed = verdict.code in (10025, 10017, 10020, 10127, 10131)
    if not routed and isinstance(replicas, int) and replicas > 1:
        return Verdict(10074, "no cluster")
    return verdict


async def consumer_lane(
    url: str, lane: int, configs: list[Any], version: str, tally: Tally
) -> None:
    """Try consumers one after the other in one account."""
    nc = await nats.connect(url, user=f"u{lane}", password="p")
    for name, parent in PARENTS.items():
        await ask(nc, f"$JS.API.STREAM.CREATE.{name}", parent)
    for number, (parent, config) in enumerate(configs):
        pedantic = number % 4 == 3
        body = {"stream_name": parent, "config": config, "pedantic": pedantic}
        answer = await ask(nc, f"$JS.API.CONSUMER.CREATE.{parent}{route(config)}", body)
        verdict = theirs(answer)
        stream = PARENTS[parent]
        tally.stored(config, partial(effective_consumer, config, stream, version), verdict)
        plan = partial(plan_consumer, verdict.config, config, stream, version)
        tally.planned([parent, config], plan, verdict)
        if not verdict.code and "name" in answer:
            await ask(nc, f"$JS.API.CONSUMER.DELETE.{parent}.{answer['name']}", "")
        ours = our_consumer(parent, config, version, pedantic=pedantic)
        tally.add([parent, config], ours, verdict)
    await nc.close()


async def stream_update_lane(
    url: str, lane: int, configs: list[Any], version: str, tally: Tally
) -> None:
    """For one config after the other, create a stream, change it some times, and remove it."""
    nc = await nats.connect(url, user=f"u{lane}", password="p")
    for origin in ORIGINS:
        body = {"name": origin, "subjects": [f"origin.{origin}"], "storage": "memory"}
        await ask(nc, f"$JS.API.STREAM.CREATE.{origin}", body)
    for config, steps in configs:
        written = {**config, "pedantic": False}
        answer = await create(nc, "S1", {**written, "name": "S1"})
        if "error" in answer:
            continue
        old = answer["config"]
        for step in steps:
            new = changed(old if len(tally.changes) % 2 else written, step, "S1")
            tally.changes.append(new)
            if two_names(new):
                continue
            verdict = theirs(await ask(nc, "$JS.API.STREAM.UPDATE.S1", new))
            ours = first(validate_stream_update(old, new, version))
            replicas = new.get("num_replicas")
            many = isinstance(replicas, int) and replicas > 1
            if many and version >= "2.14.6" and is_late(ours):
                ours = Verdict(10074, "no cluster")
            tally.add([config, written, old, new], ours, verdict)
            if not verdict.code:
                old, written = verdict.config, new
        await ask(nc, "$JS.API.STREAM.DELETE.S1", "")
    await nc.close()


def changed(config: dict[str, Any], step: Step, name: str) -> dict[str, Any]:
    """Return a config with some members changed and others removed."""
    given, removed = step
    kept = {key: value for key, value in config.items() if key not in removed}
    return {**kept, **given, "name": name}


def two_names(changed: dict[str, Any]) -> bool:
    """Whether a second spelling of the name would send the request elsewhere."""
    return any(key.lower() == "name" and key != "name" for key in changed)


def is_late(verdict: Verdict) -> bool:
    """Whether a config is valid, or the error comes from the comparison of old and new config."""
    return not verdict.code or verdict.why.startswith("U-")


async def create(nc: Any, name: str, body: Any) -> dict[str, Any]:
    """Create a stream. Repeat the request while files of the previous stream still exist."""
    while True:
        answer = await ask(nc, f"$JS.API.STREAM.CREATE.{name}", body)
        if "creating store" not in theirs(answer).why:
            return answer


async def consumer_update_lane(
    url: str, lane: int, configs: list[Any], version: str, tally: Tally
) -> None:
    """For one config after the other, create a consumer, change it some times, and remove it."""
    nc = await nats.connect(url, user=f"u{lane}", password="p")
    for name, parent in PARENTS.items():
        await ask(nc, f"$JS.API.STREAM.CREATE.{name}", parent)
    for parent, config, steps in configs:
        subject = f"$JS.API.CONSUMER.CREATE.{parent}.C1"
        base = {**config, "name": "C1"}
        if base.get("durable_name"):
            base["durable_name"] = "C1"
        answer = await ask(nc, subject + filtered(base), {"stream_name": parent, "config": base})
        if "error" in answer:
            continue
        old, written = answer["config"], base
        for step in steps:
            new = changed(old if len(tally.changes) % 2 else written, step, "C1")
            if new.get("durable_name"):
                new["durable_name"] = "C1"
            tally.changes.append(new)
            if two_names(new):
                continue
            body = {"stream_name": parent, "config": new, "action": "update"}
            verdict = theirs(await ask(nc, subject + filtered(new), body))
            ours = first(validate_consumer_update(old, new, PARENTS[parent], version))
            replicas = new.get("num_replicas")
            if ours.code not in (10025, 10131) and isinstance(replicas, int) and replicas > 1:
                ours = Verdict(10074, "no cluster")
            tally.add([parent, old, new], ours, verdict)
            if not verdict.code:
                old, written = verdict.config, new
        await ask(nc, f"$JS.API.CONSUMER.DELETE.{parent}.C1", "")
    await nc.close()


async def pull_lane(url: str, lane: int, requests: list[Any], version: str, tally: Tally) -> None:
    """Try pull requests one after the other in one account."""
    puller = await open_puller(url, f"u{lane}", version)
    for consumer, body in requests:
        if consumer not in available(version):
            continue
        status, why = await puller.status(consumer, body)
        found = validate_pull(body, CONSUMERS[consumer], version)
        # The server ignores what it does not know; people should know.
        ours = first([one for one in found if one.err_code])
        tally.add([consumer, body], ours, Verdict(status, why))
    await puller.nc.close()


def filtered(config: dict[str, Any]) -> str:
    """Return the filter that is part of the subject, with its dot."""
    return route({**config, "name": "C1"}).removeprefix(".C1")


def has_null_source(value: Any) -> bool:
    """Whether a stream config, or a step that changes one, has a source that is null."""
    if isinstance(value, (list, tuple)):
        return any(has_null_source(item) for item in value)
    if not isinstance(value, dict):
        return False
    return any(
        (key.lower() == "sources" and isinstance(item, list) and None in item)
        or has_null_source(item)
        for key, item in value.items()
    )


LANES_OF = {
    "stream": stream_lane,
    "consumer": consumer_lane,
    "stream-update": stream_update_lane,
    "consumer-update": consumer_update_lane,
    "pull": pull_lane,
}

MAKERS: dict[str, type[StreamMaker | ConsumerMaker | PullMaker]] = {
    "stream": StreamMaker,
    "consumer": ConsumerMaker,
    "pull": PullMaker,
}


def changes(maker: StreamMaker | ConsumerMaker, config: Any) -> Any:
    """Return a config and the steps that change it."""
    mine = config if isinstance(config, tuple) else (config,)
    steps = [step_from(maker, mine[-1]) for _ in range(maker.random.choice([1, 1, 2, 3]))]
    return (*mine, steps)


def step_from(maker: StreamMaker | ConsumerMaker, config: dict[str, Any]) -> Step:
    """Return some members to change, and the names of members of `config` to remove."""
    given: dict[str, Any] = {}
    for _ in range(maker.random.choice([0, 1, 1, 2, 3])):
        maker.change(given)
    if isinstance(maker, StreamMaker) and maker.random.random() < 0.1:
        given["sealed"] = True
    return given, [name for name in sorted(config) if maker.random.random() < 0.15]


def configs_of(kind: str, count: int, seed: int) -> list[Any]:
    """Return `count` cases: half are mutations of valid configs, half are drawn from the spec."""
    maker = MAKERS[kind.partition("-")[0]](seed)
    mutated = count if kind == "pull" else count - count // 2
    configs: list[Any] = [maker.config() for _ in range(mutated)]
    configs += drawn(kind.partition("-")[0], count - mutated, seed)
    if isinstance(maker, PullMaker) or not kind.endswith("update"):
        return configs
    return [changes(maker, one) for one in configs]


async def compare(kind: str, count: int, seed: int, server: NatsServer) -> Tally:
    """Try `count` random configs on a server with the configuration `lanes_config`."""
    configs = configs_of(kind, count, seed)
    if server.version < "2.12.4":
        # These crash on a source that is null.
        configs = [one for one in configs if not has_null_source(one)]
    tally = Tally()
    lane = LANES_OF[kind]
    await asyncio.gather(
        *(lane(server.url, n, configs[n::LANES], server.version, tally) for n in range(LANES))
    )
    return tally


def main() -> int:
    """Run from the command line; return 1 if there is an unexplained disagreement."""
    parser = argparse.ArgumentParser(description="Compare the rules with real servers.")
    parser.add_argument("kind", nargs="*", help=f"of {', '.join(LANES_OF)}; all when left out")
    parser.add_argument("--count", type=int, default=2000, help="configs a kind and server")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--server", action="append", help="version; the known ones when left out")
    arguments = parser.parse_args()
    good = True
    for version in arguments.server or VERSIONS:
        for kind in arguments.kind or LANES_OF:
            with NatsServer(lanes_config(), version=version) as server:
                tally = asyncio.run(compare(kind, arguments.count, arguments.seed, server))
            print(version, kind, tally.report(), flush=True)
            good &= not tally.odd and not tally.differ
    return 0 if good else 1


if __name__ == "__main__":
    raise SystemExit(main())
