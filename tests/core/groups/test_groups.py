"""Partitioned consumer groups without a server: layout, validation, partitions, filters, states."""

from __future__ import annotations

import json
import math
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from twinstream.core.groups.config import (
    check_group_config,
    config_bytes,
    differences,
    read_config,
    with_mappings,
    with_members,
    without_mappings,
    without_members,
)
from twinstream.core.groups.elastic_stream import destination, group_stream, uses_whole_subject
from twinstream.core.groups.floors import Place
from twinstream.core.groups.info import GroupInfo
from twinstream.core.groups.member_consumer import (
    check_template,
    member_consumer,
    pin_holder,
    stored_filters,
)
from twinstream.core.groups.membership import (
    End,
    Join,
    Leave,
    Membership,
    Wait,
    deletes_consumer,
    is_free,
)
from twinstream.core.groups.names import GroupNames, group_of_key
from twinstream.core.groups.partitions import filters_of, partitions_of
from twinstream.core.groups.redelivery_order import has_all, patience
from twinstream.core.server_faults.delays import DELETION
from twinstream.errors import BadArgument, GroupChanged, InvalidGroupConfig
from twinstream.models import (
    ConsumerConfig,
    ConsumerInfo,
    ElasticGroupConfig,
    MemberMapping,
    PartitioningFilter,
    StaticGroupConfig,
    StreamConfig,
    decode,
    encode,
    evolve,
    partition,
    transform_subject,
    validate_stream,
)

ELASTIC = GroupNames.of("elastic", "S", "g")
STATIC = GroupNames.of("static", "S", "g")
THIRDS = {"a": [0, 3], "b": [1], "c": [2]}


def elastic(most: int = 10, *members: str, **settings: Any) -> ElasticGroupConfig:
    return ElasticGroupConfig(max_members=most, members=list(members) or None, **settings)


def static(most: int = 10, *members: str, **settings: Any) -> StaticGroupConfig:
    return StaticGroupConfig(max_members=most, members=list(members) or None, **settings)


def mapped(mappings: dict[str, list[int]]) -> list[MemberMapping]:
    return [MemberMapping(member=name, partitions=each) for name, each in mappings.items()]


def filtered(subject: str, *wildcards: int) -> PartitioningFilter:
    return PartitioningFilter(filter=subject, partitioning_wildcards=list(wildcards))


# ---- names


def test_names_are_those_of_other_clients() -> None:
    assert (ELASTIC.bucket, STATIC.bucket) == ("elastic-consumer-groups", "static-consumer-groups")
    assert ELASTIC.key == STATIC.key == "S.g"
    assert (ELASTIC.source, STATIC.source) == ("S-g", "S")
    assert (ELASTIC.consumer("m"), STATIC.consumer("m")) == ("m", "g-m")
    assert group_of_key("S.g") == "g"


@pytest.mark.parametrize("group", ["", "a.b", "a b", "a*", ">", "é", "a/b", None])
def test_names_that_other_clients_would_not_find(group: Any) -> None:
    with pytest.raises(BadArgument):
        GroupNames.of("elastic", "S", group)


def test_names_that_are_too_long_together() -> None:
    with pytest.raises(BadArgument, match="longer"):
        GroupNames.of("elastic", "s" * 200, "g" * 200)
    with pytest.raises(BadArgument, match="longer"):
        GroupNames.of("static", "S", "g" * 200).consumer("m" * 100)


# ---- partitions and filters


@pytest.mark.parametrize(
    ("most", "members", "found"),
    [
        (10, ["m1", "m2", "m3"], {"m1": [0, 1, 2, 9], "m2": [3, 4, 5], "m3": [6, 7, 8]}),
        (10, ["m3", "m1", "m2", "m1"], {"m1": [0, 1, 2, 9], "m2": [3, 4, 5], "m3": [6, 7, 8]}),
        (10, ["m1", "m2"], {"m1": [0, 1, 2, 3, 4], "m2": [5, 6, 7, 8, 9]}),
        (7, ["a", "b", "c", "d"], {"a": [0, 4], "b": [1, 5], "c": [2, 6], "d": [3]}),
        (2, ["c", "b", "a"], {"a": [0], "b": [1], "c": []}),
        (1, ["only"], {"only": [0], "other": []}),
    ],
)
def test_partitions_are_those_that_other_clients_compute(
    most: int, members: list[str], found: dict[str, list[int]]
) -> None:
    for config in (elastic(most, *members), static(most, *members)):
        for member, partitions in found.items():
            assert partitions_of(config, member) == tuple(partitions)
            assert filters_of(config, member) == tuple(f"{number}.>" for number in partitions)


