"""`twinstream backup` and `twinstream restore`."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from tests.cli.output import Run, in_time, json_lines
from tests.soak import LONGEST
from twinstream.cli.failures import reported
from twinstream.testing import FakePeer, FakeServer, ScriptError


@pytest.fixture
def filled(run: Run, stream: str) -> str:
    assert run("pub", f"{stream}.{{n}}", "message {n}", "-n", "200").exit_code == 0
    return stream


def test_stream_is_saved_to_a_folder_and_restored(run: Run, filled: str, tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    made = run("backup", filled, str(folder))
    assert made.exit_code == 0, made.stderr
    assert made.stdout.startswith(f"{filled}: 200 messages, ")
    assert (folder / "backup.json").exists()
    before = run("get", filled, "--json").stdout
    assert run("stream", "rm", filled, "--yes").exit_code == 0
    back = run("restore", str(folder))
    assert back.exit_code == 0, back.stderr
    assert back.stdout.startswith(f"{filled}: 200 messages, ")
    assert run("get", filled, "--json").stdout == before


def test_json_is_one_line_and_nothing_else(run: Run, filled: str, tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    (made,) = json_lines(run("backup", filled, str(folder), "--json", "--no-consumers"))
    assert (made["stream_name"], made["messages"], made["last_seq"]) == (filled, 200, 200)
    assert made["size"] == (folder / "stream.tar.s2").stat().st_size
    assert made["sha256"] in (folder / "SHA256SUMS").read_text()
    run("stream", "rm", filled, "--yes")
    (back,) = json_lines(run("restore", str(folder), "--json", "--replicas", "1"))
    assert (back["stream_name"], back["messages"]) == (filled, 200)


def test_what_is_in_the_way_is_named(run: Run, filled: str, tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    assert run("backup", filled, str(folder), "--check").exit_code == 0
    again = run("backup", filled, str(folder))
    assert again.exit_code == 1
    assert "not empty" in again.stderr
    assert run("backup", filled, str(folder), "--overwrite").exit_code == 0
    there = run("restore", str(folder))
    assert there.exit_code == 1
    assert "already in use" in there.stderr
    missing = run("restore", str(tmp_path / "nothing"))
    assert missing.exit_code == 1
    assert "no backup" in missing.stderr
    unknown = run("backup", "NO_SUCH_STREAM", str(tmp_path / "other"))
    assert unknown.exit_code == 3
    assert not (tmp_path / "other").exists()


def test_a_damaged_archive_is_not_sent(run: Run, filled: str, tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    run("backup", filled, str(folder))
    run("stream", "rm", filled, "--yes")
    archive = folder / "stream.tar.s2"
    archive.write_bytes(archive.read_bytes()[:-5])
    result = run("restore", str(folder))
    assert result.exit_code == 1
    assert "damaged" in result.stderr
    names = [line["config"]["name"] for line in map(json.loads, lines(run))]
    assert filled not in names


KILLED = """
import os, signal, sys
from js_sync import backup
from twinstream.cli.main import main

number = getattr(signal, sys.argv.pop())
# Whoever runs the tests may ignore it, as nohup does.
signal.signal(number, signal.SIG_DFL)

def killed(call):
    def run(*arguments, on_progress, **more):
        end = lambda _: os.kill(os.getpid(), number)
        return call(*arguments, on_progress=end, **more)
    return run

backup.restore_stream = killed(backup.restore_stream)
backup.backup_stream = killed(backup.backup_stream)
main()
"""


@pytest.mark.parametrize(("name", "code"), [("SIGTERM", 143), ("SIGHUP", 129)])
def test_a_signal_leaves_nothing_half_done(
    run: Run, filled: str, tmp_path: Path, name: str, code: int
) -> None:
    def ended(*arguments: str) -> int:
        command = [sys.executable, "-c", KILLED, *arguments, name]
        return subprocess.run(command, capture_output=True, timeout=LONGEST).returncode

    assert ended("backup", filled, str(tmp_path / "half")) == code
    assert list(tmp_path.iterdir()) == []
    folder = str(tmp_path / "copy")
    assert run("backup", filled, folder).exit_code == 0
    run("stream", "rm", filled, "--yes")
    assert ended("restore", folder) == code
    assert run("restore", folder).exit_code == 0


def lines(run: Run) -> list[str]:
    return run("stream", "ls", "--json").stdout.splitlines()


def test_notes_about_a_failed_restore_are_printed(run: Run, filled: str, tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    assert run("backup", filled, str(folder)).exit_code == 0

    def silent(peer: FakePeer) -> None:
        with suppress(ScriptError):  # a client that could not connect in time
            peer.handshake()
            peer.expect(r"STREAM\.RESTORE")
        peer.until_left()

    note = f"the server may have begun: if {filled} did not exist before, delete"
    with FakeServer(rest=silent) as server:
        options = ("restore", str(folder), "--server", server.url, "--timeout", "0.2")
        failed, as_json = (
            in_time(lambda form=form: run(*options, *form), lambda result: note in result.stderr)
            for form in ([], ["--json"])
        )
    assert (failed.exit_code, as_json.exit_code) == (1, 1)
    assert note in failed.stderr
    assert note in json.loads(as_json.stderr)["error"]


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_notes_about_an_interrupt_are_printed(
    kind: type[BaseException], capsys: pytest.CaptureFixture[str]
) -> None:
    error = kind(1)
    error.add_note("a part may be left\x1b[2J")
    with pytest.raises(kind), reported():
        raise error
    assert capsys.readouterr().err == "a part may be left\\u001b[2J\n"
