"""The error about an export that lets only the first response through."""

from __future__ import annotations

from twinstream.core.wire.single_answers import SingleAnswers


def test_the_error_shows_the_export_as_it_is_written_in_a_configuration() -> None:
    error = str(SingleAnswers.of("JS.acc.API.DIRECT.GET.S", "JS.acc.API"))
    assert '`response_type: stream`, as in {service: "$JS.API.>", response_type: stream}' in error
    assert "(imported here as JS.acc.API.>)" in error
