"""Names that are imported on first use."""

from __future__ import annotations

import subprocess
import sys
from types import ModuleType

import pytest

import js_sync
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
