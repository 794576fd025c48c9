"""Contracts: the JSON Schemas of a stream's payloads, which its file names by subject.

`apply` stores them in the metadata of the stream, so that a later `plan` can compare. Source of
the limit of 128 KiB for the metadata: nats-server.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from attrs import evolve, frozen

from twinstream.models import FileConfig, FileProblem, JsonObject, Problem
from twinstream.models.files.config_files import STDIN_NAME

if TYPE_CHECKING:
    from twinstream.codecs.schema_changes import SchemaChange

Contracts = Mapping[str, JsonObject]
"""The schemas by the subjects of their messages, which may be filters."""

METADATA: Final = "twinstream.payloads"
"""The key of the stream's metadata."""

_RULE: Final = "D-PAYLOADS"


@frozen
class ContractChange:
    """A difference between the stored contract and the one in the file."""

    subject: str
    text: str
    is_break: bool


def with_contracts(config: FileConfig) -> tuple[FileConfig, list[FileProblem]]:
    """Return a stream's config with its contracts in the metadata, and the problems of the schemas.

    A config without `payloads` is returned unchanged.
    """
    if config.payloads is None:
        return config, []
    found: dict[str, JsonObject] = {}
    problems: list[FileProblem] = []
    payloads: object = config.payloads
    if not isinstance(payloads, dict):
        return config, [_problem(config, "", "a mapping of subjects to schema files is required.")]
    for subject, schema in cast("JsonObject", payloads).items():
        try:
            found[subject] = _schema(config, subject, schema)
        except _BadContract as error:
            problems.append(_problem(config, subject, f"{error}."))
    if problems:
        return config, problems
    given = config.members.get("metadata")
    metadata = cast("JsonObject", given) if isinstance(given, dict) else {}
    stored = json.dumps(found, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    members = {**config.members, "metadata": {**metadata, METADATA: stored}}
    return evolve(config, members=members), []


class _BadContract(Exception):
    """A subject or its schema is invalid."""


def _schema(config: FileConfig, subject: str, schema: Any) -> JsonObject:
    """Return the schema of a subject, which is a mapping or the path of a file."""
    from twinstream.codecs.json_schema import checked_schema, schema_in
    from twinstream.core.wire.subjects import check_filter
    from twinstream.errors import TwinstreamError

    try:
        check_filter(subject)
        folder = Path() if config.file == STDIN_NAME else Path(config.file).parent
        found = schema_in(folder, schema)
        checked_schema(found, "the schema")
    except TwinstreamError as error:
        raise _BadContract(str(error)) from error
    return found


def _problem(config: FileConfig, subject: str, message: str) -> FileProblem:
    path = f"payloads.{subject}" if subject else "payloads"
    problem = Problem(path, None, _RULE, message, "")
    return FileProblem(config.file, config.line, config.column, problem)


def stored_contracts(metadata: Mapping[str, str] | None) -> Contracts:
    """Return the contracts in a stream's metadata. What is no valid schema counts as none.

    Any client that may update the stream can write the metadata.
    """
    text = (metadata or {}).get(METADATA)
    if not isinstance(text, str):
        return {}
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(found, dict):
        return {}
    stored = cast("JsonObject", found)
    return {subject: schema for subject, schema in stored.items() if _is_schema(schema)}


def _is_schema(schema: object) -> bool:
    from twinstream.codecs.json_schema import checked_schema
    from twinstream.errors import BadArgument

    if not isinstance(schema, dict):
        return False
    try:
        checked_schema(cast("JsonObject", schema), "the schema")
    except (BadArgument, RecursionError):
        return False
    return True


def contract_changes(old: Contracts, new: Contracts) -> list[ContractChange]:
    """Return the differences between the contracts of a stream."""
    from twinstream.codecs.schema_changes import schema_changes

    found: list[ContractChange] = []
    for subject in sorted(old.keys() & new.keys()):
        changes: list[SchemaChange] = schema_changes(old[subject], new[subject])
        found += [ContractChange(subject, str(one), one.kind == "break") for one in changes]
    for subject in sorted(new.keys() - old.keys()):
        found.append(ContractChange(subject, "the subject has a schema now", False))
    for subject in sorted(old.keys() - new.keys()):
        found.append(ContractChange(subject, "the subject has no schema any more", False))
    return found
