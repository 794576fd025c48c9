"""Rules for the origins of a stream, which are its mirror and its sources."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twinstream.models.error_codes import (
    EXTERNAL_API_OVERLAP,
    EXTERNAL_DELIVER_INVALID,
    MIRROR_CONSUMER_INVALID,
    MIRROR_FILTER_INVALID,
    MIRROR_FILTERS_OVERLAP,
    MIRROR_MULTIPLE_FILTERS,
    MIRROR_NAME_INVALID,
    MIRROR_TRANSFORM_INVALID,
    MIRROR_WITH_ATOMIC,
    MIRROR_WITH_BATCHED,
    MIRROR_WITH_COUNTERS,
    MIRROR_WITH_FIRST_SEQ,
    MIRROR_WITH_SCHEDULES,
    MIRROR_WITH_SOURCES,
    MIRROR_WITH_SUBJECTS,
    SOURCE_CONSUMER_DUPLICATE,
    SOURCE_CONSUMER_INVALID,
    SOURCE_DUPLICATE,
    SOURCE_FILTER_INVALID,
    SOURCE_FILTERS_OVERLAP,
    SOURCE_MULTIPLE_FILTERS,
    SOURCE_NAME_INVALID,
    SOURCE_TRANSFORM_INVALID,
    SOURCE_WITH_SCHEDULES,
    STREAM_CREATE,
    STREAM_INVALID_CONFIG,
)
from twinstream.models.files.settings import Settings
from twinstream.models.names.subjects import (
    can_meet,
    is_contained,
    is_literal_subject,
    is_subject,
    name_fault,
)
from twinstream.models.names.transform_rules import transform_fault
from twinstream.models.rules.origin_case import (
    OriginCase,
    TransformCase,
    is_unseen,
    mirrors,
    origins,
    sources,
    transforms,
)
from twinstream.models.rules.rule import ForEach, Found, Hit, Judge, Rule
from twinstream.models.rules.stream_case import StreamCase
from twinstream.models.version import Version

SEPARATORS_SEEN_SINCE: Version = (2, 12, 8)
"""The first server version that refuses path separators in the name of an origin."""

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


def _consumer(case: OriginCase) -> Found:
    """Find settings that are not allowed with, or in, the `consumer` of a mirror or source."""
    consumer = case.origin["consumer"]
    if consumer is None:
        return False
    hits: list[Hit] = []
    fault = name_fault(consumer["name"])
    if fault:
        hits.append(Hit(f"{case.path}.consumer.name", consumer["name"], f"its name {fault}"))
    if not is_literal_subject(consumer["deliver_subject"]):
        value = consumer["deliver_subject"]
        path = f"{case.path}.consumer.deliver_subject"
        hits.append(Hit(path, value, "it needs a literal deliver_subject"))
    for member in ("opt_start_seq", "opt_start_time", "filter_subject"):
        if case.origin[member]:
            hits += case.hit(member, f"it excludes {member}")
    return hits


def _filter_and_transforms(case: OriginCase) -> Found:
    both = case.origin["filter_subject"] and case.origin["subject_transforms"]
    return bool(both) and not is_unseen(case) and case.hit("filter_subject")


def _transform_source(case: TransformCase) -> Found:
    source = case.settings["src"]
    return bool(source) and not is_subject(source) and case.hit("src")


def _transform_target(case: TransformCase) -> Found:
    if _transform_source(case):
        return False
    fault = transform_fault(case.settings["src"], case.settings["dest"], case.version)
    return bool(fault) and case.hit("dest", fault or "")


def _meets_other(case: TransformCase) -> Found:
    met = case.overlapped(can_meet)
    return met is not None and case.hit("src", repr(met))


def _lies_in_other(case: TransformCase) -> Found:
    met = case.overlapped(is_contained)
    return met is not None and case.hit("src", repr(met))


def _name(case: OriginCase) -> Found:
    fault = name_fault(case.origin["name"], separators=case.version < SEPARATORS_SEEN_SINCE)
    return bool(fault) and case.hit("name", fault or "")


def _transform_rules(
    prefix: str, codes: tuple[int, int, int], overlap: Callable[[TransformCase], Found]
) -> tuple[Rule[TransformCase], ...]:
    """Return the rules for the transforms of a mirror or a source.

    `codes` are the error codes for an invalid source, an invalid destination and an overlap.
    """
    source, target, overlapping = codes
    return (
        Rule(
            f"{prefix}-TR-SRC",
            source,
            "",
            "{value} is not a subject.",
            "Write tokens separated by dots.",
            _transform_source,
        ),
        Rule(
            f"{prefix}-TR-DEST",
            target,
            "",
            "the transform is not valid: {detail}.",
            "Compare source and destination token by token.",
            _transform_target,
        ),
        Rule(
            f"{prefix}-TR-OVERLAP",
            overlapping,
            "",
            "{value} overlaps {detail}.",
            "Make the sources of transforms disjoint.",
            overlap,
        ),
    )


MIRROR_RULES = (
    _mirror_excludes("S-MIRROR-FIRSTSEQ", MIRROR_WITH_FIRST_SEQ, "first_seq"),
    _mirror_excludes("S-MIRROR-SUBJECTS", MIRROR_WITH_SUBJECTS, "subjects"),
    _mirror_excludes("S-MIRROR-SOURCES", MIRROR_WITH_SOURCES, "sources"),
    _mirror_excludes("S-MIRROR-COUNTER", MIRROR_WITH_COUNTERS, "allow_msg_counter", "2.12.0"),
    _mirror_excludes("S-MIRROR-ATOMIC", MIRROR_WITH_ATOMIC, "allow_atomic", "2.12.0"),
    _mirror_excludes("S-MIRROR-BATCH", MIRROR_WITH_BATCHED, "allow_batched", "2.14.0"),
    _mirror_excludes("S-MIRROR-SCHED", MIRROR_WITH_SCHEDULES, "allow_msg_schedules", "2.12.0"),
    ForEach(
        mirrors,
        (
            Rule[OriginCase](
                "S-MIRROR-CONSUMER",
                MIRROR_CONSUMER_INVALID,
                "",
                "the consumer that feeds the mirror is not valid: {detail}.",
                "Give name and deliver_subject, and leave start and filter to that consumer.",
                _consumer,
                since="2.14.0",
            ),
            Rule[OriginCase](
                "S-MIRROR-MULTIFILTER",
                MIRROR_MULTIPLE_FILTERS,
                "",
                "filter_subject and subject_transforms exclude each other.",
                "Put the filter into a transform's src.",
                _filter_and_transforms,
            ),
        ),
    ),
    _mirror_excludes("S-SDM-MIRROR", STREAM_INVALID_CONFIG, "subject_delete_marker_ttl"),
    ForEach(
        mirrors,
        (
            ForEach(
                transforms,
                _transform_rules(
                    "S-MIRROR",
                    (MIRROR_FILTER_INVALID, MIRROR_TRANSFORM_INVALID, MIRROR_FILTERS_OVERLAP),
                    _meets_other,
                ),
            ),
            Rule[OriginCase](
                "S-MIRROR-NAME",
                MIRROR_NAME_INVALID,
                "",
                "the name of the origin {detail}.",
                "Give the name of the stream to copy.",
                lambda case: case.origin["external"] is None and _name(case),
            ),
        ),
    ),
)


def _repeated(case: OriginCase, identity: Callable[[Settings], Any]) -> bool:
    """Whether an earlier source has the same `identity`. False if the identity is None."""
    if not case.index:
        return False
    own = identity(case.origin)
    return own is not None and case.stream.first_sources(identity)[own] < case.index


def _identity(source: Settings) -> Any:
    """Return the settings by which the server distinguishes sources.

    The start position is not among them.
    """
    external = source["external"]
    transforms = [
        (transform["src"] or ">", transform["dest"] or ">")
        for transform in source["subject_transforms"]
    ]
    pairs = tuple(transforms) or ((source["filter_subject"] or ">", ">"),)
    consumer = source["consumer"]
    return (
        source["name"],
        None if external is None else external["api"],
        None if consumer is None else consumer["name"],
        pairs,
    )


def _consumer_identity(source: Settings) -> Any:
    consumer = source["consumer"]
    if consumer is None:
        return None
    external = source["external"]
    return source["name"], None if external is None else external["api"], consumer["name"]


SOURCE_TRANSFORM_RULES = _transform_rules(
    "S-SOURCE",
    (SOURCE_FILTER_INVALID, SOURCE_TRANSFORM_INVALID, SOURCE_FILTERS_OVERLAP),
    _lies_in_other,
)
"""The rules for the transforms of a source.

