"""One measurement in a process of its own: ``python -m tests.bench.run CLIENT WORKLOAD URL N``."""

from __future__ import annotations

import sys
from importlib import import_module

if __name__ == "__main__":
    client, workload, url, count = sys.argv[1:]
    module = import_module(f"tests.bench.clients.{client}")
    drive = getattr(module, "next_" if workload == "next" else workload)
    print(drive(url, int(count)))
