"""Files of configs: their contents, and the location of each problem."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import goldens
import pytest

from tests.huge import huge
from twinstream.models import FileConfigs, load_configs


def load(text: str | bytes, name: str = "x.yaml", **options: Any) -> FileConfigs:
    data = text if isinstance(text, bytes) else text.encode()
    return load_configs(name, text=data, **options)


def lines(text: str | bytes, name: str = "x.yaml", **options: Any) -> list[str]:
    return [str(problem) for problem in load(text, name, **options).problems]


def test_faults_stand_where_they_are_in_yaml() -> None:
    text = "name: S\nmax_mgs: 5\nmax_age: 30\nsubjects:\n  - a.*\n  - a.b\n"
    assert lines(text) == [
        "x.yaml:2:1: max_mgs: there is no such setting. (10025) Did you mean 'max_msgs'?",
        "x.yaml:3:10: max_age: a max_age of 30 ns is below 100 ms. (10052) "
        "Durations are in nanoseconds; 100 ms is 100000000.",
        "x.yaml:5:5: subjects[0]: 'a.*' can meet 'a.b'. (10052) Make the subjects disjoint.",
    ]


@pytest.mark.parametrize(
    ("number", "read"),
    [("010", "8"), ("-0_17", "-15"), ("1:30", "90"), ("+1:00:00", "3600"), ("1:30.5", "90.5")],
)
def test_numbers_that_yaml_reads_in_another_base_are_reported(number: str, read: str) -> None:
    text = f"name: S\nsubjects: [s]\nmax_msgs: {number}\n"
    (warning, *_) = load(text).warnings
    assert str(warning).startswith(f"x.yaml:3:11: config: YAML reads '{number}' as {read}.")


@pytest.mark.parametrize("number", ["0", "10", "0x10", "0b11", "1_000", "0.5", "-1", "00", "1e3"])
def test_other_numbers_are_as_they_look(number: str) -> None:
    text = f"name: S\nsubjects: [s]\nmax_bytes: {number}\n"
    assert [one.problem.rule for one in load(text).warnings if "YAML" in one.problem.rule] == []


def test_faults_stand_where_they_are_in_json() -> None:
    text = '{\n  "name": "S",\n  "mirror": {"name": "a.b"},\n  "storage": "disk"\n}\n'
    first, second = lines(text, "x.json")
    assert first == "x.json:4:14: storage: expected one of file, memory, got 'disk'. (10025)"
    assert second.startswith("x.json:3:22: mirror.name: the name of the origin has the character")


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("name", ["a.yaml", "a.json"])
def test_lines_are_counted_as_editors_do(name: str, end: str) -> None:
    """YAML itself also treats U+0085 and U+2028 as ends of lines."""
    text = '{ "description": "\x85 \u2028",@  "name": "S", "subjects": ["a"],@  "max_age": 5 }'
    [found] = load_configs(name, text=text.replace("@", end).encode()).errors
    assert (found.line, found.column) == (3, 14)
    [broken] = load_configs(name, text=text.replace("@", end).replace('["', '"').encode()).errors
    assert broken.line == 2


def test_missing_member_is_reported_at_its_parent() -> None:
    assert lines("\nsubjects: [a]\n")[0].startswith("x.yaml:2:1: name: a stream needs a name")


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("name: S\nsubjects: [a]\n", ["stream"]),
        ("durable_name: C\nack_policy: explicit\n", ["consumer"]),
        ("- {name: S, subjects: [a]}\n- {durable_name: C}\n", ["stream", "consumer"]),
        ("name: S\nsubjects: [a]\n---\ndurable_name: C\n", ["stream", "consumer"]),
        (
            "streams:\n- name: S\nconsumers:\n- stream_name: S\n  config: {name: C}\n",
            ["stream", "consumer"],
        ),
        ("stream_name: S\nconfig: {name: C}\n", ["consumer"]),
        ("config: {name: S, subjects: [a]}\nstate: {}\n", ["stream"]),
        ("config: {name: S}\nstate: {}\n", ["stream"]),
        (
            "config: {name: S}\nstate: {}\nconsumers:\n"
            "- {stream_name: S, created: x, config: {name: C}}\n",
            ["stream", "consumer"],
        ),
        ("type: x\ntotal: 1\nstreams: [{config: {name: S}, state: {}}]\n", ["stream"]),
        ("streams: null\nconsumers: [{name: C}]\n", ["consumer"]),
    ],
)
def test_kinds_are_distinguished(text: str, kinds: list[str]) -> None:
    found = load(text)
    assert found.problems == []
    assert [config.kind for config in found.configs] == kinds


@pytest.mark.parametrize("version", sorted(one.name for one in goldens.FOLDER.iterdir()))
def test_what_a_server_answered_is_fine(version: str) -> None:
    """The texts are those of `nats stream info --json` and `nats consumer info --json`."""
    paths = sorted((goldens.FOLDER / version).glob("*/*-info*.json"))
    paths = [path for path in paths if "config" in goldens.load(path)]
    found = load_configs(paths, server=version)
    assert [str(error) for error in found.errors] == []
    assert len(found.configs) == len(paths) > 30
    assert {one.kind for one in found.configs} == {"stream", "consumer"}


def test_an_answer_may_be_of_a_sealed_stream() -> None:
    sealed = "name: S\nsubjects: [a]\nsealed: true\n"
    assert "10052" in lines(sealed)[0]
    assert lines("state: {}\nconfig: {name: S, subjects: [a], sealed: true}\n") == []


def test_a_bare_name_could_be_either() -> None:
    assert "cannot tell whether" in lines("name: X\n")[0]
    assert load("name: X\n", kind="stream").configs[0].kind == "stream"
    assert load("name: X\n", kind="consumer").configs[0].kind == "consumer"


def test_consumers_are_validated_with_their_stream() -> None:
    text = (
        "streams:\n- {name: W, retention: workqueue}\n"
        "consumers:\n- stream_name: W\n  config:\n    durable_name: C\n    ack_policy: all\n"
    )
    assert [line.partition(" ")[0] for line in lines(text)] == ["x.yaml:7:17:"]


def test_several_files_know_each_other(tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text('{"name": "W", "retention": "workqueue"}')
    request = {"stream_name": "W", "config": {"durable_name": "C", "ack_policy": "all"}}
    (tmp_path / "c.json").write_text(json.dumps(request))
    found = load_configs([tmp_path / "c.json", tmp_path / "s.json"])
    assert [problem.problem.rule for problem in found.problems] == ["C-WQ-EXPLICIT"]
    assert [(config.kind, config.name, config.stream_name) for config in found.configs] == [
        ("consumer", "C", "W"),
        ("stream", "W", "W"),
    ]


def test_notes_for_the_server_are_no_errors() -> None:
    found = load("name: S\nsubjects: [a]\nnum_replicas: 3\n")
    assert [problem.problem.needs_server for problem in found.problems] == [True]
    assert found.errors == []


def test_oddities_are_warnings_with_a_position() -> None:
    found = load("name: S\nsubjects: [a]\nmax_msgs: 5\nduplicate_window: 3600000000000\n")
    assert found.problems == []
    [warning] = found.warnings
    assert str(warning).startswith("x.yaml:4:19: duplicate_window: message ids are kept in memory")


def test_times_keep_their_text() -> None:
    found = load("name: C\nack_policy: none\nopt_start_time: 2026-01-31T08:00:00.123456789Z\n")
    assert found.configs[0].members["opt_start_time"] == "2026-01-31T08:00:00.123456789Z"


def test_the_version_reaches_the_rules() -> None:
    assert load("name: S\nsubjects: [a]\nallow_batched: true\n", server="2.14").errors == []
    assert len(load("name: S\nsubjects: [a]\nallow_batched: true\n", server="2.12").errors) == 1


@pytest.mark.parametrize(
    ("text", "name", "start"),
    [
        ("", "x.json", "x.json:1:1: config: the text is empty."),
        ("", "x.yaml", "x.yaml:1:1: config: the file is empty."),
        ("{", "x.json", "x.json:1:2: config: expected a key"),
        (
            "{'a': 1}",
            "x.json",
            "x.json:1:2: config: expected a key in double quotes here. JSON takes",
        ),
        ('{"a": 1,}', "x.json", "x.json:1:9: config: expected a key in double quotes here. Remove"),
        ('{"a": 1} x', "x.json", "x.json:1:10: config: there is more"),
        ('{"a" 1}', "x.json", "x.json:1:6: config: expected : after the key."),
        ('{"a": 1 "b"}', "x.json", "x.json:1:9: config: expected , or }"),
        ('["a" "b"]', "x.json", "x.json:1:6: config: expected , or ]"),
        ('{"a": "\n"}', "x.json", "x.json:1:8: config: the text in quotes is broken"),
        ('{"a": nul}', "x.json", "x.json:1:7: config: expected a value, got 'n'."),
        ('{"a": // b\n1}', "x.json", "x.json:1:7: config: expected a value, got '/'. JSON has no"),
        ('{"a": 01}', "x.json", "x.json:1:8: config: expected , or }"),
        ('{"a": ' + "1" * 500 + "}", "x.json", "x.json:1:7: config: a number of 500 digits"),
        ("[" * 5000, "x.json", "x.json:1:102: config: nested more than 100 levels deep."),
        ("5", "x.json", "x.json:1:1: config: expected a stream or consumer config here."),
        ("[1]", "x.json", "x.json:1:2: [0]: expected a stream or consumer config here."),
        (b'{"a":\n "\xff"}', "x.json", "x.json:2:3: config: not UTF-8 here."),
        (b"name: S\nx: \xff\n", "x.yaml", "x.yaml:2:4: config: not UTF-8 here."),
        ("name: [", "x.yaml", "x.yaml:1:8: config: not YAML:"),
        ("a: *b\n", "x.yaml", "x.yaml:1:4: config: not YAML: found undefined alias"),
        ("a: &a [*a]\n", "x.yaml", "x.yaml:1:4: config: nested more than 100 levels"),
        ("? [a]\n: b\n", "x.yaml", "x.yaml:1:3: config: a key must be text."),
        ("a: !!python/object:os.system x\n", "x.yaml", "x.yaml:1:4: config: not YAML: could not"),
        ("a: " + "1" * 5000, "x.yaml", "x.yaml:1:4: config: '1111111111"),
        ("a: !!bool maybe\n", "x.yaml", "x.yaml:1:4: config: 'maybe' is not a !!bool."),
        ("a: !!int\n", "x.yaml", "x.yaml:1:4: config: '' is not a !!int."),
        ("a: 1" + ":59" * 500 + ".5\n", "x.yaml", "x.yaml:1:4: config: '1:59:59"),
        ("[" * 50_000, "x.yaml", "x.yaml:1:1: config: nested too deeply."),
        ("\x00", "x.yaml", "x.yaml:1:1: config: not YAML:"),
    ],
    ids=lambda one: repr(one)[:30],
)
def test_bad_texts_are_problems_with_a_position(text: str | bytes, name: str, start: str) -> None:
    found = lines(text, name)
    assert found
    assert found[0].startswith(start)


def test_empty_documents_are_passed_over() -> None:
    found = load("---\nname: S\nsubjects: [a]\n---\n---\n")
    assert (found.problems, len(found.configs)) == ([], 1)
    assert lines("---\n") == ["x.yaml:1:1: config: the file is empty."]


def test_texts_without_quotes_are_not_written_out() -> None:
    found = lines("name: S\nsubjects: [a]\nmetadata: {v: 1.10, w: 010, x: yes}\n")
    assert [line.endswith("Put it into quotes.") for line in found] == [True] * 3


def test_aliases_cannot_blow_up() -> None:
    levels = "\n".join(f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]" for n in range(1, 9))
    found = lines(f"l0: &l0 [1]\n{levels}\n")
    assert "more than 100000 values" in found[0]
    text = "a: &a {? " + "k" * 1_000_000 + "\n: 1}\nb: [" + ",".join(["*a"] * 20_000) + "]\n"
    assert "repeat long keys" in lines(text)[0]


def test_merges_cannot_blow_up() -> None:
    # Seven levels took 12 s and 1.6 GB, and each further one nine times as much.
    levels = "\n".join(
        f"l{n}: &l{n} {{<<: [{', '.join([f'*l{n - 1}'] * 9)}]}}" for n in range(1, 30)
    )
    found = load("- {name: S, max_msgs: 5, subjects: [a], metadata: &l0 {k: v}}\n")
    assert found.problems == []
    text = f"base: &l0 {{k: v, m: w}}\n{levels}\nname: S\nsubjects: [a]\nmetadata: *l29\n"
    found = load(text)
    assert found.configs[0].members["metadata"] == {"k": "v", "m": "w"}
    wide = "a: &a {" + ",".join(f"k{n}: 1" for n in range(1000)) + "}\n"
    found = load(wide + "b: {<<: [" + ",".join(["*a"] * 1000) + "]}\n")
    assert "more than 100000 values" in found.problems[0].problem.message
    assert "nested too deeply" in lines("a: &a {<<: *a}\n")[0]


def test_what_is_merged_is_a_mapping() -> None:
    assert lines("a: {<<: 5}\n") == [
        "x.yaml:1:9: config: << merges a mapping, or a list of mappings."
    ]
    text = "- &a {name: A, subjects: [a]}\n- &b {name: B, max_msgs: 5}\n- {<<: [*b, *a]}\n"
    assert load(text).configs[2].members == {"name": "B", "subjects": ["a"], "max_msgs": 5}


@pytest.mark.parametrize("name", ["x.json", "x.yaml"])
def test_keys_that_stand_twice_are_problems(name: str) -> None:
    found = lines('{"name": "S",\n "subjects": ["a"], "name": "T"}', name)
    assert found == [f"{name}:2:21: config: the key 'name' occurs twice. Keep one."]


def test_merged_keys_may_be_overridden() -> None:
    text = "- &base {name: S, subjects: [a]}\n- <<: *base\n  name: T\n  subjects: [b]\n"
    found = load(text)
    assert found.problems == []
    assert [config.name for config in found.configs] == ["S", "T"]


def test_what_was_merged_may_be_used_again() -> None:
    text = b"""\
