"""The public names of the package, and the cost of importing it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

import twinstream.models
from twinstream.models import Model, OpenEnum
from twinstream.models.index import MODULES, TYPES

GENERATED = Path(twinstream.models.__file__).parent / "generated"


def generated_classes() -> set[str]:
    names: set[str] = set()
    for path in GENERATED.rglob("*.py"):
        for line in path.read_text().splitlines():
            if line.startswith("class "):
                names.add(line.split()[1].partition("(")[0])
    return names


def test_all_is_sorted_and_complete() -> None:
    names = list(twinstream.models.__all__)
    assert len(names) == len(set(names))
    classes = [name for name in names if name[0].isupper()]
    functions = [name for name in names if name[0].islower()]
    assert names == sorted(classes) + sorted(functions)
    assert set(names) == set(MODULES)


def test_every_generated_class_is_exported() -> None:
    classes = generated_classes()
    assert len(classes) > 130
    assert classes <= set(twinstream.models.__all__)
    for name in classes:
        assert issubclass(getattr(twinstream.models, name), (Model, OpenEnum))


def test_every_public_name_has_a_docstring() -> None:
    for name in twinstream.models.__all__:
        is_alias = name == "JsonObject" or name.endswith("Word")
        assert is_alias or getattr(twinstream.models, name).__doc__


def test_words_are_those_of_their_enumeration() -> None:
    names = [name for name in twinstream.models.__all__ if name.endswith("Word")]
    assert "AckPolicyWord" in names
    for name in names:
        words = get_args(getattr(twinstream.models, name))
        assert list(words) == [
            str(word) for word in getattr(twinstream.models, name.removesuffix("Word"))
        ]


def test_no_docstring_calls_a_duration_a_number() -> None:
    for path in GENERATED.rglob("*.py"):
        assert "nanoseconds" not in path.read_text(), path


def test_types_name_models() -> None:
    assert TYPES["io.nats.jetstream.advisory.v1.max_deliver"] == "MaxDeliver"
    for kind, name in TYPES.items():
        model = getattr(twinstream.models, name)
        assert model.__attrs_attrs__[1].default is not None or kind


def test_unknown_names_are_attribute_errors() -> None:
    with pytest.raises(AttributeError, match="no attribute 'StreamConfigs'"):
        twinstream.models.StreamConfigs  # type: ignore[attr-defined]  # noqa: B018


def test_dir_lists_the_names() -> None:
    assert dir(twinstream.models) == sorted(twinstream.models.__all__)


@pytest.mark.parametrize(
    ("statement", "absent"),
    [
        ("import twinstream.models", ["attrs", "cattrs", "json", "jsonschema", "yaml", "asyncio"]),
        ("from twinstream.models import StreamConfig", ["cattrs", "jsonschema", "yaml", "asyncio"]),
        (
            "from twinstream.models import decode, validate_stream; validate_stream({'name': 'S'})",
            [
                "cattrs",
                "jsonschema",
                "yaml",
                "asyncio",
                "twinstream.models.generated.advisory.stream",
            ],
        ),
    ],
)
def test_importing_remains_cheap(statement: str, absent: list[str]) -> None:
    program = f"import sys; {statement}; print([m for m in {absent!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr
