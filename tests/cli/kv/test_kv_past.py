"""`twinstream kv diff`, `kv revert --to` and `kv get --at`."""

from __future__ import annotations

import itertools
import subprocess
import time
from datetime import UTC, datetime, timedelta

import click
import pytest

import js_sync
from tests.cli.output import Run, json_lines
from tests.cli.terminal import COMMAND, LIMIT
from twinstream.cli.message.start_position import Moment
from twinstream.models import KeyValueConfig, Timestamp, evolve
from twinstream.testing import NatsServer

_numbers = itertools.count(1)


@pytest.fixture
def bucket(jet: js_sync.JetStream) -> js_sync.KeyValue[bytes]:
    """A new bucket with a history of 10; tea and cake have got values, and lost or changed them."""
    config = KeyValueConfig(bucket=f"PAST{next(_numbers)}", history=10, storage="memory")
    made = jet.create_key_value(config)
    made.put("tea", b"300")
    made.put("cake", b"450")
    made.put("tea", b"310")
    made.delete("cake")
    made.put("soup", b"\xff")
    return made


def values(bucket: js_sync.KeyValue[bytes]) -> dict[str, bytes | None]:
    return {key: entry.value for key, entry in bucket.get_many().items()}


BEFORE = {"tea": b"300", "cake": b"450"}
NOW = {"tea": b"310", "soup": b"\xff"}


def test_the_changes_between_two_moments(run: Run, bucket: js_sync.KeyValue[bytes]) -> None:
    name = bucket.bucket
    lines = json_lines(run("kv", "diff", name, "--from", "2", "--json"))
    assert [(line["key"], line["change"]) for line in lines] == [
        ("cake", "deleted"),
        ("soup", "added"),
        ("tea", "changed"),
    ]
    assert lines[0]["before"]["value"] == "450"
    assert lines[0]["after"]["operation"] == "delete"
    assert (lines[1]["before"], lines[1]["after"]["value_base64"]) == (None, "/w==")
    shown = run("kv", "diff", name, "--from", "2", "--to", "4").stdout.splitlines()
    assert [line.split("\t")[:4] for line in shown] == [
        ["cake", "deleted", "450", ""],
        ["tea", "changed", "300", "310"],
    ]
    assert run("kv", "diff", name, "t*", "--from", "2").exit_code == 1
    assert run("kv", "diff", name, "tea", "none", "--from", "2").stdout.startswith("tea\tchanged")
    assert run("kv", "diff", name, "--from", "5").stdout == ""
    assert "swap them" in run("kv", "diff", name, "--from", "5", "--to", "2").stderr
    created = bucket.history("tea")[0].created
    lines = json_lines(run("kv", "diff", name, "--from", created.rfc3339(), "--json"))
    assert [line["change"] for line in lines] == ["added", "changed"]


def test_what_is_no_longer_held_is_refused(run: Run, bucket: js_sync.KeyValue[bytes]) -> None:
    for number in range(10):
        bucket.put("tea", b"%d" % number)
    refused = run("kv", "diff", bucket.bucket, "--from", "3", "--json")
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert '"kind":"PastNotHeld"' in refused.stderr
    assert "(revision 6) on" in refused.stderr
    early = run("kv", "diff", bucket.bucket, "--from", "1h")
    assert early.exit_code == 1
    assert "its first stored revision is from" in early.stderr
    assert run("kv", "diff", "NO_BUCKET", "--from", "1").exit_code == 3


def test_a_value_at_a_moment(run: Run, bucket: js_sync.KeyValue[bytes]) -> None:
    name = bucket.bucket
    assert run("kv", "get", name, "tea", "--at", "2").stdout == "300"
    (line,) = json_lines(run("kv", "get", name, "cake", "--at", "3", "--json"))
    assert (line["value"], line["revision"]) == ("450", 2)
    gone = run("kv", "get", name, "cake", "--at", "4")
    assert gone.exit_code == 3
    assert f"bucket {name} had no key 'cake' then, at revision 4" in gone.stderr
    both = run("kv", "get", name, "cake", "--at", "4", "--revision", "2")
    assert (both.exit_code, "not both" in both.stderr) == (2, True)


