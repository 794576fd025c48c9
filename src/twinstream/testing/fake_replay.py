"""Convert a recording to scripts for a `FakeServer`.

A client creates new inboxes in every run. So a replay maps each recorded inbox to the corresponding
inbox of the current run, and sends the recorded frames to the current inbox. A replay omits PING
and PONG, because their times depend on the client's clock. The fake server answers PINGs itself.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from twinstream.testing.fake_connection import FakePeer
from twinstream.testing.fake_script import ScriptError
from twinstream.testing.fake_wire import Operation
from twinstream.testing.recorder import Spoken, read_recording

__all__ = ["replay"]

_OMITTED: Final = {"PING", "PONG"}
# A subject token of at least this length (characters) may be a generated name, which differs
# between runs.
_GENERATED: Final = 12


def replay(path: Path | str) -> list[Callable[[FakePeer], None]]:
    """Return a script for each connection of a recording, in order.

    A script raises `ScriptError` if the client does not repeat the recording. The client must send
    the same operations in the same order, to the same subjects except for inboxes and generated
    names. Payloads may differ. Raises `ValueError` for a file that is no recording.

    Args:
        path: Path of the file.
    """
    spoken = [each for each in read_recording(path) if each.operation.verb not in _OMITTED]
    numbers = sorted({each.connection for each in spoken})
    return [
        _Replay([each for each in spoken if each.connection == number]).script for number in numbers
    ]


class _Replay:
    """The replay of one connection."""

    def __init__(self, spoken: list[Spoken]) -> None:
        self._spoken: Final = spoken
        # Maps from a recorded inbox, subscription ID or generated name to that of the current run.
        self._inboxes: Final[dict[str, str]] = {}
        self._sids: Final[dict[str, str]] = {}
        self._names: Final[dict[str, str]] = {}

    def script(self, peer: FakePeer) -> None:
        for each in self._spoken:
            if each.by_client:
                self._expect(peer, each.operation)
            else:
                peer.send(self._translated(each.operation))

    def _expect(self, peer: FakePeer, recorded: Operation) -> None:
        """Receive an operation, and compare it with the recorded one.

        Inboxes and subscription ids may have other names. Raises `ScriptError` for another
        operation.
        """
        received = peer.expect(r"^(?!PING|PONG)")
        same = received.verb == recorded.verb
        if same and recorded.verb != "CONNECT":
            same = len(received.words) == len(recorded.words)
            same = same and self._is_same(recorded.subject, received.subject)
            same = same and self._is_same(recorded.reply, received.reply)
            same = same and self._sids.setdefault(recorded.sid, received.sid) == received.sid
        if not same:
            raise ScriptError(
                f"connection {peer.number}: expected {recorded!r}, as recorded,"
                f" received {received!r}"
            )

    def _is_same(self, recorded: str, current: str) -> bool:
        """Return whether `current` may correspond to the recorded subject.

        Inboxes and generated names that correspond are stored for later comparisons.
        """
        if recorded.startswith("_INBOX."):
            return self._inboxes.setdefault(recorded, current) == current
        before, now = recorded.split("."), current.split(".")
        return len(before) == len(now) and all(map(self._is_same_token, before, now))

    def _is_same_token(self, recorded: str, current: str) -> bool:
        if recorded == current:
            return True
        generated = len(recorded) >= _GENERATED and len(current) >= _GENERATED
        return generated and self._names.setdefault(recorded, current) == current

    def _translated(self, recorded: Operation) -> bytes:
        words = list(recorded.words)
        if recorded.verb not in {"MSG", "HMSG"}:
            return recorded.data
        # The subject and the subscription ID can be replaced without new sizes, because the sizes
        # in the line count only headers and payload.
        words[1] = self._inboxes.get(words[1], words[1])
        words[2] = self._sids.get(words[2], words[2])
        return Operation(" ".join(words), recorded.headers, recorded.payload).data
