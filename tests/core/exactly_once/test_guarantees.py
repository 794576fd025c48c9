"""Which settings of a stream give which guarantee."""

from __future__ import annotations

import pickle
from datetime import timedelta
from typing import Any

import pytest

from twinstream.core.exactly_once.guarantees import (
    identity_gaps,
    insert_gaps,
    rolls_up,
    update_gaps,
    upsert_gaps,
)
from twinstream.errors import UnsuitableSettings
from twinstream.models import StreamConfig, StreamSource, SubjectTransform

OLD, NEW = (2, 12, 8), (2, 14, 0)
HOUR = timedelta(hours=1)
FULL = {"discard": "new", "max_msgs_per_subject": 1, "discard_new_per_subject": True}


def config(**settings: Any) -> StreamConfig:
    return StreamConfig(name="S", subjects=["s.>"], **settings)


def names(gaps: list[Any]) -> list[str]:
    return [gap.setting for gap in gaps]


@pytest.mark.parametrize(
    ("settings", "gaps"),
    [
        ({}, []),
        (FULL, []),
        ({"max_age": timedelta(0)}, []),
        ({"max_age": HOUR}, ["max_age"]),
        ({"max_msgs": 10}, ["max_msgs"]),
        ({"max_msgs": -1, "max_bytes": 0}, []),
        ({"max_bytes": 10, "max_msgs": 1}, ["max_msgs", "max_bytes"]),
        ({"max_bytes": 10, "discard": "new"}, []),
        ({"storage": "memory"}, ["storage"]),
        ({"storage": "file", "retention": "limits"}, []),
        ({"retention": "workqueue"}, ["retention"]),
        ({"retention": "interest", "max_age": HOUR}, ["retention", "max_age"]),
        ({"no_ack": True}, ["no_ack"]),
        ({"sealed": True}, ["sealed"]),
        ({"mirror": StreamSource(name="ORIGIN")}, ["mirror"]),
        ({"subject_transform": SubjectTransform(src=">", dest="x")}, ["subject_transform"]),
    ],
)
def test_insert_check_names_each_setting_that_loses_messages(
    settings: dict[str, Any], gaps: list[str]
) -> None:
    assert names(insert_gaps(config(**settings))) == gaps


def test_insert_for_a_while() -> None:
    assert insert_gaps(config(max_age=HOUR), 3600.0) == []
    (gap,) = insert_gaps(config(max_age=HOUR), 3601.0)
    assert str(gap) == (
        "max_age is 1:00:00, so messages older than that are removed:"
        " set max_age to 3601 s or more, or 0"
    )


@pytest.mark.parametrize(
    ("settings", "server", "update", "upsert"),
    [
        ({}, NEW, [], ["max_msgs_per_subject"]),
        ({"allow_rollup_hdrs": True}, OLD, [], []),
        ({"max_msgs_per_subject": 1}, OLD, [], []),
        ({"max_msgs_per_subject": 5}, NEW, [], ["max_msgs_per_subject"]),
        ({"max_msgs_per_subject": 1, "max_age": HOUR, "storage": "memory"}, OLD, [], []),
        (FULL, NEW, ["discard_new_per_subject"], ["discard_new_per_subject"]),
        (
            FULL | {"allow_rollup_hdrs": True},
            OLD,
            ["discard_new_per_subject"],
            ["discard_new_per_subject"],
        ),
        (FULL | {"allow_rollup_hdrs": True}, NEW, [], []),
        ({"no_ack": True, "max_msgs_per_subject": 1}, NEW, ["no_ack"], ["no_ack"]),
    ],
)
def test_update_and_upsert_name_each_setting_that_keeps_the_old_message(
    settings: dict[str, Any], server: tuple[int, int, int], update: list[str], upsert: list[str]
) -> None:
    assert names(update_gaps(config(**settings), server)) == update
    assert names(upsert_gaps(config(**settings), server)) == upsert


@pytest.mark.parametrize(
    ("settings", "gaps"),
    [
        ({}, []),
        ({"max_age": HOUR, "max_msgs": 10, "duplicate_window": timedelta(seconds=20)}, []),
        ({"duplicate_window": timedelta(seconds=19.9)}, ["duplicate_window"]),
        ({"max_msgs_per_subject": 1}, ["max_msgs_per_subject"]),
        ({"max_msgs_per_subject": -1, "storage": "memory"}, ["storage"]),
        ({"retention": "interest", "no_ack": True}, ["no_ack", "retention"]),
    ],
)
def test_identity_check_names_each_setting_that_allows_repetitions(
    settings: dict[str, Any], gaps: list[str]
) -> None:
    assert names(identity_gaps(config(**settings), 5.0)) == gaps


@pytest.mark.parametrize(
    ("settings", "upsert_rolls", "update_rolls"),
    [
        ({}, True, False),
        ({"max_msgs_per_subject": 1}, False, False),
        (FULL, True, True),
        (FULL | {"max_msgs_per_subject": 2}, True, True),
    ],
)
def test_writes_roll_up_where_older_messages_would_stay_or_refuse_them(
    settings: dict[str, Any], upsert_rolls: bool, update_rolls: bool
) -> None:
    made = config(**settings)
    assert rolls_up(made, history=False) is upsert_rolls
    assert rolls_up(made, history=True) is update_rolls


def test_the_error_names_every_hole_and_travels() -> None:
    gaps = tuple(insert_gaps(config(storage="memory", max_msgs=3)))
    error = UnsuitableSettings("S", "that a subject is inserted once", gaps)
    copy = pickle.loads(pickle.dumps(error))
    assert (copy.stream, copy.promise, copy.gaps) == (error.stream, error.promise, gaps)
    assert str(copy) == (
        "S does not guarantee that a subject is inserted once: storage is memory, so a restart"
        " loses stored messages: set storage=file; max_msgs is 3, so a full stream drops its"
        " oldest messages, which could be stored again: set discard=new, or max_msgs=-1"
    )
