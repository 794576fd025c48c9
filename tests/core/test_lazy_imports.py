"""Names that are imported on first use."""

from __future__ import annotations

import subprocess
import sys
from types import ModuleType

import pytest

import js_sync
from js_sync import _index
from tests.sources import PACKAGES
from twinstream.core.lazy_imports import on_demand


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    made = ModuleType("some_package")
    monkeypatch.setitem(sys.modules, "some_package", made)
    return made


def test_a_name_is_found_once(package: ModuleType) -> None:
    find, _ = on_demand("some_package", {"Decimal": "decimal"})
    from decimal import Decimal

    assert find("Decimal") is Decimal
    assert vars(package)["Decimal"] is Decimal


def test_a_name_that_is_not_there_is_an_attribute_error(package: ModuleType) -> None:
    find, _ = on_demand("some_package", {})
    with pytest.raises(AttributeError, match="'some_package' has no attribute 'Decimol'"):
        find("Decimol")


def test_all_names_are_listed_before_they_are_used(package: ModuleType) -> None:
    _, names = on_demand("some_package", {"Decimal": "decimal"})
    assert "Decimal" in names()
    assert "__name__" in names()


def test_the_front_lists_what_it_offers() -> None:
    program = "import js_sync; assert set(js_sync.__all__) <= set(dir(js_sync)); js_sync.Stream"
    subprocess.run([sys.executable, "-c", program], check=True)
    with pytest.raises(ImportError, match="Konnection"):
        exec("from js_sync import Konnection")
    assert not hasattr(js_sync, "Konnection")


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("Worker", ": import it from js_sync.workers"),
        ("AckPolicy", ": import it from twinstream.models"),
        ("KeyNotFoundError", "; did you mean 'KeyNotFound'?"),
        ("StreamConfg", "; did you mean 'StreamConfig'?"),
        ("xyz", ""),
    ],
)
def test_a_missing_name_of_the_front_is_explained(name: str, hint: str) -> None:
    with pytest.raises(AttributeError) as caught:
        getattr(js_sync, name)
    assert str(caught.value) == f"module 'js_sync' has no attribute {name!r}{hint}"


def test_the_front_knows_the_packages_above_the_client() -> None:
    assert _index.PACKAGES == PACKAGES
