"""Words such as `{{Count}}`, which the `nats` command replaces in what it sends.

This command does not know them. A message with such a word is probably not what the user means.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from twinstream.cli.failures import Failure
from twinstream.cli.screen import alerts

_WORD: Final = re.compile(
    rb"\{\{-?\s*\.?(?:Count|Cnt|TimeStamp|Time|Unix|UnixNano|ID|Request|Random(?:\s+\d+)*)\s*-?\}\}"
)


class TemplateWords:
    """Looks for words of `nats` in the parts of messages: refuses them, or warns once."""

    def __init__(self, here: str, *, refused: bool = False) -> None:
        """Create an object that has not warned yet.

        Args:
            here: What to use instead, for the error and the warning.
            refused: Whether a word is an error.
        """
        self._here: Final = here
        self._refused: Final = refused
        self._warned = False
        self._refusal: ValueError | None = None

    def look(self, where: str, *parts: str | bytes | None) -> None:
        """Look into parts of a message.

        Raises `ValueError` if they contain a word and words are refused. `where` names the parts.
        """
        if self._warned:
            return
        for part in parts:
            data = part.encode(errors="surrogateescape") if isinstance(part, str) else part or b""
            found = _WORD.search(data)
            if found is not None:
                self._report(where, found[0].decode())
                return

    def looked(self, payloads: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the payload of each message after a look into it.

        The iteration ends at a refused word. `raise_refusal` raises its failure then.
        """
        for number, payload in enumerate(payloads, start=1):
            try:
                self.look(f"message {number:,}", payload)
            except ValueError as error:
                self._refusal = error
                return
            yield payload

    def raise_refusal(self) -> None:
        """Raise a failure if `looked` has ended at a refused word."""
        if self._refusal is not None:
            raise Failure(f"{self._refusal}; it and later messages were not sent")

    def _report(self, where: str, word: str) -> None:
        about = f"{where}: {word} is a word of the `nats` command"
        if self._refused:
            raise ValueError(f"{about} and means nothing here; {self._here}")
        self._warned = True
        alerts().print(
            f"{about}, and is sent as it stands; {self._here}", style="yellow", soft_wrap=True
        )
