"""`twinstream plan` and `twinstream apply`."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

import js_sync
from tests.cli.output import Run
from tests.cli.terminal import PATIENT
from tests.hooked import hooked
from tests.operators import make_operator
from tests.unhurried import UNHURRIED
from twinstream.cli.groups import twinstream
from twinstream.models import ConsumerConfig, StreamConfig, decode, encode
from twinstream.testing import FakePeer, FakeServer, NatsServer

MINUTE = 60_000_000_000

Write = Callable[..., str]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write the only file of a folder, and return the folder."""

    def into(*configs: dict[str, Any]) -> str:
        (tmp_path / "all.yaml").write_text(yaml.safe_dump_all(configs))
        return str(tmp_path)

    return into


def stream_of(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "subjects": [f"{name}.>"], "storage": "memory", **more}


def consumer_of(stream: str, **more: Any) -> dict[str, Any]:
    return {"stream_name": stream, "config": {"durable_name": "C", **more}}


def on_server(server: NatsServer, name: str) -> StreamConfig:
    with js_sync.connect(server.url, **UNHURRIED) as nc:
        return nc.jetstream().get_stream(name).cached_info.config


def actions(run: Run, folder: str, *arguments: str) -> dict[str, str]:
    document = json.loads(run("plan", folder, "--json", *arguments).stdout)
    return {step["name"]: step["action"] for step in document["steps"]}


def test_a_folder_is_created_once_and_then_unchanged(run: Run, write: Write) -> None:
    folder = write(
        stream_of("DEP1", max_age=5 * MINUTE, metadata={"team": "a"}),
        {"name": "DEP1M", "mirror": {"name": "DEP1"}},
        consumer_of("DEP1", ack_policy="explicit"),
        {"stream_name": "DEP1", "config": {"durable_name": "D"}},
    )
    planned = run("plan", folder)
    assert planned.exit_code == 0
    assert [line.split("  ")[0] for line in planned.stdout.splitlines()[:-1]] == [
        "+ stream DEP1",
        "+ stream DEP1M",
        "+ consumer DEP1/C",
        "+ consumer DEP1/D",
    ]
    assert planned.stdout.endswith("4 to create\n")
    assert run("plan", folder, "--check").exit_code == 1
    applied = run("apply", folder, "--yes")
    assert applied.exit_code == 0, applied.stderr
    assert applied.stdout.splitlines()[-4:] == [
        "created stream DEP1",
        "created stream DEP1M",
        "created consumer DEP1/C",
        "created consumer DEP1/D",
    ]
    again = run("plan", folder, "--check")
    assert again.exit_code == 0
    assert again.stdout.endswith("4 unchanged\n")
    assert run("apply", folder).exit_code == 0  # nothing to ask


def test_change_is_shown_confirmed_and_made(run: Run, write: Write, server: NatsServer) -> None:
    run("apply", write(stream_of("DEP2", max_age=MINUTE), consumer_of("DEP2")), "--yes")
    folder = write(
        stream_of("DEP2", max_age=90 * MINUTE, description="more"),
        consumer_of("DEP2", description="x"),
    )
    planned = run("plan", folder)
    assert planned.stdout.splitlines() == [
        f"~ stream DEP2  {folder}/all.yaml:1",
        "    description: not set → more",
        "    duplicate_window: 1m → 2m",
        "    max_age: 1m → 1h30m",
        f"~ consumer DEP2/C  {folder}/all.yaml:9",
        "    description: not set → x",
        "2 to update",
    ]
    refused = run("apply", folder, input="n\n")
    assert refused.exit_code == 1
    assert "Aborted!" in refused.stderr
    assert on_server(server, "DEP2").description is None
    assert run("apply", folder, input="y\n").exit_code == 0
    assert on_server(server, "DEP2").description == "more"
    assert actions(run, folder) == {"DEP2": "nothing", "C": "nothing"}


def test_loss_of_messages_needs_confirmation(run: Run, write: Write, server: NatsServer) -> None:
    run("apply", write(stream_of("DEP3")), "--yes")
    folder = write(stream_of("DEP3", max_msgs=5))
    result = run("apply", folder, "--yes")
    assert result.exit_code == 1
    assert "Lowering max_msgs removes messages beyond the newest 5." in result.stdout
    assert "--allow-loss" in result.stdout
    assert result.stderr.endswith("nothing was changed\n")
    assert on_server(server, "DEP3").max_msgs == -1
    assert run("apply", folder, "--yes", "--allow-loss").exit_code == 0
    assert on_server(server, "DEP3").max_msgs == 5


def test_ending_interest_needs_confirmation(run: Run, write: Write, server: NatsServer) -> None:
    stream = stream_of("DEP9", retention="interest")
    both = {"ack_policy": "explicit", "filter_subject": "DEP9.1"}
    run("apply", write(stream, consumer_of("DEP9", **both)), "--yes")
    with js_sync.connect(server.url, **UNHURRIED) as nc:
        nc.jetstream().publish("DEP9.1", b"x")
    changed = run("plan", write(stream, consumer_of("DEP9", **both, replay_policy="original")))
    assert (
        "without its position and the messages that all other consumers have acknowledged;"
        in changed.stdout
    )
    moved = write(stream, consumer_of("DEP9", **{**both, "filter_subject": "DEP9.2"}))
    refused = run("apply", moved, "--yes")
    assert refused.exit_code == 1
    assert "Messages that only the old filter matches are removed" in refused.stdout
    with js_sync.connect(server.url, **UNHURRIED) as nc:
        state = nc.jetstream().get_stream("DEP9").info().state
    assert state is not None
    assert state.messages == 1
    assert run("apply", moved, "--yes", "--allow-loss").exit_code == 0


