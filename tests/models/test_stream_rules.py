"""Each stream rule by an example: rule, code, location and message."""

from __future__ import annotations

from typing import Any

import pytest
from texts import TEXTS

from twinstream.models import Problem, StreamConfig, validate_stream

SECOND = 1_000_000_000

GOOD: list[dict[str, Any]] = [
    {"name": "S"},
    {"name": "S", "subjects": ["a.>", "b.*"]},
    {"name": "S", "subjects": [">"], "no_ack": True},
    {"name": "S", "subjects": ["$JS.EVENT.ADVISORY.>"]},
    {"name": "S", "subjects": ["*"]},
    {"name": "S", "max_msgs": -5},
    {"name": "S", "mirror": {"name": "O"}},
    {"name": "S", "sources": [{"name": "O"}, {"name": "O", "filter_subject": "a"}]},
    {"name": "S", "sources": [{"name": "S", "filter_subject": "x"}]},
    {"name": "S", "subject_transform": {"src": "a.*", "dest": "b.{{wildcard(1)}}"}},
    {"name": "S", "subjects": ["a"], "republish": {"src": "a", "dest": "b"}},
    {"name": "S", "discard": "NEW"},
    {"name": "a\0b", "storage": "memory"},
    {"NAME": "S"},
]

BAD: list[tuple[dict[str, Any], str, int, str, str]] = [
    ({}, "S-NAME-MISSING", 10056, "name", "needs a name"),
    ({"name": "a/b"}, "S-PATHSEP", 10128, "name", "path separator"),
    ({"name": "a b"}, "S-NAME", 10052, "name", "has the character ' '"),
    ({"name": "x" * 256}, "S-NAME-LEN", 10052, "name", "255 bytes"),
    ({"name": "a\0b"}, "S-NAME-FOLDER", 10049, "name", "has a NUL"),
    ({"name": "S", "sealed": True}, "S-SEALED-CREATE", 10052, "sealed", "cannot be sealed"),
    ({"name": "S", "mirror_direct": True}, "S-MIRROR-DIRECT", 10052, "mirror_direct", "mirror"),
    ({"name": "S", "description": "x" * 4097}, "S-DESC-LEN", 10052, "description", "4096"),
    ({"name": "S", "metadata": {"a": "x" * 131072}}, "S-META-LEN", 10052, "metadata", "128 KiB"),
    ({"name": "S", "num_replicas": 6}, "S-REPL-MAX", 10052, "num_replicas", "more than 5"),
    ({"name": "S", "num_replicas": -1}, "S-REPL-NEG", 10133, "num_replicas", "negative"),
    ({"name": "S", "max_age": -1}, "S-AGE-NEG", 10052, "max_age", "negative"),
    ({"name": "S", "max_age": 5}, "S-AGE-MIN", 10052, "max_age", "5 ns is below 100 ms"),
    ({"name": "S", "duplicate_window": -1}, "S-DUP-NEG", 10052, "duplicate_window", "negative"),
    (
        {"name": "S", "max_age": SECOND, "duplicate_window": 2 * SECOND},
        "S-DUP-AGE",
        10052,
        "duplicate_window",
        "longer than max_age",
    ),
    ({"name": "S", "duplicate_window": 7}, "S-DUP-MIN", 10052, "duplicate_window", "7 ns"),
    (
        {"name": "S", "deny_purge": True, "allow_rollup_hdrs": True},
        "S-ROLLUP-PURGE",
        10052,
        "allow_rollup_hdrs",
        "exclude each other",
    ),
    (
        {"name": "S", "discard_new_per_subject": True},
        "S-DNPS-DISCARD",
        10052,
        "discard_new_per_subject",
        "needs discard new",
    ),
    (
        {"name": "S", "discard_new_per_subject": True, "discard": "new"},
        "S-DNPS-MAX",
        10052,
        "discard_new_per_subject",
        "max_msgs_per_subject",
    ),
    (
        {"name": "S", "subject_delete_marker_ttl": 5},
        "S-SDM-MIN",
        10052,
        "subject_delete_marker_ttl",
        "below one second",
    ),
    (
        {"name": "S", "allow_msg_counter": True, "retention": "interest"},
        "S-CTR-RETENTION",
        10052,
        "retention",
        "retention limits",
    ),
    (
        {"name": "S", "persist_mode": "async", "storage": "memory"},
        "S-ASYNC-STORAGE",
        10052,
        "persist_mode",
        "file storage",
    ),
    (
        {"name": "S", "mirror": {"name": "O"}, "subjects": ["a"]},
        "S-MIRROR-SUBJECTS",
        10034,
        "subjects",
        "a mirror cannot have subjects",
    ),
    ({"name": "S", "mirror": {"name": "a.b"}}, "S-MIRROR-NAME", 10142, "mirror.name", "'.'"),
    ({"name": "S", "mirror": {"name": "S"}}, "S-CYCLE", 10052, "mirror.name", "copies itself"),
    ({"name": "S", "sources": [{}]}, "S-SOURCE-NAME", 10141, "sources[0].name", "is empty"),
    ({"name": "S", "sources": [None]}, "S-SOURCE-NAME", 10141, "sources[0].name", "is empty"),
    (
        {"name": "S", "sources": [{"name": "O"}, {"name": "O", "opt_start_seq": 5}]},
        "S-SOURCE-DUP",
        10140,
        "sources[1].name",
        "occurs twice",
    ),
    (
        {"name": "S", "sources": [{"name": "O", "external": {"api": "$JS.API", "deliver": ""}}]},
        "S-EXT-API-OVERLAP",
        10021,
        "sources[0].external.api",
        "own",
    ),
    ({"name": "S", "subjects": ["a..b"]}, "S-SUBJ-INVALID", 10052, "subjects[0]", "'a..b' is not"),
    ({"name": "S", "subjects": [">"]}, "S-SUBJ-ALL-NOACK", 10052, "subjects[0]", "needs no_ack"),
    ({"name": "S", "subjects": ["*.b"]}, "S-SUBJ-JSAPI", 10052, "subjects[0]", "JetStream API"),
    ({"name": "S", "subjects": ["$SYS.x"]}, "S-SUBJ-SYS", 10052, "subjects[0]", "system"),
    (
        {"name": "S", "subjects": ["z", "a.*", "a.b"]},
        "S-SUBJ-SELF",
        10052,
        "subjects[1]",
        "'a.*' can meet 'a.b'",
    ),
    (
        {"name": "S", "subject_transform": {"src": "a.*", "dest": "b.{{wildcard(2)}}"}},
        "S-TR-DEST",
        10156,
        "subject_transform.dest",
        "more wildcards than the 1",
    ),
    (
        {"name": "S", "subjects": ["a.>"], "republish": {"src": "a.x", "dest": "a.y"}},
        "S-REPUB-CYCLE",
        10052,
        "republish.dest",
        "'a.>'",
    ),
    (
        {"name": "S", "placement": {"preferred": "n1"}},
        "S-PLACE-PREFERRED",
        10052,
        "placement.preferred",
        "step down",
    ),
    ({"name": "S", "max_mgs": 5}, "R-UNKNOWN", 10025, "max_mgs", "no such setting"),
    ({"name": "S", "max_msgs": "5"}, "R-JSON", 10025, "max_msgs", "expected a whole number"),
    ({"name": "S", "retention": None}, "R-JSON", 10025, "retention", "got null"),
    ({"name": "S", "storage": "disk"}, "R-JSON", 10025, "storage", "one of file, memory"),
    ({"name": "S", "max_msg_size": 2**31}, "R-JSON", 10025, "max_msg_size", "32 bits"),
    ({"name": "S", "subjects": "a"}, "R-JSON", 10025, "subjects", "expected a list"),
    ({"name": "S", "mirror": "O"}, "R-JSON", 10025, "mirror", "expected an object"),
]


