"""`twinstream kv`."""

from __future__ import annotations

import itertools
import os
import pty
import subprocess
import tty

import pytest

import js_sync
from tests.cli import terminal
from tests.cli.output import Run, json_lines
from tests.cli.terminal import COMMAND, steady
from tests.inside import session_of
from tests.unhurried import UNHURRIED
from twinstream.models import KeyValueConfig
from twinstream.testing import NatsServer

_numbers = itertools.count(1)


@pytest.fixture
def bucket(jet: js_sync.JetStream) -> str:
    """A new bucket with a history of 3."""
    name = f"CLIKV{next(_numbers)}"
    jet.create_key_value(KeyValueConfig(bucket=name, history=3, storage="memory"))
    return name


def test_values_go_in_and_out(run: Run, bucket: str) -> None:
    assert json_lines(run("kv", "put", bucket, "a.b", "tea", "--json")) == [
        {"bucket": bucket, "key": "a.b", "revision": 1}
    ]
    assert run("kv", "put", bucket, "bytes", input=b"\0\xff").exit_code == 0
    assert run("kv", "get", bucket, "a.b").stdout == "tea"
    assert run("kv", "get", bucket, "a.b", "--raw").stdout == "tea"
    assert run("kv", "get", bucket, "bytes", "--raw").stdout_bytes == b"\0\xff"
    assert run("kv", "get", bucket, "bytes").stdout_bytes == b"\0\xff"
    assert "2 bytes, not text: see --json" in run("kv", "history", bucket, "bytes").stdout
    (line,) = json_lines(run("kv", "get", bucket, "a.b", "--json"))
    assert (line["value"], line["revision"], line["operation"]) == ("tea", 1, "put")
    (line,) = json_lines(run("kv", "get", bucket, "bytes", "--json"))
    assert line["value_base64"] == "AP8="
    assert run("kv", "update", bucket, "a.b", "milk", "1").stdout == "a.b is at revision 3\n"
    late = run("kv", "update", bucket, "a.b", "late", "1")
    assert late.exit_code == 1
    assert "it is at 3" in late.stderr
    assert run("kv", "get", bucket, "a.b", "--revision", "1").stdout == "tea"
    assert run("kv", "create", bucket, "a.b", "x").exit_code == 1
    assert run("kv", "create", bucket, "new", "x").exit_code == 0
    assert run("kv", "put", bucket, "a..b", "x").exit_code == 1


def test_long_values_and_keys_are_printed_unchanged(run: Run, bucket: str) -> None:
    value, key = "a\tb  " + "word " * 60 + "end", "k" * 200
    assert run("kv", "put", bucket, key, value).stdout == f"{key} is at revision 1\n"
    assert run("kv", "get", bucket, key).stdout == value
    assert run("kv", "ls", bucket).stdout == f"{key}\n"
    (line,) = run("kv", "watch", bucket, "--count", "1").stdout.splitlines()
    assert line.endswith(f" 1 put {key}: {value}")


def test_a_key_without_a_value_has_an_exit_code(run: Run, bucket: str) -> None:
    for command in (("get",), ("history",), ("revert", "1", "--yes")):
        name, *rest = command
        missing = run("kv", name, bucket, "none", *rest)
        assert missing.exit_code == 3, missing.output
        assert "has no key 'none'" in missing.stderr
    run("kv", "put", bucket, "a", "1")
    assert run("kv", "del", bucket, "a", "--yes").exit_code == 0
    gone = run("kv", "get", bucket, "a", "--json")
    assert gone.exit_code == 3
    assert "KeyDeleted" in gone.stderr
    assert run("kv", "get", "NO_BUCKET", "a").exit_code == 3


