"""The JSON Schema document: valid by the draft, consistent with responses, strict for files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import goldens
import jsonschema
import pytest
import yaml

from twinstream.models import StreamConfig, encode, json_schema, load_configs, schema_names
from twinstream.models.index import TYPES

EXAMPLES = Path(__file__).parents[2] / "examples" / "orders"
ANSWERS = sorted((goldens.FOLDER / goldens.NEWEST).rglob("*.json"))


def validator(name: str | None = None) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(json_schema(name))


@pytest.fixture(scope="module")
def files() -> jsonschema.Draft202012Validator:
    """A validator for a file of configs."""
    return validator()


@pytest.mark.parametrize("name", [None, *schema_names()])
def test_every_document_is_valid_and_whole(name: str | None) -> None:
    document = json_schema(name)
    jsonschema.Draft202012Validator.check_schema(document)
    assert document["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    for reference in references(document):
        assert reference == "#" or reference.removeprefix("#/$defs/") in document["$defs"]


def references(value: Any) -> list[str]:
    if isinstance(value, list):
        return [found for item in value for found in references(item)]
    if not isinstance(value, dict):
        return []
    own = [value["$ref"]] if isinstance(value.get("$ref"), str) else []
    return own + [found for item in value.values() for found in references(item)]


def test_decoder_accepts_messages_of_servers() -> None:
    validators: dict[str, jsonschema.Draft202012Validator] = {}
    checked = 0
    for path in ANSWERS:
        members = goldens.load(path)
        name = TYPES.get(members.get("type", ""))
        if name is None or ("error" in members and "api" in members["type"]):
            continue
        validators.setdefault(name, validator(name)).validate(members)
        checked += 1
    assert checked > 200


def test_answers_may_hold_more_and_configs_may_not() -> None:
    members = goldens.load(goldens.FOLDER / goldens.NEWEST / "single" / "stream-info.json")
    members = {**members, "new": 1, "config": {**members["config"], "new": 1}}
    assert validator("StreamInfo").is_valid(members)
    assert not validator("StreamConfig").is_valid(members["config"])


def test_configs_are_validated_in_depth() -> None:
    stream = validator("StreamConfig")
    assert stream.is_valid(encode(StreamConfig(name="S", subjects=["a"])))
    for bad in (
        {"name": "S", "subjects": "a"},
        {"storage": "disk"},
        {"max_msg_size": 2**31},
        {"mirror": {"nam": "O"}},
        {"sources": [{"name": "O", "external": {"appi": "x"}}]},
        {"pedantic": True},
    ):
        assert not stream.is_valid(bad), bad
    assert validator("StreamCreateRequest").is_valid({"name": "S", "pedantic": True})
    assert not validator("ConsumerConfig").is_valid({"durable_nam": "C"})


def test_files_are_accepted_in_every_form(files: jsonschema.Draft202012Validator) -> None:
    stream, consumer = {"name": "S", "subjects": ["a"]}, {"durable_name": "C"}
    wrapped = {"stream_name": "S", "config": consumer}
    for good in (
        stream,
        consumer,
        wrapped,
        {"config": stream, "state": {}},
        [stream, consumer],
        {"streams": [stream], "consumers": [wrapped]},
    ):
        assert files.is_valid(good), good
    for bad in (
        5,
        {"name": "S", "subject": ["a"]},
        {"streams": [{**stream, "retenshion": "limits"}]},
        {"stream_name": "S", "config": {"durable_nam": "C"}},
        {},
    ):
        assert files.is_valid(bad) == (bad == {}), bad  # nothing set is a consumer's default


def test_files_agree_with_load_configs(files: jsonschema.Draft202012Validator) -> None:
    for name in ("stream", "consumer", "advisories", "broken"):
        path = EXAMPLES / f"{name}.yaml"
        shape = [one for one in load_configs(path).errors if one.problem.err_code == 10025]
        assert files.is_valid(yaml.safe_load(path.read_text())) == (not shape), name


def test_files_of_the_nats_command_are_accepted(files: jsonschema.Draft202012Validator) -> None:
    for path in ANSWERS:
        if path.name in ("stream-info.json", "consumer-info-full.json"):
            files.validate({**goldens.load(path), "created": "2026-01-31T08:00:00Z"})


def test_plain_documents_have_keywords_of_the_draft_alone() -> None:
    def keys(value: Any) -> set[str]:
        if isinstance(value, list):
            return {key for item in value for key in keys(item)}
        if not isinstance(value, dict):
            return set()
        return set(value) | {key for item in value.values() for key in keys(item)}

    assert any(key.startswith("x-") for key in keys(json_schema("StreamConfig")))
    assert not any(key.startswith("x-") for key in keys(json_schema(plain=True)))


def test_required_members_are_described_in_the_same_schema() -> None:
    """Strict validators, such as Ajv, do not find required members behind a reference."""
    for schema in objects(json_schema()):
        if isinstance(schema.get("required"), list):
            assert schema["type"] == "object"
            assert set(schema["required"]) <= schema["properties"].keys()


def objects(value: Any) -> list[dict[str, Any]]:
    if isinstance(value, list):
        return [found for item in value for found in objects(item)]
    if not isinstance(value, dict):
        return []
    return [value, *(found for item in value.values() for found in objects(item))]


def test_an_unknown_name_is_an_error_with_a_suggestion() -> None:
    with pytest.raises(ValueError, match="unknown type 'StreamConfg'; did you mean 'StreamConfig'"):
        json_schema("StreamConfg")