def first(problems: list[Problem]) -> Problem:
    return next(problem for problem in problems if not problem.needs_server)


@pytest.mark.parametrize("config", GOOD, ids=str)
def test_a_good_config_has_no_problem(config: dict[str, Any]) -> None:
    assert validate_stream(config) == []


@pytest.mark.parametrize(
    ("config", "rule", "code", "path", "words"), BAD, ids=lambda one: str(one)[:40]
)
def test_each_rule_reports_code_position_and_reason(
    config: dict[str, Any], rule: str, code: int, path: str, words: str
) -> None:
    problem = first(validate_stream(config))
    assert (problem.rule, problem.err_code, problem.path) == (rule, code, path)
    assert words in problem.message
    assert problem.message.endswith(".")
    assert str(problem).startswith(f"{path}: ")
    assert f"({code})" in str(problem)


def test_hints_name_similar_words() -> None:
    assert first(validate_stream({"name": "S", "max_mgs": 5})).hint == "Did you mean 'max_msgs'?"
    assert first(validate_stream({"name": "S", "storage": "fil"})).hint == "Did you mean 'file'?"
    assert first(validate_stream({"name": "S", "max_age": "1h30m"})).hint == "Write 5400000000000."
    assert first(validate_stream({"name": "S", "max_msgs": "5"})).hint == "Write 5 without quotes."