def test_history_and_back(run: Run, bucket: str) -> None:
    for value in ("one", "two"):
        run("kv", "put", bucket, "a", value)
    run("kv", "del", bucket, "a", "-y")
    lines = json_lines(run("kv", "history", bucket, "a", "--json"))
    assert [(line["operation"], line.get("value")) for line in lines] == [
        ("put", "one"),
        ("put", "two"),
        ("delete", None),
    ]
    shown = run("kv", "history", bucket, "a").stdout
    assert "one" in shown
    assert "delete" in shown
    assert run("kv", "revert", bucket, "a", "1", "--yes").exit_code == 0
    assert run("kv", "get", bucket, "a").stdout == "one"


def on_terminal(server: NatsServer, *arguments: str) -> bytes:
    """Return what a command writes to a terminal."""
    ours, theirs = pty.openpty()
    tty.setraw(theirs)  # so that the terminal does not change the bytes
    command = [*COMMAND, *arguments]
    environment = os.environ | {"TWINSTREAM_URL": server.url}
    subprocess.run(command, stdout=theirs, env=environment, check=True)
    os.write(theirs, b"\0")  # so that there is something to read
    shown = os.read(ours, 10_000)
    for number in (ours, theirs):
        os.close(number)
    return shown.removesuffix(b"\0")


@pytest.mark.parametrize("value", [b"\x1b[2J", b"\xff\x1b[2J", b"a\r\n", b""], ids=repr)
def test_a_value_is_written_whole_except_to_a_terminal(
    run: Run, bucket: str, value: bytes, server: NatsServer
) -> None:
    assert run("kv", "put", bucket, "a", input=value).exit_code == 0
    assert run("kv", "get", bucket, "a").stdout_bytes == value
    shown = on_terminal(server, "kv", "get", bucket, "a")
    assert b"\x1b" not in shown
    assert shown.endswith(b"\n")
    assert on_terminal(server, "kv", "get", bucket, "a", "--raw") == value


def test_the_revision_of_a_value_is_shown_on_a_terminal(
    run: Run, bucket: str, server: NatsServer
) -> None:
    for value in ("1", "2"):
        assert run("kv", "put", bucket, "a", value).exit_code == 0
    for options, number, value in (((), 2, "2"), (("--revision", "1"), 1, "1")):
        arguments = ["kv", "get", bucket, "a", *options]
        shown = steady(terminal.on_terminal(arguments, 120, TWINSTREAM_URL=server.url).out)
        assert shown == f"{bucket}/a at revision {number}, LOCAL-TIME\n{value}\n"
        raw = terminal.on_terminal([*arguments, "--raw"], 120, TWINSTREAM_URL=server.url)
        assert raw.out == value
        assert run(*arguments).output == value


def test_details_of_keys_have_the_options_of_nats(run: Run, bucket: str) -> None:
    assert run("kv", "put", bucket, "a", "1").exit_code == 0
    long = run("kv", "ls", bucket, "-l").stdout
    assert long.startswith("a\t1\tput\t")
    for option in ("-v", "--verbose", "--verbose-keys"):
        assert run("kv", "ls", bucket, option).stdout == long
    assert run("kv", "ls", bucket, "-v", "--display-value").stdout == f"{long[:-1]}\t1\n"


@pytest.mark.parametrize("arguments", [(), ("a", "--bucket")], ids=str)
def test_a_bucket_is_deleted_only_if_the_command_names_it(
    run: Run, bucket: str, jet: js_sync.JetStream, arguments: tuple[str, ...]
) -> None:
    """A script may leave out the key because its variable is empty."""
    refused = run("kv", "del", bucket, "--yes", *arguments)
    assert refused.exit_code == 2
    assert "give a KEY, or --bucket to delete BUCKET itself" in refused.stderr
    assert jet.get_key_value(bucket)
    assert run("kv", "del", bucket, "--yes", "").exit_code == 1
    assert jet.get_key_value(bucket)