def model(most: int, members: list[str], member: str) -> tuple[int, ...]:
    """Return the partitions of a member, by a simple form of the rule."""
    names = sorted(set(members))[:most]
    run = most // len(names)
    owners = [
        names[number // run] if number < len(names) * run else names[number - len(names) * run]
        for number in range(most)
    ]
    return tuple(number for number, owner in enumerate(owners) if owner == member)


NAMES = some.lists(some.sampled_from("abcdefghij"), min_size=1, max_size=12)


@given(some.integers(1, 40), NAMES)
def test_each_partition_has_one_member(most: int, members: list[str]) -> None:
    config = elastic(most, *members)
    every = [number for each in set(members) for number in partitions_of(config, each)]
    assert sorted(every) == list(range(most))
    sizes = [len(partitions_of(config, each)) for each in sorted(set(members))[:most]]
    assert max(sizes) - min(sizes) <= 1
    for each in {*members, "other"}:
        assert partitions_of(config, each) == model(most, members, each)


@given(some.integers(1, 40), NAMES, some.lists(some.sampled_from(["a.*", "b.>", "c.*.d"])))
def test_filters_of_members_never_overlap(
    most: int, members: list[str], subjects: list[str]
) -> None:
    config = elastic(
        most, *members, partitioning_filters=[filtered(each, 1) for each in subjects] or None
    )
    every = [each for member in set(members) for each in filters_of(config, member)]
    assert len(set(every)) == len(every) == most * max(1, len(set(subjects)))


def test_filters_of_mapped_members_are_there_once() -> None:
    config = elastic(
        4,
        partitioning_filters=[filtered("a.*", 1), filtered("b.*", 1)],
        member_mappings=mapped({"a": [3, 0], "b": [1], "c": [2]}),
    )
    assert filters_of(config, "a") == ("3.>", "0.>")
    assert filters_of(config, "other") == ()
    assert GroupInfo(config, 1).members == ["a", "b", "c"]
    assert GroupInfo(config, 1).partitions("a") == (3, 0)


def test_filters_of_static_members_in_the_order_of_other_clients() -> None:
    config = static(2, "m", filters=["a.*", "b.>"])
    assert filters_of(config, "m") == ("0.a.*", "1.a.*", "0.b.>", "1.b.>")


# ---- validation


@pytest.mark.parametrize(
    ("config", "why"),
    [
        (elastic(0), "max_members"),
        (elastic(1_000_000_000), "at most"),
        (evolve(elastic(1), max_members="2"), "max_members"),
        (elastic(2, partitioning_filters=[filtered("")]), "empty"),
        (elastic(2, partitioning_filters=[filtered("a.b")]), "no wildcard"),
        (elastic(2, partitioning_filters=[filtered("a.*", 2)]), "no number 2"),
        (elastic(2, partitioning_filters=[filtered("a.*", 0)]), "from 1 up"),
        (elastic(2, partitioning_filters=[filtered("a.*.*", 1, 1)]), "twice"),
        (elastic(2, partitioning_filters=["a.*"]), "PartitioningFilter"),
        (elastic(2, max_buffered_msg=-2), "max_buffered"),
        (elastic(2, "a", member_mappings=mapped({"a": [0, 1]})), "not both"),
        (elastic(2, member_mappings=mapped({"a": [0]})), "missing: 1"),
        (elastic(2, member_mappings=mapped({"a": [0, 1, 1]})), "partition twice"),
        (elastic(2, member_mappings=mapped({"a": [0, 1, 2]})), "0 to 1"),
        (elastic(1, member_mappings=mapped({"a": [0], "b": []})), "max_members is 1"),
        (elastic(2, member_mappings=[*mapped({"a": [0]}), *mapped({"a": [1]})]), "member twice"),
        (elastic(2, "a b"), "member name"),
        (static(2, "a", filters=["a..b"]), "empty token"),
    ],
)
def test_configurations_that_no_client_can_use(config: Any, why: str) -> None:
    with pytest.raises(BadArgument, match=why):
        check_group_config(config)


# ---- the stored form


def test_the_stored_json_has_the_members_of_other_clients() -> None:
    config = elastic(
        2,
        partitioning_filters=[filtered("a.*", 1), PartitioningFilter(filter="b.>")],
        max_buffered_msg=5,
        max_buffered_bytes=6,
        member_mappings=mapped({"x": [1, 0]}),
    )
    stored = json.loads(config_bytes(config))
    assert list(stored.items()) == [
        ("max_members", 2),
        (
            "partitioning_filters",
            [
                {"filter": "a.*", "partitioning_wildcards": [1]},
                {"filter": "b.>", "partitioning_wildcards": None},
            ],
        ),
        ("max_buffered_msg", 5),
        ("max_buffered_bytes", 6),
        ("member_mappings", [{"member": "x", "partitions": [1, 0]}]),
    ]
    assert json.loads(config_bytes(elastic(2))) == {"max_members": 2, "partitioning_filters": None}
    assert json.loads(config_bytes(static(2, "m"))) == {"max_members": 2, "members": ["m"]}


@pytest.mark.parametrize(
    "stored",
    [
        {"max_members": 3, "partitioning_filters": None, "members": ["a"]},
        {"max_members": 3, "partitioning_filters": [], "members": ["a"], "later": {"x": [1]}},
        {
            "max_members": 3,
            "partitioning_filters": [{"filter": "a.*", "partitioning_wildcards": [], "new": 1}],
            "members": ["a"],
        },
    ],
)
def test_a_change_keeps_what_it_does_not_concern(stored: dict[str, Any]) -> None:
    config = read_config(ELASTIC, json.dumps(stored).encode(), ElasticGroupConfig)
    after = json.loads(config_bytes(with_members(config, ["b"])))
    assert after == {**stored, "members": ["a", "b"]}


@pytest.mark.parametrize("data", [b"", b"[]", b"{", b"{}", b'{"max_members":"x"}', b"\xff"])
def test_what_cannot_be_read_is_an_error_that_names_the_key(data: bytes) -> None:
    with pytest.raises(InvalidGroupConfig, match=r"S\.g of bucket static-consumer-groups"):
        read_config(STATIC, data, StaticGroupConfig)
    both = b'{"max_members":1,"members":["a"],"member_mappings":[{"member":"a"}]}'
    with pytest.raises(InvalidGroupConfig, match="not both"):
        read_config(ELASTIC, both, ElasticGroupConfig)


@pytest.mark.parametrize("members", [["m"], None])
def test_filters_are_counted_before_they_are_expanded(members: list[str] | None) -> None:
    filters = [{"filter": f"a{number}.*"} for number in range(2_000)]
    stored = {"max_members": 65_536, "members": members, "partitioning_filters": filters}
    with pytest.raises(InvalidGroupConfig, match="65536 partitions of 2000 filters"):
        read_config(ELASTIC, json.dumps(stored).encode(), ElasticGroupConfig)
    subjects = [each["filter"] for each in filters]
    stored = {"max_members": 65_536, "members": members, "filters": subjects}
    with pytest.raises(InvalidGroupConfig, match="65536 partitions of 2000 filters"):
        read_config(STATIC, json.dumps(stored).encode(), StaticGroupConfig)


def test_the_largest_number_of_filters_is_accepted() -> None:
    stored = {"max_members": 32_768, "members": ["m"], "filters": ["a", "b", "b"]}
    config = read_config(STATIC, json.dumps(stored).encode(), StaticGroupConfig)
    assert len(filters_of(config, "m")) == 65_536


def test_filters_of_mapped_members_are_not_multiplied() -> None:
    mapped = [{"member": "m", "partitions": list(range(40_000))}]
    stored = {"max_members": 40_000, "member_mappings": mapped, "filters": ["a", "b"]}
    config = read_config(STATIC, json.dumps(stored).encode(), StaticGroupConfig)
    assert len(filters_of(config, "m")) == 40_000


@pytest.mark.parametrize("setting", ["max_buffered_msg", "max_buffered_bytes"])
def test_limits_of_the_buffer_fit_into_64_bits(setting: str) -> None:
    for number in (2**63, 10**309):
        with pytest.raises(InvalidGroupConfig, match="at most 9223372036854775807"):
            read_config(
                ELASTIC,
                json.dumps({"max_members": 1, setting: number}).encode(),
                ElasticGroupConfig,
            )
    data = json.dumps({"max_members": 1, setting: 2**63 - 1}).encode()
    assert getattr(read_config(ELASTIC, data, ElasticGroupConfig), setting) == 2**63 - 1


def test_members_and_mappings_exclude_each_other() -> None:
    config = with_members(elastic(4), ["b", "a", "b"])
    assert config.members == ["b", "a"]
    assert without_members(config, ["a", "other"]).members == ["b"]
    assert without_members(config, ["a", "b"]).members is None
    by_hand = with_mappings(config, THIRDS)
    assert (by_hand.members, GroupInfo(by_hand, 1).members) == (None, ["a", "b", "c"])
    for change in (with_members, without_members):
        with pytest.raises(BadArgument, match="mapped"):
            change(by_hand, ["d"])
    assert GroupInfo(without_mappings(by_hand), 1).members == []
    for wrong in ({}, {"a": [0]}, ["a"]):
        with pytest.raises(BadArgument):
            with_mappings(config, wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("before", "after", "names"),
    [
        (elastic(2, "a"), elastic(2, "b"), []),
        (elastic(2), elastic(2, partitioning_filters=[], max_buffered_msg=0), []),
        (elastic(2), elastic(3), ["max_members"]),
        (elastic(2), elastic(2, max_buffered_bytes=1), ["max_buffered_bytes"]),
        (
            elastic(2, partitioning_filters=[filtered("a.*.*", 1)]),
            elastic(2, partitioning_filters=[filtered("a.*.*", 2)]),
            ["partitioning_filters"],
        ),
        (static(2, "a"), static(2, "a"), []),
        (static(2, "a"), static(2, "a", filters=["x"]), ["filters"]),
        (static(2, "a"), static(2, "a", "b"), ["members"]),
        (
            static(2, member_mappings=mapped({"a": [0, 1]})),
            static(2, member_mappings=mapped({"a": [1, 0]})),
            ["member_mappings"],
        ),
    ],
)
def test_changes_that_members_cannot_follow(before: Any, after: Any, names: list[str]) -> None:
    assert differences(before, after) == names


# ---- the stream of an elastic group


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (filtered("o.*", 1), "{{Partition(10,1)}}.o.{{Wildcard(1)}}"),
        (filtered("*.x.*.>", 2, 1), "{{Partition(10,2,1)}}.{{Wildcard(1)}}.x.{{Wildcard(2)}}.>"),
        (filtered(">"), "{{Partition(10)}}.>"),
        (PartitioningFilter(filter="a.*"), "{{Partition(10)}}.a.{{Wildcard(1)}}"),
    ],
)
def test_destinations_are_those_of_other_clients(given: PartitioningFilter, wanted: str) -> None:
    assert destination(given, 10) == wanted


