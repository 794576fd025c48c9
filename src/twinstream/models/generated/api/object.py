"""Models of one file in schema/.

Generated from schema/ by datamodel-codegen and codegen/templates. Edit those instead.
"""

from __future__ import annotations

from attrs import field, frozen

from twinstream.models.codec import converters
from twinstream.models.codec.model import Model
from twinstream.models.times.timestamp import Timestamp


@frozen(kw_only=True, repr=False)
class ObjectLink(Model):
    """The target of a link: an object, or a whole store where there is no name."""

    bucket: str
    """Name of the store."""

    name: str | None = None
    """Name of the object."""


@frozen(kw_only=True, repr=False)
class ObjectOptions(Model):
    """How an object is stored, or what it links to."""

    max_chunk_size: int | None = None
    """Largest size of a message of the content in bytes."""

    link: ObjectLink | None = None
    """What a link leads to."""


@frozen(kw_only=True, repr=False)
class ObjectInfo(Model):
    """An object of an object store."""

    name: str
    """Name of the object, any text."""

    description: str | None = None
    """Free text."""

    headers: dict[str, list[str]] | None = None
    """Free headers, each with its values."""

    metadata: dict[str, str] | None = None
    """Free key and value texts."""

    options: ObjectOptions | None = None
    """How the object is stored, or what it links to."""

    bucket: str | None = None
    """Name of the store that holds the object."""

    nuid: str | None = None
    """Unique name of the object's content, the last token of the subject of its chunks."""

    size: int | None = None
    """Size of the content in bytes."""

    chunks: int | None = None
    """Number of messages that hold the content."""

    digest: str | None = None
    """SHA-256= and the hash of the content in base64 of the URL alphabet."""

    deleted: bool | None = None
    """Whether the object was deleted; its content is gone then."""

    mtime: Timestamp | None = field(default=None, converter=converters.optional_timestamp)
    """When the server stored this description of the object."""

    revision: int | None = None
    """
    Sequence of the message that holds this description, which the message itself does not
    say.
    """