def test_errors_name_commands_and_options_of_buckets(run: Run, bucket: str) -> None:
    for command in (("ls",), ("get", "a"), ("watch",), ("edit", "--history", "2")):
        missing = run("kv", command[0], "NOPE", *command[1:])
        assert missing.exit_code == 3
        assert "`twinstream kv add` creates it" in missing.stderr
        assert "`twinstream kv ls` shows the buckets" in missing.stderr
    other = run("kv", "add", bucket, "--history", "5", "--ttl", "1h", "--compress")
    assert f"bucket {bucket} exists with other settings: " in other.stderr
    assert "; --ttl is not set, not 1h;" in other.stderr
    assert "--history is 3, not 5; " in other.stderr
    assert "`twinstream kv edit` changes settings" in other.stderr
    without = run("kv", "put", bucket, "a", "x", "--ttl", "5")
    assert "`twinstream kv edit --marker-ttl`" in without.stderr
    for text in (missing.stderr, other.stderr, without.stderr):
        for python in ("_key_value", "max_age", "max_msgs", "stream ls", "limit_marker", "wanted"):
            assert python not in text


def test_lists(run: Run, bucket: str) -> None:
    for key in ("a.x", "a.y", "b"):
        run("kv", "put", bucket, key, f"value of {key}")
    run("kv", "del", bucket, "a.y", "--yes")
    keys = json_lines(run("kv", "ls", bucket, "--json"))
    assert sorted(line["key"] for line in keys) == ["a.x", "b"]
    assert run("kv", "ls", bucket, "a.*").stdout == "a.x\n"
    (line,) = json_lines(run("kv", "ls", bucket, "a.*", "--display-value", "--json"))
    assert line["value"] == "value of a.x"
    (line,) = json_lines(run("kv", "ls", bucket, "a.*", "-l", "--json"))
    assert (line["size"], "value" in line) == (len("value of a.x"), False)
    assert "value of b" in run("kv", "ls", bucket, "--display-value").stdout
    buckets = json_lines(run("kv", "ls", "--json"))
    assert bucket in [line["config"]["bucket"] for line in buckets]
    assert bucket in run("kv", "ls").stdout
    assert bucket in run("kv", "ls", "--names").stdout.split()


def test_a_watch(run: Run, bucket: str) -> None:
    for key in ("a", "b"):
        run("kv", "put", bucket, key, "1")
    run("kv", "del", bucket, "a", "--yes")
    lines = json_lines(run("kv", "watch", bucket, "--once", "--json"))
    assert [(line["key"], line["operation"]) for line in lines] == [("b", "put"), ("a", "delete")]
    lines = json_lines(run("kv", "watch", bucket, "--history", "-n", "2", "--json"))
    assert [line["revision"] for line in lines] == [1, 2]
    lines = json_lines(run("kv", "watch", bucket, "--no-deletes", "--once", "--json"))
    assert [line["key"] for line in lines] == ["b"]
    lines = json_lines(run("kv", "watch", bucket, "--revision", "3", "-n", "1", "--json"))
    assert [line["revision"] for line in lines] == [3]
    assert "put b: 1" in run("kv", "watch", bucket, "b", "-n", "1").stdout


def test_keys_that_match_others_are_left_alone(run: Run, bucket: str, server: NatsServer) -> None:
    with js_sync.connect(server.url, **UNHURRIED) as nc:
        nc.publish(f"$KV.{bucket}.a", b"1")
        for headers in (b"", b"NATS/1.0\r\nKV-Operation: DEL\r\n\r\n"):
            subject = f"$KV.{bucket}.{'>' if headers else '*'}"
            session_of(nc).send(subject.encode(), b"", headers, b"")
        nc.flush()
    compacted = run("kv", "compact", bucket, "--yes", "--older-than", "1ms")
    assert compacted.exit_code == 0
    assert "1 have an invalid key" in compacted.stdout
    (line,) = json_lines(run("kv", "compact", bucket, "--yes", "--json"))
    assert line["skipped"] == 1
    purged = run("kv", "purge", bucket, "--all", "--yes")
    assert purged.exit_code == 1
    assert "1 message was not acknowledged: key '*' contains" in purged.stderr
    assert run("kv", "get", bucket, "a").exit_code == 3


