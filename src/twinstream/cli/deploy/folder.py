"""Read the configurations in files and folders for `plan`, `apply` and `validate`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NoReturn

from attrs import frozen

from twinstream.cli.deploy.contracts import with_contracts
from twinstream.cli.deploy.typed_config import other_spellings
from twinstream.cli.failures import Failure
from twinstream.models import FileConfig, FileProblem, Problem, load_configs
from twinstream.models.files.config_files import SEALED, stream_behind
from twinstream.models.lint import DROPPED

SUFFIXES: Final = frozenset({".json", ".yaml", ".yml"})


@frozen
class Wanted:
    """The configurations in files and folders, in the order of the files."""

    streams: list[FileConfig]
    consumers: list[FileConfig]
    problems: list[FileProblem]
    """Why the files cannot be used; empty if they are valid."""

    dropped: list[FileProblem]
    """A warning for each setting that the server would silently drop."""


def read_folder(paths: Iterable[Path], server: str) -> Wanted:
    """Return all configurations in files and folders, validated for the server version `server`.

    Raises `Failure` if there is no file, or if a folder cannot be read.
    """
    files = configs_below(paths)
    found = load_configs(files, server=server)
    # Ignore problems with `sealed`: an existing stream may be sealed. The plan checks new streams.
    errors = [one for one in found.errors if one.problem.rule != SEALED]
    configs = [stream_behind(one) for one in found.configs]
    problems = errors + list(_folder_problems(configs))
    configs, unfit = contracts_of(configs)
    problems += unfit
    dropped = [one for one in found.warnings if one.problem.rule == DROPPED]
    streams = [one for one in configs if one.kind == "stream"]
    consumers = [one for one in configs if one.kind == "consumer"]
    return Wanted(streams, consumers, problems, dropped)


def contracts_of(configs: Iterable[FileConfig]) -> tuple[list[FileConfig], list[FileProblem]]:
    """Return the configs with the contracts of their payloads, and the problems of the schemas."""
    found = [with_contracts(one) for one in configs]
    return [one for one, _ in found], [each for _, faults in found for each in faults]


def configs_below(paths: Iterable[Path]) -> list[Path]:
    """Return the files in `paths`, and the configuration files below the folders in `paths`.

    Each file is returned once. Hidden files and `*.schema.json` in folders are skipped. Raises
    `Failure` if there is no file, or if a folder cannot be read.
    """
    files: dict[str, Path] = {}
    for file in (file for path in paths for file in _files(path)):
        files.setdefault(os.path.realpath(file), file)
    if not files:
        raise Failure("there is no .json, .yaml or .yml file to read")
    return list(files.values())


def _files(path: Path) -> list[Path]:
    return sorted(filter(_is_config, _below(path))) if path.is_dir() else [path]


def _below(folder: Path) -> Iterator[Path]:
    """Yield the files below a folder that are not hidden.

    Symbolic links to folders are followed, but each folder is read once. If several paths lead to
    the same folder, the alphabetically first path is used.
    """
    seen: set[str] = set()
    for root, folders, files in os.walk(folder, onerror=_unreadable, followlinks=True):
        here = os.path.realpath(root)
        shown = [] if here in seen else sorted(one for one in folders if not one.startswith("."))
        folders[:] = shown
        if here not in seen:
            seen.add(here)
            yield from (Path(root, file) for file in files if not file.startswith("."))


def _unreadable(error: OSError) -> NoReturn:
    raise Failure(f"cannot read the folder {error.filename}: {error.strerror}") from error


def _is_config(file: Path) -> bool:
    """Whether `file` has the name of a configuration file, and is a file or a broken link.

    A broken link is reported when the file is read.
    """
    named = file.suffix in SUFFIXES and not file.name.endswith(".schema.json")
    return named and (file.is_file() or not file.exists())


def _folder_problems(configs: list[FileConfig]) -> Iterator[FileProblem]:
    """Yield problems that the validation accepts, but that `plan` and `apply` refuse.

    Examples are a consumer without a name, and two configurations of the same stream.
    """
    seen: dict[tuple[str, str, str], FileConfig] = {}
    for one in configs:
        for spelling, usual in other_spellings(one):
            message = f"servers read the key {spelling!r} as {usual!r}, but this command does not."
            yield _folder_problem(one, message, f"Write {usual}.")
        if one.bucket is not None and not one.name:  # the validation has reported its name
            continue
        if one.kind == "consumer" and not one.name:
            yield _folder_problem(one, "the consumer has no name.", "Set durable_name.")
        elif one.kind == "consumer" and not one.stream_name:
            hint = "Write stream_name: and config: around it."
            yield _folder_problem(one, f"the consumer {one.name!r} does not name its stream.", hint)
        else:
            key = (one.kind, one.stream_name, one.name)
            before = seen.setdefault(key, one)
            if before is not one:
                where = f"{before.file}:{before.line}"
                yield _folder_problem(
                    one, f"{one.kind} {one.name!r} is in {where}, too.", "Keep one."
                )


def _folder_problem(config: FileConfig, message: str, hint: str) -> FileProblem:
    problem = Problem("", config.name or None, "D-FOLDER", message, hint)
    return FileProblem(config.file, config.line, config.column, problem)