The server checks all transforms of a source first, and then their overlaps. For a mirror, it checks
each transform together with its overlaps.
"""

_OF_EACH_SOURCE: tuple[Judge[OriginCase], ...] = (
    Rule[OriginCase](
        "S-SOURCE-NAME",
        SOURCE_NAME_INVALID,
        "",
        "the name of the source {detail}.",
        "Give the name of the stream to copy.",
        _name,
    ),
    Rule[OriginCase](
        "S-SOURCE-DUP",
        SOURCE_DUPLICATE,
        "",
        "the source {value} occurs twice.",
        "Give each another filter, or remove one.",
        lambda case: _repeated(case, _identity) and case.hit("name"),
    ),
    Rule[OriginCase](
        "S-SOURCE-MULTIFILTER",
        SOURCE_MULTIPLE_FILTERS,
        "",
        "filter_subject and subject_transforms exclude each other.",
        "Put the filter into a transform's src.",
        _filter_and_transforms,
    ),
    *(
        ForEach(transforms, rules)
        for rules in (SOURCE_TRANSFORM_RULES[:2], SOURCE_TRANSFORM_RULES[2:])
    ),
    Rule[OriginCase](
        "S-SOURCE-CONSUMER",
        SOURCE_CONSUMER_INVALID,
        "",
        "the consumer that feeds the source is not valid: {detail}.",
        "Give name and deliver_subject, and leave start and filter to that consumer.",
        _consumer,
        since="2.14.0",
    ),
    Rule[OriginCase](
        "S-SOURCE-CONSUMER-DUP",
        SOURCE_CONSUMER_DUPLICATE,
        "",
        "two sources from {value} use the same consumer.",
        "Prepare a consumer for each.",
        lambda case: _repeated(case, _consumer_identity) and case.hit("name"),
        since="2.14.0",
    ),
)

SOURCE_RULES = (
    SR(
        "S-SOURCE-SCHED",
        SOURCE_WITH_SCHEDULES,
        "sources",
        "a stream with schedules cannot have sources.",
        "Remove one of them.",
        lambda case: bool(case.sources) and case["allow_msg_schedules"],
        since="2.12.0",
    ),
    ForEach(sources, _OF_EACH_SOURCE),
)


def _not_literal(member: str) -> Callable[[OriginCase], Found]:
    def test(case: OriginCase) -> Found:
        external = case.origin["external"]
        if external is None or not external[member] or is_literal_subject(external[member]):
            return False
        return [Hit(f"{case.path}.external.{member}", external[member])]

    return test


def _own_api(case: OriginCase) -> Found:
    external = case.origin["external"]
    own = external is not None and external["api"] == "$JS.API"
    return own and [Hit(f"{case.path}.external.api", "$JS.API")]


def _cycle(case: OriginCase) -> Found:
    """Whether a stream copies its own messages in a loop.

    A source may be the stream itself if its filter matches none of the stream's subjects.
    """
    stream, wanted = case.stream, case.origin["filter_subject"]
    if case.origin["external"] is not None or case.origin["name"] != stream["name"]:
        return False
    if stream.mirror is not None or not wanted:
        return case.hit("name")
    return case.index in stream.fed_back and case.hit("name")


EXTERNAL_RULES = (
    ForEach(
        origins,
        (
            Rule[OriginCase](
                "S-EXT-DELIVER",
                EXTERNAL_DELIVER_INVALID,
                "",
                "the deliver prefix {value} is not a subject without wildcards.",
                "Use a literal subject.",
                _not_literal("deliver"),
            ),
        ),
    ),
    ForEach(
        origins,
        (
            Rule[OriginCase](
                "S-EXT-API",
                STREAM_INVALID_CONFIG,
                "",
                "the API prefix {value} is not a subject without wildcards.",
                "Use a literal subject such as $JS.hub.API.",
                _not_literal("api"),
            ),
            Rule[OriginCase](
                "S-EXT-API-OVERLAP",
                EXTERNAL_API_OVERLAP,
                "",
                "the API prefix {value} is this account's own.",
                "Give the prefix of the other account or domain.",
                _own_api,
            ),
        ),
    ),
    ForEach(
        origins,
        (
            Rule[OriginCase](
                "S-CYCLE",
                STREAM_INVALID_CONFIG,
                "",
                "the stream copies itself.",
                "Name another stream, or filter on subjects that are not its own.",
                _cycle,
            ),
        ),
    ),
)


def _is_filter(text: str) -> bool:
    return not text or is_subject(text)


def unseen_transforms(case: OriginCase) -> list[tuple[str, Settings]]:
    """Return the path and settings of each transform that the server uses without a check."""
    given = case.origin["subject_transforms"] if is_unseen(case) else ()
    return [(f"{case.path}.subject_transforms[{at}]", one) for at, one in enumerate(given)]


def unbuildable(transform: Settings, version: Version) -> bool:
    """Whether the server fails when it uses a transform that it did not check."""
    return bool(transform_fault(transform["src"], transform["dest"], version, strict=False))


def _filter_syntax(case: OriginCase) -> Found:
    """Find filters that are not subjects.

    An update is not checked, and neither is a filter that the server ignores.
    """
    wanted = case.origin["filter_subject"]
    if case.stream.update:
        return False
    # If the server does not check this origin, it accepts a filter together with transforms, and
    # ignores the filter.
    unused = is_unseen(case) and bool(case.origin["subject_transforms"])
    if not _is_filter(wanted) and not unused:
        return case.hit("filter_subject")
    return [
        Hit(f"{path}.src", one["src"])
        for path, one in unseen_transforms(case)
        if not _is_filter(one["src"])
    ]


def _late_transforms(case: OriginCase) -> Found:
    """Find transforms that the server accepts, but that fail when it uses them."""
    if case.stream.update:
        return False
    return [
        Hit(f"{path}.dest", one["dest"])
        for path, one in unseen_transforms(case)
        if _is_filter(one["src"]) and unbuildable(one, case.version)
    ]


ORIGIN_FILTER_RULES = (
    ForEach(
        origins,
        (
            Rule[OriginCase](
                "S-SOURCE-TR-LATE",
                STREAM_CREATE,
                "",
                "the transform to {value} is not valid.",
                "Compare source and destination token by token.",
                _late_transforms,
            ),
            Rule[OriginCase](
                "S-ORIGIN-FILTER",
                STREAM_CREATE,
                "",
                "the filter {value} is not a subject.",
                "Write tokens separated by dots.",
                _filter_syntax,
            ),
        ),
    ),
)
"""Rules that the server checks after all others."""
