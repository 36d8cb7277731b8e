"""Deleting points."""

import math
from datetime import timedelta
from pathlib import Path

import arc
import pyarrow
import pyarrow.parquet
import pytest


def count(engine: arc.Engine) -> int:
    answer = pyarrow.table(engine.sql("plant", "SELECT count(*) AS n FROM pump"))
    return int(answer["n"][0].as_py())


def test_points_that_meet_the_condition_go_and_later_ones_stay(folder: Path) -> None:
    with arc.open(folder) as engine:
        engine.write_lp("plant", "pump,id=a rpm=1i 1\npump,id=b rpm=2i 2\npump rpm=3i 3").raise_for_rejected()
        engine.delete("plant", "pump", "id = 'a' AND time < '2000-01-01'")
        assert count(engine) == 2
        engine.database("plant").delete("pump", "TRUE")
        engine.write_lp("plant", "pump,id=a rpm=4i 1").raise_for_rejected()
    with arc.open(folder) as engine:
        assert count(engine) == 1


def test_a_condition_that_cannot_be_is_refused(folder: Path) -> None:
    with arc.open(folder) as engine:
        engine.write_lp("plant", "pump,id=a rpm=1i 1").raise_for_rejected()
        for condition in ["rpm = 1", "nowhere = 'x'", "id LIKE 'a%'", ""]:
            with pytest.raises(arc.InvalidInputError):
                engine.delete("plant", "pump", condition)
        with pytest.raises(arc.NotFoundError):
            engine.delete("plant", "nothing", "TRUE")
        assert count(engine) == 1


def test_dropped_tables_and_databases_are_gone(folder: Path) -> None:
    with arc.open(folder) as engine:
        engine.write_lp("plant", "pump v=1 1\nfan v=1 1").raise_for_rejected()
        engine.drop_table("plant", "pump")
        assert engine.tables("plant") == ["fan"]
        engine.drop_database("plant")
        assert engine.databases() == []
        with pytest.raises(arc.NotFoundError):
            engine.drop_database("plant")


def test_settings_of_tables_and_databases_are_kept(folder: Path) -> None:
    with arc.open(folder) as engine:
        engine.write_lp("plant", "pump v=1 1\nfan v=1 1").raise_for_rejected()
        assert engine.retention("plant") is None
        engine.set_retention("plant", timedelta(days=30))
        engine.set_retention("plant", math.inf, table="pump")
        engine.database("plant").set_durability("process")
    with arc.open(folder) as engine:
        assert engine.retention("plant") == 30 * 86_400
        assert engine.retention("plant", table="pump") == math.inf
        assert engine.retention("plant", table="fan") is None
        assert engine.write_lp("plant", "pump v=1 1").durability == "process"
        assert engine.durability("plant") == "process"
        engine.set_durability("plant", None)
        engine.database("plant").set_retention(None, table="pump")
        assert engine.durability("plant") is None
        assert engine.retention("plant", table="pump") is None
        with pytest.raises(arc.NotFoundError):
            engine.set_retention("plant", 1, table="nothing")
        for bad in (0, -1):
            with pytest.raises(arc.InvalidInputError):
                engine.set_retention("plant", bad)
        with pytest.raises(arc.InvalidInputError):
            engine.set_durability("plant", "paper")  # type: ignore[arg-type]


def test_columns_give_way_to_other_types(folder: Path) -> None:
    def rows(engine: arc.Engine, query: str) -> list[dict[str, object]]:
        return pyarrow.table(engine.sql("plant", query)).to_pylist()

    with arc.open(folder, string_columns=["attr_*"], on_conflict="widen") as engine:
        engine.write_lp("plant", "pump attr_a=1i,v=1i 1\npump attr_a=true,v=2.5 2").raise_for_rejected()
        expected = [{"attr_a": "1", "v": 1.0}, {"attr_a": "true", "v": 2.5}]
        assert rows(engine, "SELECT attr_a, v FROM pump ORDER BY time") == expected
        engine.set_column_types("plant", string_columns=["x_*"])
        engine.database("plant").set_column_types(table="pump", on_conflict="reject")
    with arc.open(folder) as engine:
        assert engine.column_types("plant") == (["x_*"], None, None, None)
        assert engine.column_types("plant", table="pump") == (None, "reject", None, None)
        assert engine.write_lp("plant", "pump v=\"t\" 3").rejected_points == 1
        with pytest.raises(arc.InvalidInputError, match="\"v\" of table \"pump\" matches and is float already"):
            engine.set_column_types("plant", table="pump", string_columns=["*"])
        with pytest.raises(arc.InvalidInputError, match="on_conflict"):
            engine.set_column_types("plant", on_conflict="drop")  # type: ignore[arg-type]
        with pytest.raises(arc.NotFoundError):
            engine.column_types("nowhere")


def test_times_in_files_have_the_unit_that_is_set(folder: Path) -> None:
    def time_type(file: str) -> pyarrow.DataType:
        return pyarrow.parquet.read_schema(file).field("time").type

    query = "SELECT time, rpm FROM pump ORDER BY time"
    with arc.open(folder, time_unit="us") as engine:
        engine.write_lp("plant", "pump rpm=1i 1000\npump rpm=2i 2000").raise_for_rejected()
        rows = pyarrow.table(engine.sql("plant", query))
        assert rows["time"].type == pyarrow.timestamp("ns", tz="UTC")
        assert [time_type(file) for file in engine.flush().files] == [pyarrow.timestamp("us", tz="UTC")]
        assert pyarrow.table(engine.sql("plant", query)) == rows
        # Finer than the unit.
        engine.write_lp("plant", "pump rpm=3i 3001").raise_for_rejected()
        assert [time_type(file) for file in engine.flush().files] == [pyarrow.timestamp("ns", tz="UTC")]
        engine.database("plant").set_column_types(table="pump", time_unit="ms")
        assert engine.column_types("plant", table="pump") == (None, None, "ms", None)
        with pytest.raises(arc.InvalidInputError, match="time_unit.*expected ns, us or ms"):
            engine.set_column_types("plant", time_unit="s")  # type: ignore[arg-type]


def test_finer_times_are_kept_refused_or_rounded(folder: Path) -> None:
    def rows(engine: arc.Engine) -> list[tuple[object, ...]]:
        return engine.sql("plant", "SELECT CAST(time AS BIGINT), rpm FROM pump ORDER BY time").fetchall()

    with arc.open(folder, time_unit="us", finer_times="round") as engine:
        engine.write_lp("plant", "pump rpm=1i 1000\npump rpm=2i 1001").raise_for_rejected()
        assert rows(engine) == [(1000, 2)]
        engine.database("plant").set_column_types(table="pump", finer_times="reject")
        types = engine.column_types("plant", table="pump")
        assert isinstance(types, arc.ColumnTypes) and (types.time_unit, types.finer_times) == (None, "reject")
        assert types == (None, None, None, "reject")
        assert engine.write_lp("plant", "pump rpm=3i 2000\npump rpm=4i 2001").rejected_points == 1
        engine.set_column_types("plant", table="pump", finer_times="keep")
        engine.write_lp("plant", "pump rpm=5i 3001").raise_for_rejected()
        assert rows(engine) == [(1000, 2), (2000, 3), (3001, 5)]
        with pytest.raises(arc.InvalidInputError, match="finer_times.*expected keep, reject or round"):
            engine.set_column_types("plant", finer_times="drop")  # type: ignore[arg-type]
