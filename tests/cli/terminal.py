"""Run a command on a terminal of a given size, or with pipes."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import termios

from attrs import frozen

LIMIT = 120
PATIENT = ("--timeout", "1m")
"""Options of commands whose requests are not to time out; options after the command win."""
COMMAND = [sys.executable, "-m", "twinstream", *PATIENT]
"""The command in its own process."""

SEVERAL = """
import sys
from twinstream.cli.main import main
streams = (sys.stdout,) if sys.stdout.isatty() else (sys.stdout, sys.stderr)
for command in sys.argv[1:]:
    sys.argv = ["twinstream", "--timeout", "1m", *command.split()]
    code = 0
    try:
        main()
    except SystemExit as ended:
        code = ended.code or 0
    for stream in streams:
        print(f"\x1e{code}", file=stream, flush=True)
"""
"""A program that runs its arguments as `twinstream` commands, and imports everything once.

A mark and the exit code stand behind the output of each command: see `each_shown`.
"""
_MARK = re.compile(r"\x1e(\d+)\n")


@frozen
class Shown:
    """What a command printed."""

    out: str
    """The standard output; on a terminal together with the standard error."""
    err: str
    code: int


def on_terminal(arguments: list[str], columns: int, answers: str = "", **more: str) -> Shown:
    """Run a command whose three standard streams are a terminal, and type the answers."""
    return _on_terminal([*COMMAND, *arguments], columns, answers, **more)


def session_on_terminal(commands: list[str], columns: int) -> list[Shown]:
    """Run commands on a terminal, in one process, which imports everything once."""
    return each_shown(_on_terminal([sys.executable, "-c", SEVERAL, *commands], columns))


def session_in_pipe(commands: list[str]) -> list[Shown]:
    """Run commands whose output goes into pipes, in one process."""
    return each_shown(_in_pipe([sys.executable, "-c", SEVERAL, *commands]))


def each_shown(shown: Shown) -> list[Shown]:
    """Return what each command of the program `SEVERAL` has printed."""
    assert shown.code == 0, shown
    *out, _ = _MARK.split(shown.out)
    *err, _ = _MARK.split(shown.err) if shown.err else [*[""] * len(out), ""]
    return [Shown(*each) for each in zip(out[::2], err[::2], map(int, out[1::2]), strict=True)]


def _on_terminal(command: list[str], columns: int, answers: str = "", **more: str) -> Shown:
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (50, columns))
    environment = _environment() | {"TERM": "xterm"} | more
    with subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment
    ) as process:
        os.close(theirs)
        os.write(ours, answers.encode())
        parts: list[bytes] = []
        try:
            while part := os.read(ours, 1 << 16):
                parts.append(part)
        except OSError:  # Linux reports the end of the terminal as an error
            pass
        os.close(ours)
        code = process.wait(LIMIT)
    return Shown(b"".join(parts).decode().replace("\r\n", "\n"), "", code)


def in_pipe(arguments: list[str], **more: str) -> Shown:
    """Run a command whose output goes into pipes."""
    return _in_pipe([*COMMAND, *arguments], **more)


def _in_pipe(command: list[str], **more: str) -> Shown:
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env=_environment() | more,
        timeout=LIMIT,
    )
    return Shown(done.stdout, done.stderr, done.returncode)


def _environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    return kept | {"NO_COLOR": "1", "TZ": "Asia/Tokyo"}


_STYLES = re.compile(r"\x1b\[[0-9;]*m")
_CHANGING = (
    (re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z"), "RFC-3339"),
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\+09:00"), "LOCAL-TIME"),
    (re.compile(r" *(\b\d+[smh] ago|\bnow\b|\btime\b) *"), lambda found: _aged(found[1])),
    (re.compile(r"─+"), "─"),
    (re.compile(r"\btest-[0-9a-f]{8}\b"), "SERVER"),
)


def _aged(text: str) -> str:
    return "  time  " if text == "time" else "  AGO  "


def steady(text: str) -> str:
    """Return a screen without styles, and with words in place of times and their column widths."""
    text = _STYLES.sub("", text)
    for pattern, word in _CHANGING:
        text = pattern.sub(word, text)
    return "\n".join(line.rstrip(" ") for line in text.split("\n"))
