"""An engine that only reads what another process writes."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import arc
import polars
import pytest

WRITES: dict[str, Callable[[arc.Engine], object]] = {
    "write_lp": lambda e: e.write_lp("plant", "pump rpm=1i"),
    "write": lambda e: e.write("pump", [{"time": 1, "rpm": 1}], database="plant"),
    "insert": lambda e: e.execute("plant", "INSERT INTO pump (time, rpm) VALUES (now(), 1)"),
    "create": lambda e: e.execute("plant", "CREATE TABLE fan (time TIMESTAMP, rpm BIGINT)"),
    "delete": lambda e: e.delete("plant", "pump", "id = '7'"),
    "drop_table": lambda e: e.drop_table("plant", "pump"),
    "drop_database": lambda e: e.drop_database("plant"),
    "set_retention": lambda e: e.set_retention("plant", 60),
    "set_durability": lambda e: e.set_durability("plant", "process"),
    "set_column_types": lambda e: e.set_column_types("plant", on_conflict="widen"),
    "flush": lambda e: e.flush(),
    "unpack": lambda e: e.unpack(),
    "backup": lambda e: e.backup(Path(e.path).with_name("copy")),
}


@pytest.fixture
def reader(engine: arc.Engine) -> Any:
    """A reader of the directory that `engine` writes."""
    engine.write_lp("plant", "pump,id=7 rpm=1450i 10\npump,id=8 rpm=1502i 20").raise_for_rejected()
    with arc.open(engine.path, mode="r") as reader:
        yield reader


@pytest.mark.parametrize("call", WRITES)
def test_what_changes_something_is_refused(engine: arc.Engine, reader: arc.Engine, call: str) -> None:
    with pytest.raises(arc.InvalidInputError, match="only reads|read"):
        WRITES[call](reader)
    assert len(engine.plant.pump) == len(reader.plant.pump) == 2
    assert reader.mode == "r" and engine.mode == "rw"


def test_a_writer_of_a_reader_loses_nothing_in_silence(reader: arc.Engine) -> None:
    with pytest.raises(arc.InvalidInputError, match="read"):
        with reader.writer("pump", tags=["id"], database="plant") as pump:
            pump.add(id="9", rpm=1)


def test_each_use_sees_what_is_acknowledged_elsewhere(engine: arc.Engine, reader: arc.Engine) -> None:
    rows = reader.plant.pump.order("time").select("rpm")
    lazy = reader.scan("plant.pump").select(polars.len())
    assert rows.fetchall() == [(1450,), (1502,)] and lazy.collect().item() == 2
    engine.write_lp("plant", "pump,id=9 rpm=1600i 30").raise_for_rejected()
    # At once, though the relation was planned before.
    assert rows.fetchall() == [(1450,), (1502,), (1600,)] and lazy.collect().item() == 3
    engine.flush()
    assert len(reader.plant.pump) == 3
    engine.delete("plant", "pump", "id = '9'")
    assert rows.fetchall() == [(1450,), (1502,)]


def test_a_plan_is_not_kept_over_what_another_process_writes(engine: arc.Engine, reader: arc.Engine) -> None:
    rows = reader.sql("plant", "SELECT count(*) FROM pump")
    engine.write_lp("plant", "pump,id=9 rpm=1600i 30").raise_for_rejected()
    assert rows.fetchone() == (3,)


def test_tables_and_columns_of_another_process_come_up(engine: arc.Engine, reader: arc.Engine) -> None:
    engine.write_lp("plant", "fan,id=1 rpm=800i,load=0.5 10").raise_for_rejected()
    engine.write_lp("new", "valve open=true 10").raise_for_rejected()
    assert reader.databases() == ["new", "plant"] and reader.tables("plant") == ["fan", "pump"]
    assert reader.plant.fan.columns == ["time", "id", "rpm", "load"]


def test_a_reader_works_without_a_writer_and_makes_nothing(folder: Path) -> None:
    with arc.open(folder) as engine:
        engine.write_lp("plant", "pump rpm=1i 1").raise_for_rejected()
    with arc.open(folder, mode="r") as reader:
        assert len(reader.plant.pump) == 1 and repr(reader) == f"<arc.Engine {folder}, mode='r'>"
    with pytest.raises(arc.Error, match="is not a data directory"):
        arc.open(folder / "none", mode="r")
    assert not (folder / "none").exists()


def test_the_mode_is_one_of_two(folder: Path) -> None:
    with pytest.raises(arc.InvalidInputError, match='mode.*"w".*"r" or "rw"'):
        arc.open(folder, mode="w")  # type: ignore[arg-type]
    assert not folder.exists()


def test_two_processes_on_one_directory(engine: arc.Engine) -> None:
    engine.write_lp("plant", "pump rpm=1i 1").raise_for_rejected()
    program = """