- {name: A, subjects: [a], max_msgs: 5, metadata: &one {k: v}}
- {name: B, subjects: [b], max_msgs: 5, metadata: &two {<<: *one, k: w}}
- {name: C, subjects: [c], max_msgs: 5, metadata: *two}
"""
    found = load_configs("a.yaml", text=text)
    assert found.problems == []
    assert [one.members["metadata"]["k"] for one in found.configs] == ["v", "w", "w"]


def test_what_was_written_where_it_was_merged_may_be_used_again() -> None:
    text = b"""\
- {name: A, subjects: [a], metadata: &one {k: v}}
- {name: B, subjects: [b], metadata: {<<: &two {<<: *one, k: w}}}
- {name: C, subjects: [c], metadata: *two}
"""
    found = load_configs("a.yaml", text=text)
    assert found.problems == []
    assert [one.members["metadata"]["k"] for one in found.configs] == ["v", "w", "w"]


def test_the_stream_of_a_consumer_is_named_around_its_settings() -> None:
    hint = "Write stream_name: with the name, and config: around the settings."
    for key in ("stream", "stream_name"):
        (bare,) = lines(f"durable_name: C\n{key}: S\nmax_deliver: 2\n")
        assert bare == f"x.yaml:2:1: {key}: there is no such setting. (10025) {hint}"
    (around,) = lines("stream: S\nconfig: {durable_name: C, max_deliver: 2}\n")
    assert around == "x.yaml:1:1: stream: there is no such setting. Did you mean 'stream_name'?"
    (older,) = load("durable_name: C\nmax_waitin: 2\nmax_deliver: 2\n", server="2.11").warnings[:1]
    assert (older.line, older.column) == (2, 1)


def test_settings_next_to_the_config_of_a_request_are_reported() -> None:
    text = "stream_name: S\nconfig: {durable_name: C}\nfilter_subject: a\nactoin: create\n"
    assert lines(text) == [
        "x.yaml:3:1: filter_subject: there is no such setting. (10025) Move it into config.",
        "x.yaml:4:1: actoin: there is no such setting. (10025) Did you mean 'action'?",
    ]
    older = load(text, server="2.11")
    assert older.problems == []
    assert str(older.warnings[0]) == (
        "x.yaml:3:1: filter_subject: there is no such setting; it is dropped. Move it into config."
    )
    (stream,) = lines("config: {name: S, subjects: [a]}\nmax_age: 5\n")
    assert stream.startswith("x.yaml:2:1: max_age: there is no such setting.")
    assert lines(text.replace("filter_subject: a\nactoin", "action")) == []
    assert lines("- " + text.replace("\n", "\n  ").rstrip())[0].startswith("x.yaml:3:3: filter_")


def test_no_other_keys_next_to_the_lists_of_streams_and_consumers() -> None:
    text = "version: 1\nstreams: [{name: S, max_age: 5}]\nmetadata: {}\n"
    hint = "Move it into one of their items."
    assert lines(text) == [
        f"x.yaml:1:1: version: settings next to lists of configs are not allowed. {hint}",
        f"x.yaml:3:1: metadata: settings next to lists of configs are not allowed. {hint}",
        lines("streams: [{name: S, max_age: 5}]\n")[0].replace("x.yaml:1:", "x.yaml:2:"),
    ]
    assert [one.kind for one in load(text, kind="consumer").configs] == ["stream"]
    (nested,) = lines("name: S\nsubjects: [a]\nconsumers: [{durable_name: C}]\n")
    assert nested.startswith("x.yaml:3:1: consumers: there is no such setting. (10025) Put the ")


def test_a_request_may_say_that_it_is_pedantic() -> None:
    config = '"config": {"durable_name": "C", "ack_policy": "none", "max_waiting": -1}'
    assert lines(f'{{"stream_name": "S", {config}}}', "x.json") == []
    request = f'{{"stream_name": "S", "pedantic": true, {config}}}'
    assert lines(request, "x.json") == lines(request, "x.json", pedantic=True) != []
    (broken,) = lines(request.replace("true", '"yes"'), "x.json")
    assert broken.startswith("x.json:1:34: pedantic: expected")


def test_a_byte_order_mark_is_not_json() -> None:
    (found,) = lines(b'\xef\xbb\xbf{"name": "S"}', "x.json")
    assert found.endswith("Save the file as UTF-8 without a byte order mark.")


def test_files_that_cannot_be_read_are_problems(tmp_path: Path) -> None:
    found = load_configs([tmp_path / "none.yaml", tmp_path])
    assert "cannot read the file: No such file" in str(found.problems[0])
    assert "cannot read the file: Is a directory" in str(found.problems[1])


def test_the_form_is_found_without_a_suffix() -> None:
    assert load('{"name": "S", "subjects": ["a"]}', "-").problems == []
    assert load("name: S\nsubjects: [a]\n", "-").problems == []


def test_a_huge_file_is_refused_before_it_is_read_whole(tmp_path: Path) -> None:
    (problem,) = load_configs(huge(tmp_path / "s.json")).problems
    assert "cannot read the file: it has more than 64 MiB" in str(problem)
