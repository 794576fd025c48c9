"""`twinstream schedule`."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime
from pathlib import Path

import pytest

import js_sync
from tests.cli.output import Run, json_lines
from tests.unhurried import UNHURRIED
from twinstream.models import StreamConfig
from twinstream.testing import NatsServer

pytestmark = pytest.mark.since("2.14")

_numbers = itertools.count(1)


@pytest.fixture
def timers(server: NatsServer) -> str:
    """A stream with schedules, whose name is the first token of its subjects."""
    name = f"TIMERS{next(_numbers)}"
    config = StreamConfig(
        name=name,
        subjects=[f"{name}.>"],
        allow_msg_schedules=True,
        allow_msg_ttl=True,
        allow_rollup_hdrs=True,
    )
    with js_sync.connect(server.url, **UNHURRIED) as nc:
        nc.jetstream().create_stream(config)
    return name


def test_data_that_is_no_text_is_whole(run: Run, timers: str, tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(b"\xff\x00")
    where = (timers, f"{timers}.s.1")
    run("schedule", "add", *where, f"{timers}.out", "--in", "1h", "-f", str(tmp_path / "data"))
    (shown,) = json_lines(run("schedule", "show", *where, "--json"))
    assert shown["data_base64"] == "/wA="
    assert "data" not in shown


def test_a_schedule_is_stored_shown_and_cancelled(run: Run, timers: str) -> None:
    subject, target = f"{timers}.s.1", f"{timers}.out"
    added = run(
        *("schedule", "add", timers, subject, target, "hello"),
        *("--cron", "0 30 9 * * mon-fri", "--time-zone", "Europe/Berlin", "--ttl", "1h"),
        *("--rollup", "--source", f"{timers}.in", "--lifetime", "720h", "-H", "Mine: 1"),
    )
    assert added.exit_code == 0, added.stderr
    assert added.stdout.startswith(f"stored in {timers} at sequence 1: 0 30 9 * * mon-fri")
    (listed,) = json_lines(run("schedule", "ls", timers, "--json"))
    shown = json_lines(run("schedule", "show", timers, subject, "--json"))
    assert shown == [listed]
    assert listed["next"] > datetime.now(UTC).isoformat()
    del listed["next"], listed["stored"]
    assert listed == {
        "subject": subject,
        "schedule": "0 30 9 * * mon-fri",
        "time_zone": "Europe/Berlin",
        "target": target,
        "source": f"{timers}.in",
        "ttl": "3600",
        "rollup": True,
        "headers": [["Mine", "1"]],
        "data": "hello",
        "seq": 1,
    }
    assert "Europe/Berlin" in run("schedule", "ls", timers).stdout
    assert "Mine: 1" in run("schedule", "show", timers, subject).stdout
    refused = run("schedule", "cancel", timers, subject, input="n\n")
    assert refused.exit_code == 1
    assert "0 30 9" in refused.stderr
    assert json_lines(run("schedule", "cancel", timers, subject, "--json", "--yes"))
    assert run("schedule", "ls", timers).stdout == ""
    gone = run("schedule", "cancel", timers, subject, "--yes")
    assert (gone.exit_code, gone.stdout) == (3, "")


def test_the_target_of_a_stranger_does_not_reach_the_terminal(run: Run, timers: str) -> None:
    subject = f"{timers}.s.1"
    run("schedule", "add", timers, subject, f"{timers}.\x1b[2J", "--at", "2040-01-01T00:00:00Z")
    asked = run("schedule", "cancel", timers, subject, input="n\n")
    assert "2040" in asked.stderr
    assert "\x1b" not in asked.stderr


@pytest.mark.parametrize(
    ("options", "pattern"),
    [
        (("--at", "2040-01-31T09:00:00+01:00"), "@at 2040-01-31T08:00:00Z"),
        (("--every", "1h30m"), "@every 5400s"),
        (("--cron", "@daily"), "@daily"),
        (("--in", "10h"), "@at 20"),
    ],
)
def test_each_kind_of_schedule_is_stored_with_its_data(
    run: Run, timers: str, options: tuple[str, ...], pattern: str, tmp_path: Path
) -> None:
    file = tmp_path / "data"
    file.write_bytes(b"from a file")
    arguments = ("schedule", "add", timers, f"{timers}.s", f"{timers}.t", "-f", str(file))
    (added,) = json_lines(run(*arguments, *options, "--json"))
    assert added["schedule"].startswith(pattern)
    assert added["data"] == "from a file"
    assert run("schedule", "cancel", timers, f"{timers}.s", input="y\n").exit_code == 0


def test_next_prints_times_without_a_server(run: Run) -> None:
    arguments = ("schedule", "next", "0 0 9 * * mon", "-n", "2", "--time-zone", "Europe/Berlin")
    arguments += ("--after", "2026-03-26T00:00:00Z")
    assert json_lines(run(*arguments, "--json")) == [
        {"time": "2026-03-30T07:00:00Z"},
        {"time": "2026-04-06T07:00:00Z"},
    ]
    shown = run(*arguments).stdout
    assert "2026-03-30T09:00:00+02:00" in shown
    assert "Mon" in shown
    assert len(json_lines(run("schedule", "next", "@every 5s", "--json"))) == 5
    assert "2026-01-01T00:00:00Z" in run("schedule", "next", "@at 2026-01-01T00:00:00Z").stdout


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (("add", "S", "a", "b"), 2, "give one of"),
        (("add", "S", "a", "b", "--in", "1s", "--every", "1s"), 2, "give one of"),
        (("add", "S", "a", "b", "--in", "soon"), 2, "not a duration"),
        (("add", "S", "a", "b", "--at", "soon"), 2, "2026-01-31T08:00:00Z"),
        (("add", "S", "a", "b", "--at", "2026-01-01T00:00:00"), 2, "no time zone"),
        (("add", "S", "a", "b", "--every", "1s", "--time-zone", "UTC"), 2, "needs --cron"),
        (("add", "S", "a", "b", "x", "-f", __file__, "--in", "1s"), 2, "once"),
        (("add", "S", "a", "b", "--cron", "0 9 * * *"), 2, "put 0 before"),
        (("cancel", "S", "a", "--json"), 2, "--yes"),
        (("next", "0 9 * * *"), 2, "put 0 before"),
        (("ls", "NO-SUCH-STREAM"), 3, "not found"),
    ],
)
def test_mistakes_are_named(run: Run, arguments: tuple[str, ...], code: int, told: str) -> None:
    result = run("schedule", *arguments)
    assert result.exit_code == code, result.stderr
    assert told in result.stderr


def test_a_stream_without_schedules_names_the_setting(run: Run, stream: str) -> None:
    result = run("schedule", "ls", stream)
    assert result.exit_code == 1
    assert "allow_msg_schedules" in result.stderr
