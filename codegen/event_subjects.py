"""Generate `event_subjects.py`, the table of the subjects of advisories and metrics."""

from __future__ import annotations

from schemas import Schemas

HEADER = '''"""The subject of each advisory and metric, by type.

Generated from schema/advisory and schema/metric by codegen/event_subjects.py. Edit those instead.
"""

from __future__ import annotations

from typing import Final

'''


def module(schemas: Schemas) -> str:
    """Return the text of `event_subjects.py`."""
    rows: dict[str, tuple[str, str]] = {}
    for name, (path, schema) in schemas.definitions().items():
        if path.startswith(("advisory/", "metric/")) and "x-subject" in schema:
            rows[schema["properties"]["type"]["const"]] = (name, schema["x-subject"])
    # Because of the trailing commas, ruff formats each entry over several lines.
    lines = "".join(
        f'    "{kind}": ("{name}", "{subject}",),\n'
        for kind, (name, subject) in sorted(rows.items())
    )
    doc = "The class name and the subject of each event type. A name in braces is one token."
    table = f"EVENT_SUBJECTS: Final[dict[str, tuple[str, str]]] = {{\n{lines}}}\n"
    return f'{HEADER}{table}"""{doc}"""\n'
