"""Configs drawn by hypothesis from the spec: any member, any value of its kind.

Mutations (`config_makers`) stay close to valid configs and near known limits. These strategies
know only the shapes, so they reach unexpected characters, numbers and combinations.
"""

from __future__ import annotations

from typing import Any

from config_makers import PARENTS
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from twinstream.models.files.shapes import SHAPES, WORDS

# No surrogates: JSON cannot carry them. No NUL: stores on disk fail on it, which is environment.
LETTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
NEAR = "ab.*> \t$-_/{}()1%"
TOKENS = st.one_of(
    st.sampled_from(["a", "b", "orders", "*", ">", "{{wildcard(1)}}", "$1", "$JS", "x-1", "ü"]),
    st.text(st.sampled_from(NEAR), max_size=4),
    st.text(LETTERS, max_size=3),
)
SUBJECTS = st.lists(TOKENS, min_size=1, max_size=4).map(".".join)
EDGES = [0, 1, -1, 2, 10, 99_999_999, 10**8, 10**9, 120 * 10**9, 2**31 - 1, 2**31, 2**63 - 1]
BOUNDS = {
    "int64": (-(2**63), 2**63 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "uint64": (0, 2**64 - 1),
    "duration": (-(2**63), 2**63 - 1),
}
# A dot in a name is another subject, which ends elsewhere.
ODD_NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\0."), min_size=1, max_size=5)
TIMES = st.datetimes().map(lambda moment: f"{moment.isoformat()}Z")
SUBJECT_MEMBERS = {
    "subjects",
    "filter_subject",
    "filter_subjects",
    "deliver_subject",
    "src",
    "dest",
    "api",
    "deliver",
}
NAMES = {"stream": "S1", "consumer": "C1"}
RECORDS = {"stream": "StreamConfig", "consumer": "ConsumerConfig"}
ORIGINS = st.sampled_from(["O1", "O2", "S1", "gone"])
LEFT_OUT = {
    # What a lone server refuses or does in its own time, whatever else a config says.
    "num_replicas",
    "placement",
    # What counts on the server's clock before the answer is read.
    "pause_until",
}
# Short-lived consumers may be gone before they are looked at.
AT_LEAST_A_SECOND = {"inactive_threshold"}
# Room that the disk of the machine may not have.
SMALL = {"max_bytes"}


def value(kind: str, name: str) -> SearchStrategy[Any]:
    """Return values of a member's kind."""
    if name in SMALL:
        return st.integers(-5, 10_000)
    if name in AT_LEAST_A_SECOND:
        return st.integers(10**9, 2**62)
    if kind in BOUNDS:
        low, high = BOUNDS[kind]
        inside = [edge for edge in EDGES if low <= edge <= high]
        return st.one_of(st.sampled_from(inside), st.integers(low, high))
    if kind == "text":
        return SUBJECTS if name in SUBJECT_MEMBERS else st.text(LETTERS, max_size=20)
    if kind == "bool":
        return st.booleans()
    if kind == "time":
        return TIMES
    if kind.startswith("word:"):
        return st.sampled_from(sorted(WORDS[kind[5:]]))
    if kind.startswith("["):
        return st.lists(value(kind[1:-1], name), max_size=3)
    if kind.startswith("{"):
        return st.dictionaries(st.text(LETTERS, max_size=5), st.text(LETTERS, max_size=5))
    return record(kind)


def record(shape: str) -> SearchStrategy[dict[str, Any]]:
    """Return objects with any of a record's members."""
    members = {
        name: value(kind, name)
        for name, (kind, _) in SHAPES[shape].items()
        if name not in LEFT_OUT and name not in ("name", "durable_name")
    }
    required = {"name": ORIGINS} if shape == "StreamSource" else {}
    # Few members at a time: the first fault hides all others.
    return st.sets(st.sampled_from(sorted(members)), max_size=4).flatmap(
        lambda chosen: st.fixed_dictionaries(
            {**required, **{name: members[name] for name in sorted(chosen)}}
        )
    )


def stream() -> SearchStrategy[dict[str, Any]]:
    """Return stream configs."""
    named = st.fixed_dictionaries({"name": st.one_of(st.just("S1"), ODD_NAMES)})
    return st.tuples(named, record("StreamConfig")).map(lambda parts: {**parts[0], **parts[1]})


def consumer() -> SearchStrategy[tuple[str, dict[str, Any]]]:
    """Return the name of a stream and a consumer config."""
    base = st.sampled_from(
        [
            {"name": "C1"},
            {"durable_name": "C1", "ack_policy": "explicit"},
            {"name": "C1", "deliver_subject": "deliver.x"},
        ]
    )
    odd = ODD_NAMES.flatmap(lambda name: st.sampled_from([{"name": name}, {"durable_name": name}]))
    parts = st.tuples(st.one_of(base, odd), record("ConsumerConfig"))
    config = parts.map(lambda both: {**both[0], **both[1]})
    return st.tuples(st.sampled_from(sorted(PARENTS)), config)


STRATEGIES = {"stream": stream, "consumer": consumer}


def drawn(kind: str, count: int, start: int) -> list[Any]:
    """Return `count` configs; the same `start` gives the same configs."""
    found: list[Any] = []
    if not count:
        return found

    @seed(start)
    @settings(
        max_examples=count,
        phases=[Phase.generate],
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(STRATEGIES[kind]())
    def collect(config: Any) -> None:
        found.append(config)

    collect()
    return found
