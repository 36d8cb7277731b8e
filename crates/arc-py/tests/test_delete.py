"""Deleting points."""

from pathlib import Path

import arc
import pyarrow
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
