"""Put the schema folder into one compound document.

Each file becomes an entry of ``$defs`` with its own ``$id``, as draft 2020-12 describes, so that
any validator resolves the references between them without a network or a folder.
"""

from __future__ import annotations

import json
from typing import Any

from schemas import BASE, Schemas


def document(schemas: Schemas) -> str:
    """Return the text of ``schema.json``."""
    compound: dict[str, Any] = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"{BASE}schema.json",
        "title": "JetStream",
        "description": "Generated from schema/ by codegen/bundle.py. Edit that folder instead.",
        "$defs": {path: _embedded(text) for path, text in schemas.files.items()},
    }
    return json.dumps(compound, ensure_ascii=False, separators=(",", ":")) + "\n"


def _embedded(document: dict[str, Any]) -> dict[str, Any]:
    """Return a file's schema; the dialect is ours alone, other tools need only the draft."""
    return {
        key: "https://json-schema.org/draft/2020-12/schema" if key == "$schema" else value
        for key, value in document.items()
    }
