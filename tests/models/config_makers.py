"""Random configs, most of them nearly valid: valid bases with a few changed members."""

from __future__ import annotations

import copy
from random import Random
from typing import Any

SECOND = 1_000_000_000
MS = 1_000_000

NAMES = [
    "S1",
    "a b",
    "a.b",
    "a*",
    "",
    "x" * 255,
    "x" * 256,
    "a/b",
    "a\\b",
    "ü",
    "a\tb",
    "S>",
    "$S",
    "a\x0bb",
]
SUBJECTS = [
    "a",
    "a.b",
    "a.*",
    "a.>",
    "*",
    ">",
    "*.b",
    "*.>",
    "b.*.c",
    "b.x.*",
    "a..b",
    ".a",
    "a.",
    "",
    "a b",
    "a.>.b",
    "foo*",
    "*foo.>",
    "bar.*",
    "a>b",
    "$JS.API.>",
    "$JS.EVENT.>",
    "$JS.EVENT.ADVISORY.>",
    "$SYS.>",
    "$SYS.ACCOUNT.>",
    "$SYS.ACCOUNT.A.*",
    "$JSC.a",
    "$NRG.x",
    "$KV.a.>",
    "S1",
    "x.y.z",
    "x.*.z",
    "a\tb",
    "ä.ö",
]
DURATIONS = [
    0,
    1,
    -1,
    99 * MS,
    100 * MS,
    SECOND,
    SECOND - 1,
    30 * SECOND,
    120 * SECOND,
    3600 * SECOND,
    -SECOND,
]
NUMBERS = [0, 1, -1, -2, 2, 5, 6, 10, 100, 1000, 2**31 - 1, 2**31, 2**63 - 1, -(2**63)]
WRONG = ["x", "5", 1.5, 1.0, True, None, [], {}, ["a"], {"a": 1}, 2**64, -(2**63) - 1, 10**30]
TIMES = [
    "2026-01-31T08:00:00Z",
    "2020-01-01T00:00:00.123456789Z",
    "2020-01-01T00:00:00+02:00",
    "2020-01-01T00:00:00-00:00",
    "2020-02-30T00:00:00Z",
    "2020-01-01 00:00:00Z",
    "2020-01-01T00:00:00",
    "2020-01-01T00:00:60Z",
    "2020-01-01T0:00:00Z",
    "2020-01-01T00:00:00,5Z",
    "0001-01-01T00:00:00Z",
    "",
    "now",
]
TRANSFORMS = [
    ("a.*", "b.$1"),
    ("a.*", "b.{{wildcard(1)}}"),
    ("a.*", "b.{{wildcard(2)}}"),
    ("a.*", "b.{{Wildcard(1)}}"),
    ("a.*", "b.{{WILDCARD(1)}}"),
    ("a.*.*", "b.{{partition(5,1,2)}}"),
    ("a.*", "b.{{partition(5)}}"),
    ("a.b", "b.{{partition(5)}}"),
    ("a.b", "b.{{random(5)}}"),
    ("a.*", "b.{{random(5)}}"),
    ("a.b", "b.{{wildcard(1)}}"),
    ("a.b", "b.$1"),
    ("a.*", "b.$x"),
    ("a.*", "b.$0"),
    ("a.*", "b.{{split(1,-)}}"),
    ("a.*", "b.{{SplitFromLeft(1,2)}}"),
    ("a.*", "b.{{sliceFromRight(1,2)}}"),
    ("a.*", "b.{{left(1,2)}}"),
    ("a.*", "b.{{right(1, 2)}}"),
    ("a.*", "b.{{split(1)}}"),
    ("a.*", "b.{{nothing(1)}}"),
    ("a.*", "b.{{wildcard(1)}}.c"),
    ("a.*", "b.{{wildcard(1)"),
    ("a.*", "b.c d"),
    ("a.>", "b.>"),
    ("a.>", "b"),
    ("a", "b.>"),
    ("", "b.>"),
    ("", "b"),
    ("a", ""),
    ("", ""),
    (">", "b.>"),
    ("a.*", "b.*"),
    ("a..b", "c"),
    ("a b", "c"),
    ("a.*.c", "x.$1"),
    ("a.b.*", "x.$1"),
    ("a.b.c", "x"),
    ("a", "a.b."),
    ("a.*", "{{partition(3,1)}}.x"),
    ("a.*", "x.{{partition(4294967296,1)}}"),
    ("*.*", "{{wildcard(2)}}.{{wildcard(1)}}"),
    ("foo.*", "bar.{{wildcard(1)}}"),
]
FLAGS = [
    "no_ack",
    "sealed",
    "deny_delete",
    "deny_purge",
    "allow_rollup_hdrs",
    "allow_direct",
    "mirror_direct",
    "discard_new_per_subject",
    "allow_msg_ttl",
    "allow_msg_counter",
    "allow_atomic",
    "allow_msg_schedules",
    "allow_batched",
]


