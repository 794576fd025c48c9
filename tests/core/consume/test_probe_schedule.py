"""When an ordered read sends probes."""

from __future__ import annotations

from twinstream.core.consume.probe_schedule import LIFE, ProbeSchedule


def test_the_first_probe_is_due_after_a_moment_of_silence() -> None:
    probing = ProbeSchedule()
    assert probing.due_at(5.0) == probing.due_at(5.005) == 5.01
    probing.moved()
    assert probing.due_at(7.0) == 7.01
    probing.make_due(7.0)
    assert probing.due_at(7.0) == 7.0


def test_a_probe_lives_until_the_next_is_due() -> None:
    probing = ProbeSchedule()
    assert probing.heartbeat(1.0, (1, 1)) == 0.001
    assert probing.due_at(1.0) == 1.0 + LIFE * 0.001


def test_probes_that_change_nothing_become_rare() -> None:
    probing = ProbeSchedule()
    beats = [probing.heartbeat(float(number), (3, 9)) for number in range(12)]
    assert beats[:4] == [0.001, 0.002, 0.004, 0.008]
    assert beats[-1] == 0.25
    assert probing.due_at(11.0) == 11.0 + LIFE * 0.25
    assert probing.heartbeat(20.0, (3, 10)) == 0.001


def test_without_heartbeats_they_are_rare() -> None:
    probing = ProbeSchedule(pause=10.0)
    assert probing.due_at(1.0) == 11.0
    assert probing.rare(11.0)
    assert probing.due_at(11.0) == 21.0
    assert not ProbeSchedule().rare(1.0)
