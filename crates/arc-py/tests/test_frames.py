"""Rows in, of every library and of none; and what is wrong with those that cannot be stored."""

import dataclasses
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from typing import Any, Callable, NamedTuple

import arc
import duckdb
import numpy
import pandas
import polars
import pyarrow
import pytest

AT = [datetime(2026, 1, 1, tzinfo=timezone.utc) + timedelta(seconds=n) for n in range(3)]
NS = [1767225600_000000000 + n * 10**9 for n in range(3)]
IDS = ["a", "b", None]
RPM = [1, None, 3]
TEMP = [1.5, 2.5, None]
FRAME = pandas.DataFrame({"time": AT, "id": IDS, "rpm": RPM, "temp": TEMP})


@dataclasses.dataclass
class Point:
    time: datetime
    id: Any
    rpm: Any
    temp: Any


class Named(NamedTuple):
    time: datetime
    id: Any
    rpm: Any
    temp: Any


SOURCES: dict[str, Callable[[], Any]] = {
    "pandas of numpy": lambda: FRAME,
    "pandas, nullable": lambda: FRAME.convert_dtypes(dtype_backend="numpy_nullable"),
    "pandas, pyarrow": lambda: FRAME.convert_dtypes(dtype_backend="pyarrow"),
    "pandas, times of a zone": lambda: FRAME.assign(time=FRAME["time"].dt.tz_convert("Europe/Berlin")),
    "pandas, times without one": lambda: FRAME.assign(time=FRAME["time"].dt.tz_localize(None)),
    "pandas, seconds": lambda: FRAME.assign(time=FRAME["time"].astype("datetime64[s, UTC]")),
    "pandas, objects": lambda: FRAME.astype(object),
    "pandas, index": lambda: FRAME.set_index("time"),
    "pandas, index without a name": lambda: FRAME.set_index("time").rename_axis(index=None),
    "pandas, rows left out": lambda: pandas.concat([FRAME.iloc[:1], FRAME])[1:].sort_index(ascending=False),
    "polars": lambda: polars.DataFrame({"time": AT, "id": IDS, "rpm": RPM, "temp": TEMP}),
    "polars, lazy": lambda: polars.LazyFrame({"time": AT, "id": IDS, "rpm": RPM, "temp": TEMP}),
    "dict of lists": lambda: {"time": AT, "id": IDS, "rpm": RPM, "temp": TEMP},
    "dict of arrays": lambda: {
        "time": numpy.array(NS, "datetime64[ns]"),
        "id": numpy.array(IDS, object),
        "rpm": numpy.ma.MaskedArray([1, 2, 3], [False, True, False]),
        "temp": pyarrow.array(TEMP),
    },
    "dict of series": lambda: {name: FRAME[name] for name in FRAME},
    "list of dicts": lambda: [dict(zip(FRAME, row)) for row in zip(AT, IDS, RPM, TEMP)],
    "dicts without what is missing": lambda: [
        {name: value for name, value in zip(FRAME, row) if value is not None} for row in zip(AT, IDS, RPM, TEMP)
    ],
    "dataclasses": lambda: [Point(*row) for row in zip(AT, IDS, RPM, TEMP)],
    "named tuples": lambda: (Named(*row) for row in zip(AT, IDS, RPM, TEMP)),
}


@pytest.mark.parametrize("source", SOURCES)
def test_every_source_stores_the_same_rows(engine: arc.Engine, source: str) -> None:
    data = SOURCES[source]()
    assert engine.write("pump", data, tags=["id"], database="plant").points == 3
    stored = engine.plant.pump.arrow()
    assert sorted(stored.column_names) == ["id", "rpm", "temp", "time"]
    found = stored.sort_by("time").to_pylist()
    assert [row["id"] for row in found] == IDS
    assert [row["rpm"] for row in found] == RPM
    assert [row["temp"] for row in found] == TEMP
    assert stored.sort_by("time")["time"].cast(pyarrow.int64()).to_pylist() == NS


def test_nan_is_null_in_pandas_and_a_number_elsewhere(engine: arc.Engine) -> None:
    values = [1.0, float("nan")]
    engine.write("frame", pandas.DataFrame({"time": NS[:2], "v": values}), database="plant")
    engine.write("array", {"time": NS[:2], "v": numpy.array(values)}, database="plant")
    engine.write("list", {"time": NS[:2], "v": values}, database="plant")
    counts = [engine.plant.sql(f"SELECT count(v) FROM {name}").fetchone() for name in ("frame", "array", "list")]
    assert counts == [(1,), (2,), (2,)]


