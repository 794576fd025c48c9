"""Generate the Arrow types of all advisories and metrics from `schema/`.

    python codegen/event_types.py            write src/twinstream/spark/decode/generated/events.py
    python codegen/event_types.py --check    print a diff and exit with 1 if the file is stale

`twinstream.spark.decode.json_schema` converts JSON Schema to Arrow types. It also converts the
schemas of users. This script only resolves references between schema files and writes the module.
"""

from __future__ import annotations

import argparse
import json
import posixpath
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from freshness import keep_fresh
from twinstream.spark.decode import fields
from twinstream.spark.decode.json_schema import struct_of

ROOT = Path(__file__).resolve().parent.parent
SCHEMAS = ROOT / "schema"
OUTPUT = ROOT / "src" / "twinstream" / "spark" / "decode" / "generated" / "events.py"

HEAD = '''\
"""Generated from schema/advisory and schema/metric by codegen/event_types.py.

Edit those files instead, then run `make gen`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from twinstream.spark.decode.event import Event
from twinstream.spark.decode.fields import (
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    array_of,
    json_text,
    map_of,
    optional,
    record,
    required,
)

'''

SCALARS: dict[pa.DataType, str] = {
    fields.BOOLEAN: "BOOLEAN",
    fields.DATE: "DATE",
    fields.DOUBLE: "DOUBLE",
    fields.FLOAT: "FLOAT",
    fields.INTEGER: "INTEGER",
    fields.LONG: "LONG",
    fields.STRING: "STRING",
    fields.TIMESTAMP: "TIMESTAMP",
}


class Library:
    """All schema files, with absolute references such as `advisory/api.json#/$defs/X`."""

    def __init__(self, folder: Path) -> None:
        self.files: dict[str, Any] = {}
        for file in sorted(folder.rglob("*.json")):
            name = file.relative_to(folder).as_posix()
            self.files[name] = absolute(json.loads(file.read_text(encoding="utf-8")), name)

    def resolve(self, ref: str) -> Any:
        """Return the schema at an absolute reference."""
        name, _, pointer = ref.partition("#")
        found = self.files[name]
        for part in filter(None, pointer.split("/")):
            found = found[part]
        return found

    def events(self) -> Iterator[tuple[str, Any]]:
        """Yield the type and the schema of each event.

        The schema of an event has a constant for the member `type`.
        """
        for name, document in self.files.items():
            if name.startswith(("advisory/", "metric/")):
                for schema in document.get("$defs", {}).values():
                    kind = schema.get("properties", {}).get("type", {}).get("const")
                    if kind:
                        yield kind, schema

    def shared(self) -> Iterator[tuple[str, Any]]:
        """Yield the name and the schema of each shared record, which `common.json` defines."""
        for name, schema in self.files["common.json"]["$defs"].items():
            if schema.get("properties"):
                yield name, schema


def absolute(node: Any, base: str) -> Any:
    """Return a schema of the file `base` with its references converted to absolute ones."""
    if isinstance(node, list):
        return [absolute(each, base) for each in node]
    if not isinstance(node, dict):
        return node
    found = {key: absolute(value, base) for key, value in node.items()}
    ref = found.get("$ref")
    if isinstance(ref, str):
        name, _, pointer = ref.partition("#")
        target = posixpath.normpath(posixpath.join(posixpath.dirname(base), name)) if name else base
        found["$ref"] = f"{target}#{pointer}"
    return found