def test_impossible_changes_are_refused_or_recreate(
    run: Run, write: Write, server: NatsServer
) -> None:
    run("apply", write(stream_of("DEP4"), consumer_of("DEP4")), "--yes")
    folder = write(stream_of("DEP4", storage="file"), consumer_of("DEP4"))
    refused = run("plan", folder)
    assert refused.exit_code == 1
    assert "storage" in refused.stdout
    assert "--allow-recreate" in refused.stdout
    assert actions(run, folder) == {"DEP4": "refused", "C": "nothing"}
    assert actions(run, folder, "--allow-recreate") == {"DEP4": "recreate", "C": "create"}
    with js_sync.connect(server.url, **UNHURRIED) as nc:
        for _ in range(2):
            nc.jetstream().publish("DEP4.1", b"x")
    lost = "without its 2 messages and 1 consumer"
    assert f"refused: it must be re-created, {lost};" in run("plan", folder).stdout
    assert f"It is re-created {lost}.\n" in run("plan", folder, "--allow-recreate").stdout
    result = run("apply", folder, "--yes", "--allow-recreate", "--json")
    assert result.exit_code == 0
    document = json.loads(result.stdout)
    assert (document["applied"], document["refused"]) == (True, False)
    assert on_server(server, "DEP4").storage == "file"
    other = write(stream_of("DEP4", storage="file"), consumer_of("DEP4", ack_policy="explicit"))
    assert actions(run, other) == {"DEP4": "nothing", "C": "refused"}
    assert run("apply", other, "--yes", "--allow-recreate").exit_code == 0
    assert actions(run, other) == {"DEP4": "nothing", "C": "nothing"}


def streams_of(server: NatsServer, prefix: str) -> list[str]:
    with js_sync.connect(server.url, **UNHURRIED) as nc:
        return sorted(each for each in nc.jetstream().stream_names() if each.startswith(prefix))


def test_stream_is_kept_if_no_new_one_can_be_created(
    run: Run, write: Write, server: NatsServer
) -> None:
    other = stream_of("DEP11B", subjects=["dep11.b"], sources=[{"name": "DEP11"}])
    assert run("apply", write(stream_of("DEP11"), other), "--yes").exit_code == 0
    cycle = stream_of("DEP11", storage="file", sources=[{"name": "DEP11B"}])
    result = run("apply", write(cycle), "--yes", "--allow-recreate")
    assert result.exit_code == 1
    assert "error: stream DEP11 is unchanged, because" in result.stderr
    assert "detected cycle" in result.stderr
    assert streams_of(server, "DEP11") == ["DEP11", "DEP11B"]
    assert on_server(server, "DEP11").storage == "memory"


@pytest.mark.parametrize(
    "more", [{"num_replicas": 3}, {"placement": {"tags": ["ssd"]}}, {"max_bytes": 2000}], ids=str
)
def test_stream_is_not_recreated_if_only_the_server_can_judge_it(
    run: Run, write: Write, server: NatsServer, more: dict[str, Any]
) -> None:
    assert run("apply", write(stream_of("DEP24", max_bytes=1000)), "--yes").exit_code == 0
    new = {**stream_of("DEP24", storage="memory", retention="workqueue", max_bytes=1000), **more}
    folder = write(new)
    refusal = (
        "it must be re-created, but only the server can tell whether it would accept the new"
        " stream; remove the stream with `twinstream stream rm DEP24`, and apply again"
    )
    [step] = json.loads(run("plan", folder, "--allow-recreate", "--json").stdout)["steps"]
    assert (step["action"], step["refusal"]) == ("refused", refusal)
    for command in (["plan", folder], ["apply", folder, "--yes"]):
        result = run(*command, "--allow-recreate")
        assert result.exit_code == 1
        assert f"refused: {refusal}\n" in result.stdout
        assert "only the server can tell: " in result.stdout
    assert streams_of(server, "DEP24") == ["DEP24"]
    assert on_server(server, "DEP24").retention == "limits"
    run("stream", "rm", "DEP24", "--yes")


def test_stream_is_recreated_after_its_removal_by_the_user(
    run: Run, write: Write, server: NatsServer
) -> None:
    run("apply", write(stream_of("DEP25")), "--yes")
    folder = write(stream_of("DEP25", retention="workqueue", max_bytes=1000))
    assert actions(run, folder, "--allow-recreate") == {"DEP25": "refused"}
    assert run("stream", "rm", "DEP25", "--yes").exit_code == 0
    assert run("apply", folder, "--yes").exit_code == 0
    assert on_server(server, "DEP25").retention == "workqueue"
    # The old stream reserves as much.
    back = write(stream_of("DEP25", max_bytes=1000))
    assert run("apply", back, "--yes", "--allow-recreate").exit_code == 0
    assert on_server(server, "DEP25").retention == "limits"


UNASKED = """
accounts { A: { jetstream: enabled, users: [
    { user: u, password: p }
    { user: unlimited, password: p, permissions: { publish: { deny: "$JS.API.INFO" } } }
    { user: unnamed, password: p, permissions: { publish: { deny: "$JS.API.STREAM.NAMES" } } }
] } }
"""


def test_stream_is_not_recreated_without_the_permissions_to_judge_it(
    run: Run, write: Write, server_factory: Callable[..., NatsServer]
) -> None:
    login = ("--server", server_factory(UNASKED).url, "--password", "p")
    first = write(stream_of("DEP26"))
    assert run("apply", first, *login, "--user", "u", "--yes").exit_code == 0
    folder = write(stream_of("DEP26", storage="file", subjects=["dep26.>"]))
    for user, unknown in (
        ("unlimited", "the limits of the account"),
        ("unnamed", "the streams that have its subjects"),
    ):
        planned = run("plan", folder, *login, "--user", user, "--allow-recreate")
        assert planned.exit_code == 1
        assert f"it must be re-created, but {unknown} could not be requested;" in planned.stdout
    applied = run("apply", folder, *login, "--user", "u", "--allow-recreate", "--yes")
    assert applied.exit_code == 0, applied.stderr


