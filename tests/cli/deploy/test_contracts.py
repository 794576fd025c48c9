"""`payloads:` in a stream's file: `validate`, `plan`, `plan --check-last` and `apply`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

import js_sync
from tests.cli.output import Run
from twinstream.cli.deploy.contracts import METADATA, contract_changes, stored_contracts

Write = Callable[..., str]
OLD = {"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]}
CLOSED = OLD | {"required": ["number", "item"], "title": "Order"}


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write the file of a stream and its schema, and return the folder."""

    def into(name: str, schema: Any, payloads: Any = None) -> str:
        (tmp_path / "order.schema.json").write_text(json.dumps(schema))
        config = {
            "name": name,
            "subjects": [f"{name}.>"],
            "storage": "memory",
            "metadata": {"team": "a"},
            "payloads": payloads or {f"{name}.placed.*": "order.schema.json"},
        }
        (tmp_path / "stream.yaml").write_text(yaml.safe_dump(config))
        return str(tmp_path)

    return into


def test_a_break_is_refused_unless_it_is_allowed(
    run: Run, write: Write, jet: js_sync.JetStream
) -> None:
    folder = write("PAY1", OLD)
    assert run("validate", folder).exit_code == 0
    applied = run("apply", folder, "--yes")
    assert applied.exit_code == 0, applied.output
    assert run("plan", folder, "--check").exit_code == 0
    metadata = jet.get_stream("PAY1").cached_info.config.metadata
    assert metadata["team"] == "a"
    assert json.loads(metadata["twinstream.payloads"]) == {"PAY1.placed.*": OLD}

    write("PAY1", CLOSED)
    planned = run("plan", folder)
    assert planned.exit_code == 1
    assert "payload of PAY1.placed.*: break: $.item: is required now" in planned.stdout
    assert "refused: stored messages may not fit the schema any more" in planned.stdout
    assert '{"' not in planned.stdout
    document = json.loads(run("plan", folder, "--json").stdout)
    [step] = document["steps"]
    assert step["payloads"] == [
        {"subject": "PAY1.placed.*", "break": True, "text": "$.item: is required now"}
    ]
    refused = run("apply", folder, "--yes")
    assert refused.exit_code == 1
    assert "nothing was changed" in refused.stderr
    allowed = run("apply", folder, "--yes", "--allow-break")
    assert allowed.exit_code == 0, allowed.output
    assert run("plan", folder, "--check").exit_code == 0


def test_other_changes_cannot_be_judged_and_are_applied(run: Run, write: Write) -> None:
    folder = write("PAY2", OLD)
    assert run("apply", folder, "--yes").exit_code == 0
    write("PAY2", OLD | {"minProperties": 1})
    planned = run("plan", folder)
    assert planned.exit_code == 0
    assert "payload of PAY2.placed.*: cannot tell: $: minProperties differs" in planned.stdout
    write("PAY2", OLD, {"PAY2.other": OLD})
    planned = run("plan", folder)
    assert planned.exit_code == 0
    for text in ("PAY2.other: cannot tell: the subject has a schema now", "no schema any more"):
        assert text in planned.stdout
    assert run("apply", folder, "--yes").exit_code == 0


def test_the_last_stored_messages_are_decoded(
    run: Run, write: Write, jet: js_sync.JetStream
) -> None:
    folder = write("PAY3", OLD)
    assert run("plan", folder, "--check-last", "5").exit_code == 0
    assert run("apply", folder, "--yes").exit_code == 0
    for number in range(30):
        jet.publish("PAY3.placed.a", b'{"number": %d}' % number)
        jet.publish("PAY3.else", b"anything")
    planned = run("plan", folder, "--check-last", "10")
    assert planned.exit_code == 0, planned.output
    assert "PAY3 PAY3.placed.*: 10 messages read, all fit" in planned.stdout
    jet.publish("PAY3.placed.b", b'{"number": "x"}')
    planned = run("plan", folder, "--check-last", "1000")
    assert planned.exit_code == 1
    assert "PAY3 PAY3.placed.*: 31 messages read, 1 do not fit" in planned.stdout
    assert "stream PAY3, seq 61, subject PAY3.placed.b: the payload" in planned.stdout
    [checked] = json.loads(run("plan", folder, "--check-last", "9", "--json").stdout)["checked"]
    assert (checked["messages"], checked["misfits"]) == (10, 1), "9 of one subject, 1 of the other"


@pytest.mark.parametrize("subjects", [20, 150])
def test_a_rare_subject_of_a_filter_is_decoded(
    run: Run, write: Write, jet: js_sync.JetStream, subjects: int
) -> None:
    name = f"RARE{subjects}"
    folder = write(name, OLD)
    assert run("apply", folder, "--yes").exit_code == 0
    jet.publish(f"{name}.placed.rare", b"{}")
    usual = ((f"{name}.placed.{n % subjects}", b'{"number": 1}') for n in range(900))
    with jet.publish_many(usual) as outcomes:
        assert len(list(outcomes)) == 900
    done = run("plan", folder, "--check-last", "3", "--json")
    assert done.exit_code == 1
    [checked] = json.loads(done.stdout)["checked"]
    # All have three messages of each; with many subjects the last of each, among them the last 3.
    assert checked["messages"] == (subjects * 3 if subjects == 20 else subjects) + 1
    assert (checked["misfits"], checked["first"].split(":")[0]) == (
        1,
        f"stream {name}, seq 1, subject {name}.placed.rare",
    )


@pytest.mark.parametrize(
    "stored",
    [
        "no JSON",
        "[]",
        "[" * 100_000,
        '{"a": 1}',
        '{"a": {"type": "objekt"}}',
        '{"a": {"properties": {"b": 1}}}',
        '{"a": {"$ref": "#"}}',
        '{"a": ' + '{"items": ' * 900 + "{}" + "}" * 900 + "}",
    ],
)
def test_contracts_that_another_client_stored(stored: str) -> None:
    found = stored_contracts({METADATA: stored})
    changes = contract_changes(found, {"a": OLD})
    assert changes
    assert all(isinstance(each.text, str) for each in changes)


@pytest.mark.parametrize(
    ("payloads", "text"),
    [
        ({"PAY4.a": "missing.json"}, "missing.json: no JSON Schema"),
        ({"PAY4..a": {}}, "PAY4..a"),
        ({"PAY4.a": {"type": "objekt"}}, "not a JSON Schema: $.type"),
        ({"PAY4.a": {"$ref": "https://example.org/a"}}, "is not in the schema"),
        ({"PAY4.a": 7}, "a schema is a mapping, or the path of a JSON file"),
        (["PAY4.a"], "a mapping of subjects to schema files is required"),
    ],
)
def test_invalid_contracts(run: Run, write: Write, payloads: Any, text: str) -> None:
    folder = write("PAY4", OLD, payloads)
    for command in ("validate", "plan"):
        done = run(command, folder)
        assert done.exit_code == 1
        assert text in done.stdout
        assert "stream.yaml:1:1: payloads" in done.stdout
