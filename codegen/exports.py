"""Generate `twinstream/models/__init__.py` and `index.py`: the public names and their modules.

The names of generated classes are read from `schema/`; the hand-written names are listed in this
module. A name is imported on first use, because an import of all 140 classes takes too long.
"""

from __future__ import annotations

from schemas import Schemas

HAND_WRITTEN = {
    "twinstream.models.codec.json_object": ["JsonObject"],
    "twinstream.models.codec.model": ["Model"],
    "twinstream.models.codec.open_enum": ["OpenEnum"],
    "twinstream.models.codec.codec": [
        "decode",
        "decode_response",
        "encode",
        "encode_json",
    ],
    "twinstream.models.codec.decode_error": ["DecodeError"],
    "twinstream.models.times.duration": ["Duration"],
    "twinstream.models.codec.evolve": ["evolve"],
    "twinstream.models.stored_config": ["ConfigError", "effective_consumer", "effective_stream"],
    "twinstream.models.files.config_files": [
        "FileConfig",
        "FileConfigs",
        "FileProblem",
        "load_configs",
    ],
    "twinstream.models.codec.json_schema": ["json_schema", "schema_names"],
    "twinstream.models.lint": ["lint_consumer", "lint_stream"],
    "twinstream.models.plan": ["Change", "Plan", "plan_consumer", "plan_stream"],
    "twinstream.models.problem": ["Problem"],
    "twinstream.models.size": ["headers_size", "storage_size"],
    "twinstream.models.times.timestamp": ["Timestamp"],
    "twinstream.models.names.transforms": ["partition", "transform_subject"],
    "twinstream.models.updates": ["validate_consumer_update", "validate_stream_update"],
    "twinstream.models.validation": ["validate_consumer", "validate_pull", "validate_stream"],
}

HEADER = '''"""{title}

Generated from schema/ by codegen/exports.py. Edit that file instead.
{more}"""
'''

INIT_DOC = """
Each name is imported on first use, so that an import of the package is fast.
"""

INIT_TAIL = """

def __getattr__(name: str) -> object:
    module = MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
"""


def index(schemas: Schemas) -> str:
    """Return the text of `index.py`, with the tables `MODULES` and `TYPES`."""
    text = HEADER.format(title="The module of each public name of this package.", more="")
    text += "\nfrom __future__ import annotations\n\n"
    text += _table("MODULES", "The module of each public name.", modules(schemas))
    types = "The name of the class for each value of a `type` member."
    text += "\n" + _table("TYPES", types, schemas.types())
    return text


def package(schemas: Schemas) -> str:
    """Return the text of `__init__.py`."""
    names = modules(schemas)
    title = "Typed models of the JetStream API, usable without a connection."
    text = HEADER.format(title=title, more=INIT_DOC)
    text += "\nfrom __future__ import annotations\n\n"
    text += "from importlib import import_module\nfrom typing import TYPE_CHECKING\n\n"
    text += "from twinstream.models.index import MODULES\n\nif TYPE_CHECKING:\n"
    for module in sorted(set(names.values())):
        listed = sorted((name for name in names if names[name] == module), key=_isort)
        text += f"    from {module} import (\n"
        text += "".join(f"        {name},\n" for name in listed) + "    )\n"
    text += "\n__all__ = [\n" + "".join(f'    "{name}",\n' for name in sorted(names, key=_isort))
    return text + "]\n" + INIT_TAIL


def modules(schemas: Schemas) -> dict[str, str]:
    """Return the module of each public name, sorted by name."""
    found = {name: module for module, names in HAND_WRITTEN.items() for name in names}
    found |= schemas.modules()
    return dict(sorted(found.items()))


def _table(name: str, doc: str, rows: dict[str, str]) -> str:
    lines = "".join(f'    "{key}": "{value}",\n' for key, value in sorted(rows.items()))
    return f'{name}: dict[str, str] = {{\n{lines}}}\n"""{doc}"""\n'


def _isort(name: str) -> tuple[int, str]:
    """Return the sort key of a name in the order of ruff: constants, classes, other names."""
    kind = 0 if name.isupper() else 1 if name[0].isupper() else 2
    return kind, name
