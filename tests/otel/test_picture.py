"""The picture in the guide is that of a real trace."""

from __future__ import annotations

from tests.otel.picture import PICTURE, picture, spans_of_a_failure


def test_the_picture_shows_what_a_program_emits() -> None:
    spans = spans_of_a_failure()
    assert len({span.context.trace_id for span in spans if span.context}) == 1
    assert PICTURE.read_text("utf-8") == picture(spans)
