"""Rules for what a stream copies from: its mirror, its sources, and how they are reached."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from js_models._settings import Settings
from js_models._subjects import (
    can_meet,
    is_contained,
    is_literal_subject,
    is_subject,
    name_fault,
)
from js_models._transforms import transform_fault
from js_models.rules.rule import Hit, Rule
from js_models.rules.stream_case import StreamCase

INVALID = 10052

SR = Rule[StreamCase]


def _mirror_excludes(rule: str, code: int, member: str, since: str = "") -> SR:
    return SR(
        rule,
        code,
        member,
        f"a mirror cannot have {member}.",
        f"Remove {member} or mirror.",
        lambda case: case.mirror is not None and _is_set(case[member]),
        since=since,
    )


def _is_set(value: Any) -> bool:
    return bool(value) and (not isinstance(value, int) or value > 0)


def _of_mirror(test: Callable[[Settings, str, StreamCase], Iterator[Hit]]) -> Any:
    """Make a test of a stream out of one of its mirror."""

    def run(case: StreamCase) -> list[Hit]:
        return [] if case.mirror is None else list(test(case.mirror, "mirror", case))

    return run


def _origins(case: StreamCase) -> Iterator[tuple[Settings, str]]:
    """Yield the mirror and the sources, with their paths."""
    if case.mirror is not None:
        yield case.mirror, "mirror"
    for index, source in enumerate(case.sources):
        yield source, f"sources[{index}]"


def _of_origins(test: Callable[[Settings, str, StreamCase], Iterator[Hit]]) -> Any:
    def run(case: StreamCase) -> list[Hit]:
        return [hit for origin, path in _origins(case) for hit in test(origin, path, case)]

    return run


def _consumer(origin: Settings, path: str, case: StreamCase) -> Iterator[Hit]:
    consumer = origin["consumer"]
    if consumer is None:
        return
    fault = name_fault(consumer["name"])
    if fault:
        yield Hit(f"{path}.consumer.name", consumer["name"], f"its name {fault}")
    if not is_literal_subject(consumer["deliver_subject"]):
        value = consumer["deliver_subject"]
        yield Hit(f"{path}.consumer.deliver_subject", value, "it needs a literal deliver_subject")
    for member in ("opt_start_seq", "opt_start_time", "filter_subject"):
        if origin[member]:
            yield Hit(f"{path}.{member}", origin[member], f"it excludes {member}")


def _filter_and_transforms(origin: Settings, path: str, case: StreamCase) -> Iterator[Hit]:
    if origin["filter_subject"] and origin["subject_transforms"]:
        yield Hit(f"{path}.filter_subject", origin["filter_subject"])


def _transform_sources(origin: Settings, path: str, case: StreamCase) -> Iterator[Hit]:
    for index, transform in enumerate(origin["subject_transforms"]):
        if transform["src"] and not is_subject(transform["src"]):
            yield Hit(f"{path}.subject_transforms[{index}].src", transform["src"])


def _transform_targets(origin: Settings, path: str, case: StreamCase) -> Iterator[Hit]:
    for index, transform in enumerate(origin["subject_transforms"]):
        if transform["src"] and not is_subject(transform["src"]):
            continue
        fault = transform_fault(transform["src"], transform["dest"], case.version)
        if fault:
            yield Hit(f"{path}.subject_transforms[{index}].dest", transform["dest"], fault)


def _overlaps(relation: Callable[[str, str], bool]) -> Any:
    def test(origin: Settings, path: str, case: StreamCase) -> Iterator[Hit]:
        sources = [transform["src"] for transform in origin["subject_transforms"]]
        for index, one in enumerate(sources):
            for two in sources[:index]:
                if relation(one, two) or relation(two, one):
                    yield Hit(f"{path}.subject_transforms[{index}].src", one, repr(two))
                    break

    return test


def _origin_name(origin: Settings, path: str, case: StreamCase) -> Iterator[Hit]:
    fault = name_fault(origin["name"])
    if fault:
        yield Hit(f"{path}.name", origin["name"] or None, fault)


def _mirror_name(origin: Settings, path: str, case: StreamCase) -> Iterator[Hit]:
    if origin["external"] is None:
        yield from _origin_name(origin, path, case)


MIRROR_RULES = (
    _mirror_excludes("S-MIRROR-FIRSTSEQ", 10143, "first_seq"),
    _mirror_excludes("S-MIRROR-SUBJECTS", 10034, "subjects"),
    _mirror_excludes("S-MIRROR-SOURCES", 10031, "sources"),
    _mirror_excludes("S-MIRROR-COUNTER", 10173, "allow_msg_counter", "2.12.0"),
    _mirror_excludes("S-MIRROR-ATOMIC", 10198, "allow_atomic", "2.12.0"),
    _mirror_excludes("S-MIRROR-BATCH", 10209, "allow_batched", "2.14.0"),
    _mirror_excludes("S-MIRROR-SCHED", 10186, "allow_msg_schedules", "2.12.0"),
    SR(
        "S-MIRROR-CONSUMER",
        10213,
        "mirror.consumer",
        "the consumer that feeds the mirror is not valid: {detail}.",
        "Give name and deliver_subject, and leave start and filter to that consumer.",
        _of_mirror(_consumer),
        since="2.14.0",
    ),
    SR(
        "S-MIRROR-MULTIFILTER",
        10150,
        "mirror.filter_subject",
        "filter_subject and subject_transforms exclude each other.",
        "Put the filter into a transform's src.",
        _of_mirror(_filter_and_transforms),
    ),
    _mirror_excludes("S-SDM-MIRROR", INVALID, "subject_delete_marker_ttl"),
    SR(
        "S-MIRROR-TR-SRC",
        10151,
        "",
        "{value} is not a subject.",
        "Write tokens separated by dots.",
        _of_mirror(_transform_sources),
    ),
    SR(
        "S-MIRROR-TR-DEST",
        10154,
        "",
        "the transform is not valid: {detail}.",
        "Compare source and destination token by token.",
        _of_mirror(_transform_targets),
    ),
    SR(
        "S-MIRROR-TR-OVERLAP",
        10152,
        "",
        "{value} can meet {detail}.",
        "Make the sources of transforms disjoint.",
        _of_mirror(_overlaps(can_meet)),
    ),
    SR(
        "S-MIRROR-NAME",
        10142,
        "mirror.name",
        "the name of the origin {detail}.",
        "Give the name of the stream to copy.",
        _of_mirror(_mirror_name),
    ),
)


def _source_duplicates(case: StreamCase) -> list[Hit]:
    return _repeated(case, _identity, "")


def _source_consumer_duplicates(case: StreamCase) -> list[Hit]:
    def identity(source: Settings) -> Any:
        consumer = source["consumer"]
        return None if consumer is None else (source["name"], consumer["name"])

    return _repeated(case, identity, ".consumer")


def _repeated(case: StreamCase, identity: Callable[[Settings], Any], at: str) -> list[Hit]:
    seen: set[Any] = set()
    hits: list[Hit] = []
    for index, source in enumerate(case.sources):
        key = identity(source)
        if key is not None and key in seen:
            hits.append(Hit(f"sources[{index}]{at}", source["name"]))
        seen.add(key)
    return hits


def _identity(source: Settings) -> Any:
    """Return what tells one source from another; where it starts does not."""
    external = source["external"]
    transforms = [
        (transform["src"] or ">", transform["dest"] or ">")
        for transform in source["subject_transforms"]
    ]
    pairs = tuple(transforms) or ((source["filter_subject"] or ">", ">"),)
    return source["name"], None if external is None else external["api"], pairs


def _sources(test: Callable[[Settings, str, StreamCase], Iterator[Hit]]) -> Any:
    def run(case: StreamCase) -> list[Hit]:
        return [
            hit
            for index, source in enumerate(case.sources)
            for hit in test(source, f"sources[{index}]", case)
        ]

    return run


SOURCE_RULES = (
    SR(
        "S-SOURCE-SCHED",
        10187,
        "sources",
        "a stream with schedules cannot have sources.",
        "Remove one of them.",
        lambda case: bool(case.sources) and case["allow_msg_schedules"],
        since="2.12.0",
    ),
    SR(
        "S-SOURCE-NAME",
        10141,
        "",
        "the name of the source {detail}.",
        "Give the name of the stream to copy.",
        _sources(_origin_name),
    ),
    SR(
        "S-SOURCE-DUP",
        10140,
        "",
        "the source {value} stands there twice.",
        "Give each another filter, or remove one.",
        _source_duplicates,
    ),
    SR(
        "S-SOURCE-MULTIFILTER",
        10144,
        "",
        "filter_subject and subject_transforms exclude each other.",
        "Put the filter into a transform's src.",
        _sources(_filter_and_transforms),
    ),
    SR(
        "S-SOURCE-TR-SRC",
        10145,
        "",
        "{value} is not a subject.",
        "Write tokens separated by dots.",
        _sources(_transform_sources),
    ),
    SR(
        "S-SOURCE-TR-DEST",
        10146,
        "",
        "the transform is not valid: {detail}.",
        "Compare source and destination token by token.",
        _sources(_transform_targets),
    ),
    SR(
        "S-SOURCE-TR-OVERLAP",
        10147,
        "",
        "one of {value} and {detail} contains the other.",
        "Make the sources of transforms disjoint.",
        _sources(_overlaps(is_contained)),
    ),
    SR(
        "S-SOURCE-CONSUMER",
        10215,
        "",
        "the consumer that feeds the source is not valid: {detail}.",
        "Give name and deliver_subject, and leave start and filter to that consumer.",
        _sources(_consumer),
        since="2.14.0",
    ),
    SR(
        "S-SOURCE-CONSUMER-DUP",
        10216,
        "",
        "two sources from {value} use the same consumer.",
        "Prepare a consumer for each.",
        _source_consumer_duplicates,
        since="2.14.0",
    ),
)


def _external_deliver(origin: Settings, path: str, case: StreamCase) -> Iterator[Hit]:
    external = origin["external"]
    if external is not None and external["deliver"] and not is_literal_subject(external["deliver"]):
        yield Hit(f"{path}.external.deliver", external["deliver"])


def _external_api(origin: Settings, path: str, case: StreamCase) -> Iterator[Hit]:
    external = origin["external"]
    if external is not None and external["api"] and not is_literal_subject(external["api"]):
        yield Hit(f"{path}.external.api", external["api"])


def _external_own_api(origin: Settings, path: str, case: StreamCase) -> Iterator[Hit]:
    if origin["external"] is not None and origin["external"]["api"] == "$JS.API":
        yield Hit(f"{path}.external.api", "$JS.API")


def _cycle(case: StreamCase) -> list[Hit]:
    hits: list[Hit] = []
    for origin, path in _origins(case):
        if origin["external"] is not None or origin["name"] != case["name"]:
            continue
        wanted = origin["filter_subject"]
        own: list[str] = [] if case.mirror is not None else list(case["subjects"])
        if path == "mirror" or not wanted or any(can_meet(wanted, subject) for subject in own):
            hits.append(Hit(f"{path}.name", origin["name"]))
    return hits


EXTERNAL_RULES = (
    SR(
        "S-EXT-DELIVER",
        10024,
        "",
        "the deliver prefix {value} is not a subject without wildcards.",
        "Use a literal subject.",
        _of_origins(_external_deliver),
    ),
    SR(
        "S-EXT-API",
        INVALID,
        "",
        "the API prefix {value} is not a subject without wildcards.",
        "Use a literal subject such as $JS.hub.API.",
        _of_origins(_external_api),
    ),
    SR(
        "S-EXT-API-OVERLAP",
        10021,
        "",
        "the API prefix {value} is this account's own.",
        "Give the prefix of the other account or domain.",
        _of_origins(_external_own_api),
    ),
    SR(
        "S-CYCLE",
        INVALID,
        "",
        "the stream copies itself.",
        "Name another stream, or filter on subjects that are not its own.",
        _cycle,
    ),
)


def _filter_syntax(origin: Settings, path: str, case: StreamCase) -> Iterator[Hit]:
    if not case.update and origin["filter_subject"] and not is_subject(origin["filter_subject"]):
        yield Hit(f"{path}.filter_subject", origin["filter_subject"])


ORIGIN_FILTER_RULES = (
    SR(
        "S-ORIGIN-FILTER",
        10049,
        "",
        "the filter {value} is not a subject.",
        "Write tokens separated by dots.",
        _of_origins(_filter_syntax),
    ),
)
"""Judged after everything else."""
