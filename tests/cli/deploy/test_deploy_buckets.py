"""Key-value buckets and object stores in `validate`, `plan` and `apply`."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from js_sync import JetStream
from tests.cli.output import Run
from twinstream.models import KeyValueConfig, ObjectStoreConfig, StreamConfig, StreamSource, evolve

SECOND = 1_000_000_000

Write = Callable[..., str]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write the only file of a folder, and return the folder."""

    def into(**lists: list[dict[str, Any]]) -> str:
        (tmp_path / "all.yaml").write_text(yaml.safe_dump(lists))
        return str(tmp_path)

    return into


def steps_of(run: Run, folder: str, *arguments: str) -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = json.loads(run("plan", folder, "--json", *arguments).stdout)[
        "steps"
    ]
    return steps


def test_buckets_are_created_once_and_then_unchanged(
    run: Run, write: Write, jet: JetStream
) -> None:
    folder = write(
        key_values=[
            {"bucket": "DBM", "mirror": {"name": "DB1"}, "storage": "memory"},
            {
                "bucket": "DB1",
                "history": 5,
                "ttl": 60 * SECOND,
                "limit_marker_ttl": SECOND,
                "storage": "memory",
                "metadata": {"team": "a"},
            },
            {"bucket": "DBS", "sources": [{"name": "DB1"}], "storage": "memory"},
        ],
        object_stores=[{"bucket": "DB1", "max_bytes": 1_000_000, "compression": True}],
        consumers=[{"stream_name": "KV_DB1", "config": {"durable_name": "C"}}],
    )
    planned = run("plan", folder)
    assert planned.exit_code == 0, planned.output
    steps = [line.split("  ")[0] for line in planned.stdout.splitlines() if line[0] == "+"]
    assert sorted(steps) == [
        "+ consumer KV_DB1/C",
        "+ key-value bucket DB1",
        "+ key-value bucket DBM",
        "+ key-value bucket DBS",
        "+ object store DB1",
    ]
    applied = run("apply", folder, "--yes")
    assert applied.exit_code == 0, applied.output
    assert "created key-value bucket DB1" in applied.stdout.splitlines()
    assert jet.get_key_value("DB1").put("a", b"1") == 1
    again = run("plan", folder, "--check")
    assert again.exit_code == 0
    assert again.stdout.endswith("5 unchanged\n")


def test_buckets_that_programs_created_are_unchanged(
    run: Run, write: Write, jet: JetStream
) -> None:
    jet.create_key_value(KeyValueConfig(bucket="DB2", history=2, description="x"))
    jet.create_object_store(ObjectStoreConfig(bucket="DB2"))
    folder = write(
        key_values=[{"bucket": "DB2", "history": 2, "description": "x"}],
        object_stores=[{"bucket": "DB2"}],
    )
    assert run("plan", folder, "--check").exit_code == 0


def test_changes_are_shown_as_settings_of_the_bucket_and_made(
    run: Run, write: Write, jet: JetStream
) -> None:
    jet.create_key_value(KeyValueConfig(bucket="DB3", history=2))
    folder = write(
        key_values=[
            {
                "bucket": "DB3",
                "history": 5,
                "max_value_size": 1000,
                "compression": True,
                "limit_marker_ttl": 2 * SECOND,
            }
        ]
    )
    [step] = steps_of(run, folder, "--allow-loss")
    assert (step["kind"], step["name"], step["stream_name"]) == ("key_value", "DB3", "KV_DB3")
    changes = {each["path"]: (each["old"], each["new"]) for each in step["changes"]}
    assert changes["history"] == (2, 5)
    assert changes["compression"] == (False, True)
    assert changes["max_value_size"][1] == 1000
    assert changes["limit_marker_ttl"][1] == 2 * SECOND
    assert changes.keys() - {"allow_msg_ttl"} == {
        "history",
        "compression",
        "max_value_size",
        "limit_marker_ttl",
    }
    shown = run("plan", folder, "--allow-loss").stdout
    assert "    history: 2 → 5" in shown.splitlines()
    assert "→ 2s" in shown
    applied = run("apply", folder, "--yes", "--allow-loss")
    assert applied.exit_code == 0, applied.output
    config = jet.get_stream("KV_DB3").cached_info.config
    assert (config.max_msgs_per_subject, config.max_msg_size) == (5, 1000)
    assert run("plan", folder, "--check").exit_code == 0


def test_losses_are_named_with_the_settings_of_the_bucket(
    run: Run, write: Write, jet: JetStream
) -> None:
    jet.create_key_value(KeyValueConfig(bucket="DB4", history=5))
    folder = write(key_values=[{"bucket": "DB4", "ttl": 10 * SECOND}])
    [step] = steps_of(run, folder)
    assert step["action"] == "refused"
    assert "--allow-loss" in step["refusal"]
    assert {loss.split()[1] for loss in step["losses"]} == {"history", "ttl"}
    assert run("apply", folder, "--yes", "--allow-loss").exit_code == 0
    assert jet.get_stream("KV_DB4").cached_info.config.max_msgs_per_subject == 1
    assert run("plan", folder, "--check").exit_code == 0


