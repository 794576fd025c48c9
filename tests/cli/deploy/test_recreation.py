"""Re-creations that `plan` and `apply` accept or refuse without a server."""

from __future__ import annotations

from typing import Any

import pytest

from twinstream.cli.deploy.recreation import judged
from twinstream.cli.deploy.step import Allowed, step_of
from twinstream.models import FileConfig, StreamConfig, decode, plan_stream


def verb(old: dict[str, Any], new: dict[str, Any], unknown: str = "") -> str:
    """Return the verb of the step that also changes the storage, which needs a re-creation."""
    before, after = ({"name": "S", "subjects": ["s"], **one} for one in (old, new))
    before["storage"] = "memory"
    typed = decode(before, StreamConfig)
    config = FileConfig("stream", "s.yaml", 1, 1, after, "S")
    plan, creation = plan_stream(typed, after), plan_stream(None, after)
    step = step_of(config, plan, creation, Allowed(recreation=True), "its messages")
    assert step.verb == "recreate"
    return judged(step, typed, unknown).verb


CLUSTERED = {"num_replicas": 3, "placement": {"cluster": "c"}}


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ({}, {}, "recreate"),
        ({"num_replicas": 3}, {"num_replicas": 3}, "recreate"),
        ({"num_replicas": 3}, {"num_replicas": 1}, "recreate"),
        ({"num_replicas": 1}, {"num_replicas": 3}, "refused"),
        (CLUSTERED, CLUSTERED, "recreate"),
        (CLUSTERED, {"num_replicas": 3, "placement": {"cluster": "d"}}, "refused"),
        ({"num_replicas": 3}, CLUSTERED, "refused"),
        # The bytes of the old storage are of no use in the other one.
        ({"max_bytes": 100}, {"max_bytes": 100}, "refused"),
        ({"max_bytes": 100}, {}, "recreate"),
    ],
    ids=str,
)
def test_new_stream_may_need_what_the_old_one_needed(
    old: dict[str, Any], new: dict[str, Any], expected: str
) -> None:
    assert verb(old, new) == expected


def test_failed_requests_leave_re_creations_undecided() -> None:
    assert verb({}, {}, "the limits of the account") == "refused"
