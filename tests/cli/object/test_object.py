"""`twinstream object`: stores and objects."""

from __future__ import annotations

import itertools
import json
import os
from pathlib import Path

import pytest

import js_sync
from tests.cli.output import Run, json_lines
from twinstream.models import ObjectStoreConfig

_numbers = itertools.count(1)


@pytest.fixture
def bucket(jet: js_sync.JetStream) -> str:
    """A new object store."""
    name = f"OBJECTS{next(_numbers)}"
    jet.create_object_store(ObjectStoreConfig(bucket=name, storage="memory"))
    return name


def test_store_is_created_changed_and_deleted(run: Run, jet: js_sync.JetStream) -> None:
    name = f"OBJECTS{next(_numbers)}"
    settings = ["--storage", "memory", "--ttl", "24h", "--description", "files"]
    made = run("object", "add", name, *settings, "--metadata", "a=b")
    assert made.exit_code == 0, made.stderr
    assert "files" in made.stdout
    (shown,) = json_lines(run("object", "info", name, "--json"))
    assert (shown["bucket"], shown["ttl"], shown["size"]) == (name, 86_400_000_000_000, 0)
    assert shown["metadata"] == {"a": "b"}
    (changed,) = json_lines(run("object", "edit", name, "--max-bucket-size", "1000000", "--json"))
    assert (changed["max_bytes"], changed["description"]) == (1_000_000, "files")
    assert "give at least one" in run("object", "edit", name).stderr
    assert run("object", "add", name, "--metadata", "ab").exit_code == 2
    assert name in run("object", "ls").stdout
    assert name in run("object", "ls", "--names").stdout.splitlines()
    assert name in run("object", "info").stdout
    assert name in [line["bucket"] for line in json_lines(run("object", "ls", "--json"))]
    refused = run("object", "del", name, "--yes")
    assert refused.exit_code == 2
    assert "give a NAME, or --bucket to delete BUCKET itself" in refused.stderr
    assert run("object", "del", name, "a", "--bucket", "--yes").exit_code == 2
    assert run("object", "del", name, "--bucket", "--yes").stdout == f"deleted {name}\n"
    missing = run("object", "info", name)
    assert missing.exit_code == 3
    assert f"bucket {name} does not exist: `twinstream object add`" in missing.stderr


def test_file_is_stored_and_read_back(run: Run, bucket: str, tmp_path: Path) -> None:
    data = os.urandom(300_000)
    source, copy = tmp_path / "in.bin", tmp_path / "out.bin"
    source.write_bytes(data)
    options = ["-H", "Type: bin", "-H", "Type: more", "--metadata", "a=b", "--chunk-size", "1000"]
    made = run("object", "put", bucket, str(source), "--description", "d", *options)
    assert made.exit_code == 0, made.stderr
    assert made.stdout.startswith(f"{bucket}: in.bin, 293.0 KiB, SHA-256=")
    (info,) = json_lines(run("object", "info", bucket, "in.bin", "--json"))
    assert (info["size"], info["chunks"], info["description"]) == (300_000, 300, "d")
    assert (info["headers"], info["metadata"]) == ({"Type": ["bin", "more"]}, {"a": "b"})
    assert "size\t300000\n" in run("object", "info", bucket, "in.bin").stdout
    back = run("object", "get", bucket, "in.bin", "-O", str(copy))
    assert back.exit_code == 0, back.stderr
    assert copy.read_bytes() == data
    # Neither an object nor a file is replaced without a yes.
    assert "not answered" in run("object", "put", bucket, str(source)).stderr
    assert "not answered" in run("object", "get", bucket, "in.bin", "-O", str(copy)).stderr
    source.write_bytes(b"new")
    assert run("object", "put", bucket, str(source), "--yes").exit_code == 0
    (got,) = json_lines(
        run("object", "get", bucket, "in.bin", "-O", str(copy), "--yes", "--resume", "--json")
    )
    assert (got["size"], got["file"]) == (3, str(copy))
    assert copy.read_bytes() == b"new"


def test_standard_input_and_output(run: Run, bucket: str) -> None:
    made = run("object", "put", bucket, "-", "--name", "a/b", input=b"\0\xff data")
    assert made.exit_code == 0, made.stderr
    out = run("object", "get", bucket, "a/b", "-O", "-", "--no-progress")
    assert out.stdout_bytes == b"\0\xff data"
    assert run("object", "put", bucket, "-").exit_code == 2
    assert run("object", "get", bucket, "a/b", "-O", "-", "--json").exit_code == 2


def test_content_on_standard_input_answers_no_question(run: Run, bucket: str) -> None:
    assert run("object", "put", bucket, "-", "--name", "a", input=b"old").exit_code == 0
    refused = run("object", "put", bucket, "-", "--name", "a", input=b"y\nnew")
    assert refused.exit_code == 1
    assert "add --yes" in refused.stderr
    assert run("object", "get", bucket, "a", "-O", "-").stdout_bytes == b"old"
    assert run("object", "put", bucket, "-", "--name", "a", "-y", input=b"y\nnew").exit_code == 0
    assert run("object", "get", bucket, "a", "-O", "-").stdout_bytes == b"y\nnew"


