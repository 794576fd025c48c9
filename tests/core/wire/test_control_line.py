"""Protocol lines that a server refuses: noticed, remembered, and not sent again."""

from __future__ import annotations

import pytest

from twinstream.core.wire.control_line import ControlLines, check_line
from twinstream.errors import BadArgument

REFUSED = "Maximum Control Line Exceeded"


def test_the_longest_line_is_the_refused_one() -> None:
    lines = ControlLines()
    for length in (100, 500, 300):
        if length > lines.longest:
            assert lines.admit(length)
    lines.note_error(REFUSED)
    assert not lines.admit(500)
    assert lines.admit(499)
    with pytest.raises(BadArgument, match=r"s…: subject .* 500 bytes.* max_control_line"):
        lines.check(b"s" * 480, b"r" * 20)
    lines.check(b"s" * 480, b"r" * 19)


def test_what_was_refused_once_is_so_after_each_reconnect() -> None:
    lines = ControlLines()
    lines.check(b"s" * 500, b"")
    lines.note_error(REFUSED)
    lines.begin()
    assert lines.longest == 0
    assert not lines.admit(500)
    assert lines.admit(400)
    lines.note_error(REFUSED)
    assert not lines.admit(400)
    # The next error is about a shorter line, so the limit only falls.
    lines.begin()
    lines.note_error(REFUSED)
    assert lines.admit(399)


def test_other_errors_are_not_about_a_line() -> None:
    lines = ControlLines()
    assert lines.admit(500)
    lines.note_error("Stale Connection")
    lines.note_error('Permissions Violation for Publish to "maximum control line exceeded"')
    assert lines.admit(501)


def test_no_line_is_longer_than_a_server_reads_by_default() -> None:
    subject, reply = b"s" * 2072, b"r" * 2000
    assert len(b"%b %b 10000000 10000000" % (subject, reply)) <= 4096
    check_line(subject, reply)
    ControlLines().check(subject, reply)
    for check in (check_line, ControlLines().check):
        with pytest.raises(BadArgument, match="default max_control_line of 4096 bytes"):
            check(subject + b"s", reply)
