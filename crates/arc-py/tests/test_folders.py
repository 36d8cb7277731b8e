"""What other programs read in the folders of a table."""

from pathlib import Path

import arc
import duckdb
import pandas
import polars
import pyarrow
import pyarrow.dataset
import pytest

DAY_NS = 86_400_000_000_000
DAYS = ["monday", "tuesday"]


@pytest.mark.parametrize("name", ["day", "Day"])
def test_a_column_that_is_called_day_has_its_own_values(engine: arc.Engine, folder: Path, name: str) -> None:
    for number, value in enumerate(DAYS):
        engine.write_lp("d", f"m,{name}={value} v={number} {number * DAY_NS}")
        engine.flush()
    table = folder / "data" / "d" / "m"
    assert duckdb.sql(f"SELECT {name}, v FROM read_parquet('{table}/*/*.parquet') ORDER BY v").fetchall() == [
        ("monday", 0.0),
        ("tuesday", 1.0),
    ]
    assert polars.scan_parquet(table, hive_partitioning=True).sort("v").collect()[name].cast(polars.String).to_list() == DAYS
    assert pandas.read_parquet(table).sort_values("v")[name].tolist() == DAYS
    assert pyarrow.dataset.dataset(table).to_table().sort_by("v")[name].cast(pyarrow.string()).to_pylist() == DAYS
    assert engine.verify().clean


def test_a_column_that_came_later_is_found_by_its_name(engine: arc.Engine, folder: Path) -> None:
    for number, point in enumerate(["m v=0", "m,day=monday v=1"]):
        engine.write_lp("d", f"{point} {number * DAY_NS}")
        engine.flush()
    files = f"{folder}/data/d/m/*/*.parquet"
    query = f"SELECT day, v FROM read_parquet('{files}', union_by_name = true) ORDER BY v"
    assert duckdb.sql(query).fetchall() == [(None, 0.0), ("monday", 1.0)]
