"""Reports of tasks, and tasks in processes."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from tests.soak import LONGEST
from twinstream.core.deadline import Deadline
from twinstream.lake.errors import JournalError
from twinstream.lake.local_engine import LocalEngine
from twinstream.lake.task_report import TaskFile, TaskReport, check_parts, files_by_table


def report(start: int, end: int, *files: tuple[str, int, int]) -> TaskReport:
    found = [
        TaskFile(table, Path(f"/{table}-{first}"), last - first + 1, first, last, 9)
        for table, first, last in files
    ]
    return TaskReport(start, end, tuple(found))


def test_files_are_sorted_by_their_table() -> None:
    reports = [report(1, 5, ("b", 1, 2), ("a", 3, 4)), report(5, 9, ("b", 5, 8))]
    found = files_by_table(reports)
    paths = {table: [each.path for each in files] for table, files in found.items()}
    assert paths == {"a": [Path("/a-3")], "b": [Path("/b-1"), Path("/b-5")]}


def test_each_part_has_one_report_with_its_own_rows() -> None:
    parts = [(1, 5), (5, 9)]
    one, two = report(1, 5, ("a", 1, 4)), report(5, 9)
    check_parts(parts, [two, one])
    for wrong in ([one], [one, one], [one, two, two], [one, report(5, 10)]):
        with pytest.raises(JournalError, match="and it has 2: nothing of it was landed"):
            check_parts(parts, wrong)
    for file in (("a", 4, 8), ("a", 5, 9)):
        with pytest.raises(JournalError, match="reported a file"):
            check_parts(parts, [one, report(5, 9, file)])


def pid_of(part: int) -> TaskReport:
    return TaskReport(part, os.getpid())


def die(part: int) -> TaskReport:
    if part:
        os._exit(9)
    return TaskReport(part, 0)


def wait(part: int) -> TaskReport:
    threading.Event().wait(300)
    return TaskReport(part, 0)


def test_one_part_runs_here_and_several_in_other_processes() -> None:
    with LocalEngine() as engine:
        (one,) = engine.run(pid_of, [7], "g")
        assert one == TaskReport(7, os.getpid())
        found = engine.run(pid_of, [1, 2, 3], "g")
        assert [each.start for each in found] == [1, 2, 3]
        assert os.getpid() not in {each.end for each in found}
        with pytest.raises(Exception, match="terminated abruptly"):
            engine.run(die, [0, 1], "g")
        assert len(engine.run(pid_of, [1, 2], "g")) == 2, "the next batch has other processes"


def test_tasks_of_a_group_can_be_ended() -> None:
    failed: list[Exception] = []

    def run() -> None:
        try:
            engine.run(wait, [1, 2], "g")
        except Exception as error:
            failed.append(error)

    with LocalEngine() as engine:
        assert len(engine.run(pid_of, [1, 2], "other")) == 2
        before = len(multiprocessing.active_children())
        thread = threading.Thread(target=run)
        thread.start()
        deadline = Deadline.after(LONGEST)
        while len(multiprocessing.active_children()) < before + engine.slots:
            assert not deadline.expired()
            time.sleep(0.01)
        engine.cancel("g")
        thread.join(LONGEST)
        assert not thread.is_alive()
        assert len(failed) == 1
        assert len(engine.run(pid_of, [1, 2], "other")) == 2


@pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc")
def test_processes_of_tasks_end_with_a_driver_that_is_killed(tmp_path: Path) -> None:
    program = tmp_path / "driver.py"
    program.write_text(
        """
from tests.lake.test_engine import pid_of, wait
from twinstream.lake.local_engine import LocalEngine

if __name__ == "__main__":
    with LocalEngine() as engine:
        print(*{each.end for each in engine.run(pid_of, range(40), "g")}, flush=True)
        engine.run(wait, range(2), "g")
"""
    )
    driver = subprocess.Popen(
        [sys.executable, str(program)],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
    )
    assert driver.stdout is not None
    processes = [int(each) for each in driver.stdout.readline().split()]
    assert processes
    os.kill(processes[0], signal.SIGINT)
    driver.kill()
    driver.communicate(timeout=LONGEST)
    deadline = Deadline.after(LONGEST)
    while any(is_running(each) for each in processes):
        assert not deadline.expired()
        time.sleep(0.01)


def test_processes_of_tasks_ignore_an_interrupt_while_they_start(tmp_path: Path) -> None:
    program = tmp_path / "driver.py"
    program.write_text(
        """
import os, signal
from tests.lake.test_engine import pid_of
from twinstream.lake.local_engine import LocalEngine

if __name__ == "__main__":
    with LocalEngine() as engine:
        print(len(engine.run(pid_of, [1, 2], "g")))
else:
    os.kill(os.getpid(), signal.SIGINT)  # as a terminal does at Ctrl-C
"""
    )
    done = subprocess.run(
        [sys.executable, str(program)],
        capture_output=True,
        text=True,
        timeout=LONGEST,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
    )
    assert (done.stdout, done.stderr) == ("2\n", "")


def is_running(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


INTERRUPTED = """
import signal
from tests.lake.test_engine import pid_of
from twinstream.lake.local_engine import LocalEngine

if __name__ == "__main__":
    signal.signal(signal.SIGINT, lambda *_: None)
    print("begun", flush=True)
    with LocalEngine() as engine:
        print(len(engine.run(pid_of, [1, 2, 3, 4], "g")), flush=True)
    input()
"""


def test_ctrl_c_while_processes_start_ends_none_of_them(tmp_path: Path) -> None:
    """A terminal sends it to all processes. The driver decides what happens, and here goes on."""
    root = Path(__file__).parents[2]
    program = tmp_path / "interrupted.py"
    program.write_text(INTERRUPTED)
    process = subprocess.Popen(
        [sys.executable, program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env=os.environ | {"PYTHONPATH": f"{root}{os.pathsep}{root / 'src'}"},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    ended = threading.Event()

    def interrupt() -> None:
        while not ended.wait(0.02):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        line = process.stdout.readline()
    finally:
        ended.set()
        thread.join()
    _, errors = process.communicate("\n", timeout=LONGEST)
    assert (line, errors, process.returncode) == ("4\n", "", 0)