def test_the_stream_of_a_group_copies_with_partitions() -> None:
    config = elastic(10, partitioning_filters=[filtered("o.*.*", 2)], max_buffered_msg=7)
    source = StreamConfig(name="S", subjects=["o.>"], storage="memory", num_replicas=1)
    made = group_stream(ELASTIC, config, source)
    assert validate_stream(made, "2.11.11") == []
    assert (made.name, made.retention, made.discard) == ("S-g", "workqueue", "new")
    assert (made.max_msgs, made.max_bytes, made.storage) == (7, -1, "memory")
    [origin] = made.sources or []
    [transform] = origin.subject_transforms or []
    assert origin.name == "S"
    subject = transform_subject(transform.src or "", transform.dest or "", "o.x.key")
    assert subject == f"{partition(['key'], 10)}.o.x.key"
    assert not uses_whole_subject(config)


def test_the_whole_subject_needs_a_newer_server() -> None:
    config = elastic(10)
    assert uses_whole_subject(config)
    assert uses_whole_subject(
        elastic(3, partitioning_filters=[filtered("a.*", 1), filtered("b.>")])
    )
    made = group_stream(ELASTIC, config, StreamConfig(name="S"))
    assert validate_stream(made, "2.12.8") == []
    assert validate_stream(made, "2.11.11")


