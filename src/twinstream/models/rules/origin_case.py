"""What the rules for mirrors and sources look at: one origin, or one transform of it."""

from __future__ import annotations

from attrs import frozen

from twinstream.models._overlaps import Relation, first_related
from twinstream.models._settings import Settings
from twinstream.models.rules.rule import Hit
from twinstream.models.rules.stream_case import StreamCase
from twinstream.models.version import Version

EXTERNAL_SEEN_SINCE: Version = (2, 12, 5)
"""First server that looks at the filters and transforms of an external source."""


@frozen
class OriginCase:
    """The mirror, or one source."""

    stream: StreamCase
    origin: Settings
    path: str
    index: int = 0

    @property
    def settings(self) -> Settings:
        """The settings of the origin."""
        return self.origin

    @property
    def version(self) -> Version:
        """The server's version."""
        return self.stream.version

    @property
    def pedantic(self) -> bool:
        """Whether the request is pedantic."""
        return self.stream.pedantic

    def hit(self, member: str, detail: str = "") -> list[Hit]:
        """Return the place of a member."""
        return [Hit(f"{self.path}.{member}", self.origin[member] or None, detail)]


@frozen
class TransformCase:
    """One transform of an origin."""

    of: OriginCase
    index: int
    sources: list[str]
    """Those of all transforms of the origin."""

    overlaps: dict[Relation, dict[int, int]]
    """Which of them are related to which, as far as that was asked for."""

    @property
    def settings(self) -> Settings:
        """The settings of the transform."""
        found: Settings = self.of.origin["subject_transforms"][self.index]
        return found

    @property
    def version(self) -> Version:
        """The server's version."""
        return self.of.version

    @property
    def pedantic(self) -> bool:
        """Whether the request is pedantic."""
        return self.of.pedantic

    def overlapped(self, relation: Relation) -> str | None:
        """Return the first source of another transform that this one's is related to."""
        found = self.overlaps.get(relation)
        if found is None:
            found = first_related(self.sources, self.sources, relation, apart=True)
            self.overlaps[relation] = found
        other = found.get(self.index)
        return None if other is None else self.sources[other]

    def hit(self, member: str, detail: str = "") -> list[Hit]:
        """Return the place of a member."""
        path = f"{self.of.path}.subject_transforms[{self.index}].{member}"
        return [Hit(path, self.settings[member], detail)]


def mirrors(case: StreamCase) -> list[OriginCase]:
    """Return the mirror, if there is one."""
    return [] if case.mirror is None else [OriginCase(case, case.mirror, "mirror")]


def sources(case: StreamCase) -> list[OriginCase]:
    """Return the sources."""
    return [
        OriginCase(case, source, f"sources[{index}]", index)
        for index, source in enumerate(case.sources)
    ]


def origins(case: StreamCase) -> list[OriginCase]:
    """Return the mirror and the sources."""
    return mirrors(case) + sources(case)


def is_unseen(case: OriginCase) -> bool:
    """Whether the server does not look further: an external source, before 2.12.5."""
    external = case.origin["external"] is not None and case.path != "mirror"
    return external and case.version < EXTERNAL_SEEN_SINCE


def transforms(case: OriginCase) -> list[TransformCase]:
    """Return the transforms that the server looks at."""
    if is_unseen(case):
        return []
    given = [one["src"] for one in case.origin["subject_transforms"]]
    overlaps: dict[Relation, dict[int, int]] = {}
    return [TransformCase(case, at, given, overlaps) for at in range(len(given))]
