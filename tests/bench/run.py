"""One measurement in a process of its own: `python -m tests.bench.run JOB` (see `Job.text`)."""

from __future__ import annotations

import sys
from importlib import import_module

from tests.bench.job import Job

if __name__ == "__main__":
    job = Job.read(sys.argv[1])
    module = import_module(f"tests.bench.clients.{job.client}")
    drive = getattr(module, f"{job.workload}_" if job.workload == "next" else job.workload)
    print(drive(job))