def test_no_rows_are_stored_as_none(engine: arc.Engine) -> None:
    for nothing in ([], {"time": [], "v": []}, iter([])):
        assert engine.write("pump", nothing, database="plant").points == 0


def test_integers_keep_all_digits(engine: arc.Engine) -> None:
    rows = [{"time": 1, "n": 2**63 - 1, "u": 2**64 - 1}, {"time": 2, "n": None, "u": 0}]
    engine.write("pump", rows, database="plant")
    assert engine.plant.sql("SELECT n, u FROM pump ORDER BY time").fetchall() == [(2**63 - 1, 2**64 - 1), (None, 0)]


def broken() -> Iterator[dict[str, Any]]:
    yield {"time": 1, "rpm": 1}
    raise KeyError("half-way")


def broken_lines() -> Iterator[str]:
    yield "pump rpm=1i 1"
    raise KeyError("half-way")


LAYOUT = pyarrow.schema([("time", pyarrow.int64()), ("rpm", pyarrow.int64())])


def broken_batches(layout: pyarrow.Schema) -> Iterator[pyarrow.RecordBatch]:
    for n in range(3):
        yield pyarrow.record_batch({"time": [n], "rpm": [n]}, schema=layout)
    raise KeyError("half-way")


def frame(**columns: Any) -> pandas.DataFrame:
    return pandas.DataFrame({"time": NS[: len(next(iter(columns.values())))], **columns})