import arc, sys
try:
    arc.open(sys.argv[1])
except arc.BusyError as error:
    print(error)
with arc.open(sys.argv[1], mode="r") as reader:
    print(len(reader.plant.pump))
    sys.stdin.readline()
    print(len(reader.plant.pump))
"""
    with subprocess.Popen(
        [sys.executable, "-c", program, engine.path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None and other.stdin is not None
        said = other.stdout.readline()
        assert "in use" in said and 'mode="r"' in said
        assert other.stdout.readline() == "1\n"
        engine.write_lp("plant", "pump rpm=2i 2").raise_for_rejected()
        other.stdin.write("\n")
        other.stdin.flush()
        assert other.stdout.readline() == "2\n"
    assert other.returncode == 0


def test_a_closed_reader_says_so(engine: arc.Engine) -> None:
    engine.write_lp("plant", "pump rpm=1i 1").raise_for_rejected()
    reader = arc.open(engine.path, mode="r")
    reader.close()
    reader.close()
    with pytest.raises(arc.ClosedError):
        reader.sql("plant", "SELECT 1 FROM pump")
    assert len(engine.plant.pump) == 1


@pytest.mark.parametrize("path", ["http://localhost:8000", "gs://bucket"])
def test_an_address_is_no_folder(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(arc.InvalidInputError, match="a folder was expected|the path of a folder was expected"):
        arc.open(path, mode="r")
    assert list(tmp_path.iterdir()) == []


def test_older_states_are_read_by_writer_and_reader_and_a_delete_is_undone(engine: arc.Engine, reader: arc.Engine) -> None:
    before = engine.sql("plant", "SELECT CAST(now() AS VARCHAR)").fetchone()[0]
    engine.execute("plant", "CREATE SNAPSHOT first")
    engine.delete("plant", "pump", "id = '7'")
    then = [f"FOR SYSTEM_TIME AS OF '{before}'", f"AT (TIMESTAMP => '{before}')", "AT (SNAPSHOT => 'first')"]
    for opened in (engine, reader):
        assert opened.sql("plant", "SELECT id FROM pump").fetchall() == [("8",)]
        for of in then:
            assert opened.sql("plant", f"SELECT id FROM pump {of} ORDER BY id").fetchall() == [("7",), ("8",)], of
        assert opened.sql("plant", "SHOW SNAPSHOTS").fetchone()[0] == "first"
        with pytest.raises(arc.NotFoundError, match="none"):
            opened.sql("plant", "SELECT * FROM pump AT (SNAPSHOT => 'none')").fetchall()
        with pytest.raises(arc.InvalidInputError, match="history begins at"):
            opened.sql("plant", "SELECT * FROM pump FOR SYSTEM_TIME AS OF '2020-01-01'").fetchall()
    with pytest.raises(arc.InvalidInputError, match="read"):
        reader.execute("plant", "RESTORE TABLE pump AS OF SNAPSHOT first")
    engine.execute("plant", "RESTORE TABLE pump AS OF SNAPSHOT first")
    assert reader.sql("plant", "SELECT id FROM pump ORDER BY id").fetchall() == [("7",), ("8",)]
