"""`make demo` as a whole: its sums, its output and its page."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
from click.testing import CliRunner

from examples.demo import advisories, story
from examples.demo.command import demo
from examples.demo.scene import Scene
from js_sync import JetStream
from tests.examples import ROOT
from tests.quick_java import QUICK_JAVA
from tests.soak import LONGEST
from tests.tuned import Tuned

EVENTS = 500
UNHURRIED_DEMO = """
import runpy
from examples.demo import advisories
advisories._PATIENCE = 300
runpy.run_module("examples.demo", run_name="__main__", alter_sys=True)
"""
"""`python -m examples.demo`, which waits for its advisories as long as a busy machine takes."""


class Page(HTMLParser):
    """A parser that collects the references of a page and counts its charts."""

    def __init__(self) -> None:
        super().__init__()
        self.references: list[str] = []
        self.charts = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.charts += tag == "svg"
        self.references += [value or "" for name, value in attrs if name in ("src", "href")]


def test_a_small_demo_without_spark_adds_up(tmp_path: Path, tuned: Tuned) -> None:
    tuned("advisory patience", 300)
    report = tmp_path / "page.html"
    arguments = ["--events", str(EVENTS), "--no-spark", "--report", str(report)]
    result = CliRunner().invoke(demo, arguments)
    assert result.exit_code == 0, result.stdout + result.stderr
    for number in range(1, 7):
        assert f"{number}/6" in result.stdout
    assert "broken.yaml:" in result.stdout
    assert "max_deliver" in result.stdout
    assert "All numbers agree." in result.stdout
    assert "[/]" not in result.stdout  # styles are no text
    page = Page()
    page.feed(report.read_text("utf-8"))
    assert page.charts == 1
    assert page.references == []


def test_a_small_demo_with_spark_lands_typed_tables(tmp_path: Path) -> None:
    import pyarrow.dataset

    report, tables = tmp_path / "page.html", tmp_path / "tables"
    arguments = ["--report", str(report), "--output", str(tables), "--json"]
    done = subprocess.run(
        [sys.executable, "-c", UNHURRIED_DEMO, "--events", str(EVENTS), *arguments],
        cwd=ROOT,
        env=os.environ | QUICK_JAVA,
        capture_output=True,
        text=True,
        timeout=LONGEST,
    )
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["passed"] is True
    assert answer["sums"]["in Parquet, rows and dead letters"] == {
        "expected": EVENTS,
        "found": EVENTS,
    }
    orders = pyarrow.dataset.dataset(tables / "orders", partitioning="hive").to_table()
    assert orders.num_rows == EVENTS - answer["sums"]["dead letters in Parquet"]["found"]
    assert str(orders.schema.field("amount").type) == "double"
    assert str(orders.schema.field("at").type).startswith("timestamp")
    page = Page()
    page.feed(report.read_text("utf-8"))
    assert page.charts == 2


def test_a_sum_that_is_off_fails_the_demo(tmp_path: Path, tuned: Tuned) -> None:
    """Another client removes the advisories before the demo reads them."""

    def lose(scene: Scene, jet: JetStream) -> None:
        jet.get_stream("EVENTS").purge()
        advisories.show(scene, jet)

    tuned("advisory patience", 0.1)
    tuned(
        "demo steps",
        [(*step[:2], lose if step[0] == "Listen" else step[2]) for step in story.STEPS],
    )
    report = tmp_path / "page.html"
    arguments = ["--events", str(EVENTS), "--no-spark", "--report", str(report)]
    result = CliRunner().invoke(demo, arguments)
    assert result.exit_code == 1
    assert "advisories of max_deliver" in result.stderr
    assert "some numbers are wrong" in report.read_text("utf-8")


def test_a_folder_that_is_not_empty_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    result = CliRunner().invoke(demo, ["--output", str(tmp_path)])
    assert result.exit_code == 2
    assert "not empty" in result.stderr
    assert (tmp_path / "mine.txt").read_text() == "mine"


def test_demo_without_spark_fails_before_it_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    result = CliRunner().invoke(demo, ["--report", str(tmp_path / "page.html")])
    assert result.exit_code == 1
    assert result.stdout == ""
    assert "in a clone: pip install '.[spark,java]'" in result.stderr
    assert "--no-spark" in result.stderr


def test_the_demo_has_the_six_steps_in_order() -> None:
    titles = [title for title, _, _ in story.STEPS]
    assert titles == ["Check and create", "Publish", "Consume", "Listen", "Land", "Add up"]