BAD: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "objects of two types": (lambda: frame(x=[1, "a"]), arc.InvalidInputError, "'x' has values of two types: int in row 0, str in row 1"),
    "objects of no type": (lambda: frame(x=[{1}, {2}]), arc.InvalidInputError, "'x' has a set in row 0; int, float"),
    "zones mixed with none": (
        lambda: pandas.DataFrame({"time": [AT[0], AT[1].replace(tzinfo=None)], "v": [1, 2]}, dtype=object),
        arc.InvalidInputError,
        r"'time' has times with a zone \(row 0\) and without one \(row 1\)",
    ),
    "NaT": (
        lambda: pandas.DataFrame({"time": pandas.to_datetime(["2026-01-01", None]), "v": [1, 2]}),
        arc.InvalidInputError,
        "'time' has no time in row 1",
    ),
    "NaT of numpy": (
        lambda: {"time": numpy.array([1, "NaT"], "datetime64[ns]"), "v": [1, 2]},
        arc.InvalidInputError,
        "'time' has no time in row 1",
    ),
    "NaN as time": (lambda: frame(v=[1, 2]).assign(time=[1.0, float("nan")]), arc.InvalidInputError, "no time in row 1"),
    "names twice, pandas": (
        lambda: pandas.DataFrame([[1, 2, 3]], columns=["time", "a", "a"]),
        arc.InvalidInputError,
        "two columns are called 'a'",
    ),
    "names twice, pyarrow": (
        lambda: pyarrow.table([pyarrow.array([1])] * 3, names=["time", "a", "a"]),
        arc.InvalidInputError,
        "two columns are called 'a'",
    ),
    "ragged": (
        lambda: {"time": [1, 2], "v": [1]},
        arc.InvalidInputError,
        "different lengths: 'time' has 2 values, 'v' 1",
    ),
    "ragged arrays": (
        lambda: {"time": numpy.arange(2), "v": numpy.arange(3)},
        arc.InvalidInputError,
        "different lengths: 'time' has 2 values, 'v' 3",
    ),
    "two dimensions": (lambda: {"time": [1], "v": numpy.ones((1, 2))}, arc.InvalidInputError, "'v' has 2 dimensions"),
    "a column that is a number": (lambda: {"time": [1], "v": 7}, arc.InvalidInputError, "'v' is a int; a list"),
    "a column that is a text": (lambda: {"time": [1], "v": "x"}, arc.InvalidInputError, "'v' is a str; a list"),
    "a name that is none": (lambda: [{"time": 1, 7: 1}], arc.InvalidInputError, "name of a column is a int"),
    "a row that is none": (lambda: [{"time": 1}, 7], arc.InvalidInputError, "row 1 is a int; a dict"),
    "an integer of 65 bits": (lambda: [{"time": 1, "v": 2**64}], arc.InvalidInputError, "more than 64 bits in row 0"),
    "an integer that is no float": (
        lambda: [{"time": 1, "v": 0.5}, {"time": 2, "v": 2**53 + 1}],
        arc.InvalidInputError,
        "in row 1 an integer that is none",
    ),
    "a time too late": (lambda: [{"time": datetime(2300, 1, 1)}], arc.InvalidInputError, "outside of 1677 to 2262"),
    "a time that is missing, pyarrow": (
        lambda: pyarrow.table({"time": pyarrow.array([1, None], pyarrow.timestamp("ns")), "v": [1, 2]}),
        arc.InvalidInputError,
        '"time" has 1 nulls',
    ),
    "a time that is missing, polars": (lambda: polars.DataFrame({"time": [AT[0], None]}), arc.InvalidInputError, '"time" has 1 nulls'),
    "names twice, DuckDB": (
        lambda: duckdb.connect().sql("SELECT 1 AS time, 2 AS a, 3 AS a"),
        arc.InvalidInputError,
        "two columns are called 'a'",
    ),
    "a name with NUL, pyarrow": (lambda: pyarrow.table({"time": [1], "a\0b": [1]}), arc.InvalidInputError, "NUL: 'a.*b'"),
    "a name with NUL, lists": (lambda: {"time": [1], "a\0b": [1]}, arc.InvalidInputError, "NUL: 'a.*b'"),
    "objects of polars": (
        lambda: polars.DataFrame({"time": [1], "x": polars.Series([object()], dtype=polars.Object)}),
        arc.InvalidInputError,
        "'x' has objects of Python",
    ),
    "objects of polars, a series": (
        lambda: {"time": [1], "x": polars.Series([object()], dtype=polars.Object)},
        arc.InvalidInputError,
        "'x' has objects of Python",
    ),
    "periods": (
        lambda: frame(x=pandas.period_range("2026", periods=2, freq="M")),
        arc.InvalidInputError,
        r"'x' is of period\[M\].*to_timestamp",
    ),
    "intervals": (lambda: frame(x=pandas.interval_range(0, 2)), arc.InvalidInputError, "'x' is of interval.*left"),
    "periods as the time": (
        lambda: pandas.DataFrame({"time": pandas.period_range("2026", periods=1, freq="M"), "v": [1]}),
        arc.InvalidInputError,
        r"'time' is of period\[M\].*to_timestamp",
    ),
    "periods as the index": (
        lambda: pandas.DataFrame({"v": [1]}, index=pandas.period_range("2026", periods=1, freq="M", name="time")),
        arc.InvalidInputError,
        r"'time' is of period\[M\]",
    ),
    "an index of texts": (lambda: frame(v=[1, 2]).set_axis(["a", "b"]), arc.InvalidInputError, "no name.*reset_index"),
    "a second index of times": (
        lambda: frame(v=[1, 2]).set_axis(pandas.to_datetime(["2026-01-01", "2026-01-02"])),
        arc.InvalidInputError,
        "no name.*rename_axis",
    ),
    "two levels without names": (
        lambda: frame(v=[1, 2]).set_axis(pandas.MultiIndex.from_tuples([(1, 2), (3, 4)])),
        arc.InvalidInputError,
        "no name",
    ),
    "a time of numpy too late": (
        lambda: [{"time": numpy.datetime64("2500-01-01"), "v": 1}],
        arc.InvalidInputError,
        "'time' has a time outside of 1677 to 2262 in row 0: 2500-01-01",
    ),
    "a field of numpy too late": (
        lambda: {"time": [1], "at": [numpy.datetime64("1500-01-01T00:00:00.000001")]},
        arc.InvalidInputError,
        "'at' has a time outside",
    ),
    "an array of times too late": (
        lambda: {"time": numpy.array(["2500-01"], "datetime64[M]"), "v": [1]},
        arc.InvalidInputError,
        "time",
    ),
    "a span of numpy": (lambda: {"time": [1], "x": [numpy.timedelta64(5, "ns")]}, arc.InvalidInputError, "'x' has a timedelta64"),
    "a set": (lambda: {"time": [1], "x": {1}}, arc.InvalidInputError, "'x' is a set; a list"),
    "half of a character": (lambda: [{"time": 1, "x": "a\ud800"}], arc.InvalidInputError, "'x' has a text that has no UTF-8 in row 0"),
    "complex numbers": (lambda: {"time": [1], "x": numpy.array([1j])}, arc.InvalidInputError, "'x' of complex128"),
    "complex numbers, pandas": (lambda: frame(x=numpy.array([1j])), arc.InvalidInputError, "column 'x' of complex128 cannot be stored"),
    "a stream that raises": (
        lambda: pyarrow.RecordBatchReader.from_batches(LAYOUT, broken_batches(LAYOUT)),
        arc.InvalidInputError,
        "half-way",
    ),
    "an iterator that raises": (broken, KeyError, "half-way"),
    "nothing": (lambda: None, TypeError, "not NoneType"),
    "a text": (lambda: "pump rpm=1", TypeError, "not str"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_rows_are_named_and_nothing_is_stored(engine: arc.Engine, case: str) -> None:
    data, exception, message = BAD[case]
    with pytest.raises(exception, match=message):
        engine.write("pump", data(), database="plant")
    assert engine.databases() == []


def test_times_of_two_zones_are_the_same_moment(engine: arc.Engine) -> None:
    berlin = AT[0].astimezone(timezone(timedelta(hours=1)))
    mixed = pandas.DataFrame({"time": [AT[0], berlin], "at": [AT[0], pandas.NaT]}, dtype=object)
    assert engine.write("pump", mixed, database="plant").points == 2
    stored = engine.plant.sql("SELECT time, at FROM pump ORDER BY at NULLS LAST").fetchall()
    assert [row[0] for row in stored] == [AT[0], AT[0]] and stored[1][1] is None


def test_bad_frames_are_refused_in_sql_as_well(engine: arc.Engine) -> None:
    engine.write_lp("plant", "pump rpm=1i 1")
    odd = polars.DataFrame({"rpm": [1], "x": polars.Series([object()], dtype=polars.Object)})
    with pytest.raises(arc.InvalidInputError, match="'x' has objects of Python"):
        engine.plant.sql("SELECT * FROM odd").fetchall()
    assert odd.height == 1


def test_bad_lines_leave_nothing_behind(engine: arc.Engine) -> None:
    with pytest.raises(KeyError):
        engine.write_lp("plant", broken_lines())
    with pytest.raises(TypeError, match="line 2 is a int"):
        engine.write_lp("plant", ["pump rpm=1i 1", 7])  # type: ignore[list-item]
    assert engine.databases() == []
    assert engine.write_lp("plant", (f"pump rpm={n}i {n}\n" for n in range(3))).points == 3
    assert engine.write_lp("plant", [b"pump rpm=1i 9"]).points == 1


def test_results_of_duckdb_are_rows(engine: arc.Engine) -> None:
    rows = duckdb.connect().sql("SELECT make_timestamp_ns(5) AS time, 'a' AS id, 1 AS rpm")
    assert engine.write("pump", rows, tags=["id"], database="plant").points == 1
    assert engine.plant.sql("SELECT CAST(time AS BIGINT), id, rpm FROM pump").fetchall() == [(5, "a", 1)]


def test_what_is_written_is_not_changed(engine: arc.Engine) -> None:
    before = FRAME.copy(deep=True)
    engine.write("pump", FRAME.set_index("time"), tags=["id"], database="plant")
    pandas.testing.assert_frame_equal(FRAME, before)


def times_of(engine: arc.Engine, column: str = "time") -> list[int]:
    found = engine.plant.sql(f"SELECT CAST({column} AS BIGINT) FROM t ORDER BY 1").fetchall()
    return [row[0] for row in found]


def test_series_of_polars_keep_their_nanoseconds(engine: arc.Engine) -> None:
    at = polars.Series([NS[0] + 7, NS[0] + 8]).cast(polars.Datetime("ns", "UTC"))
    unsigned = polars.Series([2**64 - 1, 1], dtype=polars.UInt64)
    lists = polars.Series([[1, 2], [3]])
    data = {"time": at, "id": ["a", "a"], "v": [1, 2], "at": at.cast(polars.Datetime("ns")), "u": unsigned, "l": lists}
    assert engine.write("t", data, tags=["id"], database="plant").points == 2
    assert times_of(engine) == [NS[0] + 7, NS[0] + 8] == times_of(engine, "at")
    assert engine.plant.sql("SELECT u, l FROM t ORDER BY time").fetchall() == [(2**64 - 1, [1, 2]), (1, [3])]


def test_chunked_arrays_in_a_dict(engine: arc.Engine) -> None:
    at = pyarrow.chunked_array([[NS[0]], [NS[1]]], pyarrow.timestamp("ns"))
    engine.write("t", {"time": at, "v": pyarrow.chunked_array([[1, 2]])}, database="plant")
    assert times_of(engine) == NS[:2]


@pytest.mark.parametrize("unit", ["Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns"])
def test_times_of_numpy_of_every_unit(engine: arc.Engine, unit: str) -> None:
    at = numpy.datetime64("2026-01-01T00:00:00").astype(f"datetime64[{unit}]")
    expected = int(at.astype("datetime64[s]").astype(int)) * 10**9
    engine.write("t", [{"time": at, "v": 1}], database="plant")
    engine.write("t", {"time": [at, None][:1], "v": [1]}, database="plant")
    engine.write("t", {"time": numpy.array([at]), "v": numpy.array([1])}, database="plant")
    assert times_of(engine) == [expected] * 3
    engine.write("mixed", {"time": [1, 2], "at": [at, None]}, database="plant")
    assert engine.plant.sql("SELECT count(at) FROM mixed").fetchone() == (1,)


def test_frames_of_polars_may_have_columns_of_nulls(engine: arc.Engine) -> None:
    frame = polars.DataFrame({"time": [1], "v": [1], "x": [None]})
    assert engine.write("t", frame, database="plant").points == 1
    assert engine.write("t", {"time": [2], "v": [2], "x": polars.Series([None])}, database="plant").points == 1
    assert engine.plant.sql("SELECT count(*), sum(v) FROM t").fetchone() == (2, 3)
    assert engine.plant.sql("SELECT v, x FROM frame").fetchall() == [(1, None)]


def test_a_tag_may_be_missing_in_all_rows(engine: arc.Engine) -> None:
    sources: list[Any] = [
        [{"time": 1, "id": None, "v": 1}],
        {"time": [1], "id": [None], "v": [1]},
        {"time": numpy.array([1]), "id": [None], "v": [1]},
        pandas.DataFrame({"time": [1], "id": [None], "v": [1]}),
        polars.DataFrame({"time": [1], "id": [None], "v": [1]}),
    ]
    for number, data in enumerate(sources):
        assert engine.write(f"t{number}", data, tags=["id"], database="plant").points == 1
        assert engine.plant.sql(f"SELECT id, v FROM t{number}").fetchall() == [(None, 1)]
    with engine.writer("w", tags=["id"], database="plant") as rows:
        rows.add(time=1, v=1)
    assert engine.plant.sql("SELECT id, v FROM w").fetchall() == [(None, 1)]


def test_what_pandas_has_and_arrow_has_not_is_named(engine: arc.Engine) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"ok": [1], "x": pandas.Series([2**64], dtype=object)}, "column 'x' has an integer of more than 64 bits in row 0"),
        ({"ok": [1], "x": pandas.Series(["\ud800"], dtype=object)}, "column 'x' has a text that has no UTF-8 in row 0"),
        ({"ok": [1], "x": pandas.arrays.SparseArray([1])}, "column 'x' of Sparse"),
    ]
    for columns, message in cases:
        with pytest.raises(arc.InvalidInputError, match=message):
            engine.write("t", pandas.DataFrame({"time": [1], **columns}))
    at = pandas.Series([AT[0].date()], dtype=object)
    engine.write("t", pandas.DataFrame({"time": [1], "self": at, "x": pandas.Series([2**63], dtype=object)}))
    assert engine.sql("default", "SELECT self, x FROM t").fetchall() == [(AT[0], 2**63)]


def test_a_column_of_structures_is_a_table(engine: arc.Engine) -> None:
    for table, data in {
        "p": polars.Series([{"time": NS[0], "v": 1}]),
        "a": pyarrow.array([{"time": NS[0], "v": 1}]),
        "c": pyarrow.chunked_array([[{"time": NS[0], "v": 1}]]),
    }.items():
        engine.write(table, data)
        assert engine.sql("default", f"SELECT v FROM {table}").fetchall() == [(1,)]
