"""Relations among many subjects are the same as if all pairs were compared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tuned import tuner
from twinstream.models.names.overlaps import Relation, first_related
from twinstream.models.names.subjects import can_meet, is_contained

RELATIONS = pytest.mark.parametrize("relation", [can_meet, is_contained])
# What is no subject is compared, too: the server judges overlaps before it comes to such a one.
TOKENS = st.sampled_from(["a", "b", "*", ">", "*x", ">y", ""])
SUBJECTS = st.lists(st.lists(TOKENS, min_size=1, max_size=4).map(".".join), max_size=9)


def compared(
    ones: Sequence[str],
    others: Sequence[str],
    relation: Relation,
    *,
    apart: bool = False,
    later: bool = False,
) -> dict[int, int]:
    """Return the first related subject for each subject, by comparing all pairs."""
    found: dict[int, int] = {}
    for index, one in enumerate(ones):
        for at, other in enumerate(others):
            skipped = (apart and at == index) or (later and at <= index)
            if not skipped and relation(one, other):
                found.setdefault(index, at)
    return found


@pytest.fixture(autouse=True, scope="module", params=[1, 4, 4096])
def always_sets(request: pytest.FixtureRequest) -> Iterator[None]:
    """Use sets even for few subjects, with this number of bits each."""
    with pytest.MonkeyPatch.context() as patch:
        tuned = tuner(patch, __name__)
        tuned("compared pairs", -1)
        tuned("overlap chunk", request.param)
        yield


@RELATIONS
@given(ones=SUBJECTS, others=SUBJECTS)
def test_two_lists(relation: Relation, ones: list[str], others: list[str]) -> None:
    assert first_related(ones, others, relation) == compared(ones, others, relation)


@RELATIONS
@given(begins=st.lists(st.lists(TOKENS, max_size=9), min_size=1, max_size=3), ends=SUBJECTS)
def test_subjects_that_begin_alike(
    relation: Relation, begins: list[list[str]], ends: list[str]
) -> None:
    subjects = [".".join([*begins[number % len(begins)], end]) for number, end in enumerate(ends)]
    found = first_related(subjects, subjects, relation, apart=True)
    assert found == compared(subjects, subjects, relation, apart=True)


@RELATIONS
@given(subjects=SUBJECTS)
def test_a_list_with_itself(relation: Relation, subjects: list[str]) -> None:
    found = first_related(subjects, subjects, relation, apart=True)
    assert found == compared(subjects, subjects, relation, apart=True)
    found = first_related(subjects, subjects, relation, later=True)
    assert found == compared(subjects, subjects, relation, later=True)
