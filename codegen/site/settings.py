"""The pages of settings: each with its type, unit, default, versions, and what validation says."""

from __future__ import annotations

import importlib
import re
from typing import Any, Final

from attrs import frozen
from codegen.schemas import Schemas
from codegen.site.markdown import code, page, plain, rows, table
from codegen.site.raised_texts import raised_texts
from codegen.site.setting_rules import Verdict, verdicts

from twinstream.models.buckets.streams import SAME
from twinstream.models.index import MODULES

__all__ = ["SETTINGS", "setting_pages"]

_SCHEMAS: Final = Schemas()
_RECORDS: Final = _SCHEMAS.definitions()
_UNITS: Final = {
    "ns": "nanoseconds in JSON; in Python a `timedelta` or `Duration`",
    "bytes": "bytes",
    "bits": "bits a second",
    "messages": "messages",
}
# The time that the server takes for a duration which is absent, in a description.
_SERVERS: Final = re.compile(r", ([^,]*\b(?:seconds|minutes)\b.*?)(?: when absent)?\.$")
_CHECKED: Final = (
    "`validate_stream`, `validate_consumer` and `twinstream validate` find what is listed under"
    " *validation* without a server; the first finding is the server's own error, with its code. A"
    " *warning* is about a setting that servers accept. A setting of another type, or one that does"
    " not exist, is refused, too."
)


@frozen
class _Page:
    title: str
    about: str
    records: tuple[str, ...]


SETTINGS: Final = {
    "stream": _Page(
        "Settings of streams",
        "What `StreamConfig` has. [Configuration](../../configuration.md) shows files with it,"
        " [operating](../../operating.md) how to change a stream. Records inside a stream are on"
        " [their own page](stream-parts.md).",
        ("StreamConfig",),
    ),
    "stream-parts": _Page(
        "Settings inside streams",
        "The records in settings of streams and buckets: mirrors, sources, transforms, placement.",
        (
            *("StreamSource", "SubjectTransform", "ExternalStream", "SourceConsumer"),
            *("Republish", "Placement", "ConsumerLimits"),
        ),
    ),
    "consumer": _Page(
        "Settings of consumers",
        "What `ConsumerConfig` has. [Consuming](../../consuming.md) shows its use.",
        ("ConsumerConfig",),
    ),
    "pull": _Page(
        "Settings of pull requests",
        "What a client sends to get messages. `fetch`, `messages` and `consume` set these members"
        " from their arguments. Servers answer a refused request with a status, not an error code.",
        ("PullRequest",),
    ),
    "key-value": _Page(
        "Settings of key-value buckets",
        "What `KeyValueConfig` has. A bucket is a stream, whose settings follow from these; see"
        " [key-value](../../key-value.md).",
        ("KeyValueConfig",),
    ),
    "object-store": _Page(
        "Settings of object stores",
        "What `ObjectStoreConfig` has. An object store is a stream, whose settings follow from"
        " these; see [object store](../../object-store.md).",
        ("ObjectStoreConfig",),
    ),
    "groups": _Page(
        "Settings of consumer groups",
        "What `StaticGroupConfig` and `ElasticGroupConfig` have. Groups are kept by clients in a"
        " bucket, so no server checks them: `BadArgument` has the texts below. See"
        " [partitioned groups](../../partitioned-groups.md).",
        ("StaticGroupConfig", "ElasticGroupConfig", "PartitioningFilter", "MemberMapping"),
    ),
}
"""The pages of settings by their names."""


def setting_pages() -> dict[str, str]:
    """Return the texts of the pages by their paths below the folder of the reference."""
    found = {f"settings/{name}.md": _page(each) for name, each in SETTINGS.items()}
    listed = "".join(f"{name}\n" for name in SETTINGS)
    found["settings/index.md"] = page(
        "Settings", _CHECKED, f"```{{toctree}}\n:maxdepth: 1\n\n{listed}```\n"
    )
    return found


def _page(chosen: _Page) -> str:
    parts = [_record(name, alone=len(chosen.records) == 1) for name in chosen.records]
    if "StaticGroupConfig" in chosen.records:
        texts = raised_texts("twinstream.core.groups.config")["BadArgument"]
        parts.append(
            "## What validation says about groups\n\n" + "".join(f"- {code(e)}\n" for e in texts)
        )
    return page(chosen.title, chosen.about, *parts)


