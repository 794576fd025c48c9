"""Write all generated files, or check that they are up to date.

`python codegen/gen.py` writes the files. `python codegen/gen.py --check` changes nothing: it
prints a diff for each stale file, and exits with 1 if a file is stale.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import bundle
import error_codes
import event_subjects
import exports
import fronts
import shapes
from freshness import keep_fresh
from schemas import FOLDER, ROOT, Schemas

MODELS = ROOT / "src" / "twinstream" / "models"
GENERATED = MODELS / "generated"
SERVER_ERRORS = ROOT / "src/twinstream/errors/server_errors.py"
FRONT = ROOT / "src" / "js_async" / "__init__.py"
OTHERS = ("twin.py", "event_types.py", "server_faults.py", "public_api.py", "command_page.py")


def texts(schemas: Schemas) -> dict[Path, Callable[[], str]]:
    """Return, for each file that this module writes, the function that returns the file's text."""
    return {
        MODELS / "index.py": lambda: exports.index(schemas),
        MODELS / "__init__.py": lambda: exports.package(schemas),
        MODELS / "error_codes.py": lambda: error_codes.module(),
        SERVER_ERRORS: lambda: error_codes.classes(),
        MODELS / "event_subjects.py": lambda: event_subjects.module(schemas),
        MODELS / "files" / "shapes.py": lambda: shapes.module(schemas),
        FRONT.with_name("_index.py"): lambda: fronts.index(FRONT),
        MODELS / "schema.json": lambda: bundle.document(schemas),
    }


def main(arguments: list[str]) -> int:
    """Write or check all generated files, and return the exit code."""
    if arguments not in ([], ["--check"]):
        print("usage: python codegen/gen.py [--check]", file=sys.stderr)
        return 2
    check = bool(arguments)
    schemas = Schemas()
    good = _models(schemas, check)
    for path, make in texts(schemas).items():
        good &= keep_fresh(path, _formatted(path, make()), check=check)
    for name in OTHERS:
        script = ROOT / "codegen" / name
        if script.exists():
            good &= _run([sys.executable, str(script), *arguments])
    if not good and check:
        print("generated files are stale; run: python codegen/gen.py", file=sys.stderr)
    return 0 if good else 1


def _models(schemas: Schemas, check: bool) -> bool:
    """Generate the model classes in a temporary folder, then compare or copy them.

    datamodel-codegen formats the modules with ruff. Import order and lint exceptions depend on the
    path of a module, so the temporary folder has the same layout and `pyproject.toml` as the
    project. Return whether the tool succeeded and no file is stale.
    """
    with tempfile.TemporaryDirectory() as folder:
        aside = Path(folder)
        shutil.copy(ROOT / "pyproject.toml", aside)
        package = aside / MODELS.relative_to(ROOT)
        package.mkdir(parents=True)
        for each in (package, package.parent):
            (each / "__init__.py").touch()
        for path in schemas.files:
            # Copy only files that define models, because the tool reads every file in the folder.
            (aside / "schema" / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(FOLDER / path, aside / "schema" / path)
        fresh = package / GENERATED.name
        source = ["--input", str(aside / "schema"), "--output", str(fresh)]
        if not _run([_tool("datamodel-codegen"), *source]):
            return False
        paths = [path.relative_to(fresh) for path in sorted(fresh.rglob("*.py"))]
        same = [
            keep_fresh(GENERATED / path, (fresh / path).read_text(), check=check) for path in paths
        ]
    return _no_strays(set(paths), check) and all(same)


def _no_strays(paths: set[Path], check: bool) -> bool:
    """Remove the generated modules that are not in `paths`. Return True.

    With `check`, print their names instead, and return False if there are any.
    """
    strays = [path for path in GENERATED.rglob("*.py") if path.relative_to(GENERATED) not in paths]
    for path in strays:
        if check:
            print(f"{path.relative_to(ROOT)} has no schema")
        else:
            path.unlink()
    return not (strays and check)


def _formatted(path: Path, text: str) -> str:
    """Return the text of a Python file as ruff formats it; other text unchanged."""
    if path.suffix != ".py":
        return text
    command = [_tool("ruff"), "format", "--stdin-filename", str(path), "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, cwd=ROOT)
    if done.returncode:
        raise SystemExit(f"ruff cannot format {path.name}: {done.stderr}")
    return done.stdout


def _tool(name: str) -> str:
    """Return the path of a tool in the folder of the running Python interpreter."""
    return str(Path(sys.executable).with_name(name))


def _run(command: list[str]) -> bool:
    return subprocess.run(command, cwd=ROOT).returncode == 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
