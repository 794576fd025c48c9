"""The Python examples of the README and of all guides pass both type checkers, in strict mode."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.examples import ROOT, blocks

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BIN = Path(sys.executable).parent
# nats-py and PySpark have incomplete annotations, and examples handle only what they produce.
TOLERATED = ("reportUnknown", "reportMatchNotExhaustive")
# The examples of payloads use neither.
PAYLOADS = "payloads_"
# Beside all that is right, both checkers find this.
WRONG = """
from js_sync import JetStream, Message
def handle(message: Message[int], bare: Message, jet: JetStream) -> None:
    text: str = message.payload  # wrong
    data: bytes = bare.payload
    jet.typed(int).publish(text, "text", headers={"a": data.decode()})  # wrong
"""
WRONG_NAME = f"{PAYLOADS}wrong.py"
WRONG_LINES = [
    number for number, line in enumerate(WRONG.splitlines(), 1) if line.endswith("# wrong")
]


@pytest.fixture
def modules(tmp_path: Path) -> list[str]:
    """Write each example and the wrong program into a module, and return their paths."""
    (tmp_path / WRONG_NAME).write_text(WRONG, "utf-8")
    written = [str(tmp_path / WRONG_NAME)]
    for page in PAGES:
        for number, code in enumerate(blocks(page, "python")):
            if "pyspark" in code and find_spec("pyspark") is None:
                continue
            module = tmp_path / f"{page.stem.replace('-', '_').lower()}_{number}.py"
            module.write_text(code, "utf-8")
            written.append(str(module))
    assert len(written) > 80
    return written


def test_the_examples_pass_mypy(modules: list[str]) -> None:
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", *modules]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    found = re.findall(r"^\S*?([^/\s]+):(\d+): error: ", done.stdout, re.MULTILINE)
    assert found == [(WRONG_NAME, str(line)) for line in WRONG_LINES], done.stdout
    assert (done.stderr, done.returncode) == ("", 1)


def test_the_examples_pass_pyright(modules: list[str]) -> None:
    command = [str(BIN / "pyright"), "--outputjson", "--pythonpath", sys.executable, *modules]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    found = [
        (Path(each["file"]).name, each["range"]["start"]["line"] + 1, each["rule"])
        for each in json.loads(done.stdout)["generalDiagnostics"]
        if each["severity"] == "error"
    ]
    errors = [
        (name, line)
        for name, line, rule in found
        if name.startswith(PAYLOADS) or not rule.startswith(TOLERATED)
    ]
    assert errors == [(WRONG_NAME, line) for line in WRONG_LINES], found
