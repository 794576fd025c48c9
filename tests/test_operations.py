"""Every public call of the JetStream layer is in the table of operations, or uses such calls."""

from __future__ import annotations

import re
from importlib import import_module
from inspect import isclass, signature
from pathlib import Path

import pytest

import js_sync
from js_sync.api.cluster import Cluster
from js_sync.api.replicas import Replicas
from js_sync.exactly_once import SubjectWriter
from js_sync.groups import ElasticGroup, StaticGroup
from tests.sources import PACKAGES
from twinstream.core.client.permission_table import OPERATIONS

SOURCE = Path(__file__).resolve().parents[1] / "src"

# The line of the table for a call, where it has another name.
SAME = {
    "JetStream.publish_many": "publish",
    "JetStream.publisher": "publish",
    "JetStream.update_consumer": "create_consumer",
    "JetStream.create_or_update_consumer": "create_consumer",
    "JetStream.bind_consumer": "consume_bound",
    "JetStream.range_reader": "read",
    "ObjectStore.put_file": "put",
    "ObjectStore.get_bytes": "get",
    "ObjectStore.get_file": "get",
    "ObjectStore.add_bucket_link": "add_link",
    "Stream.info": "get_stream",
    "Stream.update": "update_stream",
    "Stream.delete": "delete_stream",
    "Stream.bind_consumer": "consume_bound",
    "Stream.get_last_message": "get_message",
    "Stream.get_next_message": "get_message",
    "Stream.update_consumer": "create_consumer",
    "Stream.create_or_update_consumer": "create_consumer",
    "Consumer.info": "get_consumer",
    "Consumer.delete": "delete_consumer",
    "Consumer.fetch": "consume",
    "Consumer.next": "consume",
    "Consumer.double_ack": "consume",
    "Consumer.messages": "consume",
    "KeyValue.entry": "get",
}

# The line of the table for a class of a package, where it is not that of the package.
LINES = {
    "exactly_once.Processing": "processing",
    "exactly_once.SubjectWriter": "subject_writer.insert",
    "groups.ElasticGroup": "elastic_group.worker",
    # What a method of a group returns.
    "groups.GroupWorker": "static_group.worker",
    "groups.StaticGroup": "static_group.worker",
    # With the name of a consumer; with a configuration it is create_consumer and consume_bound.
    "workers.Worker": "consume",
    "workers.DeadLetters": "dead_letters",
}

# These send nothing themselves.
SILENT = {
    "JetStream.bind_key_value",
    "JetStream.bind_object_store",
    "JetStream.bind_stream",
    "JetStream.typed",
    "Stream.typed",
    "Consumer.typed",
    "KeyValue.typed",
    "KeyValue.with_codecs",
}

GROUPS = {
    "": (js_sync.JetStream, js_sync.Stream, js_sync.Consumer),
    "replicas.": (Replicas,),
    "object.": (js_sync.ObjectStore,),
    "cluster.": (Cluster,),
    "key_value.": (js_sync.KeyValue,),
    "static_group.": (StaticGroup,),
    "elastic_group.": (ElasticGroup,),
    "subject_writer.": (SubjectWriter,),
}


def calls() -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for group, owners in GROUPS.items():
        for owner in owners:
            for name in dir(owner):
                if not name.startswith("_") and callable(getattr(owner, name, None)):
                    full = f"{owner.__name__}.{name}"
                    found.append((full, group + SAME.get(full, name)))
    return found


def of_packages() -> list[tuple[str, str]]:
    """Return the functions and root classes of packages, and their names in the table."""
    found: list[tuple[str, str]] = []
    for package in PACKAGES:
        module = import_module(f"js_sync.{package}")
        for name in module.__all__:
            each = getattr(module, name)
            is_error = isclass(each) and issubclass(each, Exception)
            if is_error or not callable(each):
                continue
            if next(iter(signature(each).parameters), "") == "jet":
                full = f"{package}.{name}"
                found.append((full, LINES.get(full, package if isclass(each) else name)))
    return found


@pytest.mark.parametrize(("call", "name"), of_packages(), ids=lambda text: text)
def test_a_package_declares_its_subjects(call: str, name: str) -> None:
    assert name in OPERATIONS, f"{call} has no line in the permission table"


@pytest.mark.parametrize(("call", "name"), calls(), ids=lambda text: text)
def test_a_call_declares_its_subjects(call: str, name: str) -> None:
    assert call in SILENT or name in OPERATIONS, (
        f"{call} has no line in twinstream/core/client/permission_table.py: add one there, and"
        " what it does in tests/_async/operations.py; a call that needs what another needs goes"
        " into SAME"
    )


def test_api_subjects_are_built_in_one_place() -> None:
    """So every subject contains the domain or prefix."""
    literal = re.compile(r"""["']\$JS\.(API|[^.{"']+\.API)""")
    for path in sorted((SOURCE / "js_async").rglob("*.py")):
        assert not literal.search(path.read_text("utf-8")), f"{path.name}: use api.subjects"
