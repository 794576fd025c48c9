"""`twinstream schema`."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema

from tests.cli.output import Run


def test_whole_document_is_valid_and_accepts_a_config(run: Run) -> None:
    result = run("schema")
    assert result.exit_code == 0
    document = json.loads(result.stdout)
    jsonschema.Draft202012Validator.check_schema(document)
    validator = jsonschema.Draft202012Validator(document)
    assert validator.is_valid({"name": "S", "subjects": ["s"]})
    assert not validator.is_valid({"name": "S", "subjecs": ["s"]})


def test_one_type_into_a_file(run: Run, tmp_path: Path) -> None:
    target = tmp_path / "stream.schema.json"
    result = run("schema", "--type", "StreamConfig", "--plain", "--out", str(target))
    assert (result.exit_code, result.stdout) == (0, "")
    text = target.read_text("utf-8")
    assert '"x-' not in text
    validator = jsonschema.Draft202012Validator(json.loads(text))
    assert validator.is_valid({"name": "S"})
    assert not validator.is_valid({"storage": "tape"})


def test_the_names_are_listed(run: Run) -> None:
    names = run("schema", "--list").stdout.splitlines()
    assert {"StreamConfig", "ConsumerInfo", "PullRequest", "MaxDeliver"} <= set(names)
    for name in names[::20]:
        assert run("schema", "--type", name).exit_code == 0


def test_an_unknown_type_is_wrong_usage(run: Run) -> None:
    result = run("schema", "--type", "StreamConfg")
    assert result.exit_code == 2
    assert "did you mean 'StreamConfig'?" in result.stderr


def test_a_file_that_cannot_be_written_is_one_line(run: Run, tmp_path: Path) -> None:
    result = run("schema", "--out", str(tmp_path / "no" / "x.json"))
    assert result.exit_code == 1
    assert result.stderr.startswith("error: cannot write ")
    assert "No such file" in result.stderr