def test_stream_is_kept_if_its_subject_was_moved_in_between(
    run: Run, write: Write, server: NatsServer
) -> None:
    run("apply", write(stream_of("DEP23")), "--yes")

    def late(jet: js_sync.JetStream) -> None:
        jet.create_stream(StreamConfig(name="DEP23B", subjects=["dep23.b"]))

    moved = stream_of("DEP23", storage="file", subjects=["dep23.*"])
    with hooked("command: before step", late):
        result = run("apply", write(moved), "--yes", "--allow-recreate")
    assert result.exit_code == 1
    assert "'dep23.*' belongs to stream DEP23B" in result.stderr
    assert on_server(server, "DEP23").storage == "memory"


LIMITED = """
accounts { A: {
    users: [ { user: u, password: p } ]
    jetstream { max_mem: 1M, max_file: 1M, max_streams: 5, max_consumers: -1 }
} }
"""


def test_the_room_of_the_old_stream_counts_for_the_new_one(
    write: Write,
) -> None:
    with NatsServer(LIMITED, start_timeout=300) as server:
        login = ("--server", server.url, *PATIENT, "--user", "u", "--password", "p", "--yes")

        def apply(**more: Any) -> Result:
            folder = write(stream_of("ROOM", storage="file", **more))
            return CliRunner().invoke(twinstream, ["apply", folder, *login, "--allow-recreate"])

        assert apply(max_bytes=700_000).exit_code == 0
        result = apply(max_bytes=800_000, retention="workqueue")
        assert result.exit_code == 0, result.output
        assert "re-created stream ROOM" in result.stdout
        refused = apply(max_bytes=1_200_000)
        assert refused.exit_code == 1
        assert "of which 1,000,000 are left for this stream" in refused.stdout
        assert "nothing was changed" in refused.stderr


def test_reserves_of_streams_are_checked_in_order(write: Write) -> None:
    """The server refuses and accepts the same steps.

    It reserves one byte for a stream without max_bytes.
    """
    limits = LIMITED.replace("max_mem: 1M, max_file: 1M", "max_mem: 5000, max_file: 10000")
    before = [stream_of(name, storage="file", max_bytes=4000) for name in ("SET1", "SET2")]
    after = [
        stream_of("SET1", storage="file", max_bytes=3000),
        stream_of("SET2", storage="file", max_bytes=5000),
        stream_of("SET3", storage="file", max_bytes=2000),
        stream_of("SET4", storage="file"),
        stream_of("SET5", storage="memory", max_bytes=5001),
    ]
    with NatsServer(limits, start_timeout=300) as server:
        login = ("--server", server.url, *PATIENT, "--user", "u", "--password", "p", "--allow-loss")
        assert CliRunner().invoke(twinstream, ["apply", write(*before), "--yes", *login]).output
        steps = _planned(write(*after[:3], after[4]), *login)
        applied = CliRunner().invoke(twinstream, ["apply", write(*after[:3]), "--yes", *login])
        assert applied.exit_code == 0, applied.output
        last = _planned(write(after[3]), *login)
        with js_sync.connect(server.url, user="u", password="p", **UNHURRIED) as nc:
            for wrong in after[3:]:
                with pytest.raises(js_sync.JetStreamError, match="insufficient"):
                    nc.jetstream().create_stream(decode(wrong, StreamConfig))
    # A problem that was checked is not reported as known to the server only.
    assert not any(step["problems"] for step in (*steps, *last))
    assert {step["name"]: step["action"] for step in (*steps, *last)} == {
        **dict.fromkeys(("SET1", "SET2"), "update"),
        "SET3": "create",
        **dict.fromkeys(("SET4", "SET5"), "refused"),
    }


def _planned(folder: str, *options: str) -> list[dict[str, Any]]:
    planned = CliRunner().invoke(twinstream, ["plan", folder, *options, "--json"])
    steps: list[dict[str, Any]] = json.loads(planned.stdout)["steps"]
    return steps


def test_streams_shrink_before_others_grow(write: Write) -> None:
    limits = LIMITED.replace("max_mem: 1M, max_file: 1M", "max_mem: 5000, max_file: 10000")
    with NatsServer(limits, start_timeout=300) as server:
        login = (
            "--server",
            server.url,
            *PATIENT,
            "--user",
            "u",
            "--password",
            "p",
            "--allow-loss",
            "--yes",
        )

        def apply(grows: int, shrinks: int) -> Result:
            folder = write(
                stream_of("GROWS", storage="file", max_bytes=grows),
                stream_of("SHRINKS", storage="file", max_bytes=shrinks),
            )
            return CliRunner().invoke(twinstream, ["apply", folder, *login])

        assert apply(4000, 6000).exit_code == 0
        applied = apply(7000, 3000)
        assert applied.exit_code == 0, applied.output
        assert applied.stdout.rindex("SHRINKS") < applied.stdout.rindex("GROWS")
        assert apply(7001, 3000).exit_code == 1


