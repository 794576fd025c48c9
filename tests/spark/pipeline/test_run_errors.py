"""What a pipeline says of failures: one line, without tracebacks."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from twinstream.cli.pipeline.progress_output import sentence as board_sentence
from twinstream.spark.errors import OptionError
from twinstream.spark.pipeline.pipeline_events import Failed
from twinstream.spark.pipeline.restarts import Restarts
from twinstream.spark.pipeline.run_errors import is_lasting, kind_of, sentence
from twinstream.spark.pipeline.settings.config import Restarts as RestartSettings

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


@pytest.mark.parametrize(
    ("limits", "once", "pauses"),
    [
        (RestartSettings(most=2), False, [1.0, 2.0, None]),
        (RestartSettings(first=3.0, longest=4.0), False, [3.0, 4.0, 4.0, 4.0, 4.0, 4.0]),
        (RestartSettings(), True, [1.0, 2.0, 4.0, 8.0, 16.0, None]),
        (RestartSettings(most=0), True, [None]),
    ],
)
def test_restarts_end_unless_a_batch_is_landed(
    limits: RestartSettings, once: bool, pauses: list[float | None]
) -> None:
    restarts = Restarts(SimpleNamespace(restarts=limits), once=once)  # type: ignore[arg-type]
    for _ in range(2):
        assert [restarts.failed(RuntimeError("disk on fire")) for _ in pauses] == pauses
        restarts.landed()
    assert restarts.failed(RuntimeError(TRACEBACK)) is None


def test_errors_of_this_package_keep_their_words() -> None:
    error = OptionError("stream", "is required")
    assert (sentence(error), is_lasting(error)) == ("option 'stream': is required", True)


@pytest.mark.parametrize("error", ["disk on fire", "disk on fire."])
def test_the_board_ends_the_sentence(error: str) -> None:
    assert (
        board_sentence(Failed("S", error, 1.0, "RuntimeError")) == "disk on fire. Restarts in 1 s."
    )
