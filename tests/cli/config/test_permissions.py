"""`twinstream permissions`."""

from __future__ import annotations

import json

from tests.cli.output import Run


def test_permissions_are_printed_in_three_forms(run: Run) -> None:
    whole = ["consume", "ORDERS", "worker", "+", "publish", "invoices.>"]
    conf = run("permissions", *whole)
    assert conf.exit_code == 0, conf.stderr
    assert conf.stdout.startswith("permissions {\n  publish { allow: [\n")
    assert '    "$JS.API.CONSUMER.MSG.NEXT.ORDERS.worker"\n' in conf.stdout
    found = json.loads(run("permissions", *whole, "--format", "json").stdout)
    assert found["publish"]["allow"][-1] == "invoices.>"
    assert found["subscribe"] == {"allow": ["_INBOX.>"]}
    claims = run("permissions", "purge", "S", "--format", "jwt", "--domain", "hub")
    assert json.loads(claims.stdout) == {
        "pub": {"allow": ["$JS.hub.API.STREAM.PURGE.S"]},
        "sub": {"allow": ["_INBOX.>"]},
    }


def test_permissions_name_what_is_wrong(run: Run) -> None:
    for arguments, said in (
        (("fly",), "fly"),
        (("purge",), "purge STREAM"),
        (("+",), "at least one"),
        (("purge", "S", "--domain", "a", "--prefix", "b"), "not both"),
    ):
        failed = run("permissions", *arguments)
        assert failed.exit_code == 2
        assert said in failed.stderr
    assert "consume STREAM CONSUMER" in run("permissions", "--help").stdout
