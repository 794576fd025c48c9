"""Build the metadata of changed objects, of deleted objects and of links."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from attrs import frozen

from twinstream.core.object_store.info import ObjectMeta, is_link, read_info
from twinstream.core.object_store.names import ObjectSubjects
from twinstream.core.read.stream_message import StreamMessage
from twinstream.errors import InvalidObjectInfo, LinkError, ObjectExists
from twinstream.models import ObjectInfo, ObjectLink, ObjectOptions, evolve
from twinstream.records.headers import HeaderValues

__all__ = [
    "Needed",
    "SweepResult",
    "changed_info",
    "check_free",
    "check_target",
    "deleted_info",
    "is_same_object",
    "link_info",
    "orphans",
]


def changed_info(
    info: ObjectInfo,
    name: str,
    description: str | None,
    headers: HeaderValues | None,
    metadata: Mapping[str, str] | None,
) -> ObjectInfo:
    """Return `info` with another name and with the given parts.

    None leaves a part unchanged, and an empty value removes it. Raises `BadArgument` if a part is
    invalid.
    """
    changed = ObjectMeta(
        name,
        description=info.description if description is None else description or None,
        headers=info.headers if headers is None else headers or None,
        metadata=info.metadata if metadata is None else metadata or None,
    )
    return evolve(
        info,
        name=changed.name,
        description=changed.description,
        headers=changed.headers,
        metadata=changed.metadata,
    )


def deleted_info(info: ObjectInfo) -> ObjectInfo:
    """Return the metadata of an object after its deletion."""
    options = info.options
    if options is not None and options.link is not None:
        options = evolve(options, link=None)
    return evolve(info, deleted=True, size=0, chunks=0, digest=None, options=options)


def link_info(
    meta: ObjectMeta, bucket: str, nuid: str, target: str, name: str | None
) -> ObjectInfo:
    """Return the metadata of a link to an object, or to a whole bucket if `name` is None."""
    return ObjectInfo(
        name=meta.name,
        description=meta.description,
        headers=meta.headers,
        metadata=meta.metadata,
        options=ObjectOptions(link=ObjectLink(bucket=target, name=name)),
        bucket=bucket,
        nuid=nuid,
        size=0,
        chunks=0,
    )


def is_same_object(info: ObjectInfo | None, other: ObjectInfo) -> bool:
    """Return whether both are of one object, which has two names since a rename was interrupted."""
    return info is not None and not info.deleted and bool(info.nuid) and info.nuid == other.nuid


def check_free(info: ObjectInfo | None, bucket: str, *, links: bool) -> None:
    """Raise `ObjectExists` if `info` is the metadata of an existing object.

    `links` is true if an existing link may be replaced.
    """
    if info is None or info.deleted or (links and is_link(info)):
        return
    raise ObjectExists(
        f"bucket {bucket} already has an object {info.name!r}: delete it first, or choose another"
        " name"
    )


def check_target(name: str, bucket: str, target: ObjectInfo) -> None:
    """Raise `LinkError` if a link called `name` in `bucket` cannot point to `target`."""
    what = f"object {target.name!r} of bucket {target.bucket}"
    if target.deleted:
        raise LinkError(f"a link cannot lead to {what}: it is deleted")
    if is_link(target):
        raise LinkError(f"a link cannot lead to {what}: it is a link itself, link to its target")
    if (name, bucket) == (target.name, target.bucket):
        raise LinkError(f"a link cannot lead to itself: {what}")


@frozen(kw_only=True)
class SweepResult:
    """The result of `ObjectStore.sweep`: what it has removed or, with `dry_run`, would remove."""

    uploads: int
    """The number of contents, left by failed uploads or replacements, that belong to no object."""
    chunks: int
    """The number of messages in which these contents are stored."""
    unreadable: int = 0
    """The number of descriptions that cannot be read. Content that they name was kept."""


@frozen
class Needed:
    """The contents that the metadata of a store names."""

    nuids: frozenset[str]
    unreadable: list[bytes]
    """The metadata that cannot be read. It needs each content whose NUID it contains."""

    @classmethod
    def by(cls, messages: Iterable[StreamMessage], bucket: str) -> Needed:
        """Return the contents that are named in messages with metadata."""
        nuids: set[str] = set()
        unreadable: list[bytes] = []
        for message in messages:
            try:
                info = read_info(message, bucket)
            except InvalidObjectInfo:
                unreadable.append(message.data)
            else:
                if info.nuid and not info.deleted:
                    nuids.add(info.nuid)
        return cls(frozenset(nuids), unreadable)

    def has(self, nuid: str) -> bool:
        """Return whether a content is needed."""
        return nuid in self.nuids or any(nuid.encode() in data for data in self.unreadable)


def orphans(subjects: ObjectSubjects, chunks: Mapping[str, int], needed: Needed) -> dict[str, int]:
    """Return those of `chunks` that belong to no object.

    `chunks` has the number of messages on each subject with content.
    """
    start = len(subjects.all_chunks) - 1
    return {each: count for each, count in chunks.items() if not needed.has(each[start:])}
