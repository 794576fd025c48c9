"""The charts of the pages that `pipeline report` and the demo write."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from twinstream.cli import chart


def test_charts_are_well_formed_and_escape_names() -> None:
    areas = chart.stacked_areas(
        [chart.Series("a<b", [0, 5, 3]), chart.Series("c", [1, 1, 1])],
        end=3.0,
        x_label="s",
        y_label="n",
        title='"t"',
    )
    root = ElementTree.fromstring(areas)
    assert [node.text for node in root.iter("title")] == ["a<b", "c"]
    bars = ElementTree.fromstring(chart.bars([chart.Bar("x", 4), chart.Bar("y", 2)], title="t"))
    widths = [float(node.attrib["width"]) for node in bars.iter("rect")]
    assert widths[0] == pytest.approx(2 * widths[1], rel=0.01)


def test_empty_charts_do_not_fail() -> None:
    ElementTree.fromstring(chart.bars([], title="t"))
    nothing = chart.stacked_areas(
        [chart.Series("a", [0.0])], end=0.0, x_label="", y_label="", title="t"
    )
    ElementTree.fromstring(nothing)


@pytest.mark.parametrize(
    ("value", "ceiling"), [(0, 1), (1, 1), (1.2, 2), (2.3, 2.5), (7, 10), (99, 100), (0.03, 0.05)]
)
def test_axes_end_at_round_numbers(value: float, ceiling: float) -> None:
    assert chart.nice_ceiling(value) == pytest.approx(ceiling)


@pytest.mark.parametrize("highest", [1, 2, 3, 4, 5, 9, 26, 250, 7300, 0.02])
def test_no_two_lines_of_a_grid_have_the_same_label(highest: float) -> None:
    ceiling = chart.nice_ceiling(highest)
    labels = [chart.axis_label(ceiling * quarter / 4) for quarter in range(5)]
    assert len(set(labels)) == 5
    assert [float(label.replace(",", "")) for label in labels] == pytest.approx(
        [ceiling * quarter / 4 for quarter in range(5)]
    )