def _record(name: str, *, alone: bool) -> str:
    _, schema = _RECORDS[name]
    said = verdicts(name)
    cls = getattr(importlib.import_module(MODULES[name]), name)
    sections = [
        _setting(name, cls, member, one, said.get(member, []), alone=alone)
        for member, one in schema["properties"].items()
    ]
    head = "" if alone else f"## {name}\n\n{plain(schema['description'])}\n\n"
    return head + _said(said.get("", [])) + "".join(sections)


def _setting(
    record: str, cls: type, member: str, schema: dict[str, Any], said: list[Verdict], *, alone: bool
) -> str:
    _, owner = _RECORDS[record]
    target = _target(schema)
    since = schema.get("x-since") or owner.get("x-since", "")
    required = member in owner.get("required", ())
    known = {
        "type": code(_type(cls, member)),
        "in JSON": plain(_kind(schema)),
        "unit": plain(_UNITS.get(schema.get("x-unit", ""), "")),
        "default": "required" if required else _default(schema),
        "server": f"{since} and newer" if since else "every supported version",
        "stored as": _stored(record, member),
    }
    heading = f"## {member}" if alone else f"### {member} of {record}"
    words = table(("value", "means", "server"), _words(target)) if "enum" in target else ""
    return (
        f"{heading}\n\n{plain(schema['description'])}\n\n{rows(known.items())}{words}{_said(said)}"
    )


def _type(cls: type, member: str) -> str:
    kind = str(cls.__annotations__[member]).strip("'\"")
    return kind.removesuffix(" | None")


def _default(schema: dict[str, Any]) -> str:
    value = schema.get("default")
    if value is None:
        found = _SERVERS.search(schema["description"])
        return f"{plain(found[1])}, set by the server" if found else "none"
    shown = code(str(value).lower() if isinstance(value, bool) else str(value))
    return f"{shown} ({_span(value)})" if value and schema.get("x-unit") == "ns" else shown


def _span(nanoseconds: int) -> str:
    """Return a duration as people write it: `2 min`."""
    seconds = nanoseconds / 1e9
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds % size == 0:
            return f"{seconds // size:.0f} {unit}"
    return f"{seconds:g} s"


def _kind(schema: dict[str, Any]) -> str:
    """Return the kind of the value in JSON."""
    target = _target(schema)
    if "enum" in target:
        return "one of the words below"
    kind = target.get("type", "object")
    if kind == "array":
        return f"list, each: {_kind(target['items'])}"
    if "properties" in target:
        return "object"
    if "additionalProperties" in target:
        return "object of texts"
    text = target["description"].rstrip(".") if "$ref" in schema else ""
    words = {"string": "text", "boolean": "`true` or `false`", "integer": "whole number"}
    return text[:1].lower() + text[1:] if text else words.get(kind, kind)


def _target(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the definition that a schema refers to, otherwise the schema itself."""
    if "$ref" not in schema:
        return schema
    name = schema["$ref"].rpartition("/")[2]
    if name in _RECORDS:
        return _RECORDS[name][1]
    found: dict[str, Any] = _SCHEMAS.files["common.json"]["$defs"][name]
    return found


def _words(target: dict[str, Any]) -> list[tuple[str, str, str]]:
    since = target.get("x-enum-since", {})
    return [
        (code(word), plain(text), since.get(word, ""))
        for word, text in zip(target["enum"], target["x-enum-descriptions"], strict=True)
    ]


def _stored(record: str, member: str) -> str:
    """Return the setting of the stream that has the value of a bucket's setting."""
    if record not in {"KeyValueConfig", "ObjectStoreConfig"}:
        return ""
    names = {**SAME, "bucket": "name"} if record == "KeyValueConfig" else {"ttl": "max_age"}
    _, streams = _RECORDS["StreamConfig"]
    target = names.get(member, "name" if member == "bucket" else member)
    is_setting = target in streams["properties"]
    return f"[`{target}`](stream.md#{target}) of the bucket's stream" if is_setting else ""


def _said(said: list[Verdict]) -> str:
    if not said:
        return ""
    lines = []
    for each in said:
        kind = "warning" if each.is_warning else ""
        number = f"error [{each.err_code}](../error-codes.md#{_anchor(each.err_code)})"
        is_error = each.err_code > 1000
        place = [kind, number if is_error else "", plain(each.servers), code(each.rule)]
        lines.append(
            f"- {code(each.text)} {plain(each.fix)} ({', '.join(one for one in place if one)})\n"
        )
    return "**Validation**\n\n" + "".join(lines) + "\n"


def _anchor(err_code: int) -> str:
    return f"error-{err_code}"