# ---- the consumer of a member


def test_the_consumer_of_a_member() -> None:
    template = check_template(ELASTIC, None)
    made = member_consumer(ELASTIC, "m", ("0.>", "1.>"), template)
    assert encode(made) == {
        "name": "m",
        "ack_policy": "explicit",
        "ack_wait": 5_000_000_000,
        "inactive_threshold": 5_000_000_000,
        "max_ack_pending": 100,
        "filter_subjects": ["0.>", "1.>"],
        "priority_groups": ["PCG"],
        "priority_policy": "pinned_client",
        "priority_timeout": 5_000_000_000,
    }
    short = check_template(STATIC, ConsumerConfig(ack_wait=timedelta(milliseconds=200)))
    made = member_consumer(STATIC, "m", ("0.>",), evolve(short, max_ack_pending=1))
    assert (made.durable_name, made.name, made.inactive_threshold) == ("g-m", None, None)
    assert (made.priority_timeout, made.max_ack_pending) == (timedelta(seconds=1), 1)


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": "x"},
        {"durable_name": "x"},
        {"filter_subject": "x"},
        {"filter_subjects": ["x"]},
        {"priority_groups": ["x"]},
        {"inactive_threshold": timedelta(seconds=1)},
        {"deliver_subject": "x"},
        {"ack_policy": "none"},
        {"max_ack_pending": -1},
    ],
)
def test_settings_that_the_group_makes_itself(wrong: dict[str, Any]) -> None:
    with pytest.raises(BadArgument):
        check_template(ELASTIC, ConsumerConfig(**wrong))


