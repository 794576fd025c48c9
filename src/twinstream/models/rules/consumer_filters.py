"""Rules for a consumer's filters, start position and sampling."""

from __future__ import annotations

import re

from attrs import frozen

from twinstream.models.error_codes import (
    DELIVER_POLICY_INVALID,
    EMPTY_FILTER,
    FILTER_SUBJECT_AND_SUBJECTS,
    FLOW_CONTROL_NEEDS_HEARTBEAT,
    OVERLAPPING_FILTERS,
    SAMPLE_FREQ_INVALID,
    STREAM_INVALID_CONFIG,
)
from twinstream.models.files.settings import Settings
from twinstream.models.names.overlaps import first_related
from twinstream.models.names.subjects import can_meet, is_contained, is_subject
from twinstream.models.numbers import whole_number
from twinstream.models.rules.consumer_case import ConsumerCase
from twinstream.models.rules.rule import ForEach, Found, Hit, Rule
from twinstream.models.version import Version

CR = Rule[ConsumerCase]

_SAMPLE = re.compile(r"[+-]?\d+", re.ASCII)
CROSSING_SINCE: Version = (2, 12, 5)
"""The first server version that accepts filters that overlap only partly, as a.* and *.b do."""
_INT64_MAX = 2**63 - 1


@frozen
class FilterCase:
    """The input of rules for one item of `filter_subjects`."""

    consumer: ConsumerCase
    index: int
    overlaps: dict[int, int]
    """A map from the index of a filter to the index of the first other filter that overlaps it.

    From `CROSSING_SINCE` on, only filters that contain it are counted.
    """

    @property
    def settings(self) -> Settings:
        """The consumer's settings."""
        return self.consumer.settings

    @property
    def version(self) -> Version:
        """The version of the server whose rules apply."""
        return self.consumer.version

    @property
    def pedantic(self) -> bool:
        """Whether the server refuses a setting instead of changing it."""
        return self.consumer.pedantic

    @property
    def wanted(self) -> str:
        """The subject that the filter selects."""
        found: str = self.settings["filter_subjects"][self.index]
        return found

    def hit(self, detail: str = "") -> list[Hit]:
        """Return a list with one `Hit`: the path and value of the filter."""
        return [Hit(f"filter_subjects[{self.index}]", self.wanted, detail)]


def _each_filter(case: ConsumerCase) -> list[FilterCase]:
    filters = case["filter_subjects"]
    relation = is_contained if case.version >= CROSSING_SINCE else can_meet
    overlaps = first_related(filters, filters, relation, apart=True)
    return [FilterCase(case, index, overlaps) for index in range(len(filters))]


def _overlaps_other(case: FilterCase) -> Found:
    other = case.overlaps.get(case.index)
    return other is not None and case.hit(repr(case.settings["filter_subjects"][other]))


_OF_EACH_FILTER = (
    Rule[FilterCase](
        "C-FILTER-INVALID",
        STREAM_INVALID_CONFIG,
        "",
        "{value} is not a subject.",
        "Write tokens without blanks, separated by dots; > is only allowed at the end.",
        lambda case: bool(case.wanted) and not is_subject(case.wanted) and case.hit(),
    ),
    Rule[FilterCase](
        "C-FILTER-OVERLAP",
        OVERLAPPING_FILTERS,
        "",
        "{value} overlaps {detail}.",
        "Remove the narrower one.",
        _overlaps_other,
    ),
)


def _start(case: ConsumerCase) -> Found:
    """Find start settings that do not fit the `deliver_policy`."""
    policy = case["deliver_policy"] or "all"
    sequence, time = case["opt_start_seq"], case["opt_start_time"]
    hits: list[Hit] = []
    if sequence and policy != "by_start_sequence":
        hits.append(Hit("opt_start_seq", sequence, f"{policy} excludes opt_start_seq"))
    if time is not None and policy != "by_start_time":
        hits.append(Hit("opt_start_time", time, f"{policy} excludes opt_start_time"))
    if policy == "by_start_sequence" and not sequence:
        hits.append(Hit("opt_start_seq", None, f"{policy} needs opt_start_seq above 0"))
    if policy == "by_start_time" and time is None:
        hits.append(Hit("opt_start_time", None, f"{policy} needs opt_start_time"))
    if policy == "last_per_subject" and not case.filters:
        hits.append(Hit("deliver_policy", policy, f"{policy} needs a filter"))
    return hits


def _sample(case: ConsumerCase) -> Found:
    text = case["sample_freq"]
    if not text:
        return False
    digits = text.removesuffix("%")
    return not _SAMPLE.fullmatch(digits) or not 0 <= whole_number(digits) <= _INT64_MAX


FILTER_RULES = (
    CR(
        "C-FILTER-BOTH",
        FILTER_SUBJECT_AND_SUBJECTS,
        "filter_subjects",
        "filter_subject and filter_subjects exclude each other.",
        "Put all filters into filter_subjects.",
        lambda case: bool(case["filter_subject"]) and bool(case["filter_subjects"]),
    ),
    CR(
        "C-FILTER-INVALID",
        STREAM_INVALID_CONFIG,
        "filter_subject",
        "{value} is not a subject.",
        "Write tokens without blanks, separated by dots; > is only allowed at the end.",
        lambda case: bool(case["filter_subject"]) and not is_subject(case["filter_subject"]),
    ),
    CR(
        "C-FILTER-EMPTY",
        EMPTY_FILTER,
        "",
        "a filter is empty.",
        "Remove it, or use filter_subject for one filter.",
        lambda case: [
            Hit(f"filter_subjects[{index}]", one)
            for index, one in enumerate(case["filter_subjects"])
            if not one
        ],
    ),
    ForEach(_each_filter, _OF_EACH_FILTER),
    CR(
        "C-START-POLICY",
        DELIVER_POLICY_INVALID,
        "",
        "deliver policy {detail}.",
        "Use only the start options that deliver_policy needs.",
        _start,
    ),
    CR(
        "C-SAMPLE",
        SAMPLE_FREQ_INVALID,
        "sample_freq",
        "{value} is not a percentage.",
        'Write a whole number such as "30%".',
        _sample,
    ),
    CR(
        "C-FLOW-HEARTBEAT",
        FLOW_CONTROL_NEEDS_HEARTBEAT,
        "idle_heartbeat",
        "flow_control needs idle_heartbeat.",
        "Set idle_heartbeat, for example to 5000000000.",
        lambda case: case["flow_control"] and not case["idle_heartbeat"],
    ),
)
