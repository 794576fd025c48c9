"""The schema folder, read."""

from __future__ import annotations

import json
from functools import cached_property
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "schema"
BASE = "https://twinstream.example/schema/"
"""Where the files' identifiers begin; the domain is reserved, nothing is ever fetched."""
GROUPS = ("advisory", "api", "config", "metric")


class Schemas:
    """All schema files that define models, by path below ``schema/``."""

    @cached_property
    def files(self) -> dict[str, dict[str, Any]]:
        """The parsed files, in order of their paths."""
        paths = [FOLDER / "common.json"]
        for group in GROUPS:
            paths += sorted((FOLDER / group).glob("*.json"))
        return {path.relative_to(FOLDER).as_posix(): json.loads(path.read_text()) for path in paths}

    def definitions(self) -> dict[str, tuple[str, dict[str, Any]]]:
        """Return file and schema of each named object and enumeration."""
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
        """Return the generated module of each class, and of the words of each enumeration."""
        found: dict[str, str] = {}
        for name, (path, schema) in self.definitions().items():
            module = "twinstream.models.generated." + path.removesuffix(".json").replace("/", ".")
            found[name] = module
            if "enum" in schema:  # its words, for annotations
                found[f"{name}Word"] = module
        return found

    def types(self) -> dict[str, str]:
        """Return the class for each constant ``type`` member that names one class alone."""
        found: dict[str, str] = {}
        for name, (_, schema) in self.definitions().items():
            const = schema.get("properties", {}).get("type", {}).get("const")
            if const is not None:
                found[const] = name
        return found


def _is_model(schema: dict[str, Any]) -> bool:
    return "enum" in schema or "properties" in schema or "allOf" in schema