class Writer:
    """A writer of Python source text that creates given Arrow types.

    `named` are the types that have a constant in the generated module, and the constants' names.
    """

    def __init__(self) -> None:
        self.named: list[tuple[pa.StructType, str]] = []

    def kind(self, kind: pa.DataType) -> str:
        """Return the source text of a type.

        This is the name of the constant for the type, or an expression if there is no constant.
        """
        for known, name in self.named:
            if known.equals(kind, check_metadata=True):
                return name
        if kind in SCALARS:
            return SCALARS[kind]
        if isinstance(kind, pa.StructType):
            return self.struct(kind)
        if isinstance(kind, pa.ListType):
            return f"array_of({self.kind(kind.value_type)})"
        if isinstance(kind, pa.MapType):
            return f"map_of({self.kind(kind.item_type)})"
        raise TypeError(f"no source text for {kind!r}")

    def struct(self, kind: pa.StructType) -> str:
        """Return the source text of a record."""
        return "record(" + ", ".join(map(self.field, kind)) + ",)"

    def field(self, field: pa.Field) -> str:
        """Return the source text of one member of a record."""
        comment = fields.comment_of(field)
        words = [json.dumps(field.name)]
        needed = fields.is_required(field)
        if not fields.is_json(field):
            words.append(self.kind(field.type))
        if comment:
            words.append(json.dumps(comment, ensure_ascii=False))
        if fields.is_json(field):
            return f"json_text({', '.join([*words, 'must_exist=True'] if needed else words)})"
        exact = ["exact=True"] if fields.is_exact(field) else []
        if not needed:
            return f"optional({', '.join([*words, *exact])})"
        if fields.is_nullable(field):
            words.append("nullable=True")
        words += exact
        return f"required({', '.join(words)})"


def module() -> str:
    """Return the formatted text of the generated module."""
    library, writer, parts = Library(SCHEMAS), Writer(), [HEAD]
    for name, schema in library.shared():
        columns = struct_of(schema, resolver=library.resolve)
        constant = "_" + snake(name).upper()
        parts.append(f"{constant}: Final = {writer.struct(columns)}\n")
        writer.named.append((columns, constant))
    kinds: list[str] = []
    for kind, schema in sorted(library.events()):
        short = kind.rpartition(".")[2]
        members = writer.struct(struct_of(schema, resolver=library.resolve))
        subject = re.sub(r"\{\w+\}", "*", schema["x-subject"])
        parts.append(
            f"{short.upper()}: Final = Event({short!r}, {kind!r}, {subject!r}, {members})\n"
            f'"""{schema["description"]}"""\n'
        )
        kinds.append(short.upper())
    parts.append(
        "EVENTS: Final[Mapping[str, Event]] = MappingProxyType("
        "{event.type: event for event in (" + ", ".join(kinds) + ",)})\n"
        '"""All events, by their `type`."""\n'
    )
    return formatted(pruned("\n".join(parts)))


def pruned(text: str) -> str:
    """Return the text without the shared records that no event uses."""
    while True:
        constants = re.findall(r"^(_[A-Z_0-9]+): Final", text, re.MULTILINE)
        idle = [each for each in constants if len(re.findall(rf"\b{each}\b", text)) == 1]
        if not idle:
            break
        for each in idle:
            text = re.sub(rf"^{each}: Final = .*\n\n?", "", text, flags=re.MULTILINE)
    return text


def snake(name: str) -> str:
    """Return a name such as `PeerInfo` in the form `peer_info`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def formatted(text: str) -> str:
    """Return the text without unused imports, formatted as the project's code."""
    ruff = [sys.executable, "-m", "ruff"]
    name = ["--stdin-filename", str(OUTPUT)]
    for command in (["check", "-q", "--select", "F401,I", "--fix-only"], ["format", "-q"]):
        done = subprocess.run(
            [*ruff, *command, *name, "-"], input=text, capture_output=True, text=True, check=True
        )
        text = done.stdout
    return text


def main() -> int:
    """Write or check the module and return the exit code."""
    parser = argparse.ArgumentParser(description="Write the Arrow types of advisories and metrics.")
    parser.add_argument("--check", action="store_true", help="only check whether the file is stale")
    arguments = parser.parse_args()
    return 0 if keep_fresh(OUTPUT, module(), check=arguments.check) else 1


if __name__ == "__main__":
    raise SystemExit(main())
