"""Convert problems in configuration files to a SARIF 2.1.0 log.

Code hosts show the entries of such a log next to the lines of the files.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from urllib.parse import quote

from twinstream.models import FileConfigs, FileProblem
from twinstream.models.files.config_files import STDIN_NAME

Object = dict[str, object]


def sarif_log(found: FileConfigs) -> Object:
    """Return a SARIF log of all problems and warnings.

    Problems have the level "error", or "note" if only a server can decide whether a rule is
    violated. Warnings have the level "warning".
    """
    results = [_result(level, problem) for level, problem in _by_level(found)]
    rules = sorted({problem.problem.rule for _, problem in _by_level(found)})
    driver: Object = {
        "name": "twinstream",
        "version": version("twinstream"),
        "rules": [{"id": rule} for rule in rules],
    }
    run: Object = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": results,
    }
    return {"version": "2.1.0", "runs": [run]}


def _by_level(found: FileConfigs) -> Iterator[tuple[str, FileProblem]]:
    for problem in found.problems:
        yield "note" if problem.problem.needs_server else "error", problem
    for warning in found.warnings:
        yield "warning", warning


def _result(level: str, found: FileProblem) -> Object:
    """Return a problem as a result of SARIF. `level` is `error` or `warning`."""
    problem = found.problem
    parts = (f"{problem.path}:" if problem.path else "", problem.message, problem.hint)
    properties: Object = {"path": problem.path}
    if problem.err_code:
        properties["err_code"] = problem.err_code
    return {
        "ruleId": problem.rule,
        "level": level,
        "message": {"text": " ".join(part for part in parts if part)},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": _uri(found.file)},
                    "region": {"startLine": found.line, "startColumn": found.column},
                }
            }
        ],
        "properties": properties,
    }


def _uri(name: str) -> str:
    """Return the name of a file as a URI, as SARIF requires. Relative names stay relative.

    The URI of standard input is "stdin".
    """
    if name == STDIN_NAME:
        return "stdin"
    path = Path(name)
    # Quote the bytes, because a file name need not be UTF-8.
    return path.as_uri() if path.is_absolute() else quote(os.fsencode(path.as_posix()))
