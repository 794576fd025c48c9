"""Print the branch coverage of each package from a report of `coverage json`."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

PARTS = ("covered_lines", "covered_branches", "num_statements", "num_branches")


def main(report: str) -> None:
    """Print a line for each package, and a line for all packages."""
    totals: dict[str, Counter[str]] = {}
    for file, found in json.loads(Path(report).read_text("utf-8"))["files"].items():
        names = Path(file).parts[Path(file).parts.index("src") + 1 :]
        package = "/".join(names[:2]) if names[0] == "twinstream" and names[2:] else names[0]
        for name in (package, "all"):
            part = {part: found["summary"][part] for part in PARTS}
            totals.setdefault(name, Counter()).update(part)
    for name, total in sorted(totals.items(), key=lambda each: (each[0] == "all", each[0])):
        covered = total["covered_lines"] + total["covered_branches"]
        possible = total["num_statements"] + total["num_branches"]
        print(f"{name:20} {100 * covered / possible:5.1f} %")


if __name__ == "__main__":
    main(sys.argv[1])
