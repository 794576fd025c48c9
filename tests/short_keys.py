"""Access keys for S3 that live a few seconds, as a company's own service hands them out."""

from __future__ import annotations

import json
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from tests.s3_proxy import Fault, S3Request
from tests.s3_server import KEYS

__all__ = ["ShortKeys"]

_PROGRAM: Final = """
import json, sys, time
from datetime import UTC, datetime, timedelta
from pathlib import Path

issued, keys, life = Path(sys.argv[1]), json.loads(sys.argv[2]), float(sys.argv[3])
key, secret = keys[len(issued.read_text().split()) // 2]
with issued.open("a") as file:
    print(key, time.time() + life, file=file)
end = datetime.now(UTC) + timedelta(seconds=life)
print(json.dumps({
    "Version": 1, "AccessKeyId": key, "SecretAccessKey": secret, "Expiration": end.isoformat(),
}))
"""


class ShortKeys:
    """Keys that a program issues, which the profile `short` of the file `config` names."""

    def __init__(self, folder: Path, life: float = 10.0) -> None:
        self.life: Final = life
        self._began: Final = time.monotonic()
        self._issued: Final = folder / "issued"
        self._issued.touch()
        program = folder / "issue.py"
        program.write_text(_PROGRAM)
        self.config: Final = folder / "aws-config"
        self.config.write_text(
            f"[profile short]\ncredential_process = '{sys.executable}' '{program}'"
            f" '{self._issued}' '{json.dumps(KEYS[1:])}' {life}\n"
        )

    @property
    def issued(self) -> dict[str, float]:
        """The keys so far, with the time at which each expires."""
        lines = [line.split() for line in self._issued.read_text().splitlines()]
        return {key: float(end) for key, end in lines}

    @property
    def most(self) -> int:
        """The most keys of a program by now that uses each for half of its life."""
        return 2 + int((time.monotonic() - self._began) / (self.life / 2))

    def fault(self, request: S3Request) -> Fault:
        """Let a proxy refuse requests whose key had expired when they were signed.

        The time of arrival says less: the machine may be busy. Keys that were not issued are
        refused, too.
        """
        signed = _signing_time(request)
        return "" if signed < self.issued.get(request.access_key, 0.0) else "expired"


def _signing_time(request: S3Request) -> float:
    """Return the end of the second in which a request was signed."""
    text = request.headers.get("x-amz-date", "")
    return datetime.strptime(text, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC).timestamp() + 1.0
