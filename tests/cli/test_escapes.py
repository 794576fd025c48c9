"""No text of a server, publisher or file reaches a terminal with control characters."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from rich.text import Text

from tests.cli.output import Run
from twinstream.cli.confirm import sure
from twinstream.cli.escapes import harmless, json_line
from twinstream.cli.screen import alerts, progress, results
from twinstream.testing import FakePeer, FakeServer

CONTROLS = {
    "CSI": "\x1b[2J",
    "OSC 52": "\x1b]52;c;cm0gLXJm\x07",
    "C1": "\x9b31m",
    "DEL": "\x7f",
    "bidirectional": "\u202e",
    "carriage return": "ok\rerror",
}
EVERY = "".join(CONTROLS.values())


def is_harmless(text: str) -> bool:
    return all(c.isprintable() or c in "\t\n" for c in text)


@given(st.text())
def test_any_response_is_harmless(text: str) -> None:
    assert is_harmless(harmless(text))
    assert harmless(harmless(text)) == harmless(text)


@given(st.text(st.characters(exclude_categories=["C", "Z"])))
def test_printable_text_stays_as_it_is(text: str) -> None:
    assert harmless(text) == text


@given(st.recursive(st.text(), lambda inner: st.dictionaries(st.text(), inner)))
def test_json_is_harmless_and_reads_as_what_was_written(value: object) -> None:
    line = json_line(value)
    assert is_harmless(line)
    assert "\n" not in line
    assert json.loads(line) == value


@pytest.mark.parametrize("name", CONTROLS)
def test_a_console_escapes_every_kind_of_text(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = f"<{CONTROLS[name]}>"
    for console in (results(), alerts()):
        console.print(text)
        console.print(Text(text))
        console.print(Text.assemble((text, "red")))
        with progress(console) as display:
            display.add_task(text, total=1)
    shown = capsys.readouterr()
    for out in (shown.out, shown.err):
        assert out.count("<") >= 3
        assert is_harmless(out)


def test_an_error_of_the_server_is_escaped(run: Run) -> None:
    def refuse(peer: FakePeer) -> None:
        peer.info()
        peer.error(f"no {EVERY.replace(chr(13), '')}")
        peer.close()

    with FakeServer(rest=refuse) as server:
        failed = run("stream", "ls", "--server", server.url)
    assert failed.exit_code == 1
    assert "error: " in failed.stderr
    assert "52;c;cm0gLXJm" in failed.stderr
    assert is_harmless(failed.stderr)


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_problems_of_files_are_escaped(run: Run, tmp_path: Path, form: tuple[str, ...]) -> None:
    file = tmp_path / "stream.json"
    file.write_text(json.dumps({"streams": [{"name": "A", f"subj{EVERY}": ["a"]}]}), "utf-8")
    for command in (("validate", str(file)), ("plan", str(file)), ("apply", "--yes", str(file))):
        shown = run(*command, *form)
        assert shown.exit_code == 1
        assert "subj" in shown.output
        assert is_harmless(shown.output)


def test_questions_are_escaped() -> None:
    @click.command()
    def ask() -> None:
        sure(f"Cancel {EVERY}?", yes=False)

    asked = CliRunner().invoke(ask)
    assert "Cancel " in asked.output
    assert is_harmless(asked.output)


def test_wrong_usage_is_escaped(run: Run, tmp_path: Path) -> None:
    pipeline = tmp_path / "pipeline.toml"
    pipeline.write_text('"na\\u001b[2Jme" = 1\n', "utf-8")
    for arguments in ((f"no{EVERY}",), ("pipeline", "spec", "--config", str(pipeline))):
        shown = run(*arguments)
        assert shown.exit_code == 2
        assert is_harmless(shown.output)