def test_all_problems_come_at_once_in_the_order_of_the_server() -> None:
    config = {"name": "S", "max_mgs": 1, "max_age": 5, "subjects": ["a", "a"], "num_replicas": 9}
    rules = [problem.rule for problem in validate_stream(config)]
    assert rules == ["R-UNKNOWN", "S-REPL-MAX", "S-AGE-MIN", "S-SUBJ-SELF", "S-REPL-STANDALONE"]


def test_problems_that_only_the_server_can_decide_are_marked() -> None:
    problems = validate_stream(
        {"name": "S", "num_replicas": 3, "max_bytes": 10, "placement": {"tags": ["x"]}}
    )
    assert {problem.rule for problem in problems} == {
        "S-REPL-STANDALONE",
        "S-NO-PEERS",
        "S-ACC-STORAGE",
    }
    assert all(problem.needs_server for problem in problems)


def test_a_cluster_refuses_counters_with_a_marker() -> None:
    config = {"name": "S", "allow_msg_counter": True, "subject_delete_marker_ttl": SECOND}
    (note,) = validate_stream(config)
    assert (note.rule, note.err_code, note.needs_server) == ("S-CTR-MARKER", 10052, True)
    assert validate_stream({**config, "allow_msg_counter": False}) == []


# What 2.11 does not look at before it copies: transforms of a source in another account.
EXTERNAL: dict[str, Any] = {
    "name": "S",
    "sources": [
        {
            "name": "O",
            "external": {"api": "$JS.X.API"},
            "subject_transforms": [
                {"src": "a..b", "dest": "c"},
                {"src": "d", "dest": ".e"},
                {"src": "f"},
            ],
        }
    ],
}


# Among them is a function that the same servers refuse wherever they look.
EXTERNAL_LEFT: dict[str, Any] = {
    "name": "S",
    "sources": [
        {
            "name": "O",
            "external": {"api": "$JS.X.API"},
            "subject_transforms": [{"src": "a.*", "dest": "{{left(1,1)}}"}],
        }
    ],
}

SCHEDULES = {"name": "S", "allow_msg_schedules": True, "discard": "new"}
COUNTED = {"name": "S", "allow_msg_schedules": True, "allow_msg_counter": True}
MARKED = {"name": "S", "subject_delete_marker_ttl": SECOND}
MAPPED = {"name": "S", "subjects": ["a.*"], "subject_transform": {"src": "a.*", "dest": "b.x"}}
AGAIN = {**MAPPED, "republish": {"src": ">", "dest": ">"}}
MISMAPPED = {**AGAIN, "subject_transform": {"src": "a..", "dest": "b"}}


@pytest.mark.parametrize(
    ("config", "server", "codes"),
    [
        ({"name": "S", "bogus": 1}, "2.11", []),
        ({"name": "S", "bogus": 1}, "2.12", [10025]),
        (EXTERNAL, "2.12.4", [10049, 10049]),
        (EXTERNAL, "2.12.5", [10145, 10146]),
        (EXTERNAL_LEFT, "2.12.4", []),
        (EXTERNAL_LEFT, "2.12.5", [10146]),
        ({"name": "S", "allow_batched": True}, "2.12.8", [10025]),
        ({"name": "S", "allow_batched": True}, "2.14", []),
        ({"name": "S", "allow_msg_counter": True, "discard": "new"}, "2.12", [10052]),
        (SCHEDULES, "2.12.9", []),
        (SCHEDULES, "2.12", [10052]),
        (SCHEDULES, "2.14.1", []),
        (SCHEDULES, "2.14.2", [10052]),
        (COUNTED, "2.12.9", []),
        (COUNTED, "2.14.1", []),
        (COUNTED, "2.14.2", [10052]),
        (MARKED, "2.11.1", [10052]),
        (MARKED, "2.11.2", []),
        ({"name": "S", "subjects": ["*.b"]}, "2.11.1", []),
        ({"name": "S", "subjects": ["*.b"]}, "2.11.2", [10052, 10052]),
        ({"name": "S", "subjects": ["$SYS.a", "$JS.a"]}, "2.11.1", [10052, 10052]),
        (AGAIN, "2.11.10", [10052]),
        (AGAIN, "2.11.11", []),
        (AGAIN, "2.12.1", [10052]),
        (AGAIN, "2.12.2", []),
        (MISMAPPED, "2.12.1", [10052, 10155]),
        (MISMAPPED, "2.12.2", [10155, 10052]),
        ({"name": "S", "sources": [{"name": "a/b"}]}, "2.12.7", []),
        ({"name": "S", "sources": [{"name": "a/b"}]}, "2.12.8", [10141]),
        ({"name": "S", "mirror": {"name": "a\\b"}}, "2.12.7", []),
        ({"name": "S", "mirror": {"name": "a\\b"}}, "2.12.8", [10142]),
        (
            {"name": "S", "subject_transform": {"src": "*", "dest": "{{partition(2147483648,1)}}"}},
            "2.11",
            [],
        ),
        (
            {"name": "S", "subject_transform": {"src": "*", "dest": "{{partition(2147483648,1)}}"}},
            "2.12",
            [10156],
        ),
        (
            {"name": "S", "subject_transform": {"src": "*", "dest": "{{split(1,2147483648)}}"}},
            "2.11.7",
            [],
        ),
        (
            {"name": "S", "subject_transform": {"src": "a.*", "dest": "{{left(1,1)}}"}},
            "2.14",
            [10156],
        ),
        ({"name": "S", "subject_transform": {"src": "a.*", "dest": "{{left(1,1)}}"}}, "2.15", []),
    ],
    ids=str,
)
def test_rules_follow_the_version(config: dict[str, Any], server: str, codes: list[int]) -> None:
    assert [problem.err_code for problem in validate_stream(config, server)] == codes


