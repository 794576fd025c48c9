"""The program `examples/spark_table.py`."""

from __future__ import annotations

from pathlib import Path

from tests.examples import ROOT, check_program
from twinstream.testing import NatsServer


def test_the_program_prints_what_it_says(server: NatsServer, tmp_path: Path) -> None:
    check_program(ROOT / "examples" / "spark_table.py", server, tmp_path, seconds=280)
    assert list((tmp_path / "sales.parquet").glob("*.parquet"))
