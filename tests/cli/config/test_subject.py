"""`twinstream subject`."""

from __future__ import annotations

from tests.cli.output import Run, json_lines


def test_transforms_are_foretold(run: Run) -> None:
    arguments = ("subject", "transform", "a.*", "b.{{splitfromleft(1,2)}}", "a.xyz", "c")
    shown = run(*arguments)
    assert shown.exit_code == 0, shown.stderr
    assert "b.xy.z" in shown.stdout
    assert "(does not match)" in shown.stdout
    assert json_lines(run(*arguments, "--json")) == [
        {"from": "a.xyz", "to": "b.xy.z"},
        {"from": "c", "to": None},
    ]


def test_a_transform_that_the_server_refuses(run: Run) -> None:
    refused = run("subject", "transform", "a.*", "b.$2", "a.x")
    assert refused.exit_code == 1
    assert "names more wildcards" in refused.stderr
    old = run("subject", "transform", "*", "{{left(1,2)}}", "abc", "--server-version", "2.12")
    assert old.exit_code == 1
    assert "2.15" in old.stderr
    unread = run("subject", "transform", "*", "a", "abc", "--server-version", "new")
    assert unread.exit_code == 2
    assert "'new'" in unread.stderr


def test_keys_get_the_partitions_of_the_server(run: Run) -> None:
    shown = run("subject", "partition", "10", "foobar", "a")
    assert shown.exit_code == 0, shown.stderr
    assert json_lines(run("subject", "partition", "10", "foobar", "a", "--json")) == [
        {"key": "foobar", "partition": 0xBF9CF968 % 10},
        {"key": "a", "partition": 0xE40C292C % 10},
    ]
    assert run("subject", "partition", "0", "a").exit_code == 2
