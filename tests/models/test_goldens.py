"""Recorded responses of real servers can be decoded and encoded again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import attrs
import goldens
import pytest

from twinstream.models import ErrorResponse, Model, UnknownEvent, encode

VERSIONS = ("2.11.11", "2.12.8", "2.14.6", "2.15.1")
TOPOLOGIES = ("single", "domain", "cluster")
FOLDERS = [goldens.FOLDER / version / kind for version in VERSIONS for kind in TOPOLOGIES]
in_each_folder = pytest.mark.parametrize(
    "folder", FOLDERS, ids=lambda path: f"{path.parent.name}-{path.name}"
)


def parts(model: Model) -> Iterator[Model]:
    """Yield a record and all records within it."""
    yield model
    for field in attrs.fields(type(model)):
        value = getattr(model, field.name)
        items = value.values() if isinstance(value, dict) else value
        for item in items if isinstance(value, (list, dict)) else [value]:
            if isinstance(item, Model):
                yield from parts(item)


@in_each_folder
def test_responses_are_encoded_as_received(folder: Path) -> None:
    paths = sorted(folder.glob("*.json"))
    assert len(paths) > 80
    for path in paths:
        members = goldens.load(path)
        model = goldens.read(members)
        assert encode(model) == members, path
        assert not isinstance(model, UnknownEvent), path


@in_each_folder
def test_a_newer_server_loses_nothing(folder: Path) -> None:
    """Unknown members survive in every record, and unknown values in every enumeration."""
    for path in sorted(folder.glob("*.json")):
        members = goldens.strange(goldens.load(path))
        assert encode(goldens.read(members)) == members, path


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_every_member_of_the_newest_server_has_a_field(topology: str) -> None:
    for path in sorted((goldens.FOLDER / goldens.NEWEST / topology).glob("*.json")):
        model = goldens.read(goldens.load(path))
        if isinstance(model, ErrorResponse):
            continue  # carries the zero values of the answer that it stands for
        unknown = {
            f"{type(part).__name__}.{name}"
            for part in parts(model)
            for name, value in part.unknown.items()
            if value is not None
        }
        assert unknown == set(), path


def test_goldens_cover_the_spec() -> None:
    """Nearly every response and event is recorded; the rest needs failing disks or peers."""
    seen = {type(goldens.read(goldens.load(path))).__name__ for path in goldens.paths()}
    from twinstream.models.index import TYPES

    assert set(TYPES.values()) - seen <= {
        "ApiLimitReached",
        "BatchFlowError",
        "BatchFlowGap",
        "ConsumerQuorumLost",
        "DomainLeaderElected",
        "MetaRescue",
        "MetaRescueResponse",
        "MetaServerEvacuateResponse",
        "MetaServerRemoveResponse",
        "ServerOutOfSpace",
        "ServerRemoved",
        "StreamCancelMoveResponse",
        "StreamEvacuatePeerResponse",
        "StreamQuorumLost",
        "StreamRemovePeerResponse",
        "SystemResponse",
    }
