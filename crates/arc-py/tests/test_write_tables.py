"""Tables of other libraries in, through the Arrow PyCapsule interface."""

from datetime import datetime, timedelta, timezone
from typing import Any, Callable

import arc
import duckdb
import pandas
import polars
import pyarrow
import pytest

TIME = [datetime(2026, 1, 1, tzinfo=timezone.utc) + timedelta(seconds=n) for n in range(4)]
ARROW = pyarrow.table(
    {
        "ts": pyarrow.array(TIME, pyarrow.timestamp("us", "UTC")),
        "id": ["a", "b", "a", "b"],
        "rpm": [1, 2, None, 4],
        "temp": [1.5, 2.5, 3.5, float("inf")],
        "on": [True, False, None, True],
        "note": ["ü", "", None, "x" * 100],
    }
)

SOURCES: dict[str, Callable[[], Any]] = {
    "pyarrow.Table": lambda: ARROW,
    "pyarrow.RecordBatch": lambda: ARROW.combine_chunks().to_batches()[0],
    "pyarrow.RecordBatchReader": lambda: pyarrow.RecordBatchReader.from_batches(
        ARROW.schema, ARROW.to_batches(max_chunksize=1)
    ),
    "polars.DataFrame": lambda: polars.DataFrame(ARROW),
    "pandas.DataFrame": lambda: (
        pandas.DataFrame.from_arrow(ARROW)
        if hasattr(pandas.DataFrame, "from_arrow")
        else ARROW.to_pandas(types_mapper=pandas.ArrowDtype)
    ),
    "duckdb": lambda: duckdb.connect().from_arrow(ARROW),
}


def rows(engine: arc.Engine, query: str) -> list:
    return pyarrow.table(engine.sql("plant", query)).to_pylist()


@pytest.mark.parametrize("source", SOURCES)
def test_every_source_stores_the_same_rows(engine: arc.Engine, source: str) -> None:
    data = SOURCES[source]()
    written = engine.write("pump", data, tags=["id"], time="ts", database="plant")
    assert written == arc.Written(4, 0, [], "disk")
    stored = pyarrow.table(engine.sql("plant", 'SELECT time, id, rpm, temp, "on", note FROM pump ORDER BY time'))
    assert stored["time"].to_pylist() == TIME
    assert stored["id"].to_pylist() == ARROW["id"].to_pylist()
    for name in ("temp", "on", "note"):
        assert stored[name].to_pylist() == ARROW[name].to_pylist(), name
    # An integer column with a null is one of floats in pandas without Arrow types.
    assert stored["rpm"].to_pylist() == ARROW["rpm"].to_pylist()


@pytest.mark.parametrize(
    ("type_", "value", "nanoseconds"),
    [
        (pyarrow.timestamp("s"), 5, 5 * 10**9),
        (pyarrow.timestamp("ms"), 5, 5 * 10**6),
        (pyarrow.timestamp("us", "Europe/Berlin"), 5, 5 * 10**3),
        (pyarrow.timestamp("ns", "UTC"), -5, -5),
        (pyarrow.date32(), 5, 5 * 86400 * 10**9),
        (pyarrow.int64(), 5, 5),
    ],
)
def test_the_time_column_has_any_unit(
    engine: arc.Engine, type_: pyarrow.DataType, value: int, nanoseconds: int
) -> None:
    time = pyarrow.array([value], pyarrow.int32() if type_ == pyarrow.date32() else pyarrow.int64()).cast(type_)
    engine.write("pump", pyarrow.table({"time": time, "rpm": [1]}), database="plant")
    assert rows(engine, "SELECT CAST(time AS BIGINT) AS ns FROM pump") == [{"ns": nanoseconds}]


def test_integers_as_time_have_the_unit_of_the_precision(engine: arc.Engine) -> None:
    engine.write("pump", pyarrow.table({"time": [5], "rpm": [1]}), precision="ms", database="plant")
    assert rows(engine, "SELECT CAST(time AS BIGINT) AS ns FROM pump") == [{"ns": 5 * 10**6}]


def test_rows_with_tags_merge_and_rows_without_append(engine: arc.Engine) -> None:
    first = pyarrow.table({"time": [5], "id": ["a"], "rpm": [1], "temp": [1.5]})
    second = pyarrow.table({"time": [5], "id": ["a"], "rpm": [2]})
    for table, tags in (("keyed", ["id"]), ("plain", None)):
        for data in (first, second):
            engine.write(table, data, tags=tags, database="plant")
    assert rows(engine, "SELECT rpm, temp FROM keyed") == [{"rpm": 2, "temp": 1.5}]
    assert rows(engine, "SELECT rpm, temp FROM plain ORDER BY rpm") == [
        {"rpm": 1, "temp": 1.5},
        {"rpm": 2, "temp": None},
    ]


def test_a_table_keeps_its_tags(engine: arc.Engine) -> None:
    engine.write_lp("plant", "pump,id=a rpm=1i 5").raise_for_rejected()
    engine.write("pump", pyarrow.table({"time": [5], "id": ["a"], "rpm": [2]}), database="plant")
    assert rows(engine, "SELECT id, rpm FROM pump") == [{"id": "a", "rpm": 2}]


def test_a_table_without_rows_stores_nothing(engine: arc.Engine) -> None:
    empty = ARROW.slice(0, 0)
    assert engine.write("pump", empty, time="ts", database="plant").points == 0
    reader = pyarrow.RecordBatchReader.from_batches(ARROW.schema, [])
    assert engine.write("pump", reader, time="ts", database="plant").points == 0


def test_an_answer_can_be_written(engine: arc.Engine) -> None:
    engine.write("pump", ARROW, tags=["id"], time="ts", database="plant")
    assert engine.write("copy", engine.sql("plant", "SELECT * FROM pump"), tags=["id"], database="plant").points == 4
    assert rows(engine, "SELECT * FROM copy ORDER BY time") == rows(engine, "SELECT * FROM pump ORDER BY time")


def test_an_index_of_pandas_is_a_column(engine: arc.Engine) -> None:
    frame = pandas.DataFrame({"rpm": [1, 2]}, index=pandas.DatetimeIndex(TIME[:2], name="time"))
    engine.write("pump", frame, database="plant")
    assert rows(engine, "SELECT time, rpm FROM pump ORDER BY time") == [
        {"time": pandas.Timestamp(TIME[0]), "rpm": 1},
        {"time": pandas.Timestamp(TIME[1]), "rpm": 2},
    ]


def test_the_default_database_is_called_default(engine: arc.Engine) -> None:
    engine.write("pump", ARROW, time="ts")
    assert (engine.databases(), engine.tables("default")) == (["default"], ["pump"])