@pytest.mark.parametrize(
    "change",
    [{"max_bytes": 3000, "retention": "workqueue"}, {"max_bytes": 5000, "storage": "memory"}],
    ids=["smaller", "moved"],
)
def test_streams_are_recreated_before_others_grow(write: Write, change: dict[str, Any]) -> None:
    limits = LIMITED.replace("max_mem: 1M, max_file: 1M", "max_mem: 5000, max_file: 10000")
    with NatsServer(limits, start_timeout=300) as server:
        login = (
            "--server",
            server.url,
            *PATIENT,
            "--user",
            "u",
            "--password",
            "p",
            "--allow-recreate",
        )

        def apply(grows: int, **shrinks: Any) -> Result:
            folder = write(
                stream_of("GROWS", storage="file", max_bytes=grows),
                stream_of("SHRINKS", **{"storage": "file", **shrinks}),
            )
            return CliRunner().invoke(twinstream, ["apply", folder, "--yes", *login])

        assert apply(4000, max_bytes=4500).exit_code == 0
        applied = apply(7000, **change)
        assert applied.exit_code == 0, applied.output
        assert applied.stdout.rindex("SHRINKS") < applied.stdout.rindex("GROWS")


def test_streams_without_a_size_come_before_those_that_take_all(write: Write) -> None:
    limits = LIMITED.replace("max_mem: 1M, max_file: 1M", "max_mem: 5000, max_file: 10000")
    folder = write(
        stream_of("ALL", storage="file", max_bytes=10_000), stream_of("FREE", storage="file")
    )
    with NatsServer(limits, start_timeout=300) as server:
        login = ("--server", server.url, *PATIENT, "--user", "u", "--password", "p", "--yes")
        applied = CliRunner().invoke(twinstream, ["apply", folder, *login])
    assert applied.exit_code == 0, applied.output
    assert applied.stdout.rindex("FREE") < applied.stdout.rindex("ALL")


def test_what_is_set_aside_moves_with_a_stream_to_another_storage(write: Write) -> None:
    limits = LIMITED.replace("max_mem: 1M, max_file: 1M", "max_mem: 5000, max_file: 10000")
    before = stream_of("MOVE1", storage="file", max_bytes=8000)
    fits = (
        stream_of("MOVE1", storage="memory", max_bytes=3000),
        stream_of("MOVE2", storage="file", max_bytes=9000),
    )
    back = stream_of("MOVE1", storage="file", max_bytes=3000)
    with NatsServer(limits, start_timeout=300) as server:
        login = (
            "--server",
            server.url,
            *PATIENT,
            "--user",
            "u",
            "--password",
            "p",
            "--allow-recreate",
        )

        def apply(*streams: dict[str, Any]) -> Result:
            return CliRunner().invoke(twinstream, ["apply", write(*streams), "--yes", *login])

        assert apply(before).exit_code == 0
        moved = apply(*fits)
        assert moved.exit_code == 0, moved.output
        # The server would refuse that, too, although the stream has as much in memory.
        refused = apply(back)
        assert refused.exit_code == 1
        assert "of file storage, of which 1,000 are left for this stream" in refused.stdout


def test_failure_reports_the_number_of_finished_steps(run: Run, write: Write) -> None:
    folder = write(
        *(stream_of("DEP13" + name) for name in "AB"),
        *(stream_of("DEP13" + name, num_replicas=3) for name in "CD"),
    )
    result = run("apply", folder, "--yes", "--json")
    assert result.exit_code == 1
    document = json.loads(result.stdout)
    assert [step["done"] for step in document["steps"]] == [True, True, False, False]
    assert (document["applied"], document["refused"]) == (False, False)
    failure = json.loads(result.stderr)
    assert failure["error"].startswith("stream DEP13C: ")
    assert failure["error"].endswith("2 of 4 steps done; `apply` continues from there")
    assert (failure["kind"], failure["err_code"]) == ("JetStreamError", 10074)


def test_ctrl_c_ends_behind_a_step(run: Run, write: Write) -> None:
    folder = write(stream_of("DEP14"), stream_of("DEP14B"))
    with hooked("command: before step", lambda _: os.kill(os.getpid(), signal.SIGINT)):
        result = run("apply", folder, "--yes")
    assert result.exit_code == 1
    assert "created stream DEP14\n" in result.stdout
    assert "error: interrupted\n1 of 2 steps done" in result.stderr
    assert actions(run, folder) == {"DEP14": "nothing", "DEP14B": "create"}


NO_CONSUMERS = """
accounts { A: { jetstream: enabled, users: [
    { user: u, password: p }
    { user: reader, password: p, permissions: { publish: { deny: "$JS.API.CONSUMER.CREATE.>" } } }
] } }
"""


def test_consumer_that_cannot_be_recreated_is_reported(
    run: Run, write: Write, server_factory: Callable[..., NatsServer]
) -> None:
    login = ("--server", server_factory(NO_CONSUMERS).url, "--password", "p", "--yes")
    first = write(stream_of("DEP15"), consumer_of("DEP15"))
    assert run("apply", first, *login, "--user", "u").exit_code == 0
    changed = write(stream_of("DEP15"), consumer_of("DEP15", ack_policy="explicit"))
    result = run("apply", changed, *login, "--user", "reader", "--allow-recreate")
    assert result.exit_code == 1
    assert "consumer DEP15/C was removed to be re-created, but creating it failed" in result.stderr


def test_copy_is_recreated(run: Run, write: Write, server: NatsServer) -> None:
    copy = {"name": "DEP12M", "mirror": {"name": "DEP12"}, "mirror_direct": True}
    run("apply", write(stream_of("DEP12"), {**copy, "storage": "memory"}), "--yes")
    result = run("apply", write(stream_of("DEP12"), copy), "--yes", "--allow-recreate")
    assert result.exit_code == 0, result.stderr
    assert on_server(server, "DEP12M").storage == "file"