def info(**members: Any) -> ConsumerInfo:
    counts = {"stream_name": "S", "name": "m", "num_pending": 0, "num_ack_pending": 0}
    rest = {"num_redelivered": 0, "num_waiting": 0, "created": "2026-01-01T00:00:00Z"}
    floor = {"consumer_seq": 0, "stream_seq": 0}
    return decode(
        {**counts, **rest, "delivered": floor, "ack_floor": floor, **members}, ConsumerInfo
    )


def test_what_an_info_says_about_the_pin_and_the_filters() -> None:
    groups = [{"group": "other", "pinned_client_id": "x"}, {"group": "PCG"}]
    assert pin_holder(info()) == pin_holder(info(priority_groups=groups)) == ""
    assert pin_holder(info(priority_groups=[{"group": "PCG", "pinned_client_id": "p"}])) == "p"
    assert stored_filters(info()) == ()
    assert stored_filters(info(config={"filter_subject": "1.>"})) == ("1.>",)
    assert stored_filters(info(config={"filter_subjects": ["1.>", "2.>"]})) == ("1.>", "2.>")


@pytest.mark.parametrize(
    ("holder", "mine", "stored", "deletes"),
    [
        ("p", "p", ("0.>",), True),
        ("p", "q", ("0.>",), False),
        ("p", None, ("0.>",), False),
        ("", None, ("0.>",), True),
        ("", "q", ("0.>",), True),
        # Another instance was faster: its consumer has the filters that are wanted now.
        ("p", "p", ("1.>",), False),
        ("", None, ("1.>",), False),
    ],
)
def test_who_deletes_the_consumer(
    holder: str, mine: str | None, stored: tuple[str, ...], deletes: bool
) -> None:
    assert deletes_consumer(holder, mine, stored, ("1.>",)) is deletes


