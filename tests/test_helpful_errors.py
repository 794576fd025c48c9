"""Wrong statements that newcomers write: the error names what to write instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import js_async
import js_sync

BOTH = [js_async, js_sync]
TWINS = pytest.mark.parametrize("js", BOTH)

NAMES: dict[str, tuple[Callable[[Any], object], str]] = {
    "attempts": (lambda js: js.ConsumerConfig(max_retries=3), "did you mean 'max_deliver'?"),
    "age": (lambda js: js.StreamConfig(ttl=3), "did you mean 'max_age'?"),
    "bucket": (lambda js: js.KeyValueConfig(name="a"), "did you mean 'bucket'?"),
    "store": (lambda js: js.ObjectStoreConfig(name="a"), "did you mean 'bucket'?"),
    "part of a name": (lambda js: js.ConsumerConfig(durable="a"), "did you mean 'durable_name'?"),
    "retry": (lambda js: js.Retry(max_attempts=3), "did you mean 'attempts'?"),
    "reconnect": (lambda js: js.ReconnectPolicy(max_delay=3), "did you mean 'max_wait'?"),
    "tls": (lambda js: js.TlsOptions(hostname="a"), "did you mean 'server_name'?"),
    "priority": (lambda js: js.Priority(grp="a"), "did you mean 'group'?"),
    "no converters": (lambda js: js.SubjectTransform(srcc="a"), "did you mean 'src'?"),
    "connect": (lambda js: js.connect(conect_timeout=3), "did you mean 'connect_timeout'?"),
}


@TWINS
@pytest.mark.parametrize(("call", "hint"), NAMES.values(), ids=NAMES)
def test_error_for_an_unknown_setting_names_the_right_one(
    js: Any, call: Callable[[Any], object], hint: str
) -> None:
    with pytest.raises(TypeError) as caught:
        call(js)
    assert str(caught.value).endswith(f"; {hint}")
    assert str(caught.value).lower().count("did you mean") == 1


@TWINS
def test_names_that_are_not_near_get_no_suggestion(js: Any) -> None:
    for call in (
        lambda: js.StreamConfig(max_retries=3),
        lambda: js.ConsumerConfig(colour=3),
        lambda: js.Retry(colour=3),
        lambda: js.connect(colour=3),
    ):
        with pytest.raises(TypeError, match="unexpected keyword argument") as caught:
            call()
        assert "did you mean" not in str(caught.value)


@TWINS
@pytest.mark.parametrize(
    ("name", "hint"),
    [("WORK_QUEUE", "did you mean WORKQUEUE"), ("QUEUE", "it has LIMITS, INTEREST, WORKQUEUE")],
)
def test_error_for_an_unknown_member_of_an_enumeration_names_the_right_one(
    js: Any, name: str, hint: str
) -> None:
    with pytest.raises(AttributeError, match=f"RetentionPolicy has no member '{name}'; {hint}"):
        getattr(js.RetentionPolicy, name)
    assert not hasattr(js.RetentionPolicy, "__await__")
