"""Verification, backups and their restoration."""

from pathlib import Path

import arc
import duckdb
import pyarrow
import pyarrow.parquet
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


def test_what_is_packed_gets_files_that_other_programs_find(folder: Path) -> None:
    with arc.open(folder) as engine:
        lines = [f"small{table},host=a n={n}i {n}" for table in range(64) for n in range(3)]
        engine.write_lp("plant", "\n".join(lines)).raise_for_rejected()
        engine.flush()
        glob = str(folder / "data/plant/small7/*/*.parquet")
        assert ".pack/" in engine.data_files("plant", "small7")[0]
        assert engine.unpack() == 64
        assert engine.data_files("plant", "small7")[0] == str(next(folder.glob("data/plant/small7/*/*.parquet")))
        assert engine.unpack() == 0
        expected = pyarrow.table(engine.sql("plant", "SELECT host, n FROM small7 ORDER BY n")).to_pylist()
    found = duckdb.sql(f"SELECT host, n FROM read_parquet('{glob}') ORDER BY n").fetchall()
    assert found == [("a", n) for n in range(3)] and expected == [{"host": "a", "n": n} for n in range(3)]
    read = pyarrow.parquet.read_table(folder / "data/plant/small7", partitioning=None)
    assert read.select(["host", "n"]).to_pylist() == expected
    assert arc.verify(folder).clean
