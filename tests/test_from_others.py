"""The tables for users of other systems name calls, settings and commands that exist."""

from __future__ import annotations

import re

import click

from tests.examples import ROOT
from twinstream.cli.groups import twinstream
from twinstream.models import ConsumerConfig, ConsumerInfo, StreamConfig

PAGE = ROOT / "docs" / "from-others.md"
# Objects of the text, and words of the server's configuration.
OTHERS = {
    "jet",
    "stream",
    "bucket",
    "nc",
    "Task",
    "task",
    "orders",
    "paid",
    "raise",
    "sync_interval",
}


def cells() -> list[str]:
    """Return the right cells of the tables."""
    return re.findall(r"^\| .+? \| (.+) \|$", PAGE.read_text("utf-8"), re.MULTILINE)


def test_names_in_the_tables_exist() -> None:
    api = set(re.findall(r"\w+", (ROOT / "docs" / "api.md").read_text("utf-8")))
    settings = {
        each.name
        for kind in (ConsumerConfig, ConsumerInfo, StreamConfig)
        for each in kind.__attrs_attrs__
    }
    spans = [span for cell in cells() for span in re.findall(r"`([^`]+)`", cell)]
    named = [span for span in spans if not span.startswith("twinstream ")]
    code = [re.sub(r'".*?"', "", span) for span in named]
    used = {word for span in code for word in re.findall(r"[A-Za-z_]{2,}\w*", span)}
    assert len(used) > 60
    assert used - api - settings - OTHERS == set()


def test_commands_in_the_tables_exist() -> None:
    commands = re.findall(r"`twinstream ([^`]+)`", "\n".join(cells()))
    assert commands
    for command in commands:
        found: click.Command = twinstream
        for word in command.split():
            if word.startswith("-"):
                assert any(word in each.opts for each in found.params), command
            else:
                assert isinstance(found, click.Group), command
                following = found.get_command(click.Context(found), word)
                assert following is not None, command
                found = following