class Maker:
    """A generator of configs. The same seed gives the same configs."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)

    def pick(self, items: list[Any]) -> Any:
        return copy.deepcopy(self.random.choice(items))

    def some(self, items: list[Any], most: int = 3) -> list[Any]:
        return [self.pick(items) for _ in range(self.random.randint(0, most))]

    def text(self) -> str:
        return self.pick(["", "x", "x" * 4096, "x" * 4097, "ü" * 2048, "ü" * 2049])

    def metadata(self) -> Any:
        size = self.pick([0, 10, 131072 - 17, 131072 - 16, 131072 - 15, 140000])
        return self.pick([{}, {"a": "b"}, {"k": "v" * size}, {"_nats.ver": "1"}, {"a": None}])

    def misspell(self, config: dict[str, Any]) -> None:
        key = self.pick(sorted(config) or ["x"])
        name = self.pick([key + "s", key[:-1], key.upper(), key.title(), "x_" + key, "new_thing"])
        config[name] = config.get(key, 1)


class StreamMaker(Maker):
    """A generator of stream configs."""

    def config(self) -> dict[str, Any]:
        """Return the next config."""
        config: dict[str, Any] = self.pick(
            [
                {"name": "S1"},
                {"name": "S1", "subjects": ["a.>", "b.*"], "storage": "memory"},
                {"name": "S1", "subjects": ["x.y"], "max_msgs_per_subject": 1, "discard": "new"},
                {"name": "S1", "retention": "workqueue", "subjects": ["a"]},
                {"name": "S1", "mirror": {"name": "O1"}},
                {"name": "S1", "sources": [{"name": "O1"}, {"name": "O2"}]},
                {"name": "S1", "subjects": ["q.>"], "allow_msg_ttl": True},
                {
                    "name": "S1",
                    "subjects": ["a.*"],
                    "subject_transform": {
                        "src": "a.*",
                        "dest": self.pick(["b.$1", "b.x", "a.x", "a.$1"]),
                    },
                    "republish": {"src": ">", "dest": ">"},
                },
            ]
        )
        for _ in range(self.random.choice([0, 1, 1, 2, 2, 3, 4])):
            self.change(config)
        return config

    def change(self, config: dict[str, Any]) -> None:
        """Change one member."""
        key, value = self.random.choice(list(self.changes().items()))
        if self.random.random() < 0.03:
            config[key] = self.pick(WRONG)
        elif self.random.random() < 0.03:
            self.misspell(config)
        elif key == "flags":
            config[self.pick(FLAGS)] = self.random.random() < 0.9
        else:
            config[key] = value()

    def changes(self) -> dict[str, Any]:
        """Return a generator of values for each member."""
        return {
            "name": lambda: self.pick(["S1"] * 5 + NAMES),
            "description": self.text,
            "subjects": lambda: self.some(SUBJECTS),
            "retention": lambda: self.pick(["limits", "interest", "workqueue", "Limits", ""]),
            "max_consumers": lambda: self.pick(NUMBERS),
            "max_msgs": lambda: self.pick(NUMBERS),
            "max_bytes": lambda: self.pick([0, -1, -5, 1, 1000]),
            "max_age": lambda: self.pick(DURATIONS),
            "max_msgs_per_subject": lambda: self.pick(NUMBERS),
            "max_msg_size": lambda: self.pick(NUMBERS),
            "discard": lambda: self.pick(["old", "new", "NEW", "x"]),
            "storage": lambda: self.pick(["file", "memory", "memory", "disk"]),
            "num_replicas": lambda: self.pick([0, 1, 1, 3, 5, 6, -1]),
            "duplicate_window": lambda: self.pick(DURATIONS),
            "placement": lambda: self.pick(
                [{}, {"cluster": ""}, {"tags": []}, {"preferred": "x"}, {"tags": ["a"], "x": 1}]
            ),
            "mirror": lambda: self.origin(),
            "sources": lambda: [self.origin() for _ in range(self.random.randint(0, 3))],
            "compression": lambda: self.pick(["none", "s2", "S2", "", "zip"]),
            "first_seq": lambda: self.pick([0, 1, 100, 2**64 - 1, -1, 2**64]),
            "subject_transform": self.transform,
            "republish": self.republish,
            "metadata": self.metadata,
            "consumer_limits": lambda: self.pick(
                [{}, {"max_ack_pending": 5}, {"inactive_threshold": -1}, {"max_ack": 1}]
            ),
            "subject_delete_marker_ttl": lambda: self.pick(DURATIONS),
            "persist_mode": lambda: self.pick(["", "default", "async", "async", "x"]),
            "pedantic": lambda: self.pick([True, True, False]),
            "flags": lambda: None,
        }

    def transform(self) -> dict[str, Any]:
        source, target = self.pick(TRANSFORMS)
        transform = {"src": source, "dest": target}
        if self.random.random() < 0.1:
            transform.pop(self.pick(["src", "dest"]))
        return transform

    def republish(self) -> dict[str, Any]:
        value = self.transform()
        if self.random.random() < 0.5:
            value["dest"] = self.pick(["c.>", "r.{{wildcard(1)}}", "z", "a.x", ">", "S1"])
        if self.random.random() < 0.2:
            value["headers_only"] = True
        return value

    def origin(self) -> Any:
        """Return a mirror or source."""
        origin: dict[str, Any] = {
            "name": self.pick(["O1", "O2", "O3", "S1", "S1", "gone", "a/b", "a\\b", *NAMES[:4]])
        }
        if self.random.random() < 0.25:
            origin["filter_subject"] = self.pick(SUBJECTS)
        if self.random.random() < 0.3:
            origin["subject_transforms"] = [
                self.transform() for _ in range(self.random.randint(0, 3))
            ]
        if self.random.random() < 0.15:
            origin["external"] = {
                "api": self.pick(["$JS.hub.API", "$JS.API", "$JS.API.x", "a.*", "", "a..b"]),
                "deliver": self.pick(["d", "d.*", "", "d..e", "d e"]),
            }
        if self.random.random() < 0.1:
            origin["opt_start_seq"] = self.pick([0, 1, 5])
        if self.random.random() < 0.1:
            origin["opt_start_time"] = self.pick(TIMES)
        if self.random.random() < 0.1:
            origin["consumer"] = self.pick(
                [
                    {},
                    {"name": "C", "deliver_subject": "d.c"},
                    {"name": "C.x", "deliver_subject": "d"},
                ]
            )
        return None if self.random.random() < 0.02 else origin


PARENTS: dict[str, dict[str, Any]] = {
    "LIMITS": {"name": "LIMITS", "subjects": ["lim.>", "a.*"], "storage": "memory"},
    "INTEREST": {
        "name": "INTEREST",
        "subjects": ["int.>"],
        "retention": "interest",
        "storage": "memory",
    },
    "WORK": {"name": "WORK", "subjects": ["work.>"], "retention": "workqueue", "storage": "memory"},
    "BOUND": {
        "name": "BOUND",
        "subjects": ["bound.>"],
        "storage": "memory",
        "consumer_limits": {"max_ack_pending": 50, "inactive_threshold": 60 * SECOND},
    },
    "MIRROR": {"name": "MIRROR", "mirror": {"name": "LIMITS"}, "storage": "memory"},
}
FILTERS = [
    "lim.a",
    "lim.*",
    "lim.>",
    "a.b",
    "a.*",
    "work.a",
    "work.>",
    "*",
    ">",
    "other",
    "lim..a",
    "",
    "lim.*.b",
    "lim.a.*",
    "li m",
]


class ConsumerMaker(Maker):
    """A generator of consumer configs, each with its stream."""

    def config(self) -> tuple[str, dict[str, Any]]:
        """Return the name of a stream and the next config."""
        config: dict[str, Any] = self.pick(
            [
                {"durable_name": "C1", "ack_policy": "explicit"},
                {"durable_name": "C1", "ack_policy": "explicit", "filter_subject": "lim.a"},
                {"name": "C1", "ack_policy": "none", "inactive_threshold": 10 * SECOND},
                {"name": "C1", "ack_policy": "all"},
                {"deliver_subject": "deliver.x", "name": "C1", "ack_policy": "explicit"},
                {"durable_name": "C1"},
                {
                    "durable_name": "C1",
                    "ack_policy": "explicit",
                    "priority_policy": "pinned_client",
                    "priority_groups": ["g"],
                },
                {
                    "name": "C1",
                    "ack_policy": "flow_control",
                    "deliver_subject": "deliver.x",
                },
            ]
        )
        for _ in range(self.random.choice([0, 1, 1, 2, 2, 3, 4])):
            self.change(config)
        return self.pick(list(PARENTS)), config

    def change(self, config: dict[str, Any]) -> None:
        """Change one member."""
        key, value = self.random.choice(list(self.changes().items()))
        if self.random.random() < 0.03:
            config[key] = self.pick(WRONG)
        elif self.random.random() < 0.03:
            self.misspell(config)
        else:
            config[key] = value()

    def changes(self) -> dict[str, Any]:
        """Return a generator of values for each member."""
        group = ["g", "", "a b", "x" * 16, "x" * 17, "a/b=_-", "a+b", "ü"]
        return {
            "name": lambda: self.pick(["C1", "C1", "C2", "", "a b", "ü", "a*", "a\x0b"]),
            "durable_name": lambda: self.pick(["C1", "C1", "C2", "", "x" * 255, "x" * 256, "a\tb"]),
            "description": self.text,
            "deliver_policy": lambda: self.pick(
                [
                    "all",
                    "last",
                    "new",
                    "by_start_sequence",
                    "by_start_time",
                    "last_per_subject",
                    "undefined",
                    "",
                    "All",
                ]
            ),
            "opt_start_seq": lambda: self.pick([0, 1, 5, 2**64 - 1, -1]),
            "opt_start_time": lambda: self.pick(TIMES),
            "ack_policy": lambda: self.pick(["none", "all", "explicit", "flow_control", "x", ""]),
            "ack_wait": lambda: self.pick(DURATIONS),
            "max_deliver": lambda: self.pick([0, -1, -2, 1, 2, 3, 100]),
            "backoff": lambda: self.some(DURATIONS, 4),
            "filter_subject": lambda: self.pick(FILTERS),
            "filter_subjects": lambda: self.some(FILTERS),
            "replay_policy": lambda: self.pick(["instant", "original", "x", ""]),
            "rate_limit_bps": lambda: self.pick([0, 1, 1000, -1]),
            "sample_freq": lambda: self.pick(
                [
                    "",
                    "100",
                    "30%",
                    "%",
                    "+5",
                    "007",
                    "-0",
                    "-1",
                    "1.5",
                    " 5",
                    "0x10",
                    "5%%",
                    "101%",
                    50,
                    "9223372036854775807",
                    "9223372036854775808",
                    "1_0",
                    "٣",
                ]
            ),
            "max_waiting": lambda: self.pick(NUMBERS),
            "max_ack_pending": lambda: self.pick([0, -1, -2, 1, 50, 51, 1000, 100000]),
            "flow_control": lambda: self.pick([True, True, False]),
            "idle_heartbeat": lambda: self.pick(DURATIONS),
            "headers_only": lambda: self.pick([True, False]),
            "max_batch": lambda: self.pick(NUMBERS),
            "max_expires": lambda: self.pick([*DURATIONS, 999_999, 1_000_000]),
            "max_bytes": lambda: self.pick(NUMBERS),
            "deliver_subject": lambda: self.pick(
                ["deliver.x", "lim.a", "a.b", "work.x", "d.*", "d..x", "", "d x", "$JS.x", "a>b"]
            ),
            "deliver_group": lambda: self.pick(["", "g", "g h", "*"]),
            "inactive_threshold": lambda: self.pick([*DURATIONS, 60 * SECOND, 61 * SECOND]),
            "num_replicas": lambda: self.pick([0, 0, 1, 1, 3, -1]),
            "mem_storage": lambda: self.pick([True, False]),
            "direct": lambda: self.pick([True, False]),
            "metadata": self.metadata,
            "pause_until": lambda: self.pick(TIMES),
            "priority_groups": lambda: self.some(group, 2),
            "priority_policy": lambda: self.pick(
                ["none", "overflow", "pinned_client", "prioritized", "x", ""]
            ),
            "priority_timeout": lambda: self.pick(DURATIONS),
        }
