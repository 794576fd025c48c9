"""The package's own names, and what importing it costs."""

from __future__ import annotations

import subprocess
import sys

import pytest

import twinstream.spark


def test_all_names_are_there() -> None:
    assert twinstream.spark.__all__ == sorted(twinstream.spark.__all__)
    for name in twinstream.spark.__all__:
        assert getattr(twinstream.spark, name).__name__ == name
    assert dir(twinstream.spark) == twinstream.spark.__all__
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = twinstream.spark.nothing


@pytest.mark.parametrize(
    "module",
    ["twinstream.spark", "twinstream.spark.session.java", "twinstream.spark.session.session"],
)
def test_importing_brings_no_pyspark(module: str) -> None:
    code = f"import sys, {module}; print([m for m in sys.modules if m in ('pyspark', 'pyarrow')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_source_is_found_by_its_module() -> None:
    import pyspark_jetstream

    assert pyspark_jetstream.DefaultSource is twinstream.spark.JetStreamDataSource
    assert pyspark_jetstream.DefaultSource.name() == "jetstream"