@pytest.mark.since("2.12")
def test_a_bucket_goes_back_together(
    run: Run, jet: js_sync.JetStream, bucket: js_sync.KeyValue[bytes]
) -> None:
    name = bucket.bucket
    jet.bind_stream(bucket.stream_name).change(lambda config: evolve(config, allow_atomic=True))
    tried = run("kv", "revert", name, "--to", "2", "--dry-run")
    assert [line.split("\t")[:4] for line in tried.stdout.splitlines()] == [
        ["cake", "added", "", "450"],
        ["soup", "deleted", "(1 bytes, not text: see --json)"],
        ["tea", "changed", "310", "300"],
    ]
    (found,) = json_lines(run("kv", "revert", name, "--to", "2", "--dry-run", "--json"))
    assert [each["key"] for each in found["would_revert"]] == ["cake", "soup", "tea"]
    declined = run("kv", "revert", name, "--to", "2", input="n\n")
    assert declined.exit_code == 1
    assert f"Restore 3 keys of {name} to revision 2?" in declined.stderr
    assert values(bucket) == NOW
    done = run("kv", "revert", name, "--to", "2", "--yes")
    assert done.stdout.splitlines()[-1] == f"restored 3 keys of {name}"
    assert values(bucket) == BEFORE
    assert run("kv", "revert", name, "--to", "2", "--yes", "--json").stdout == (
        f'{{"bucket":"{name}","reverted":0,"left":[],"would_revert":[]}}\n'
    )


def test_a_bucket_goes_back_in_parts(run: Run, bucket: js_sync.KeyValue[bytes]) -> None:
    name = bucket.bucket
    refused = run("kv", "revert", name, "--to", "2", "--yes")
    assert refused.exit_code == 1
    assert "`twinstream stream edit --allow-batch` (server 2.12)" in refused.stderr
    assert "or give --in-parts" in refused.stderr
    assert values(bucket) == NOW
    one = run("kv", "revert", name, "tea", "--to", "2", "--yes", "--json")
    assert json_lines(one) == [{"bucket": name, "reverted": 1, "left": []}]
    assert run("kv", "revert", name, "--to", "2", "--yes", "--in-parts").exit_code == 0
    assert values(bucket) == BEFORE


def test_what_is_written_during_the_question_is_kept(
    server: NatsServer, bucket: js_sync.KeyValue[bytes]
) -> None:
    name = bucket.bucket
    words = ["kv", "revert", name, "--to", "2", "--in-parts", "--server", server.url]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen([*COMMAND, *words], text=True, **pipes) as asking:
        question = ""
        while not question.endswith("[y/N]:"):
            assert asking.stderr is not None
            read = asking.stderr.read(1)
            assert read, question
            question += read
        bucket.put("tea", b"newest")
        out, err = asking.communicate("y\n", timeout=LIMIT)
    assert asking.returncode == 1
    assert f"restored 2 keys of {name}" in out
    assert "left 1 key that another client has written since: tea;" in err
    assert values(bucket) == {"tea": b"newest", "cake": b"450"}


def test_a_revert_that_fails_says_how_far_it_got(
    run: Run, bucket: js_sync.KeyValue[bytes], jet: js_sync.JetStream
) -> None:
    # Too little for the headers of a conditional write.
    jet.get_stream(bucket.stream_name).change(lambda config: evolve(config, max_msg_size=20))
    failed = run("kv", "revert", bucket.bucket, "--to", "2", "--in-parts", "--yes")
    assert failed.exit_code == 1
    assert "0 of 3 changes were undone; the next is key" in failed.stderr


def test_arguments_of_revert(run: Run, bucket: js_sync.KeyValue[bytes]) -> None:
    name = bucket.bucket
    for wrong in (
        ["--yes"],
        ["tea", "--yes"],
        ["tea", "1", "--to", "2", "--yes"],
        ["tea", "1", "--dry-run"],
        ["--to", "2", "--json"],
        ["--to", "25:00", "--yes"],
        ["--to", "yesterday", "--yes"],
        ["--to", "2026-01-31T08:00:00", "--yes"],
    ):
        assert run("kv", "revert", name, *wrong).exit_code == 2, wrong
    assert values(bucket) == NOW


def test_moments() -> None:
    kind = Moment("revision")
    assert kind.convert("7", None, None) == 7
    now = datetime.now().astimezone()
    minute = now.replace(second=0, microsecond=0)
    assert kind.convert(f"{minute:%H:%M}", None, None) in {minute, minute - timedelta(days=1)}
    later = now + timedelta(hours=2)
    found = kind.convert(f"{later:%H:%M:%S}", None, None)
    assert isinstance(found, datetime)
    assert timedelta(0) < now - found < timedelta(days=1)
    ago = kind.convert("2h", None, None)
    assert isinstance(ago, Timestamp)
    assert abs(time.time() - 7200 - ago.timestamp()) < 60
    assert kind.convert("2026-01-31T08:00:00Z", None, None) == datetime(2026, 1, 31, 8, tzinfo=UTC)
    with pytest.raises(click.BadParameter, match="neither a revision from 1, an age such as 2m"):
        kind.convert("then", None, None)
