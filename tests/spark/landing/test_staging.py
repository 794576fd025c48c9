"""Folders of attempts, beside other drivers."""

from __future__ import annotations

from pathlib import Path, PosixPath

import pytest

from twinstream.spark.landing.staging import Staging


class GoingPath(PosixPath):
    """A folder that another driver removes when `mkdir` has found that it exists."""

    def is_dir(self) -> bool:
        if self.name == "_staging" and self.exists() and not list(self.iterdir()):
            self.rmdir()
        return super().is_dir()


def test_the_folder_of_all_attempts_may_go_at_any_moment(tmp_path: Path) -> None:
    """`mkdir` finds that it exists, and looks whether it is a folder when it is gone."""
    parent = GoingPath(tmp_path / "_staging")
    parent.mkdir()
    attempt = Staging(parent, "orders")
    assert attempt.folder.parent == parent
    assert attempt.folder.exists()
    attempt.close()


def test_a_file_in_its_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "_staging").touch()
    with pytest.raises(FileExistsError):
        Staging(tmp_path / "_staging", "orders")
