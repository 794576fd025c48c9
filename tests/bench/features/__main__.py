"""`python -m tests.bench.features`: prove the table of features in docs/comparison.md.

The packages are those of the interpreter of `--python`, the Go modules those of two clones:

    python -m tests.bench.features --python PYTHON --nats-go nats.go --orbit-go orbit.go --write
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import click

from tests.bench.features.names import of_go, of_python
from tests.bench.features.rows import CLIENTS, NO, PACKAGES, ROWS
from tests.bench.page import DOCS, put
from tests.bench.suite import ROOT

PAGE: Final = DOCS / "comparison.md"
SCRIPT: Final = Path(__file__).parent / "names.py"


def of_this_tree() -> set[str]:
    """Return the public names of Twinstream."""
    source = ROOT / "src"
    files = [*(source / "js_async").rglob("*.py"), *(source / "twinstream").rglob("*.py")]
    return of_python(path for path in files if not path.name.startswith("_"))


def installed(python: str, packages: Iterable[str]) -> dict[str, dict[str, Any] | None]:
    """Return what `names.py` says about packages in the environment of an interpreter."""
    command = [python, str(SCRIPT), *packages]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return dict(json.loads(done.stdout))


def faults(names: Mapping[str, set[str]]) -> list[str]:
    """Return what the names of the clients do not prove."""
    found: list[str] = []
    for row in ROWS:
        for client, cell in zip(CLIENTS, row.cells, strict=True):
            if client not in names:
                continue
            pattern = re.compile(row.absent if cell is NO else cell.proof)
            matching = sorted(name for name in names[client] if pattern.search(name))
            if cell is NO and matching:
                found.append(f"{client}, {row.title}: it has {matching[0]}")
            if cell is not NO and not matching:
                found.append(f"{client}, {row.title}: nothing matches {cell.proof}")
    return found


def table() -> str:
    """Return the table in Markdown."""
    lines = [f"| | {' | '.join(CLIENTS)} |", "| --- |" + " --- |" * len(CLIENTS)]
    lines += [f"| {row.title} | {' | '.join(cell.text for cell in row.cells)} |" for row in ROWS]
    return "\n".join(lines) + "\n"


def packages(facts: Mapping[str, Mapping[str, Any]], go: str) -> str:
    """Return the table of the packages in Markdown."""
    lines = ["| package | version | needs | licence | size |", "| --- | --- | --- | --- | ---: |"]
    for name, each in facts.items():
        needs = ", ".join([f"Python {each['python'].removeprefix('>=')}", *each["requires"]])
        licence = each["licence"].removesuffix(" License")
        size = f"{each['bytes'] / 1000:,.0f} kB"
        lines.append(f"| {name} | {each['version']} | {needs} | {licence} | {size} |")
    return "\n".join([*lines, go]) + "\n"


def facts_of_this_tree() -> dict[str, Any]:
    """Return the facts about Twinstream, from its sources."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    files = [path for path in (ROOT / "src").rglob("*") if path.suffix in (".py", ".json")]
    return {
        "version": project["version"],
        "python": project["requires-python"],
        "licence": project["license"],
        "bytes": sum(path.stat().st_size for path in files),
        "requires": [re.split("[<>=]", each)[0] for each in project["dependencies"]],
    }


def facts_of_go(nats_go: Path) -> str:
    """Return the row of nats.go."""
    version = re.findall(r'Version += "([\d.]+)"', (nats_go / "nats.go").read_text("utf-8"))[0]
    go = re.findall(r"^go ([\d.]+)$", (nats_go / "go.mod").read_text("utf-8"), re.MULTILINE)[0]
    return f"| nats.go | {version} | Go {go} | Apache-2.0 | |"


@click.command()
@click.option("--python", default=sys.executable, help="The interpreter that has the packages.")
@click.option("--nats-go", type=click.Path(exists=True, path_type=Path), help="A clone.")
@click.option("--orbit-go", type=click.Path(exists=True, path_type=Path), help="A clone.")
@click.option("--write", is_flag=True, help="Write the tables of the page; needs all clients.")
def main(python: str, nats_go: Path | None, orbit_go: Path | None, write: bool) -> None:
    """Check each cell of the table of features."""
    names = {"Twinstream": of_this_tree()}
    facts = {"twinstream": facts_of_this_tree()}
    for client, wanted in PACKAGES.items():
        found = installed(python, wanted)
        names[client] = {name for each in found.values() if each for name in each["names"]}
        facts |= {name: each for name, each in found.items() if each}
        if missing := sorted(set(wanted) - facts.keys()):
            raise click.ClickException(f"{python} has no {', '.join(missing)}")
    if nats_go is not None and orbit_go is not None:
        names["nats.go"] = of_go(nats_go) | of_go(orbit_go)
    if wrong := faults(names):
        raise click.ClickException("\n".join(wrong))
    click.echo(f"{len(ROWS)} rows agree with the public names of {', '.join(names)}")
    if write:
        if nats_go is None:
            raise click.UsageError("--write needs --nats-go and --orbit-go")
        put(PAGE, "<!-- features, written by ", "<!-- end of features -->\n", table())
        rows = packages(facts, facts_of_go(nats_go))
        put(PAGE, "<!-- packages, written by ", "<!-- end of packages -->\n", rows)


if __name__ == "__main__":
    main()
