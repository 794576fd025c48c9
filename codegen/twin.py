"""Make the blocking twin of everything that is written for asyncio.

``python codegen/twin.py`` writes; ``python codegen/twin.py --check`` changes nothing, prints a diff
for each stale file and exits 1 if there is one. The work on tokens is unasync's; this adds what
it leaves: words in docstrings, lines that only asyncio has, formatting, and proof that nothing of
asyncio is left, that no table entry is useless and that no twin lost its source.
"""

from __future__ import annotations

import difflib
import re
import shutil
import subprocess
import sys
import tempfile
import tokenize
from io import StringIO
from pathlib import Path

import unasync

ROOT = Path(__file__).resolve().parents[1]

# Hand-written on both sides, or without a counterpart: each with its reason.
TREES = {
    ("src/js_async", "src/js_sync"): {
        "_io.py": "the seam: waiting, tasks and locks",
        "_opening.py": "the seam: what is awaited, or used in `async with`",
        "_keeping.py": "system calls of sockets, which asyncio makes by itself",
        "_tls_socket.py": "TLS of sockets, which asyncio has by itself",
        "_link.py": "the seam: the bytes of a connection",
        "_sleeper.py": "futures of asyncio, which threads have none of",
        "_reader.py": "which thread reads, where threads may",
        "_sender.py": "whose turn it is to send, where threads may",
        "_sockets.py": "the seam: connecting, and what else threads need of sockets",
        "nats_py.py": "nats-py has no blocking client to stand on",
        "_nats_py_parser.py": "nor a parser to replace",
    },
    ("tests/_async", "tests/_sync"): {
        "conftest.py": "runs test coroutines",
        "flow.py": "the tests' own seam: parallel work and cancellation",
        "test_nats_py.py": "nats-py has no blocking client to stand on",
        "test_nats_py_parser.py": "nor a parser to replace",
        "test_kv_nats_py.py": "nor buckets that block",
        "test_asyncio_only.py": "event loops and task cancellation",
    },
}

NAMES = {
    "js_async": "js_sync",
    "_async": "_sync",
    "AsyncIterable": "Iterable",
}

# In docstrings and comments; code is unasync's.
WORDS = (
    (re.compile(r"\basync (with|for|def)\b"), r"\1"),
    (re.compile(r"\bawait "), ""),
    (re.compile(r"\bjs_async\b"), "js_sync"),
)

# What is open when the call returns: its plain type, which is what editors complete.
OPENING = re.compile(r"\bOpening\[(\w+(?:\[\w+\])?)\]")

ONLY = re.compile(r"^.*# asyncio only\n", re.MULTILINE)
LEAKS = re.compile(
    r"\b(async|await|asyncio|aio|awaitable|coroutine|Async[A-Z]\w*|__a(?:enter|exit|iter|next)__)\b"
)
HEADER = "# Generated from {source} by codegen/twin.py. Edit that file instead.\n"


def main(arguments: list[str]) -> int:
    """Run; return the exit code."""
    if arguments not in ([], ["--check"]):
        print("usage: python codegen/twin.py [--check]", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        made = render(Path(folder))
    faults = [fault for path, text in made.items() for fault in leaks(path, text)]
    faults += useless_names()
    stale = strangers(set(made)) + [path for path, text in made.items() if read(path) != text]
    for fault in faults:
        print(fault, file=sys.stderr)
    if arguments:
        for path in stale:
            print(diff(path, made.get(path, "")), end="")
        if stale:
            print("the twin is stale; run: python codegen/twin.py", file=sys.stderr)
        return 1 if stale or faults else 0
    for path in stale:
        target = ROOT / path
        if path in made:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(made[path])
        else:
            target.unlink()
    return 1 if faults else 0


def sources() -> dict[str, str]:
    """Return the twin's path for each source path."""
    found: dict[str, str] = {}
    for (source, twin), skipped in TREES.items():
        for path in sorted((ROOT / source).rglob("*.py")):
            inner = path.relative_to(ROOT / source).as_posix()
            if inner not in skipped:
                found[f"{source}/{inner}"] = f"{twin}/{inner}"
    return found


def render(folder: Path) -> dict[str, str]:
    """Make every twin in a folder; return the texts by path."""
    pairs = sources()
    for source in pairs:
        target = folder / source
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(ONLY.sub("", read(source)))
    for source, twin in TREES:
        rule = unasync.Rule(f"/{source}/", f"/{twin}/", additional_replacements=NAMES)
        files = [str(folder / path) for path in pairs if path.startswith(f"{source}/")]
        unasync.unasync_files(files, [rule])
    shutil.copy(ROOT / "pyproject.toml", folder)
    for source, twin in pairs.items():
        path = folder / twin
        text = OPENING.sub(r"\1", without_words(path.read_text()))
        path.write_text(HEADER.format(source=source) + text)
    twins = [str(folder / twin) for twin in pairs.values()]
    for command in (["check", "--select", "I,F401,PYI016", "--fix", "-q"], ["format", "-q"]):
        subprocess.run([sys.executable, "-m", "ruff", *command, *twins], cwd=folder, check=True)
    return {twin: (folder / twin).read_text() for twin in pairs.values()}


def without_words(text: str) -> str:
    """Replace the words of asyncio in docstrings and comments."""
    lines = text.splitlines(keepends=True)
    for token in tokenize.generate_tokens(StringIO(text).readline):
        if token.type in {tokenize.STRING, tokenize.COMMENT}:
            for number in range(token.start[0] - 1, token.end[0]):
                for pattern, plain in WORDS:
                    lines[number] = pattern.sub(plain, lines[number])
    return "".join(lines)


def leaks(path: str, text: str) -> list[str]:
    """Return a complaint for each word of asyncio that a twin still holds."""
    found: list[str] = []
    for number, line in enumerate(text.splitlines()[1:], 2):
        word = LEAKS.search(line)
        if word:
            found.append(f"{path}:{number}: {word.group()!r} is left in the twin")
    return found


def useless_names() -> list[str]:
    """Return a complaint for each table entry that no source uses."""
    text = "\n".join(read(source) for source in sources())
    return [
        f"codegen/twin.py: nothing is named {name}, take it out of NAMES"
        for name in NAMES
        if not re.search(rf"\b{name}\b", text)
    ]


def strangers(made: set[str]) -> list[str]:
    """Return the files of the twin that have no source."""
    return [
        path.relative_to(ROOT).as_posix()
        for (_, twin), skipped in TREES.items()
        for path in sorted((ROOT / twin).rglob("*.py"))
        if path.relative_to(ROOT / twin).as_posix() not in skipped
        and path.relative_to(ROOT).as_posix() not in made
    ]


def read(path: str) -> str:
    """Return the text of a file of the project, empty when there is none."""
    target = ROOT / path
    return target.read_text() if target.exists() else ""


def diff(path: str, text: str) -> str:
    """Return what would change in a file."""
    old, new = read(path).splitlines(keepends=True), text.splitlines(keepends=True)
    return "".join(difflib.unified_diff(old, new, path, f"{path} (fresh)"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