def test_copies_of_copies_are_created_after_their_origins(
    run: Run, write: Write, server: NatsServer
) -> None:
    folder = write(
        {"name": "DEP15C", "mirror": {"name": "DEP15B"}},
        {"name": "DEP15B", "mirror": {"name": "DEP15A"}, "allow_direct": True},
        stream_of("DEP15A", allow_direct=True),
        {"name": "DEP15X", "sources": [{"name": "DEP15Y"}]},
        {"name": "DEP15Y", "sources": [{"name": "DEP15X"}]},
    )
    assert [name for name in actions(run, folder) if name in {"DEP15A", "DEP15B", "DEP15C"}] == [
        "DEP15A",
        "DEP15B",
        "DEP15C",
    ]
    run("apply", folder, "--yes")
    # What a mirror answers for an origin it inherits, if that is there when it is made.
    assert on_server(server, "DEP15C").mirror_direct is True


def test_a_subject_moves_from_one_stream_to_another(run: Run, write: Write) -> None:
    run("apply", write(stream_of("DEP5", subjects=["dep5.a", "dep5.b"])), "--yes")
    folder = write(stream_of("DEP5B", subjects=["dep5.b"]), stream_of("DEP5", subjects=["dep5.a"]))
    result = run("apply", folder, "--yes")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.splitlines()[-2:] == ["updated stream DEP5", "created stream DEP5B"]


def test_subjects_move_through_a_row_of_streams(run: Run, write: Write) -> None:
    run(
        "apply", write(*(stream_of(f"DEP16{one}", subjects=[f"dep16.{one}"]) for one in "ab")), "-y"
    )
    moved = {"DEP16a": "dep16.b", "DEP16b": "dep16.c"}
    result = run("apply", write(*(stream_of(n, subjects=[s]) for n, s in moved.items())), "--yes")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.splitlines()[-2:] == ["updated stream DEP16b", "updated stream DEP16a"]


def test_a_subject_of_a_stream_in_no_file_stays_there(run: Run, write: Write, stream: str) -> None:
    run("apply", write(stream_of("DEP22")), "--yes")
    for config in (
        stream_of("DEP22", subjects=["DEP22.>", f"{stream}.*"]),
        stream_of("DEP22B", subjects=[f"{stream}.x"]),
    ):
        result = run("apply", write(config), "--yes")
        assert (result.exit_code, result.stderr) == (1, "nothing was changed\n")
        assert f"is for one stream alone, and stream {stream} has it\n" in result.stdout


def queue_of(name: str, **filters: str) -> list[dict[str, Any]]:
    """Return a work queue whose consumers have one subject each."""
    return [
        stream_of(name, retention="workqueue"),
        *(
            consumer_of(name, durable_name=one, ack_policy="explicit", filter_subject=f"{name}.{s}")
            for one, s in filters.items()
        ),
    ]


def test_filters_move_through_a_row_of_consumers(run: Run, write: Write) -> None:
    run("apply", write(*queue_of("DEP17", A="a", B="b", C="c")), "--yes")
    result = run("apply", write(*queue_of("DEP17", A="b", B="c", C="d", D="a")), "--yes")
    assert result.exit_code == 0, result.stderr
    steps = [line.rpartition("/")[2] for line in result.stdout.splitlines()[-4:]]
    assert steps == ["C", "B", "A", "D"]


def test_filters_that_no_order_can_move_are_refused(run: Run, write: Write) -> None:
    run("apply", write(*queue_of("DEP18", A="a", B="b", X="x")), "--yes")
    swapped = run("apply", write(*queue_of("DEP18", A="b", B="a")), "--yes")
    assert swapped.exit_code == 1
    assert "'DEP18.b' is for one consumer alone, and consumer B has it until" in swapped.stdout
    assert swapped.stderr.endswith("nothing was changed\n")
    taken = run("plan", write(*queue_of("DEP18", A="*")))
    assert taken.exit_code == 1
    assert "refused: 'DEP18.*' is for one consumer alone, and consumer B has it\n" in taken.stdout
    run("apply", write(*queue_of("DEP18", A="c")), "--yes")
    assert run("apply", write(*queue_of("DEP18", A="b", B="a")), "--yes").exit_code == 0


def test_consumers_beyond_the_limit_of_a_stream_are_refused(run: Run, write: Write) -> None:
    stream = stream_of("DEP19", max_consumers=2)
    run("apply", write(stream, consumer_of("DEP19", durable_name="A")), "--yes")
    folder = write(stream, *(consumer_of("DEP19", durable_name=name) for name in "BC"))
    planned = run("plan", folder)
    assert planned.exit_code == 1
    assert planned.stdout.endswith("1 to create, 1 unchanged, 1 refused\n")
    assert "refused: stream DEP19 may have no more consumers than 2\n" in planned.stdout


def test_the_account_may_allow_fewer(write: Write) -> None:
    limits = LIMITED.replace(
        "max_streams: 5, max_consumers: -1", "max_streams: 2, max_consumers: 1"
    )
    with NatsServer(limits, start_timeout=300) as server:
        login = ("--server", server.url, *PATIENT, "--user", "u", "--password", "p")
        streams = [stream_of(f"FEW{number}", max_bytes=1000) for number in range(3)]
        consumers = [consumer_of("FEW0", durable_name=name) for name in "AB"]
        folder = write(*streams, *consumers)
        planned = CliRunner().invoke(twinstream, ["plan", folder, *login])
    assert planned.exit_code == 1
    assert planned.stdout.endswith("3 to create, 2 refused\n")
    assert "refused: the account may have no more streams than 2\n" in planned.stdout
    assert (
        "refused: by the account, stream FEW0 may have no more consumers than 1\n" in planned.stdout
    )


