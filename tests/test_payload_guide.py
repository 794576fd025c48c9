"""The examples of payloads: strict type checkers accept them, and the program for protobuf runs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.examples import ROOT, blocks
from twinstream.testing import NatsServer

GUIDE = ROOT / "docs" / "payloads.md"
PROTOBUF = ROOT / "examples" / "protobuf" / "codec.py"


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("programs")
    for number, code in enumerate(blocks(GUIDE, "python")):
        (folder / f"example_{number}.py").write_text(code)
    (folder / "wrong.py").write_text(
        "from js_sync import JetStream, Message\n"
        "def handle(message: Message[int], bare: Message, jet: JetStream) -> None:\n"
        "    text: str = message.payload\n"
        "    data: bytes = bare.payload\n"
        "    jet.typed(int).publish(text, 'text', headers={'a': data.decode()})\n"
    )
    return folder


def test_mypy_accepts_the_examples(programs: Path) -> None:
    names = [str(path) for path in programs.glob("*.py")]
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(programs / "cache")]
    environment = {"MYPYPATH": f"{ROOT / 'src'}:{ROOT / 'typings'}", "PATH": ""}
    done = subprocess.run(
        [*command, *names],
        cwd=programs,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
    )
    errors = [line for line in done.stdout.splitlines() if ": error: " in line]
    assert len(errors) == 2, done.stdout + done.stderr
    assert all("wrong.py:" in line for line in errors), done.stdout


def test_pyright_accepts_the_examples(programs: Path) -> None:
    settings = {
        "typeCheckingMode": "strict",
        "extraPaths": [str(ROOT / "src")],
        "pythonVersion": "3.11",
        "reportMissingModuleSource": False,
    }
    (programs / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable]
    done = subprocess.run(
        [*command, "--project", str(programs)],
        cwd=programs,
        capture_output=True,
        text=True,
        timeout=600,
    )
    found = json.loads(done.stdout)["generalDiagnostics"]
    errors = [each for each in found if each["severity"] == "error"]
    assert len(errors) == 2, errors
    assert {Path(each["file"]).name for each in errors} == {"wrong.py"}


def test_the_example_of_a_codec_for_protobuf() -> None:
    with NatsServer() as server:
        done = subprocess.run(
            [sys.executable, str(PROTOBUF), server.url],
            capture_output=True,
            text=True,
            timeout=120,
        )
    assert done.returncode == 0, done.stderr
    first, second, letter = done.stdout.splitlines()
    assert (first, second) == ("times.1 7", "times.3 8")
    assert letter.startswith(r"times.2 b'\xff' stream TIMES, seq 2, subject times.2: the payload")