@pytest.mark.parametrize(
    ("dest", "rules"),
    [
        ("b.x", []),
        ("{{random(5)}}", []),
        ("b.$1", ["S-REPUB-TR"]),
        ("a.x", ["S-REPUB-CYCLE"]),
        ("a.$1", ["S-REPUB-CYCLE", "S-REPUB-TR"]),
    ],
)
def test_what_a_republish_follows_must_lead_to_itself(dest: str, rules: list[str]) -> None:
    config = {**AGAIN, "subject_transform": {"src": "a.*", "dest": dest}}
    problems = validate_stream(config)
    assert [problem.rule for problem in problems] == rules


def test_too_new_settings_say_which_server_they_need() -> None:
    problem = first(validate_stream({"name": "S", "allow_batched": True}, "2.12"))
    assert (problem.rule, problem.message) == ("R-TOO-NEW", "allow_batched needs server 2.14.")


def test_newer_servers_undo_escapes_in_times() -> None:
    start = '"2020-01-01T00:00:0\\u0030Z"'
    text = f'{{"name": "S", "mirror": {{"name": "O", "opt_start_time": {start}}}}}'
    assert first(validate_stream(text, "2.14.5")).path == "mirror.opt_start_time"
    assert validate_stream(text, "2.14.6") == []


def test_pedantic_requests_refuse_silent_changes() -> None:
    config = {"name": "S", "max_msgs": -5}
    assert validate_stream(config) == []
    assert first(validate_stream(config, pedantic=True)).err_code == 10157
    assert first(validate_stream({**config, "pedantic": True})).err_code == 10157


def test_models_and_text_are_validated_alike() -> None:
    for config in (
        StreamConfig(name="S", subjects=["a", "a"]),
        '{"name":"S","subjects":["a","a"]}',
    ):
        assert first(validate_stream(config)).rule == "S-SUBJ-SELF"


def test_text_that_is_not_json_is_a_problem() -> None:
    for text in ("{", "[]", b"\xff", "5", '{"a":' * 100_000, "\ufeff{}", '{"name": "S"} x'):
        problem = first(validate_stream(text))
        assert (problem.rule, problem.err_code) == ("R-JSON", 10025)
    assert first(validate_stream("{\n  name")).message.startswith(
        "line 2, column 3: expected a key"
    )


@pytest.mark.parametrize(("length", "fits"), [(1365, True), (1366, False)])
def test_each_byte_that_is_no_utf8_counts_as_a_letter(length: int, fits: bool) -> None:
    broken = (b"\xe2\x80" * length)[:length]
    problems = validate_stream(b'{"name": "S", "description": "' + broken + b'"}')
    assert [problem.rule for problem in problems] == ([] if fits else ["S-DESC-LEN"])


@pytest.mark.parametrize(("text", "codes"), TEXTS)
def test_text_is_read_as_the_server_reads_it(text: str, codes: list[int]) -> None:
    problems = validate_stream(text)
    assert [problem.err_code for problem in problems if not problem.needs_server] == codes


@pytest.mark.parametrize(
    ("server", "words"), [("x", "not a server version"), ("2.10", "oldest is 2.11")]
)
def test_unusable_versions_are_refused(server: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        validate_stream({"name": "S"}, server)