def test_the_account_may_want_smaller_ones(write: Write) -> None:
    limits = LIMITED.replace(
        "max_streams: 5",
        "max_streams: 2, max_bytes_required: true, mem_max_stream_bytes: 5000, max_ack_pending: 9",
    ).replace("max_consumers: -1", "max_consumers: 5")
    fitting = {"max_bytes": 5000, "max_consumers": 5}
    sizes = {
        "NONE": {},
        "MUCH": {"max_bytes": 5001},
        "MANY": {**fitting, "max_consumers": 6},
        "FITS": fitting,
    }
    none, much, more, fits = (stream_of(name, **size) for name, size in sizes.items())
    few, many = (
        consumer_of("FITS", durable_name=f"C{most}", ack_policy="explicit", max_ack_pending=most)
        for most in (9, 10)
    )
    with NatsServer(limits, start_timeout=300) as server:
        login = ("--server", server.url, *PATIENT, "--user", "u", "--password", "p")
        planned = CliRunner().invoke(
            twinstream, ["plan", write(none, much, more, fits, few, many), *login]
        )
        applied = CliRunner().invoke(twinstream, ["apply", write(fits, few), "--yes", *login])
        grown = {**fits, "max_bytes": 5001}
        updated = CliRunner().invoke(twinstream, ["plan", write(grown), *login])
        with js_sync.connect(server.url, user="u", password="p", **UNHURRIED) as nc:
            jet = nc.jetstream()
            for wrong in (none, much):
                with pytest.raises(js_sync.JetStreamError, match="max bytes"):
                    jet.create_stream(decode(wrong, StreamConfig))
            with pytest.raises(js_sync.JetStreamError, match="maximum consumers"):
                jet.create_stream(decode(more, StreamConfig))
            with pytest.raises(js_sync.JetStreamError, match="max bytes"):
                jet.update_stream(decode(grown, StreamConfig))
    assert planned.stdout.endswith("2 to create, 4 refused\n")
    for reason in (
        "the account allows no max_consumers above 5",
        "the account requires max_bytes for streams",
        "the account allows no max_bytes above 5,000",
        "the account allows no max_ack_pending above 9",
    ):
        assert planned.stdout.count(f"refused: {reason}\n") == 1
    assert applied.exit_code == 0, applied.stderr
    assert "refused: the account allows no max_bytes above 5,000\n" in updated.stdout


def test_the_account_may_have_no_tier_for_it(write: Write, tmp_path: Path) -> None:
    tier = {"mem_storage": 1000, "disk_storage": 1000, "streams": 5, "consumer": 5}
    operator = make_operator({"R3": tier})
    credentials = tmp_path / "user.creds"
    credentials.write_text(operator.credentials)
    folder = write(stream_of("TIER", max_bytes=1000))
    with NatsServer(operator.config, start_timeout=300) as server:
        login = ("--server", server.url, *PATIENT, "--creds", str(credentials))
        planned = CliRunner().invoke(twinstream, ["plan", folder, *login])
        with (
            js_sync.connect(server.url, credentials_file=str(credentials), **UNHURRIED) as nc,
            pytest.raises(js_sync.JetStreamError, match="10120"),
        ):
            nc.jetstream().create_stream(StreamConfig(name="TIER"))
    assert planned.exit_code == 1
    assert "refused: the account has no streams with 1 replica\n" in planned.stdout


def test_the_stream_of_a_consumer_may_be_on_the_server(run: Run, write: Write, stream: str) -> None:
    folder = write(consumer_of(stream, ack_policy="explicit"))
    assert actions(run, folder) == {"C": "create"}
    missing = run("plan", write(consumer_of("NOWHERE")))
    assert missing.exit_code == 1
    assert "stream 'NOWHERE' exists neither in the files nor on the server." in missing.stdout


def test_a_consumer_becomes_durable_for_good(
    run: Run, write: Write, stream: str, server: NatsServer
) -> None:
    run("apply", write({"stream_name": stream, "config": {"name": "C"}}), "--yes")
    folder = write(consumer_of(stream))
    assert run("apply", folder, "--yes").exit_code == 0
    with js_sync.connect(server.url, **UNHURRIED) as nc:
        config = nc.jetstream().get_consumer(stream, "C").info().config
    assert config is not None
    assert (config.durable_name, config.inactive_threshold) == ("C", None)
    assert actions(run, folder) == {"C": "nothing"}


def test_a_consumer_that_is_no_longer_durable_gets_no_threshold(
    run: Run, write: Write, stream: str, server: NatsServer
) -> None:
    run("apply", write(consumer_of(stream)), "--yes")
    folder = write({"stream_name": stream, "config": {"name": "C"}})
    [step] = json.loads(run("plan", folder, "--json").stdout)["steps"]
    assert [change["path"] for change in step["changes"]] == ["durable_name"]
    assert run("apply", folder, "--yes").exit_code == 0
    with js_sync.connect(server.url, **UNHURRIED) as nc:
        config = nc.jetstream().get_consumer(stream, "C").info().config
    assert config is not None
    assert (config.durable_name, config.inactive_threshold) == (None, None)


def test_threshold_of_a_stream_applies_to_its_consumers(run: Run, write: Write) -> None:
    stream = stream_of("DEP20", consumer_limits={"inactive_threshold": MINUTE})
    for text in ("made", "changed"):
        folder = write(stream, consumer_of("DEP20", description=text))
        result = run("apply", folder, "--yes")
        assert result.exit_code == 0, result.stderr
        assert actions(run, folder) == {"DEP20": "nothing", "C": "nothing"}


