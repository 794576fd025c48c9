"""What an outage of a connection adds to the log, and which refusals end the attempts."""

from __future__ import annotations

from twinstream.core.client.auth import Credentials
from twinstream.core.client.outage import Outage
from twinstream.core.client.server_pool import ServerAddress
from twinstream.errors import AuthenticationFailed, ConnectionFailed

HERE, THERE = ServerAddress("a"), ServerAddress("b")
ANN, BOB = Credentials(token="ann"), Credentials(token="bob")
REFUSED = AuthenticationFailed("Authorization Violation")


def test_notices_come_after_1_and_5_minutes_and_every_half_hour() -> None:
    outage = Outage(1000.0)
    times = [outage.notice(1000.0 + second) for second in range(0, 7300, 7)]
    assert [each // 60 for each in times if each is not None] == [1, 5, 30, 60, 90, 120]


def test_notices_that_were_missed_come_as_one() -> None:
    outage = Outage(0.0)
    assert outage.notice(59.9) is None
    assert outage.notice(4000.0) == 4000.0
    assert outage.notice(4001.0) is None
    assert outage.notice(5400.0) == 5400.0


def test_the_second_refusal_of_the_same_credentials_by_one_server_is_final() -> None:
    outage = Outage(0.0)
    for address, credentials in ((HERE, ANN), (THERE, ANN), (HERE, BOB), (HERE, ANN)):
        outage.note_failure(address, credentials, REFUSED)
        assert outage.final is None
    outage.note_failure(HERE, ANN, ConnectionFailed("reset"))
    outage.note_failure(HERE, ANN, AuthenticationFailed("Authentication Timeout"))
    assert outage.final is None
    outage.note_failure(HERE, ANN, REFUSED)
    assert outage.final is REFUSED
