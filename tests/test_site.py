"""The pages of the reference: every public name has an entry, with all names of its members."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest
from codegen.site.public_names import public_objects
from codegen.site.reference import pages

DOCS = Path(__file__).parent.parent / "docs"
NAMED = re.compile(r"(?:^\.\. py:\w+:: |^ {10,})((?:js_|twinstream)[\w.]+)", re.M)


pytest.importorskip("pyspark", reason="the reference has the Spark source")


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
