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
        ("OrderedConsumerConfig", "; did you mean the arguments of Stream.ordered()?"),
        ("Msg", "; did you mean 'Message'?"),
        ("xyz", ""),
    ],
)
def test_a_missing_name_of_the_front_is_explained(name: str, hint: str) -> None:
    with pytest.raises(AttributeError) as caught:
        getattr(js_sync, name)
    assert str(caught.value) == f"module 'js_sync' has no attribute {name!r}{hint}"
    assert not hasattr(js_sync, name)
    with pytest.raises(ImportError) as refused:
        exec(f"from js_sync import connect, {name}")
    expected = f"cannot import name {name!r} from 'js_sync'{hint}"
    # Without a hint, Python's own text, which continues with the path.
    assert str(refused.value).startswith(expected)
    assert str(refused.value) == expected or not hint
    assert refused.value.name == "js_sync"


def test_the_error_of_an_import_does_not_depend_on_the_number_of_names() -> None:
    # With more than 255 names, the index of a name needs a second instruction.
    many = "; ".join(f"n{number} = {number}" for number in range(300))
    for _ in range(20):  # The interpreter specialises instructions that run often.
        with pytest.raises(ImportError, match=r"import it from twinstream\.models"):
            exec(f"{many}\nfrom js_sync import AckPolicy", {})


def test_a_module_that_is_being_imported_is_found(
    package: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    find, _ = on_demand("some_package", {"Worker": "decimal"})
    package.__getattr__ = find  # type: ignore[method-assign]
    package.__path__ = []
    # As in a cyclic import, the module is not yet an attribute of its package.
    inner = ModuleType("some_package.Workers")
    monkeypatch.setitem(sys.modules, "some_package.Workers", inner)
    found: dict[str, object] = {}
    exec("from some_package import Workers", found)
    assert found["Workers"] is inner


def test_the_front_knows_the_packages_above_the_client() -> None:
    assert _index.PACKAGES == PACKAGES
