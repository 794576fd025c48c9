"""What the stream rules look at."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from js_models._settings import Settings
from js_models.version import Version


class StreamCase:
    """A stream's settings as read, with what the rules derive from them."""

    def __init__(
        self, settings: Settings, version: Version, *, pedantic: bool = False, update: bool = False
    ) -> None:
        """Judge ``settings`` for a server of ``version``; ``update`` changes an existing stream."""
        self.settings = settings
        self.version = version
        self.pedantic = pedantic
        self.update = update

    def __getitem__(self, member: str) -> Any:
        return self.settings[member]

    @cached_property
    def mirror(self) -> Settings | None:
        """The mirror's settings, None without one."""
        mirror: Settings | None = self.settings["mirror"]
        return mirror

    @cached_property
    def sources(self) -> list[Settings]:
        """The sources' settings."""
        return list(self.settings["sources"])

    @cached_property
    def subjects(self) -> list[str]:
        """The subjects, with the default: the stream's own name."""
        given = list(self.settings["subjects"])
        if given or self.mirror is not None or self.sources:
            return given
        return [self.settings["name"]]
