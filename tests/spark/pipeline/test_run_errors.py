"""What a pipeline says of failures: one line, without tracebacks."""

from __future__ import annotations

import pytest

from twinstream.cli.pipeline.progress_output import sentence as board_sentence
from twinstream.spark.errors import OptionError
from twinstream.spark.pipeline.pipeline_events import Failed
from twinstream.spark.pipeline.run_errors import is_lasting, kind_of, sentence

TRACEBACK = """[PYTHON_DATA_SOURCE_ERROR] Failed to plan: Traceback (most recent call last):
  File "reader.py", line 41, in partitions
twinstream.spark.errors.OptionError: option 'stream': there is no stream 'S'
 SQLSTATE: 38000"""


@pytest.mark.parametrize(
    ("text", "said", "lasting"),
    [
        (TRACEBACK, "option 'stream': there is no stream 'S'", True),
        ("Python worker failed to connect back.\n\tat org", "within the ten seconds", False),
        ("Timed out while waiting for the Python worker to connect back", "busy", False),
        ("\n  disk on fire\n  at x", "disk on fire", False),
        ("", "RuntimeError", False),
    ],
)
def test_failure_is_reported_in_one_line(text: str, said: str, lasting: bool) -> None:
    error = RuntimeError(text)
    assert said in sentence(error)
    assert "\n" not in sentence(error)
    assert is_lasting(error) is lasting


def test_a_failure_is_of_the_class_that_was_raised() -> None:
    assert kind_of(RuntimeError(TRACEBACK)) == "OptionError"
    assert kind_of(RuntimeError("disk on fire")) == "RuntimeError"


def test_errors_of_this_package_keep_their_words() -> None:
    error = OptionError("stream", "is required")
    assert (sentence(error), is_lasting(error)) == ("option 'stream': is required", True)


@pytest.mark.parametrize("error", ["disk on fire", "disk on fire."])
def test_the_board_ends_the_sentence(error: str) -> None:
    assert (
        board_sentence(Failed("S", error, 1.0, "RuntimeError")) == "disk on fire. Restarts in 1 s."
    )
