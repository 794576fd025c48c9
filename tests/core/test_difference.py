"""How configurations differ."""

from __future__ import annotations

from js_core.difference import differences
from js_core.errors import ConsumerExists


def test_what_differs_is_named() -> None:
    found = differences({"max_deliver": 3, "ack_wait": None}, {"max_deliver": 5, "ack_wait": 30})
    assert [str(each) for each in found] == ["max_deliver: wanted 3, is 5"]
    assert differences({"name": "c"}, {"name": "c", "ack_wait": 30, "max_deliver": -1}) == ()
    assert differences({"headers_only": False, "filter_subject": ""}, {}) == ()
    [beyond] = differences({"name": "c"}, {"name": "c", "filter_subject": "a"})
    assert (beyond.field, beyond.wanted, beyond.actual) == ("filter_subject", None, "a")


def test_metadata_of_the_server_is_no_difference() -> None:
    actual = {"metadata": {"a": "1", "_nats.level": "2"}}
    assert differences({"metadata": {"a": "1"}}, actual) == ()
    [other] = differences({"metadata": {"a": "2"}}, actual)
    assert str(other) == "metadata: wanted {'a': '2'}, is {'a': '1'}"
    assert len(differences({"metadata": {"a": "2"}}, {})) == 1


def test_an_error_with_differences_names_them() -> None:
    error = ConsumerExists("consumer already exists", code=400, err_code=10148)
    found = differences({"max_deliver": 3}, {"max_deliver": 5})
    told = error.with_differences(found)
    assert "max_deliver: wanted 3, is 5" in str(told)
    assert (told.err_code, told.differences) == (10148, found)
    assert "no field" in str(error.with_differences(()))
