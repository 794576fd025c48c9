"""The schema folder follows its own dialect of JSON Schema."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "schema"
FILES = [
    path
    for path in sorted(FOLDER.rglob("*.json"))
    if path.name not in ("dialect.json", "errors.json")
]
BASE = "https://twinstream.example/schema/"


def read(path: Path) -> dict[str, Any]:
    text: dict[str, Any] = json.loads(path.read_text())
    return text


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(FOLDER).as_posix())
def test_files_obey_the_dialect(path: Path) -> None:
    dialect = jsonschema.Draft202012Validator(read(FOLDER / "dialect.json"))
    faults = [
        f"{error.json_path}: {error.message[:200]}" for error in dialect.iter_errors(read(path))
    ]
    assert faults == []
    assert read(path)["$id"] == BASE + path.relative_to(FOLDER).as_posix()
    jsonschema.Draft202012Validator.check_schema(read(path))


@pytest.mark.parametrize(
    "change",
    [
        {"x-sinse": "2.1.0"},
        {"x-since": "2.1"},
        {"description": "no capital."},
        {"description": "No full stop"},
        {"type": "integer"},
        {"enum": ["a"]},
        {"properties": {}},
        {"x-unit": "seconds"},
    ],
    ids=str,
)
def test_the_dialect_refuses_mistakes(change: dict[str, Any]) -> None:
    document = read(FOLDER / "config" / "stream.json")
    document["properties"]["description"].update(change)
    dialect = jsonschema.Draft202012Validator(read(FOLDER / "dialect.json"))
    assert not dialect.is_valid(document)


def test_units_are_written_as_words() -> None:
    words = {
        "ns": "nanoseconds",
        "bytes": r"bytes|KiB|Size|size|Memory|Disk|largest",
        "bits": "bits",
    }
    for path in FILES:
        for schema in [read(path), *read(path).get("$defs", {}).values()]:
            for name, member in schema.get("properties", {}).items():
                unit = member.get("x-unit")
                if unit in words:
                    assert re.search(words[unit], member["description"]), (path, name)


def test_required_members_exist() -> None:
    for path in FILES:
        for name, schema in read(path).get("$defs", {}).items():
            assert set(schema.get("required", ())) <= set(schema.get("properties", {})), (
                path,
                name,
            )
            assert len(schema.get("enum", ())) == len(schema.get("x-enum-descriptions", ()))
            assert set(schema.get("x-enum-since", ())) <= set(schema.get("enum", ()))


def test_error_codes_have_names_of_their_own() -> None:
    rows = read(FOLDER / "errors.json")["errors"]
    codes = [row["err_code"] for row in rows]
    assert codes == sorted(set(codes))
    assert len({row["name"] for row in rows}) == len(rows)
    assert all(re.fullmatch(r"[A-Z][A-Z0-9_]+", row["name"]) for row in rows)
    assert all(row["description"].endswith(".") for row in rows)