@pytest.mark.parametrize(
    ("holder", "waiting", "stored", "free"),
    [
        ("p", 0, ("0.>",), False),
        ("p", 0, ("1.>",), False),
        ("", 1, ("0.>",), True),
        ("", 0, ("1.>",), True),
        # Another instance with other settings: neither may replace the consumer of the other.
        ("", 1, ("1.>",), False),
    ],
)
def test_which_consumers_are_replaced(
    holder: str, waiting: int, stored: tuple[str, ...], free: bool
) -> None:
    assert is_free(holder, waiting, stored, ("1.>",)) is free


# ---- taking over


@pytest.mark.parametrize(
    ("pending", "last", "came", "all_came"),
    [
        (0, 5, {}, True),
        (1, 5, {9: 5}, True),
        (2, 5, {9: 5}, False),
        # Delivered after the server looked: not among those that it counted.
        (2, 5, {9: 5, 10: 6}, False),
        (3, 5, {7: 3, 8: 4, 9: 5, 10: 6}, True),
    ],
)
def test_whether_all_pending_messages_came(
    pending: int, last: int, came: dict[int, int], all_came: bool
) -> None:
    delivered = {"consumer_seq": last, "stream_seq": 99}
    assert has_all(info(num_ack_pending=pending, delivered=delivered), came) is all_came


def test_how_long_messages_of_a_dead_instance_may_take() -> None:
    assert patience(ConsumerConfig(ack_wait=timedelta(seconds=5))) == 6
    steps = [timedelta(seconds=1), timedelta(seconds=9)]
    assert patience(ConsumerConfig(backoff=steps)) == 10


# ---- the membership loop


def loop(config: Any, names: GroupNames = ELASTIC) -> Membership:
    return Membership(names, "m", config)


def consuming(config: Any, names: GroupNames = ELASTIC) -> Membership:
    membership = loop(config, names)
    step = membership.due(0.0)
    assert isinstance(step, Join)
    membership.joined(step)
    return membership


def test_a_member_joins_and_others_wait() -> None:
    assert loop(elastic(2)).due(0.0) == Wait(math.inf)
    assert loop(elastic(2, "other")).due(0.0) == Wait(math.inf)
    assert loop(elastic(2, "m")).due(0.0) == Join(("0.>", "1.>"), (0, 1))
    assert consuming(elastic(2, "m")).due(9.0) == Wait(math.inf)


def test_a_member_is_disturbed_only_if_its_partitions_change() -> None:
    membership = consuming(elastic(4, "a", "m"))
    assert membership.heard(elastic(4, "m", "a", "a"), 1.0) == Wait(math.inf)
    assert membership.heard(
        elastic(4, member_mappings=mapped({"m": [2, 3], "b": [0, 1]})), 1.0
    ) == (Wait(math.inf))
    assert membership.heard(elastic(4, "m"), 1.0) == Leave("the members changed")
    membership.left(1.0, 0.5)
    assert membership.partitions == ()
    assert membership.due(1.1) == Wait(1.5)
    assert membership.due(1.5) == Join(("0.>", "1.>", "2.>", "3.>"), (0, 1, 2, 3))


def test_a_member_that_is_removed_comes_back_when_it_is_added() -> None:
    membership = consuming(elastic(1, "m"))
    assert membership.heard(elastic(1), 1.0) == Leave("the members changed")
    membership.left(1.0)
    assert membership.due(2.0) == Wait(math.inf)
    assert membership.heard(elastic(1, "m"), 3.0) == Join(("0.>",), (0,))


def test_a_refused_consumer_is_tried_again_at_growing_intervals() -> None:
    membership, now, pauses = loop(elastic(1, "m")), 0.0, []
    for _ in range(10):
        assert membership.due(now) == Join(("0.>",), (0,))
        pauses.append(membership.refused(now))
        assert membership.due(now) == Wait(now + pauses[-1])
        now += pauses[-1]
    assert pauses[:3] == [0.05, 0.1, 0.2]
    # Independent of ack_wait.
    assert pauses[-1] == 1.0
    membership.joined(Join(("0.>",), (0,)))
    assert membership.refused(now) == 0.05


