"""``twinstream validate``."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.output import Run

TWINSTREAM = Path(sys.executable).with_name("twinstream")
EXAMPLES = Path(__file__).parents[2] / "examples" / "orders"
GOOD = [str(EXAMPLES / f"{name}.yaml") for name in ("stream", "consumer", "advisories")]
BROKEN = str(EXAMPLES / "broken.yaml")


def test_good_files_are_silent_and_exit_with_0(run: Run) -> None:
    result = run("validate", *GOOD)
    assert result.exit_code == 0
    assert result.stdout == ""
    assert result.stderr == "3 configurations, no problem\n"


def test_a_problem_has_its_place_path_sentence_code_and_hint(run: Run) -> None:
    result = run("validate", BROKEN, *GOOD)
    assert result.exit_code == 1
    first, *others = result.stdout.splitlines()
    place = next(
        (number, line.index("filter_subjetc") + 1)
        for number, line in enumerate(Path(BROKEN).read_text().splitlines(), start=1)
        if "filter_subjetc" in line
    )
    assert first == (
        f"{BROKEN}:{place[0]}:{place[1]}: filter_subjetc: there is no such setting. (10025)"
        " Did you mean 'filter_subject'?"
    )
    assert len(others) == 2
    for line in others:
        assert re.match(rf"{re.escape(BROKEN)}:\d+:\d+: [a-z_]+: .+\. \(\d{{5}}\) .+\.$", line)
    assert result.stderr == "4 configurations, 3 problems\n"


def test_json_is_one_document(run: Run) -> None:
    result = run("validate", BROKEN, "--json")
    assert result.exit_code == 1
    document = json.loads(result.stdout)
    assert document["valid"] is False
    assert [one["kind"] for one in document["configs"]] == ["consumer"]
    assert document["problems"][0]["err_code"] == 10025
    assert document["problems"][0]["hint"] == "Did you mean 'filter_subject'?"
    assert result.stderr == ""
    assert json.loads(run("validate", *GOOD, "--json").stdout)["valid"] is True


def test_standard_input_is_read(run: Run) -> None:
    text = Path(BROKEN).read_bytes()
    result = run("validate", "-", input=text)
    assert result.exit_code == 1
    assert result.stdout.startswith("<stdin>:8:3: filter_subjetc: ")
    assert run("validate", "-", input='{"name": "S", "subjects": ["s"]}').exit_code == 0


def test_a_version_of_the_server_decides(run: Run) -> None:
    assert "filter_subjetc" in run("validate", BROKEN, "--server", "2.12").stdout
    older = run("validate", BROKEN, "--server", "2.11")  # takes what it does not know
    assert older.exit_code == 1
    assert "filter_subjetc" not in older.stdout
    assert "backoff" in older.stdout


@pytest.mark.parametrize(
    "text",
    [b"", b"{", b'{"name": "S", "name": "T"}', b"\xff\xfe", b"[[[[", b"[]{}", b"3", b"{'a': [}"],
)
def test_bad_text_is_a_problem_with_a_place(run: Run, text: bytes) -> None:
    result = run("validate", "-", input=text)
    assert result.exit_code == 1, result.stdout
    assert re.match(r"<stdin>:\d+:\d+: ", result.stdout)


def test_deep_nesting_is_a_problem_with_a_place(run: Run) -> None:
    result = run("validate", "-", input="[" * 100_000)
    assert result.exit_code == 1
    assert re.match(r"<stdin>:\d+:\d+: ", result.stdout)


def test_a_missing_file_is_a_problem(run: Run) -> None:
    result = run("validate", "no-such-file.yaml")
    assert result.exit_code == 1
    assert result.stdout.startswith("no-such-file.yaml:1:1: ")


@pytest.mark.parametrize(
    "arguments", [(), ("-", BROKEN), ("--server", "yesterday", BROKEN), ("--kind", "x", BROKEN)]
)
def test_wrong_usage_is_exit_code_2(run: Run, arguments: tuple[str, ...]) -> None:
    assert run("validate", *arguments).exit_code == 2


def test_no_server_is_needed() -> None:
    done = subprocess.run(
        [TWINSTREAM, "validate", *GOOD],
        capture_output=True,
        text=True,
        env={"TWINSTREAM_URL": "nats://127.0.0.1:1"},
    )
    assert done.returncode == 0, done.stderr
