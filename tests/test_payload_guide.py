"""The program of the guide to payloads for protobuf runs. Type checkers: test_guides_typing."""

from __future__ import annotations

import subprocess
import sys

from tests.examples import ROOT
from tests.soak import LONGEST
from twinstream.testing import NatsServer

PROTOBUF = ROOT / "examples" / "protobuf" / "codec.py"


def test_the_example_of_a_codec_for_protobuf() -> None:
    with NatsServer(start_timeout=300) as server:
        done = subprocess.run(
            [sys.executable, str(PROTOBUF), server.url],
            capture_output=True,
            text=True,
            timeout=LONGEST,
        )
    assert done.returncode == 0, done.stderr
    first, second, letter = done.stdout.splitlines()
    assert (first, second) == ("times.1 7", "times.3 8")
    assert letter.startswith(r"times.2 b'\xff' stream TIMES, seq 2, subject times.2: the payload")
