"""The public API is what docs/api.md shows, and stays small enough to be learned."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import js_async
import js_sync
from tests.sources import PACKAGES
from twinstream.core.arguments.nats_py_names import ATTRIBUTES, GUESSES

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = ROOT / "codegen" / "public_api.py"

# The most public attributes of each handle. A new one replaces another, or this table is changed
# together with the page.
MOST = {"JetStream": 40, "Stream": 26, "Consumer": 16, "KeyValue": 25, "ObjectStore": 18}
MOST_NAMES = 117


def test_the_page_of_the_api_is_that_of_the_tree() -> None:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--check"], capture_output=True, text=True, cwd=ROOT
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_page_has_all_packages() -> None:
    page = (ROOT / "docs" / "api.md").read_text("utf-8")
    for name in PACKAGES:
        assert f"\n## js_async.{name}\n" in page


def test_the_client_has_few_names() -> None:
    print(f"{len(js_async.__all__)} names in js_async")
    assert len(js_async.__all__) <= MOST_NAMES
    assert set(js_async.__all__) - set(js_sync.__all__) == {"from_nats"}


@pytest.mark.parametrize("name", MOST)
def test_handles_have_few_attributes(name: str) -> None:
    hints = {*ATTRIBUTES.get(name, ()), *GUESSES.get(name, ())}
    public = [each for each in dir(getattr(js_async, name)) if not each.startswith("_")]
    public = [each for each in public if each not in hints]
    print(f"{len(public)} public attributes of {name}")
    assert len(public) <= MOST[name], public


@pytest.mark.parametrize("twin", ["js_async", "js_sync"])
def test_packages_export_what_they_define(twin: str) -> None:
    for name in PACKAGES:
        package = importlib.import_module(f"{twin}.{name}")
        assert list(package.__all__) == sorted(package.__all__), name
        assert all(hasattr(package, each) for each in package.__all__)
