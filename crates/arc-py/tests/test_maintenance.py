"""Verification, backups and their restoration."""

from pathlib import Path

import arc
import pyarrow
import pytest


def fill(folder: Path) -> None:
    with arc.open(folder) as engine:
        engine.write_lp("plant", "pump rpm=1i 1\npump rpm=2i 2").raise_for_rejected()


def test_a_whole_directory_is_clean_and_a_damaged_one_is_not(folder: Path) -> None:
    fill(folder)
    report = arc.verify(folder)
    assert (report.clean, report.rows, report.findings) == (True, 2, [])
    assert "clean" in str(report)
    file = next(folder.rglob("*.parquet"))
    file.write_bytes(b"x")
    report = arc.verify(str(folder))
    assert not report.clean
    assert (report.findings[0].severity, report.findings[0].path) == ("error", str(file))
    with arc.open(folder) as engine:
        assert not engine.verify().clean
        with pytest.raises(arc.BusyError):
            arc.verify(folder)
    with pytest.raises(arc.InvalidInputError):
        arc.verify(folder / "nothing")


def test_a_backup_is_restored_and_a_damaged_one_is_refused(folder: Path, tmp_path: Path) -> None:
    fill(folder)
    copy, new = tmp_path / "copy", tmp_path / "new"
    with arc.open(folder) as engine:
        engine.write_lp("plant", "pump rpm=3i 3").raise_for_rejected()
        report = engine.backup(copy)
        assert (report.files, report.rows, report.log_bytes > 0) == (1, 2, True)
        assert engine.backup(copy).kept_files == 1
        with pytest.raises(arc.InvalidInputError):
            engine.backup(folder / "inside")
    arc.restore(copy, new)
    with arc.open(new) as engine:
        assert pyarrow.table(engine.sql("plant", "SELECT count(*) AS n FROM pump")).to_pylist() == [{"n": 3}]
    file = next(copy.rglob("*.parquet"))
    file.write_bytes(b"x")
    with pytest.raises(arc.CorruptError, match=file.name):
        arc.restore(copy, tmp_path / "other")