@pytest.mark.parametrize(
    ("has", "limits", "told"),
    [
        ({"ack_policy": "explicit"}, {"max_ack_pending": 999}, "max_ack_pending 1,000"),
        (
            {"inactive_threshold": 2 * MINUTE},
            {"inactive_threshold": MINUTE},
            "inactive_threshold 2m",
        ),
    ],
    ids=str,
)
def test_consumers_must_be_within_new_limits_of_their_stream(
    run: Run,
    write: Write,
    server: NatsServer,
    has: dict[str, Any],
    limits: dict[str, Any],
    told: str,
) -> None:
    name = f"DEP{next(iter(limits)).upper()}"
    consumer = consumer_of(name, **has)
    assert run("apply", write(stream_of(name), consumer), "--yes").exit_code == 0
    bounded, lower = stream_of(name, consumer_limits=limits), consumer_of(name, **{**has, **limits})
    with (
        js_sync.connect(server.url, **UNHURRIED) as nc,
        pytest.raises(js_sync.JetStreamError, match="violates"),
    ):
        nc.jetstream().update_stream(decode(bounded, StreamConfig))
    planned = run("plan", write(bounded, lower))
    assert planned.exit_code == 1
    assert f"refused: consumer C has {told}, above consumer_limits; apply" in planned.stdout
    assert run("apply", write(lower), "--yes").exit_code == 0
    assert run("apply", write(bounded, lower), "--yes").exit_code == 0
    changed = write({**bounded, "description": "x"}, lower)
    assert actions(run, changed) == {name: "update", "C": "nothing"}


def test_a_republish_without_destination_is_not_updated_for_ever(run: Run, write: Write) -> None:
    for text in ("made", "changed"):
        folder = write(stream_of("DEP21", republish={"src": "DEP21.>"}, description=text))
        assert run("apply", folder, "--yes").exit_code == 0
        assert actions(run, folder) == {"DEP21": "nothing"}


def test_the_start_of_a_mirror_in_another_zone_changes_nothing(
    run: Run, write: Write, server: NatsServer
) -> None:
    def mirror(start: str, **more: Any) -> str:
        origin = {"name": "DEPLOY-ZONE-ORIGIN", "opt_start_time": start}
        return write({"name": "DEPLOY-ZONE", "mirror": origin, **more})

    assert run("apply", mirror("2026-01-01T00:00:00Z"), "--yes").exit_code == 0
    folder = mirror("2026-01-01T01:00:00+01:00")
    assert actions(run, folder) == {"DEPLOY-ZONE": "nothing"}
    folder = mirror("2026-01-01T01:00:00+01:00", max_msgs=5)
    assert actions(run, folder) == {"DEPLOY-ZONE": "refused"}
    done = run("apply", folder, "--yes", "--allow-loss")
    assert done.exit_code == 0, done.stderr
    assert on_server(server, "DEPLOY-ZONE").max_msgs == 5
    assert actions(run, folder) == {"DEPLOY-ZONE": "nothing"}


def test_push_consumers_are_created_and_kept(run: Run, write: Write, stream: str) -> None:
    folder = write(consumer_of(stream, deliver_subject="deploy.push", ack_policy="none"))
    assert run("apply", folder, "--yes").exit_code == 0
    assert actions(run, folder) == {"C": "nothing"}


@pytest.mark.parametrize(
    ("configs", "message"),
    [
        ([{"name": "a b", "subjects": ["x"]}], "the name has the character ' '"),
        ([stream_of("X"), stream_of("X")], "stream 'X' is in "),
        ([{"durable_name": "C"}], "the consumer 'C' does not name its stream."),
        ([{"stream_name": "S", "config": {"ack_policy": "all"}}], "the consumer has no name."),
    ],
    ids=str,
)
def test_files_with_problems_change_nothing(
    run: Run, write: Write, configs: list[dict[str, Any]], message: str
) -> None:
    folder = write(*configs)
    for command in (["plan"], ["apply", "--yes"]):
        result = run(*command, folder)
        assert result.exit_code == 1
        assert f"{folder}/all.yaml:" in result.stdout
        assert message in result.stdout
    document = json.loads(run("plan", folder, "--json").stdout)
    assert document["problems"]


def test_features_that_an_old_server_ignores_are_refused(write: Write) -> None:
    def script(peer: FakePeer) -> None:
        peer.handshake(version="2.11.11")
        for subject, code, err_code in (
            ("STREAM.INFO.OLD", 404, 10059),
            ("INFO", 503, 10039),  # no account, and so no limits
            ("STREAM.NAMES", 503, 10039),
        ):
            request = peer.expect(rf"^PUB \$JS\.API\.{subject} ")
            peer.answer(request, {"error": {"code": code, "err_code": err_code}})

    folder = write(stream_of("OLD", max_mgs=5))
    for form in ([], ["--json"]):
        with FakeServer(script) as old:
            shown = CliRunner().invoke(
                twinstream, ["plan", folder, "--server", old.url, *PATIENT, *form]
            )
        assert shown.exit_code == 0
        if form:
            (warning,) = json.loads(shown.stdout)["warnings"]
            assert (warning["path"], warning["rule"]) == ("max_mgs", "L-IGNORED")
        else:
            first, second, _ = shown.stdout.splitlines()
            assert "warning: max_mgs: there is no such setting; it is dropped." in first
            assert second.startswith("+ stream OLD")


def test_texts_with_escapes_are_accepted(run: Run, tmp_path: Path, server: NatsServer) -> None:
    """Programs in Go write > as an escape, and so does the server."""
    text = r'{"name":"DEP7","subjects":["dep7.\u003e"],"max_msgs":5,"metadata":{"\u0061":"\u00fc"}}'
    (tmp_path / "a.json").write_text(text)
    result = run("apply", str(tmp_path), "--yes")
    assert result.exit_code == 0, result.output
    stored = on_server(server, "DEP7")
    assert stored.subjects == ["dep7.>"]
    assert (stored.metadata or {})["a"] == "\u00fc"
    assert actions(run, str(tmp_path)) == {"DEP7": "nothing"}


