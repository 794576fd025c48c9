"""Scripts for a `FakeServer` from a recording.

A client creates new inboxes in every run, so a replay maps each recorded inbox to the inbox of this
run, which gets its frames. PING and PONG are left to the fake server, because the client's clock
determines when it sends them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from twinstream.testing.fake_peer import FakePeer
from twinstream.testing.fake_script import ScriptError
from twinstream.testing.fake_wire import Operation
from twinstream.testing.recorder import Spoken, read_recording

__all__ = ["replay"]

_LEFT_OUT: Final = {"PING", "PONG"}
# From this length on, a token may be a name that a client generated for this run.
_GENERATED: Final = 12


def replay(path: Path | str) -> list[Callable[[FakePeer], None]]:
    """Return a script for each connection of a recording, in order.

    The script fails if the client does not repeat the recording: it must send the same operations
    in the same order, to the same subjects except for inboxes and generated names. Payloads may
    differ. Raises `ValueError` for a file that is no recording.
    """
    spoken = [each for each in read_recording(path) if each.operation.verb not in _LEFT_OUT]
    numbers = sorted({each.connection for each in spoken})
    return [
        _Replay([each for each in spoken if each.connection == number]).script for number in numbers
    ]


class _Replay:
    """The replay of one connection."""

    def __init__(self, spoken: list[Spoken]) -> None:
        self._spoken: Final = spoken
        # Maps from a recorded inbox, subscription id or generated name to that of this run.
        self._inboxes: Final[dict[str, str]] = {}
        self._sids: Final[dict[str, str]] = {}
        self._names: Final[dict[str, str]] = {}

    def script(self, peer: FakePeer) -> None:
        for each in self._spoken:
            if each.by_client:
                self._hear(peer, each.operation)
            else:
                peer.send(self._said_today(each.operation))

    def _hear(self, peer: FakePeer, recorded: Operation) -> None:
        came = peer.expect(r"^(?!PING|PONG)")
        same = came.verb == recorded.verb
        if same and recorded.verb != "CONNECT":
            same = len(came.words) == len(recorded.words)
            same = same and self._is_same(recorded.subject, came.subject)
            same = same and self._is_same(recorded.reply, came.reply)
            same = same and self._sids.setdefault(recorded.sid, came.sid) == came.sid
        if not same:
            raise ScriptError(
                f"connection {peer.number}: recorded was {recorded!r}, what came is {came!r}"
            )

    def _is_same(self, recorded: str, today: str) -> bool:
        """Return whether one subject may correspond to the other, and record that it does."""
        if recorded.startswith("_INBOX."):
            return self._inboxes.setdefault(recorded, today) == today
        before, now = recorded.split("."), today.split(".")
        return len(before) == len(now) and all(map(self._is_same_token, before, now))

    def _is_same_token(self, recorded: str, today: str) -> bool:
        if recorded == today:
            return True
        generated = len(recorded) >= _GENERATED and len(today) >= _GENERATED
        return generated and self._names.setdefault(recorded, today) == today

    def _said_today(self, recorded: Operation) -> bytes:
        words = list(recorded.words)
        if recorded.verb not in {"MSG", "HMSG"}:
            return recorded.data
        # Sizes are of headers and payload, so the rest of the line may change its length.
        words[1] = self._inboxes.get(words[1], words[1])
        words[2] = self._sids.get(words[2], words[2])
        return Operation(" ".join(words), recorded.headers, recorded.payload).data