@pytest.mark.parametrize("name", ["/", ".", "a/..", ".."])
def test_names_that_contain_no_name_of_a_file(
    run: Run, bucket: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("object", "put", bucket, "-", "--name", name, input=b"x").exit_code == 0
    refused = run("object", "get", bucket, name, "--yes")
    assert refused.exit_code == 2
    assert "add --output FILE" in refused.stderr
    assert run("object", "get", bucket, name, "-O", "file").exit_code == 0
    assert Path("file").read_bytes() == b"x"


def test_lists_deletes_and_what_is_missing(run: Run, bucket: str, jet: js_sync.JetStream) -> None:
    assert run("object", "ls", bucket).stdout == ""
    store = jet.get_object_store(bucket)
    info = store.put("b", b"22")
    store.put("a", b"1")
    store.add_link("l", info)
    assert run("object", "ls", bucket, "--names").stdout.split() == ["a", "b", "l"]
    assert f"link to {bucket}/b" in run("object", "ls", bucket).stdout
    assert run("object", "del", bucket, "a", "--yes").stdout == "deleted a\n"
    found = json_lines(run("object", "ls", bucket, "--deleted", "--json"))
    assert [(each["name"], each.get("deleted")) for each in found] == [
        ("a", True),
        ("b", None),
        ("l", None),
    ]
    for command in (
        ["get", bucket, "a", "-O", "-"],
        ["info", bucket, "a"],
        ["info", bucket, "never"],
        ["del", bucket, "never", "--yes"],
    ):
        missing = run("object", *command)
        assert missing.exit_code == 3, missing.stderr
    (problem,) = [json.loads(run("object", "info", bucket, "x", "--json").stderr)]
    assert problem["kind"] == "ObjectNotFound"


def test_changes_are_watched(run: Run, bucket: str, jet: js_sync.JetStream) -> None:
    store = jet.get_object_store(bucket)
    store.put("a", b"1")
    store.put("b", b"22")
    store.delete("a")
    found = json_lines(run("object", "watch", bucket, "-n", "2", "--json"))
    assert [(each["name"], each.get("deleted", False)) for each in found] == [
        ("b", False),
        ("a", True),
    ]
    assert "deleted" in run("object", "watch", bucket, "-n", "2").stdout


def test_leftovers_are_swept_and_stores_sealed(
    run: Run, bucket: str, jet: js_sync.JetStream
) -> None:
    jet.publish(f"$O.{bucket}.C.orphan", b"x")
    assert run("object", "sweep", bucket).stdout.startswith("removed 0 uploads of 0 chunks")
    dry = run("object", "sweep", bucket, "--older-than", "1ns", "--dry-run")
    assert dry.stdout == f"would remove 1 upload of 1 chunk from {bucket}\n"
    (swept,) = json_lines(run("object", "sweep", bucket, "--older-than", "1ns", "--json"))
    assert (swept["uploads"], swept["chunks"], swept["dry_run"]) == (1, 1, False)
    assert run("object", "seal", bucket, "--yes").stdout == f"sealed {bucket}\n"
    assert "sealed" in run("object", "ls").stdout
    refused = run("object", "put", bucket, "-", "--name", "a", input=b"x")
    assert refused.exit_code == 1
    assert "sealed" in refused.stderr


def test_damaged_metadata_is_shown_and_deleted(
    run: Run, bucket: str, jet: js_sync.JetStream
) -> None:
    store = jet.get_object_store(bucket)
    store.put("good", b"x")
    jet.publish(f"$O.{bucket}.M.YmFk", b'{"name":"bad","nuid":"N","size":%d}' % 10**309)
    jet.publish(f"$O.{bucket}.M.!!!", b"no JSON")
    listed = run("object", "ls", bucket)
    assert listed.exit_code == 0
    assert "the description of 2 objects cannot be read" in listed.stderr
    kinds = {line.split()[0]: line.split()[-1] for line in listed.stdout.splitlines()}
    assert (kinds["bad"], kinds["!!!"]) == ("unreadable", "unreadable")
    watched = run("object", "watch", bucket, "--count", "3")
    assert (watched.exit_code, watched.stdout.count("unreadable")) == (0, 2)
    assert "cannot be read" in run("object", "info", bucket, "bad").stderr
    question = run("object", "del", bucket, "bad")
    assert "Delete bad (unreadable)" in question.stdout + question.stderr
    swept = run("object", "sweep", bucket)
    assert "the description of 2 objects cannot be read" in swept.stderr
    for name in ("bad", "!!!"):
        assert run("object", "del", bucket, name, "--yes").stdout == f"deleted {name}\n"
    assert run("object", "ls", bucket, "--names").stdout == "good\n"


def test_a_damaged_object_is_replaced_after_a_question(
    run: Run, bucket: str, jet: js_sync.JetStream, tmp_path: Path
) -> None:
    jet.publish(f"$O.{bucket}.M.YmFk", b"no JSON")
    source = tmp_path / "bad"
    source.write_bytes(b"x")
    question = run("object", "put", bucket, str(source))
    assert "Replace bad (unreadable)" in question.stdout + question.stderr
    assert run("object", "put", bucket, str(source), "--yes").exit_code == 0
    assert jet.get_object_store(bucket).get_bytes("bad") == b"x"


def test_errors_name_commands_and_options_of_stores(run: Run, bucket: str) -> None:
    missing = run("object", "ls", "NOPE")
    assert missing.exit_code == 3
    assert "`twinstream object ls` shows the object stores" in missing.stderr
    assert "`twinstream object add` creates it" in missing.stderr
    other = run("object", "add", bucket, "--ttl", "1h", "--description", "of May")
    assert f"object store {bucket} exists with other settings" in other.stderr
    assert "--description is not set, not of May; --ttl is not set, not 1h" in other.stderr
    assert "`twinstream object edit` changes settings" in other.stderr
