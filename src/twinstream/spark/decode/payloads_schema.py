"""Find the JSON Schema of a read in the configuration file of its streams (`payloads`)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import cast

from twinstream.codecs.json_schema import schema_in
from twinstream.core.wire.subject_match import covers, crossing
from twinstream.core.wire.subjects import check_filter
from twinstream.errors import BadArgument
from twinstream.models import FileConfig, JsonObject, load_configs
from twinstream.spark.errors import SchemaError

__all__ = ["payloads_schema"]

# These settings store messages under subjects that `subjects` does not list.
_OTHER_SUBJECTS = ("mirror", "sources", "subject_transform")


def payloads_schema(path: str, streams: Sequence[str], subjects: Sequence[str]) -> str:
    """Return the text of the JSON Schema of all messages that a read returns.

    Args:
        path: The file with the configurations of the streams, as for `twinstream apply`.
        streams: The names of the streams.
        subjects: The subject filters of the read; empty for all subjects.

    Raises:
        SchemaError: The file cannot be read or does not have the schema, some messages would have
            no schema, or the messages have different schemas.
    """
    loaded = load_configs(path)
    configs = {one.name: one for one in loaded.configs if one.kind == "stream"}
    found: dict[str, JsonObject] = {}
    for name in streams:
        if name not in configs:
            why = f"; {loaded.problems[0]}" if loaded.problems and not configs else ""
            known = f": it has {_names(configs)}" if configs else ""
            raise SchemaError(f"the file {path!r} has no stream {name!r}{known}{why}")
        found[f"stream {name}"] = _schema_of(configs[name], subjects)
    return _text(found, path, "read each of these streams by itself")


def _schema_of(config: FileConfig, subjects: Sequence[str]) -> JsonObject:
    """Return the schema of the messages of a stream that match the filters `subjects`.

    Raises `SchemaError` if `payloads` does not give all these messages one schema.
    """
    where = f"stream {config.name} in {config.file!r}"
    payloads: object = config.payloads
    if not isinstance(payloads, dict) or not payloads:
        raise SchemaError(f"{where}: 'payloads' with a JSON Schema for each subject is required")
    wanted = subjects or _stored_subjects(config)
    found: dict[str, JsonObject] = {}
    try:
        for subject, schema in cast("JsonObject", payloads).items():
            check_filter(subject)
            if any(crossing((subject, each)) for each in wanted):
                found[subject] = schema_in(Path(config.file).parent, schema)
    except BadArgument as error:
        raise SchemaError(f"{where}: payloads: {error}") from error
    if not found:
        raise SchemaError(f"{where}: payloads has no schema for {_names(wanted)}")
    # Called for its error: it refuses different schemas.
    _text(found, where, "read them separately, each with its subject as the filter")
    for each in wanted:
        if not any(covers(subject, each) for subject in found):
            raise SchemaError(
                f"{where}: not all messages of {each} have a schema; read only"
                f" {_names(found)}, by a filter of subjects"
            )
    return next(iter(found.values()))


def _stored_subjects(config: FileConfig) -> Sequence[str]:
    """Return filters that match all subjects of the stream's messages."""
    if any(config.members.get(name) for name in _OTHER_SUBJECTS):
        return [">"]
    given: object = config.members.get("subjects") or [config.name]
    return list(map(str, cast("list[object]", given))) if isinstance(given, list) else [">"]


def _text(schemas: Mapping[str, JsonObject], where: str, remedy: str) -> str:
    """Return the text of the only schema. Raises `SchemaError` if there are several."""
    texts = {json.dumps(schema, sort_keys=True) for schema in schemas.values()}
    if len(texts) > 1:
        raise SchemaError(f"{where}: {_names(schemas)} have different schemas; {remedy}")
    # The order of the columns is the order of the members in the file.
    return json.dumps(next(iter(schemas.values())))


def _names(names: Iterable[str]) -> str:
    return ", ".join(names)
