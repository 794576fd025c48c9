"""Bodies of step-down requests."""

from __future__ import annotations

from typing import Any

import pytest

from twinstream.core.api.placement import placement_of, step_down_body
from twinstream.errors import BadArgument


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ((None, None, ()), {}),
        (("n1", None, ()), {"preferred": "n1"}),
        ((None, "east", ("ssd", "big")), {"cluster": "east", "tags": ["ssd", "big"]}),
    ],
)
def test_placement_contains_the_given_values(given: Any, expected: dict[str, Any]) -> None:
    assert placement_of(*given) == expected
    assert step_down_body(*given) == ({"placement": expected} if expected else None)


@pytest.mark.parametrize(
    ("given", "said"),
    [(("", None, ()), "preferred"), ((None, "", ()), "cluster"), ((None, None, "ssd"), "ssd")],
)
def test_a_placement_of_nothing_is_refused(given: Any, said: str) -> None:
    with pytest.raises(BadArgument, match=said):
        placement_of(*given)