def test_removes_many_keys(run: Run, bucket: str, jet: js_sync.JetStream) -> None:
    for key in ("a.1", "a.2", "b", "c", "d"):
        run("kv", "put", bucket, key, "1")
    assert run("kv", "del", bucket, "a.*", "--yes").stdout == f"deleted 2 keys of {bucket}\n"
    (line,) = json_lines(run("kv", "purge", bucket, "b", "c", "--yes", "--json"))
    assert line == {"bucket": bucket, "purged": 2}
    jet.publish(f"$KV.{bucket}.user:1", b"1")
    assert run("kv", "purge", bucket, "--all", "--yes").stdout == f"purged 2 keys of {bucket}\n"
    assert list(jet.get_key_value(bucket).keys()) == []


def test_purges(run: Run, bucket: str, jet: js_sync.JetStream) -> None:
    for key in ("a", "b", "c"):
        run("kv", "put", bucket, key, "1")
    assert run("kv", "purge", bucket, "--yes").exit_code == 2
    assert run("kv", "purge", bucket, "a", "--yes").exit_code == 0
    assert run("kv", "purge", bucket, "--all", "--yes").stdout == f"purged 2 keys of {bucket}\n"
    found = jet.get_key_value(bucket)
    assert list(found.keys()) == []
    assert found.status().values == 3
    (line,) = json_lines(run("kv", "compact", bucket, "--yes", "--json"))
    assert (line["removed"], line["kept"]) == (0, 3)
    kept = run("kv", "compact", bucket, "--older-than", "1ms", "--yes")
    assert kept.stdout.startswith("removed 3 markers"), kept.output
    assert found.status().values == 0


def test_settings(run: Run, jet: js_sync.JetStream) -> None:
    name = f"CLIKV{next(_numbers)}"
    made = run(
        *("kv", "add", name, "--history", "5", "--ttl", "1h", "--compress", "--json"),
        *("--description", "prices", "--metadata", "team=tea", "--max-bucket-size", "1000000"),
        *("--republish-source", ">", "--republish-destination", f"{name}.copy.>"),
    )
    (line,) = json_lines(made)
    assert (line["config"]["history"], line["config"]["ttl"]) == (5, 3_600_000_000_000)
    assert line["config"]["metadata"] == {"team": "tea"}
    config = jet.get_key_value(name).cached_status.config
    assert config.compression
    assert config.republish is not None
    assert run("kv", "add", name, "--history", "6").exit_code == 1
    assert run("kv", "edit", name, "--history", "6", "--ttl", "0s").exit_code == 0
    config = jet.get_key_value(name).cached_status.config
    assert (config.history, config.description) == (6, "prices")
    assert not config.ttl
    shown = run("kv", "info", name).stdout
    assert "prices" in shown
    assert "last revision" in shown
    mirror = f"{name}_mirror"
    assert run("kv", "add", mirror, "--mirror", name).exit_code == 0
    (line,) = json_lines(run("kv", "info", mirror, "--json"))
    assert line["config"]["mirror"]["name"] == f"KV_{name}"
    for wrong in (
        ("--ttl", "long"),
        ("--metadata", "x"),
        ("--mirror-domain", "d"),
        ("--republish-source", ">"),
    ):
        assert run("kv", "add", "X", *wrong).exit_code == 2
    assert run("kv", "add", "X.Y").exit_code == 1
    assert run("kv", "del", mirror, "--bucket", input="n\n").exit_code == 1
    assert run("kv", "del", mirror, "--bucket", "--json").exit_code == 2
    (line,) = json_lines(run("kv", "del", mirror, "--bucket", "--yes", "--json"))
    assert line == {"bucket": mirror, "deleted": True}
    with pytest.raises(js_sync.BucketNotFound):
        jet.get_key_value(mirror)
