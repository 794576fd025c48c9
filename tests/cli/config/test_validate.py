"""`twinstream validate`."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from tests.cli.output import Run
from twinstream.cli.groups import COMMANDS

TWINSTREAM = Path(sys.executable).with_name("twinstream")
ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "examples" / "orders"
GOOD = [str(EXAMPLES / f"{name}.yaml") for name in ("stream", "consumer", "advisories")]
BROKEN = str(EXAMPLES / "broken.yaml")


def test_good_files_are_silent_and_exit_with_0(run: Run) -> None:
    result = run("validate", *GOOD)
    assert result.exit_code == 0
    assert result.stdout == ""
    assert result.stderr == ""


def test_problem_has_position_path_sentence_code_and_hint(run: Run) -> None:
    result = run("validate", BROKEN, *GOOD)
    assert result.exit_code == 1
    first, *others, warning = result.stdout.splitlines()
    assert ": warning: backoff: " in warning
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
    assert result.stderr == ""


def test_halves_of_letters_can_be_shown(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text(r'{"name": "S\ud800", "subjects": ["a"], "x\ud800": 1}')
    shown = run("validate", str(file))
    assert (shown.exit_code, shown.exception.__class__) == (1, SystemExit)
    assert r"x\ud800: there is no such setting." in shown.stdout
    for form in ("--json", "--sarif"):
        result = run("validate", str(file), form)
        assert result.exit_code == 1
        assert r"x\ud800" in result.stdout
        assert json.loads(result.stdout)


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


def test_warnings_are_separate_from_problems(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text("name: S\nsubjects: [s]\nmax_msgs: 5\nno_ack: true\n")
    result = run("validate", str(path))
    assert result.exit_code == 0
    assert result.stdout.startswith(f"{path}:4:9: warning: no_ack: ")
    assert result.stderr == ""
    assert run("validate", str(path), "--strict").exit_code == 1
    document = json.loads(run("validate", str(path), "--json").stdout)
    assert document["valid"] is True
    assert [one["rule"] for one in document["warnings"]] == ["L-NO-ACK"]
    assert document["problems"] == []


def test_sarif_has_levels_places_and_rules(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "a b.yaml"
    path.write_text("name: a b\nsubjects: [s]\nmax_msgs: 5\nno_ack: true\nnum_replicas: 3\n")
    result = run("validate", str(path), "--sarif")
    assert result.exit_code == 1
    assert result.stderr == ""
    log = json.loads(result.stdout)
    assert log["version"] == "2.1.0"
    [found] = log["runs"]
    levels = {one["ruleId"]: one["level"] for one in found["results"]}
    assert levels["S-NAME"] == "error"
    assert levels["L-NO-ACK"] == "warning"
    assert "note" in levels.values()
    assert {one["id"] for one in found["tool"]["driver"]["rules"]} == set(levels)
    first = found["results"][0]
    assert first["message"]["text"].startswith("name: ")
    assert first["properties"] == {"path": "name", "err_code": 10052}
    location = first["locations"][0]["physicalLocation"]
    assert location["artifactLocation"]["uri"].startswith("file:///")
    assert location["artifactLocation"]["uri"].endswith("/a%20b.yaml")
    assert location["region"] == {"startLine": 1, "startColumn": 7}
    piped = json.loads(run("validate", "-", "--sarif", input="{").stdout)["runs"][0]["results"]
    assert piped[0]["locations"][0]["physicalLocation"]["artifactLocation"] == {"uri": "stdin"}


def test_sarif_names_files_with_non_utf8_names(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(os.fsdecode(b"\xff.yaml")).write_text("name: a b\nsubjects: [s]\nmax_msgs: 5\n")
    log = json.loads(run("validate", ".", "--sarif").stdout)
    [found] = log["runs"][0]["results"]
    assert found["locations"][0]["physicalLocation"]["artifactLocation"] == {"uri": "%FF.yaml"}


def test_the_hook_calls_what_there_is() -> None:
    [hook] = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    program, command = hook["entry"].split()
    assert (program, hook["language"]) == ("twinstream", "python")
    assert command in COMMANDS
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert hook["additional_dependencies"] == [".[cli]"]
    assert "cli" in extras["optional-dependencies"]
    for name in ("orders.stream.yaml", "a/jetstream/x/orders.json", "b.consumer.yml"):
        assert re.search(hook["files"], name)
    assert not re.search(hook["files"], "package.json")
    assert re.search(hook["exclude"], "jetstream/order.schema.json")


def test_standard_input_is_read(run: Run) -> None:
    text = Path(BROKEN).read_bytes()
    result = run("validate", "-", input=text)
    assert result.exit_code == 1
    assert result.stdout.startswith("<stdin>:8:3: filter_subjetc: ")
    assert run("validate", "-", input='{"name": "S", "subjects": ["s"]}').exit_code == 0


def test_a_version_of_the_server_decides(run: Run) -> None:
    assert "filter_subjetc" in run("validate", BROKEN, "--server-version", "2.12").stdout
    older = run("validate", BROKEN, "--server-version", "2.11")  # takes what it does not know
    assert older.exit_code == 1
    assert "warning: filter_subjetc: there is no such setting; it is dropped." in older.stdout
    assert "backoff" in older.stdout


@pytest.mark.parametrize(
    "text",
    [b"", b"{", b'{"name": "S", "name": "T"}', b"\xff\xfe", b"[[[[", b"[]{}", b"3", b"{'a': [}"],
)
def test_bad_text_is_a_problem_with_a_position(run: Run, text: bytes) -> None:
    result = run("validate", "-", input=text)
    assert result.exit_code == 1, result.stdout
    assert re.match(r"<stdin>:\d+:\d+: ", result.stdout)


def test_deep_nesting_is_a_problem_with_a_position(run: Run) -> None:
    result = run("validate", "-", input="[" * 100_000)
    assert result.exit_code == 1
    assert re.match(r"<stdin>:\d+:\d+: ", result.stdout)


def test_a_missing_file_is_a_problem(run: Run) -> None:
    result = run("validate", "no-such-file.yaml")
    assert result.exit_code == 1
    assert result.stdout.startswith("no-such-file.yaml:1:1: ")


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("-", BROKEN),
        ("--server-version", "yesterday", BROKEN),
        ("--kind", "x", BROKEN),
        ("--json", "--sarif", BROKEN),
    ],
)
def test_wrong_usage_is_exit_code_2(run: Run, arguments: tuple[str, ...]) -> None:
    assert run("validate", *arguments).exit_code == 2


def test_folder_stands_for_the_files_below_it(run: Run, tmp_path: Path) -> None:
    shown = run("validate", str(EXAMPLES))
    assert shown.exit_code == 1
    assert shown.stderr == ""
    nothing = run("validate", str(tmp_path))
    assert nothing.exit_code == 1
    assert "there is no .json, .yaml or .yml file to read" in nothing.stderr


def test_links_are_followed_and_broken_links_reported(run: Run, tmp_path: Path) -> None:
    folder, outside = tmp_path / "folder", tmp_path / "outside"
    folder.mkdir()
    outside.mkdir()
    (outside / "a.yaml").write_text("name: A\nsubjects: [a]\nmax_msgs: 5\n")
    (folder / "again").symlink_to(outside)
    (folder / "linked").symlink_to(outside)
    (outside / "circle").symlink_to(folder)
    (folder / ".hidden.yaml").symlink_to("nowhere")
    good = run("validate", str(folder))
    assert (good.exit_code, good.stderr) == (0, "")
    (folder / "gone.yaml").symlink_to("nowhere")
    (folder / "itself.yaml").symlink_to("itself.yaml")
    for names in ((folder,), (outside / "a.yaml", folder / "gone.yaml", folder / "itself.yaml")):
        found = run("validate", *map(str, names))
        assert found.stderr == ""
        assert [line.split(":")[0] for line in found.stdout.splitlines()] == [
            str(folder / "gone.yaml"),
            str(folder / "itself.yaml"),
        ]


def test_a_folder_behind_many_links_has_the_first_of_its_names(run: Run, tmp_path: Path) -> None:
    (tmp_path / "z").mkdir()
    (tmp_path / "z" / "a.yaml").write_text("name: A\nsubjects: [a b]\n")
    # In both directions: nobody says in which order a system lists what is there.
    letters = "hgfedcbaijklmnop"
    for letter in letters:
        (tmp_path / letter).symlink_to("z")
    found = run("validate", str(tmp_path))
    assert found.stdout.startswith(f"{tmp_path / 'a' / 'a.yaml'}:")


def test_a_folder_that_cannot_be_read_is_an_error(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Permissions do not apply to root, so the path is too long instead."""
    (tmp_path / "a.yaml").write_text("name: A\nsubjects: [a]\nmax_msgs: 5\n")
    monkeypatch.chdir(tmp_path)
    part = "d" * 250
    for _ in range(os.pathconf(tmp_path, "PC_PATH_MAX") // len(part) + 1):
        os.mkdir(part)
        os.chdir(part)
    found = run("validate", str(tmp_path))
    assert found.exit_code == 1
    text = "".join(found.stderr.split())
    assert text.startswith(f"error:cannotreadthefolder{tmp_path}/{part}/{part}")
    assert text.endswith(f"{part}:Filenametoolong")


def test_no_server_is_needed() -> None:
    done = subprocess.run(
        [TWINSTREAM, "validate", *GOOD],
        capture_output=True,
        text=True,
        env={"TWINSTREAM_URL": "nats://127.0.0.1:1"},
    )
    assert done.returncode == 0, done.stderr