def test_what_cannot_be_sent_is_refused_before_anything_is_done(
    run: Run, write: Write, server: NatsServer
) -> None:
    folder = write(
        stream_of("DEP8A"),
        stream_of("DEP8B", metadata={"a": None}),
        {"stream_name": "DEP8A", "config": {"name": "C", "pause_until": "2020-01-01T0:00:00Z"}},
    )
    result = run("apply", folder, "--yes")
    assert result.exit_code == 1
    assert f"! stream DEP8B  {folder}/all.yaml:" in result.stdout
    assert "metadata.a: expected text, got null." in result.stdout
    assert "pause_until: '2020-01-01T0:00:00Z' is not a time such as" in result.stdout
    assert result.stderr.endswith("nothing was changed\n")
    with pytest.raises(js_sync.StreamNotFound):
        on_server(server, "DEP8A")


def test_keys_with_capitals_are_refused_as_models_would_not_see_them(
    run: Run, write: Write, server: NatsServer
) -> None:
    """A server ignores the case of keys. If a key has two spellings, the last value counts."""
    folder = write(
        stream_of("DEP31A", NAME="DEP31B"),
        {"Name": "DEP31C", "subjects": ["dep31.c"], "max_msgs": 5},
        stream_of("DEP31D", sources=[{"name": "X", "Filter_Subject": "x"}], metadata={"A": "b"}),
    )
    assert run("validate", folder).exit_code == 0
    result = run("apply", folder, "--yes")
    assert result.exit_code == 1
    assert [line.partition(": ")[2] for line in result.stdout.splitlines()] == [
        "servers read the key 'NAME' as 'name', but this command does not. Write name.",
        "servers read the key 'Name' as 'name', but this command does not. Write name.",
        "servers read the key 'Filter_Subject' as 'filter_subject', but this command does not."
        " Write filter_subject.",
    ]


def test_keys_without_a_value_are_no_other_spelling(
    run: Run, write: Write, server: NatsServer
) -> None:
    """A server uses the default of a setting that is null."""
    folder = write(stream_of("DEP32", max_age=None, description=None, sources=None))
    assert actions(run, folder) == {"DEP32": "create"}
    assert run("apply", folder, "--yes").exit_code == 0
    assert on_server(server, "DEP32").description is None
    assert actions(run, folder) == {"DEP32": "nothing"}


def test_a_key_that_is_no_setting_is_only_that(run: Run, write: Write) -> None:
    result = run("apply", write(stream_of("DEP33", Unknown=1, unknown=None)), "--yes")
    assert result.exit_code == 1
    assert result.stdout.count("there is no such setting") == 2
    assert "servers read the key" not in result.stdout


def test_a_sealed_stream_is_like_any_other(
    run: Run, write: Write, server: NatsServer, tmp_path: Path
) -> None:
    sealed, other = stream_of("DEP10", sealed=True), stream_of("DEP10B")
    assert actions(run, write(sealed, other)) == {"DEP10": "refused", "DEP10B": "create"}
    run("apply", write(stream_of("DEP10")), "--yes")
    folder = write(sealed)
    assert "Sealing ends all writes" in run("plan", folder).stdout
    assert run("apply", folder, "--yes", "--allow-loss").exit_code == 0
    assert on_server(server, "DEP10").sealed
    assert actions(run, folder) == {"DEP10": "nothing"}
    with js_sync.connect(server.url, **UNHURRIED) as nc:
        info = nc.jetstream().get_stream("DEP10").info()
    (tmp_path / "all.yaml").write_text(yaml.safe_dump(json.loads(json.dumps(encode(info)))))
    assert actions(run, folder) == {"DEP10": "nothing"}
    assert run("validate", f"{folder}/all.yaml").exit_code == 0


def test_hidden_files_and_schemas_are_passed_over(run: Run, tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / "a.json").write_text(json.dumps(stream_of("DEP6")))
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "x.json").write_text("{")
    (tmp_path / "x.schema.json").write_text("{}")
    (tmp_path / "notes.txt").write_text("hello")
    assert actions(run, str(tmp_path)) == {"DEP6": "create"}
    assert run("plan", str(inner / "a.json")).exit_code == 0


def test_a_file_that_is_named_twice_is_read_once(run: Run, write: Write) -> None:
    folder = write(stream_of("DEP24"))
    result = run("plan", folder, f"{folder}/all.yaml", f"{folder}/../{Path(folder).name}/all.yaml")
    assert result.exit_code == 0
    assert result.stdout.endswith("1 to create\n")


def test_wrong_usage_and_empty_folders(run: Run, tmp_path: Path) -> None:
    assert run("plan").exit_code == 2
    assert run("plan", "no-such-folder").exit_code == 2
    assert run("apply", str(tmp_path), "--json").exit_code == 2
    empty = run("plan", str(tmp_path))
    assert empty.exit_code == 1
    assert empty.stderr == "error: there is no .json, .yaml or .yml file to read\n"


def test_what_a_server_answers_for_is_unchanged(
    run: Run, stream: str, server: NatsServer, tmp_path: Path
) -> None:
    """The files are those of `nats stream info --json` and `nats consumer info --json`."""
    with js_sync.connect(server.url, **UNHURRIED) as nc:
        handle = nc.jetstream().get_stream(stream)
        consumer = handle.create_consumer(ConsumerConfig(durable_name="C", max_deliver=3))
        (tmp_path / "s.json").write_text(json.dumps(encode(handle.info())))
        (tmp_path / "c.json").write_text(json.dumps(encode(consumer.info())))
    assert actions(run, str(tmp_path)) == {stream: "nothing", "C": "nothing"}
    (tmp_path / "s.json").write_text(run("stream", "info", stream, "--json").stdout)
    (tmp_path / "c.json").unlink()
    assert actions(run, str(tmp_path)) == {stream: "nothing", "C": "nothing"}