def test_what_a_bucket_has_no_setting_for_stays(run: Run, write: Write, jet: JetStream) -> None:
    jet.create_key_value(KeyValueConfig(bucket="DB5"))
    stream = jet.get_stream("KV_DB5")
    jet.update_stream(evolve(stream.cached_info.config, max_msgs=1000, allow_msg_ttl=True))
    folder = write(key_values=[{"bucket": "DB5", "description": "new"}])
    [step] = steps_of(run, folder)
    assert [each["path"] for each in step["changes"]] == ["description"]
    assert run("apply", folder, "--yes").exit_code == 0
    config = jet.get_stream("KV_DB5").cached_info.config
    assert (config.max_msgs, config.allow_msg_ttl, config.description) == (1000, True, "new")


def test_a_sealed_object_store_stays_sealed(run: Run, write: Write, jet: JetStream) -> None:
    store = jet.create_object_store(ObjectStoreConfig(bucket="DB6"))
    store.put("a", b"1")
    store.seal()
    folder = write(object_stores=[{"bucket": "DB6"}])
    assert run("plan", folder, "--check").exit_code == 0


def test_a_setting_that_is_fixed_needs_a_new_bucket(run: Run, write: Write, jet: JetStream) -> None:
    jet.create_key_value(KeyValueConfig(bucket="DB7"))
    folder = write(key_values=[{"bucket": "DB7", "storage": "memory"}])
    [step] = steps_of(run, folder)
    assert (step["action"], step["problems"][0]["path"]) == ("refused", "storage")
    assert run("apply", folder, "--yes", "--allow-recreate").exit_code == 0
    assert str(jet.get_stream("KV_DB7").cached_info.config.storage) == "memory"


def test_the_same_stream_as_a_bucket_and_as_a_stream_is_refused(run: Run, write: Write) -> None:
    folder = write(
        key_values=[{"bucket": "DB8"}, {"bucket": "a.b"}],
        streams=[{"name": "KV_DB8", "subjects": ["$KV.DB8.>"]}],
    )
    result = run("plan", folder)
    assert result.exit_code == 1
    assert "stream 'KV_DB8' is in " in result.stdout
    assert len(result.stdout.splitlines()) == 2


def test_another_stream_of_the_name_is_shown_to_change(
    run: Run, write: Write, jet: JetStream
) -> None:
    jet.create_stream(StreamConfig(name="KV_DB9", subjects=["db9.>"]))
    folder = write(key_values=[{"bucket": "DB9"}])
    [step] = steps_of(run, folder, "--allow-loss")
    changes = {each["path"]: each["new"] for each in step["changes"]}
    assert changes["subjects"] == ["$KV.DB9.>"]
    assert changes["deny_delete"] is True


def test_validate_accepts_buckets_and_reports_their_lines(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("key_values:\n- bucket: A\n  histroy: 5\nobject_stores:\n- bucket: B\n")
    result = run("validate", str(file))
    assert result.exit_code == 1
    assert result.stdout == (
        f"{file}:3:3: histroy: there is no such setting. Did you mean 'history'?\n"
    )
    document = json.loads(run("validate", str(file), "--json").stdout)
    assert [(one["kind"], one["name"]) for one in document["configs"]] == [
        ("key_value", "A"),
        ("object_store", "B"),
    ]
    assert run("validate", "-", "--kind", "key_value", input="bucket: A\n").exit_code == 0


def test_mirror_becomes_an_independent_bucket(run: Run, write: Write, jet: JetStream) -> None:
    jet.create_key_value(KeyValueConfig(bucket="DB10"))
    jet.create_key_value(KeyValueConfig(bucket="DB10M", mirror=StreamSource(name="DB10")))
    folder = write(key_values=[{"bucket": "DB10M", "mirror": {"name": "DB10"}}])
    assert run("plan", folder, "--check").exit_code == 0
    folder = write(key_values=[{"bucket": "DB10M"}])
    document = json.loads(run("plan", folder, "--json", "--allow-loss").stdout)
    [step] = document["steps"]
    if document["server"].startswith("2.11."):
        assert {each["path"] for each in step["problems"]} == {"mirror"}
        return
    assert {"mirror", "subjects"} <= {each["path"] for each in step["changes"]}
    assert run("apply", folder, "--allow-loss", "--yes").exit_code == 0
    assert jet.get_key_value("DB10M").put("a", b"1") == 1
    assert run("plan", folder, "--check").exit_code == 0


def test_the_duplicate_window_of_a_bucket_has_a_unit(
    run: Run, write: Write, jet: JetStream
) -> None:
    jet.create_key_value(KeyValueConfig(bucket="DBW", ttl=timedelta(hours=1)))
    folder = write(key_values=[{"bucket": "DBW", "ttl": 60 * SECOND}])
    assert "    duplicate_window: 2m → " in run("plan", folder).stdout
