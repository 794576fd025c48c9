"""How the command prints the log of the SDK."""

from __future__ import annotations

import logging

import pytest

from tests.cli.output import Run


def test_nothing_is_logged_by_default(run: Run, stream: str) -> None:
    result = run("pub", f"{stream}.a", "hello")
    assert result.exit_code == 0, result.stderr
    assert "twinstream." not in result.stderr


@pytest.mark.parametrize(("option", "has_calls"), [("-v", False), ("-vv", True)])
def test_log_is_shown_on_request(run: Run, stream: str, option: str, has_calls: bool) -> None:
    result = run(option, "stream", "info", stream)
    assert result.exit_code == 0, result.stderr
    assert " INFO twinstream.connection: connected to " in result.stderr
    assert (" DEBUG twinstream.api: " in result.stderr) == has_calls
    assert "twinstream." not in result.stdout


def test_logging_is_as_it_was_after_a_command(run: Run, stream: str) -> None:
    logger = logging.getLogger("twinstream")
    for options in ([], ["-vv"], ["--timeout", "soon"]):
        run(*options, "stream", "info", stream)
        assert (logger.level, logger.propagate, logger.handlers) == (logging.NOTSET, True, [])
