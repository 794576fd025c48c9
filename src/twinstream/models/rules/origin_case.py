"""The input of the rules for origins: one mirror or source, or one of its transforms."""

from __future__ import annotations

from attrs import frozen

from twinstream.models.files.settings import Settings
from twinstream.models.names.overlaps import Relation, first_related
from twinstream.models.rules.rule import Hit
from twinstream.models.rules.stream_case import StreamCase
from twinstream.models.version import Version

EXTERNAL_SEEN_SINCE: Version = (2, 12, 5)
"""The first server version that checks the filters and transforms of external sources."""


@frozen
class OriginCase:
    """The input of rules for one origin: the mirror or one source of a stream."""

    stream: StreamCase
    origin: Settings
    path: str
    index: int = 0

    @property
    def settings(self) -> Settings:
        """The settings of this origin."""
        return self.origin

    @property
    def version(self) -> Version:
        """The version of the server whose rules apply."""
        return self.stream.version

    @property
    def pedantic(self) -> bool:
        """Whether the server refuses a setting instead of changing it."""
        return self.stream.pedantic

    def hit(self, member: str, detail: str = "") -> list[Hit]:
        """Return a list with one `Hit`: the path and value of a member of this origin."""
        return [Hit(f"{self.path}.{member}", self.origin[member] or None, detail)]


@frozen
class TransformCase:
    """The input of rules for one transform of an origin."""

    of: OriginCase
    index: int
    sources: list[str]
    """The source subjects of all transforms of the origin."""

    overlaps: dict[Relation, dict[int, int]]
    """A cache of the results of `first_related` for `sources`, by relation."""

    @property
    def settings(self) -> Settings:
        """The settings of this transform."""
        found: Settings = self.of.origin["subject_transforms"][self.index]
        return found

    @property
    def version(self) -> Version:
        """The version of the server whose rules apply."""
        return self.of.version

    @property
    def pedantic(self) -> bool:
        """Whether the server refuses a setting instead of changing it."""
        return self.of.pedantic

    def overlapped(self, relation: Relation) -> str | None:
        """Return the source of the first other transform whose source is related to this source.

        Return None if no other source is related.
        """
        found = self.overlaps.get(relation)
        if found is None:
            found = first_related(self.sources, self.sources, relation, apart=True)
            self.overlaps[relation] = found
        other = found.get(self.index)
        return None if other is None else self.sources[other]

    def hit(self, member: str, detail: str = "") -> list[Hit]:
        """Return a list with one `Hit`: the path and value of a member of this transform."""
        path = f"{self.of.path}.subject_transforms[{self.index}].{member}"
        return [Hit(path, self.settings[member], detail)]


def mirrors(case: StreamCase) -> list[OriginCase]:
    """Return a list with the mirror; empty if the stream is not a mirror."""
    return [] if case.mirror is None else [OriginCase(case, case.mirror, "mirror")]


def sources(case: StreamCase) -> list[OriginCase]:
    """Return the sources of the stream."""
    return [
        OriginCase(case, source, f"sources[{index}]", index)
        for index, source in enumerate(case.sources)
    ]


def origins(case: StreamCase) -> list[OriginCase]:
    """Return the mirror and the sources of the stream."""
    return mirrors(case) + sources(case)


def is_unseen(case: OriginCase) -> bool:
    """Whether the server does not check the filter and transforms of an origin.

    This is the case for external sources on servers before 2.12.5.
    """
    external = case.origin["external"] is not None and case.path != "mirror"
    return external and case.version < EXTERNAL_SEEN_SINCE


def transforms(case: OriginCase) -> list[TransformCase]:
    """Return the transforms of an origin, or an empty list if the server does not check them."""
    if is_unseen(case):
        return []
    given = [one["src"] for one in case.origin["subject_transforms"]]
    overlaps: dict[Relation, dict[int, int]] = {}
    return [TransformCase(case, at, given, overlaps) for at in range(len(given))]
