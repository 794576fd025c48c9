"""Generate the page of the command from its commands, options and examples.

python codegen/command_page.py            write docs/command.md
python codegen/command_page.py --check    print a diff and exit with 1 if the page is stale
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from freshness import keep_fresh
from twinstream.cli.groups import twinstream
from twinstream.cli.help.connection_option import ConnectionOption
from twinstream.cli.help.page import HelpfulCommand

PAGE = Path(__file__).resolve().parent.parent / "docs" / "command.md"

HEAD = """\
# The command

<!-- Generated from src/twinstream/cli by codegen/command_page.py. -->

All commands of `twinstream` with their options and an example. `twinstream COMMAND --help` shows
the same.

## In common

Exit codes: 0 for success, 1 if problems were found or the work failed, 2 for wrong usage, 3 if an
object does not exist. `--json` prints only JSON, one document per line, also for failures.

In a pipe, a table has a line for each row, with tabs between the cells and without a heading; cells
are whole, numbers plain, sizes in bytes, times in RFC 3339. On a terminal, a row is one line: if it
is too wide, columns of text are shortened, the last one first, then columns are dropped, the last
one first. Names are neither shortened nor dropped. `NO_COLOR=1` turns colours off. Standard error
has only errors, unless it is a terminal.

Durations are written like `250ms`, `90s`, `1h30m`, `7d` or `2w`; where seconds are meant, a plain
number is accepted, too. Sizes are written like `512`, `64KB`, `10MiB` or `1GB`, with powers of
1,024.

Commands have the aliases of the `nats` command: `list` for `ls`, `delete` for `rm` or `del`, `new`
for `add`, `-f` for `--yes`. For a command or an option that has another name here, and for a
mistyped one, the error says which one to use.

Before the command, `-v` prints events of connections, `-vv` also each request, and `--debug` the
Python traceback of an error.

## Completion

Shells complete commands and options, and the names of streams, consumers, buckets and keys, which
come from the server of the command line, or of `TWINSTREAM_URL`. If it does not answer within a
second, no names are offered.

```text
eval "$(_TWINSTREAM_COMPLETE=bash_source twinstream)"      # in ~/.bashrc
eval "$(_TWINSTREAM_COMPLETE=zsh_source twinstream)"       # in ~/.zshrc
_TWINSTREAM_COMPLETE=fish_source twinstream | source       # in ~/.config/fish/config.fish
```
"""


def text() -> str:
    """Return the text of the page."""
    root = click.Context(twinstream, info_name="twinstream")
    lines = [HEAD, *_connection(root)]
    for group, commands in _sections(root):
        lines += [f"## {group}", ""]
        for path, context in commands:
            lines += _command(path, context)
    return "\n".join(lines).rstrip("\n") + "\n"


def _connection(root: click.Context) -> Iterator[str]:
    stream = twinstream.get_command(root, "stream")
    assert isinstance(stream, click.Group)
    command = stream.get_command(click.Context(stream, parent=root, info_name="stream"), "ls")
    assert command is not None
    options = [each for each in command.params if isinstance(each, ConnectionOption)]
    yield from ("## Connection options", "")
    yield "Commands that connect to a server accept these, before the command or after it."
    yield ""
    yield from _table(root, options)


def _sections(root: click.Context) -> Iterator[tuple[str, list[tuple[str, click.Context]]]]:
    single: list[tuple[str, click.Context]] = []
    groups: list[tuple[str, list[tuple[str, click.Context]]]] = []
    for name in twinstream.list_commands(root):
        found = twinstream.get_command(root, name)
        assert found is not None
        context = click.Context(found, parent=root, info_name=name)
        if isinstance(found, HelpfulCommand) and not found.example:
            continue
        if not isinstance(found, click.Group):
            single.append((name, context))
            continue
        groups.append((name, list(_inner(name, found, context))))
    yield "single commands", single
    yield from groups


def _inner(
    path: str, group: click.Group, context: click.Context
) -> Iterator[tuple[str, click.Context]]:
    """Yield the commands of a group and of the groups in it."""
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        inner = click.Context(command, parent=context, info_name=name)
        if isinstance(command, click.Group):
            yield from _inner(f"{path} {name}", command, inner)
        else:
            yield f"{path} {name}", inner


def _command(path: str, context: click.Context) -> Iterator[str]:
    command = context.command
    usage = " ".join(command.collect_usage_pieces(context))
    yield from (f"### {path}", "", f"`twinstream {path} {usage}`", "")
    yield from (_prose(command.help or ""), "")
    options = [each for each in command.params if isinstance(each, click.Option)]
    yield from _table(context, [one for one in options if not isinstance(one, ConnectionOption)])
    assert isinstance(command, HelpfulCommand)
    yield from ("```text", command.example, "```", "")


def _prose(text: str) -> str:
    """Return the text of a help page without its examples, which follow a backspace."""
    whole = inspect.cleandoc(text).partition("\b")[0].strip()
    return re.sub(r"([<>*])", r"\\\1", whole)


def _table(context: click.Context, options: list[click.Option]) -> Iterator[str]:
    records = [record for each in options if (record := each.get_help_record(context))]
    if not records:
        return
    yield from ("| option | meaning |", "| --- | --- |")
    for names, meaning in records:
        cell = meaning.replace("|", "\\|").replace("<", "\\<").replace(">", "\\>")
        yield f"| `{names.replace('|', '/')}` | {cell} |"
    yield ""


def main(arguments: list[str]) -> int:
    """Write or check the page, and return the exit code."""
    return 0 if keep_fresh(PAGE, text(), check=arguments == ["--check"]) else 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
