"""The tests that `make test` leaves out, because others prove the same; `make test-long` runs them.

Each entry names them, and says which tests prove the same.
"""

from __future__ import annotations

import os
import re
from typing import Final, NamedTuple

__all__ = ["LEFT_OUT", "LONG", "is_left_out"]

LONG: Final = any(os.environ.get(name) for name in ("TWINSTREAM_LONG", "TWINSTREAM_SOAK"))
"""Whether no test is left out: set by `make test-long` and by `make soak`."""


class LeftOut(NamedTuple):
    """Some tests of some files: the names of the files, a pattern of their ids, and the reason."""

    files: tuple[str, ...]
    pattern: str
    reason: str


LEFT_OUT: Final = (
    LeftOut(
        ("tests/_sync/client/test_permissions.py",),
        r"::test_an_operation_uses_what_it_declares_and_nothing_else\[(leaf|import)-",
        "a domain or a prefix is part of subjects, which core code builds for both twins;"
        " tests/_async/client/test_permissions.py tries each operation in these worlds",
    ),
    LeftOut(
        ("tests/_sync/client/test_permissions.py",),
        r"::test_an_operation_fails_without_any_one_entry\[",
        "that no entry is needless is a property of the table, which both twins share;"
        " tests/_async/client/test_permissions.py tries each list without each entry",
    ),
    LeftOut(
        ("tests/_async/nats_py/test_nats_py.py",),
        r"::test_an_operation_over_nats_py_uses_what_it_declares\[(leaf|import)-",
        "subjects are complete when they reach the connection;"
        " tests/_async/client/test_permissions.py tries them in these worlds, and this test tries"
        " each operation over nats-py in one",
    ),
    LeftOut(
        tuple(
            f"tests/_async/{name}.py"
            for name in (
                "api/test_exists",
                "api/test_imports",
                "api/test_operating",
                "api/test_wrong_settings",
                "consume/test_missing",
                "counters/test_counters",
                "exactly_once/test_processing",
                "groups/test_groups",
                "health/test_health",
                "kv/test_buckets",
                "kv/test_mirrors",
                "kv/test_put_many",
                "kv/test_views",
                "object_store/test_interop",
                "object_store/test_interrupted",
                "object_store/test_object_store",
                "outbox/test_outbox",
                "read/test_mirror_reads",
                "read/test_snapshots",
                "schedules/test_schedules",
                "workers/test_dead_letters",
                "workers/test_forged_advisories",
                "workers/test_forged_letters",
                "workers/test_workers",
            )
        ),
        r"\[(.*-)?nats-py connection\b",
        "this code is above the connection, and only uses requests, publishes, subscriptions and"
        " ordered reads, which other files try over nats-py; tests/_async/nats_py/test_nats_py.py"
        " runs each of its operations over nats-py, too",
    ),
)


def is_left_out(nodeid: str) -> bool:
    """Return whether `make test` leaves a test out."""
    file, _, rest = nodeid.partition("::")
    return any(file in each.files and re.search(each.pattern, f"::{rest}") for each in LEFT_OUT)
