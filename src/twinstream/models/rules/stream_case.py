"""`StreamCase`, the input of the rules for streams."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

from twinstream.models.files.settings import Settings
from twinstream.models.names.overlaps import first_related
from twinstream.models.names.subjects import can_meet, is_contained
from twinstream.models.names.transform_rules import target_pattern
from twinstream.models.version import Version


class StreamCase:
    """The settings of a stream, and values that the rules derive from them."""

    def __init__(
        self, settings: Settings, version: Version, *, pedantic: bool = False, update: bool = False
    ) -> None:
        """Create the input for a server of `version`; `update` means that the stream exists."""
        self.settings = settings
        self.version = version
        self.pedantic = pedantic
        self.update = update

    def __getitem__(self, member: str) -> Any:
        return self.settings[member]

    @cached_property
    def mirror(self) -> Settings | None:
        """The settings of the mirror; None if the stream is not a mirror."""
        mirror: Settings | None = self.settings["mirror"]
        return mirror

    @cached_property
    def sources(self) -> list[Settings]:
        """The settings of the sources."""
        return list(self.settings["sources"])

    @cached_property
    def subjects(self) -> list[str]:
        """The subjects of the stream; its name by default, unless it has a mirror or sources."""
        given = list(self.settings["subjects"])
        if given or self.mirror is not None or self.sources:
            return given
        return [self.settings["name"]]

    @cached_property
    def kept_subjects(self) -> list[str] | None:
        """Filters that match the subjects of all messages in the stream.

        None for a mirror or a stream with sources, because their origins determine the subjects.
        """
        if self.mirror is not None or self.sources:
            return None
        transform = self.settings["subject_transform"]
        if transform is None or not transform["dest"]:
            return self.subjects
        source = transform["src"] or ">"
        kept = [one for one in self.subjects if not is_contained(one, source)]
        if first_related(self.subjects, [source], can_meet):
            kept.append(target_pattern(transform["dest"], self.version))
        return kept

    @cached_property
    def overlaps(self) -> dict[int, int]:
        """A map from the index of a subject to that of the first later subject that overlaps it."""
        return first_related(self.subjects, self.subjects, can_meet, later=True)

    @cached_property
    def fed_back(self) -> dict[int, int]:
        """The sources whose filter overlaps a subject of the stream.

        The map is from the index of the source to the index of the first such subject. If such a
        source is the stream itself, the stream would copy its own messages without end.
        """
        filters = [source["filter_subject"] for source in self.sources]
        return first_related(filters, self["subjects"], can_meet)

    def first_sources(self, identity: Callable[[Settings], Any]) -> dict[Any, int]:
        """Return, for each result of `identity`, the index of the first source that has it."""
        found = self._first_sources.get(identity)
        if found is None:
            found = self._first_sources[identity] = {}
            for index, source in enumerate(self.sources):
                found.setdefault(identity(source), index)
        return found

    @cached_property
    def _first_sources(self) -> dict[Callable[[Settings], Any], dict[Any, int]]:
        return {}
