"""The limit beyond Python: the counting socket in C, compiled when it is first needed."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

from tests.bench.job import STREAM, Job

SOURCE = Path(__file__).with_name("raw.c")


def drain(job: Job) -> str:
    """Count messages, two requests of 5,000 under way."""
    parts = urlsplit(job.url)
    with tempfile.TemporaryDirectory() as folder:
        binary = Path(folder) / "raw"
        subprocess.run(["gcc", "-O2", "-o", binary, SOURCE], check=True)
        subject = f"$JS.API.CONSUMER.MSG.NEXT.{STREAM}.{job.consumer}"
        command = [str(binary), str(parts.port), subject, str(job.count)]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    return done.stdout
