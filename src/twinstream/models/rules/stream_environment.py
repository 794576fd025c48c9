"""Rules that only a server can check, because they depend on the cluster or the account."""

from __future__ import annotations

from attrs import evolve, frozen

from twinstream.models.error_codes import (
    NO_SUITABLE_PEERS,
    REPLICAS_NOT_SUPPORTED,
    STORAGE_EXCEEDED,
    STREAM_INVALID_CONFIG,
)
from twinstream.models.problem import Problem
from twinstream.models.rules.rule import Hit, Rule
from twinstream.models.rules.stream_case import StreamCase

SR = Rule[StreamCase]


def turns_counter_ttl_on(case: StreamCase) -> bool:
    """Whether a delete marker enables `allow_msg_ttl` in a stream of counters.

    The server refuses this combination if it checks the config a second time.
    """
    marked = case["subject_delete_marker_ttl"] > 0 and not case["allow_msg_ttl"]
    return bool(case["allow_msg_counter"] and marked)


@frozen
class NeedsServer:
    """A rule whose problems get `needs_server`, because only a server can decide them."""

    rule: SR

    def problems(self, case: StreamCase) -> list[Problem]:
        """Return the problems of the rule with `needs_server` set."""
        return [evolve(problem, needs_server=True) for problem in self.rule.problems(case)]


STREAM_ENVIRONMENT = (
    NeedsServer(
        SR(
            "S-REPL-STANDALONE",
            REPLICAS_NOT_SUPPORTED,
            "num_replicas",
            "{value} replicas need a cluster of at least as many servers.",
            "Use 1 for a single server.",
            lambda case: case["num_replicas"] > 1,
        )
    ),
    NeedsServer(
        SR(
            # A cluster checks a new stream twice. The first check enables `allow_msg_ttl`, so the
            # second check refuses the config.
            "S-CTR-MARKER",
            STREAM_INVALID_CONFIG,
            "subject_delete_marker_ttl",
            "a cluster refuses counters with a delete marker, and so do all servers in updates.",
            "Remove one of them.",
            lambda case: not case.update and turns_counter_ttl_on(case),
            since="2.12.0",
        )
    ),
    NeedsServer(
        SR(
            "S-NO-PEERS",
            NO_SUITABLE_PEERS,
            "placement",
            "only the cluster knows whether servers fit the placement.",
            "Compare with the servers' tags and cluster names.",
            lambda case: bool(case["placement"]) and [Hit("placement")],
        )
    ),
    NeedsServer(
        SR(
            "S-ACC-STORAGE",
            STORAGE_EXCEEDED,
            "max_bytes",
            "only the server knows whether {value} bytes are left for the account.",
            "Compare with the account's limits.",
            lambda case: case["max_bytes"] > 0,
        )
    ),
)
