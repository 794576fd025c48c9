"""The package's own names, and what importing it costs."""

from __future__ import annotations

import subprocess
import sys

import pytest

import js_spark


def test_all_names_are_there() -> None:
    assert js_spark.__all__ == sorted(js_spark.__all__)
    for name in js_spark.__all__:
        assert getattr(js_spark, name).__name__ == name
    assert dir(js_spark) == js_spark.__all__
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = js_spark.nothing


@pytest.mark.parametrize("module", ["js_spark", "js_spark.java", "js_spark.session"])
def test_importing_brings_no_pyspark(module: str) -> None:
    code = f"import sys, {module}; print([m for m in sys.modules if m in ('pyspark', 'pyarrow')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("module", ["js_spark", "js_spark.pipeline", "js_spark.session"])
def test_without_pyspark_the_import_says_how_to_get_it(module: str) -> None:
    code = f"import sys; sys.modules['pyspark'] = None; import {module}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "in a clone: pip install '.[spark,java]'" in done.stderr


def test_the_source_is_found_by_its_module() -> None:
    import pyspark_jetstream

    assert pyspark_jetstream.DefaultSource is js_spark.JetStreamDataSource
    assert pyspark_jetstream.DefaultSource.name() == "jetstream"
