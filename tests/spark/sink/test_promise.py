"""Streams that cannot keep what a write promises are refused, with the setting."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from twinstream.models import StreamConfig, StreamSource, SubjectTransform
from twinstream.spark.errors import OptionError
from twinstream.spark.sink.guarantee import check_promise
from twinstream.spark.sink.options import SinkOptions

MOVED = SubjectTransform(src="s.>", dest="t.>")
LEDGER = {"idempotence": "ledger", "ledgerSubject": "s.ledger"}


def check(config: dict[str, Any], **options: str) -> None:
    given = {"nats.servers": "nats://127.0.0.1:1", "stream": "S", **options}
    check_promise(StreamConfig(name="S", **config), SinkOptions.parse(given))


@pytest.mark.parametrize(
    ("config", "options", "reason"),
    [
        ({"no_ack": True}, {"idempotence": "none"}, "no_ack is True"),
        ({"mirror": StreamSource(name="O")}, {"idempotence": "insert"}, "mirror is O"),
        ({"sealed": True}, {"idempotence": "none"}, "sealed is True"),
        ({}, {"idempotence": "msgId"}, "forgets message IDs after 0 s"),
        ({}, LEDGER, "needs allow_atomic"),
        ({"allow_atomic": True, "retention": "interest"}, LEDGER, "removes a ledger entry"),
        ({"allow_atomic": True, "retention": "workqueue"}, LEDGER, "=workqueue and removes"),
        ({"allow_atomic": True}, {**LEDGER, "ledgerSubject": "t"}, "'t.write.0'"),
        ({"allow_atomic": True, "subjects": ["s.*"]}, LEDGER, "'s.ledger.write.0'"),
        ({"allow_atomic": True, "max_msgs_per_subject": 1}, LEDGER, "keeps 1 messages per subject"),
        ({"subject_transform": MOVED}, {"idempotence": "insert"}, "subject_transform is t.>"),
    ],
)
def test_a_stream_that_breaks_the_promise_is_refused(
    config: dict[str, Any], options: dict[str, str], reason: str
) -> None:
    with pytest.raises(OptionError, match=reason):
        check({"subjects": ["s.>"], **config}, **options)


@pytest.mark.parametrize(
    ("config", "options"),
    [
        ({"allow_atomic": True}, LEDGER),
        ({"allow_atomic": True, "retention": "limits"}, LEDGER),
        ({"allow_atomic": True, "max_msgs_per_subject": 1000}, LEDGER),
        ({"subjects": [">"], "allow_atomic": True}, {**LEDGER, "ledgerSubject": "t"}),
        ({"subject_transform": MOVED}, {"idempotence": "none"}),
        ({"duplicate_window": timedelta(minutes=2)}, {"idempotence": "msgId"}),
        ({"subjects": None}, {"idempotence": "insert"}),
    ],
)
def test_stream_with_sufficient_settings_is_accepted(
    config: dict[str, Any], options: dict[str, str]
) -> None:
    check({"subjects": ["s.>"], **config}, **options)