@pytest.mark.parametrize("names", [ELASTIC, STATIC])
def test_the_end_of_a_group(names: GroupNames) -> None:
    config = elastic(1, "m") if names is ELASTIC else static(1, "m")
    assert consuming(config, names).heard(None, 0.0) == End(f"{names} was deleted")
    bad = InvalidGroupConfig("no JSON")
    assert consuming(config, names).heard(bad, 0.0) == End("the configuration is invalid", bad)
    changed = consuming(config, names).heard(evolve(config, max_members=2), 0.0)
    assert isinstance(changed, End)
    assert isinstance(changed.error, GroupChanged)
    assert "max_members changed" in str(changed.error)


def test_a_static_group_ends_its_members_when_they_change() -> None:
    membership = consuming(static(2, "m"), STATIC)
    assert membership.heard(static(2, "m"), 0.0) == Wait(math.inf)
    step = membership.heard(static(2, "m", "n"), 0.0)
    assert isinstance(step, End)
    assert isinstance(step.error, GroupChanged)


def test_a_consumer_that_is_gone() -> None:
    error = RuntimeError("deleted")
    found = elastic(1, "m")
    membership = consuming(found)
    # Not before the server has removed it completely.
    assert membership.gone(found, error, 1.0) == Wait(1.0 + DELETION)
    assert membership.due(1.0 + DELETION) == Join(("0.>",), (0,))
    assert consuming(found).gone(elastic(1), error, 1.0) == Wait(math.inf)
    assert isinstance(consuming(found).gone(None, error, 1.0), End)
    fixed = static(1, "m")
    assert consuming(fixed, STATIC).gone(fixed, error, 1.0) == End(
        "the consumer was deleted", error
    )
    assert consuming(fixed, STATIC).gone(None, error, 1.0) == End(f"{STATIC} was deleted")


FACTS = some.lists(
    some.one_of(
        NAMES.map(lambda members: ("heard", members)),
        some.sampled_from([("refused", None), ("gone", None), ("late", None), ("none", None)]),
    ),
    max_size=30,
)


@given(FACTS)
def test_a_member_always_ends_up_with_its_partitions(facts: list[tuple[str, Any]]) -> None:
    """After any events, the member consumes the configured partitions as soon as possible."""
    membership, now, config = Membership(ELASTIC, "a", elastic(12)), 0.0, elastic(12)

    def settle(step: Any) -> None:
        nonlocal now
        for _ in range(3):
            assert not isinstance(step, End)
            if isinstance(step, Leave):
                membership.left(now)
            elif isinstance(step, Join):
                membership.joined(step)
            elif step.until < math.inf:
                assert step.until - now <= 1.0
                now = step.until
            step = membership.due(now)
        assert membership.filters == filters_of(config, "a")
        assert membership.partitions == partitions_of(config, "a")
        assert step == Wait(math.inf)

    for fact, members in facts:
        now += 0.01
        if fact == "heard":
            config = elastic(12, *members)
            settle(membership.heard(config, now))
        elif fact == "none":
            config = elastic(12)
            settle(membership.heard(config, now))
        elif fact == "gone":
            settle(membership.gone(config, RuntimeError(), now))
        elif fact == "refused":
            membership.left(now)
            membership.refused(now)
            settle(membership.due(now))
        else:
            membership.left(now, 0.45)
            settle(membership.due(now))


def test_a_floor_that_was_not_read_is_not_raised() -> None:
    """Another thread reads the stored floor, which may be higher."""
    place = Place(b"0", b"source")
    place.open.append((5, 5))
    place.advance(10)
    assert (place.floor, list(place.open)) == ((0, 0), [(5, 5)])
    place.begin((4, 4), None)
    place.advance(10)
    assert (place.floor, list(place.open)) == ((5, 5), [])
