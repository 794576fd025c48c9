"""The parsed files of the folder `schema/`."""

from __future__ import annotations

import json
from functools import cached_property
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "schema"
BASE = "https://twinstream.example/schema/"
"""The prefix of the files' `$id`. Tools cannot fetch it, because its domain is reserved."""
GROUPS = ("advisory", "api", "config", "metric")


class Schemas:
    """All schema files that define models."""

    @cached_property
    def files(self) -> dict[str, dict[str, Any]]:
        """The parsed files by their path below `schema/`: `common.json`, then the groups."""
        paths = [FOLDER / "common.json"]
        for group in GROUPS:
            paths += sorted((FOLDER / group).glob("*.json"))
        return {path.relative_to(FOLDER).as_posix(): json.loads(path.read_text()) for path in paths}

    def definitions(self) -> dict[str, tuple[str, dict[str, Any]]]:
        """Return the file path and the schema of each object type and enumeration, by name."""
        found: dict[str, tuple[str, dict[str, Any]]] = {}
        for path, document in self.files.items():
            named = dict(document.get("$defs", {}))
            if "title" in document:
                named[document["title"]] = document
            for name, schema in named.items():
                if _is_model(schema):
                    found[name] = (path, schema)
        return found

    def modules(self) -> dict[str, str]:
        """Return the generated module of each class, and of the `Word` type of each enumeration."""
        found: dict[str, str] = {}
        for name, (path, schema) in self.definitions().items():
            module = "twinstream.models.generated." + path.removesuffix(".json").replace("/", ".")
            found[name] = module
            if "enum" in schema:  # the module also defines a `Literal` type of the values
                found[f"{name}Word"] = module
        return found

    def types(self) -> dict[str, str]:
        """Return the name of the class for each constant value of a `type` member."""
        found: dict[str, str] = {}
        for name, (_, schema) in self.definitions().items():
            const = schema.get("properties", {}).get("type", {}).get("const")
            if const is not None:
                found[const] = name
        return found


def _is_model(schema: dict[str, Any]) -> bool:
    return "enum" in schema or "properties" in schema or "allOf" in schema
