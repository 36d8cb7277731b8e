"""Rows as data frames of pandas: the types of their columns, and what is no data frame."""

import sys
from typing import Any

import arc
import numpy
import pandas
import pytest

LARGE = 2**53 + 1
# As SQL writes a column of two rows: its values, and its type by default, with NA, and of Arrow.
COLUMNS: list[tuple[str, str, list[Any] | None, str, str, str]] = [
    ("n", f"{LARGE}, NULL", [LARGE, None], "float64", "Int64", "int64[pyarrow]"),
    ("u", f"{2**64 - 1}, NULL", [2**64 - 1, None], "float64", "UInt64", "uint64[pyarrow]"),
    ("whole", "1, 2", [1, 2], "int64", "Int64", "int64[pyarrow]"),
    ("f", "1.5::DOUBLE, NULL", [1.5, None], "float64", "Float64", "double[pyarrow]"),
    ("small", "1.5::REAL, NULL", [1.5, None], "float32", "Float32", "float[pyarrow]"),
    ("truth", "true, NULL", [True, None], "object", "boolean", "bool[pyarrow]"),
    ("text", "'a', NULL", ["a", None], "str", "string", "string[pyarrow]"),
    ("day", "DATE '2026-01-31', NULL", None, "object", "object", "date32[day][pyarrow]"),
]
QUERY = "SELECT * FROM (VALUES {}) AS t ({})".format(
    ", ".join(f"({', '.join(column[1].split(', ')[row] for column in COLUMNS)})" for row in (0, 1)),
    ", ".join(column[0] for column in COLUMNS),
)


@pytest.fixture(params=["in process", "over a connection"])
def rows(request: pytest.FixtureRequest) -> arc.Relation:
    store = request.getfixturevalue("engine" if request.param == "in process" else "remote")
    relation: arc.Relation = store.sql("default", QUERY)
    return relation


def types_of(frame: pandas.DataFrame) -> list[str]:
    return [str(dtype) for dtype in frame.dtypes]


def values_of(frame: pandas.DataFrame) -> list[list[Any]]:
    names = [column[0] for column in COLUMNS if column[2]]
    return [[None if pandas.isna(value) else value for value in frame[name]] for name in names]


def test_columns_have_the_types_that_were_asked_for(
    rows: arc.Relation, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = rows.df()
    assert types_of(plain) == [column[3] for column in COLUMNS]
    for at, backend in ((4, "numpy_nullable"), (5, "pyarrow")):
        frame = rows.df(dtype_backend=backend)  # type: ignore[arg-type]
        assert types_of(frame) == [column[at] for column in COLUMNS]
        assert values_of(frame) == [column[2] for column in COLUMNS if column[2]]
    for wrong in ("numpy", "", 7):
        with pytest.raises(arc.InvalidInputError, match="'numpy_nullable' or 'pyarrow' was exp"):
            rows.df(dtype_backend=wrong)  # type: ignore[arg-type]
    nullable = rows.df(dtype_backend="numpy_nullable")
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "pyarrow", None)
        with pytest.raises(ImportError):
            rows.df(dtype_backend="pyarrow")
        found = rows.df(), rows.df(dtype_backend="numpy_nullable")
    pandas.testing.assert_frame_equal(found[0], plain)
    pandas.testing.assert_frame_equal(found[1], nullable)


def test_tags_and_times_keep_their_types(engine: arc.Engine) -> None:
    engine.write_lp("plant", "pump,id=7 rpm=1i 1\npump,id=8 rpm=2i 2").raise_for_rejected()
    nullable = types_of(engine.plant.pump.df(dtype_backend="numpy_nullable"))
    assert nullable == ["datetime64[ns, UTC]", "category", "Int64"]
    of_arrow = types_of(engine.plant.pump.df(dtype_backend="pyarrow"))
    assert of_arrow[::2] == ["timestamp[ns, tz=UTC][pyarrow]", "int64[pyarrow]"]


def test_rows_are_no_column_of_their_parts(engine: arc.Engine) -> None:
    engine.write_lp("plant", "pump rpm=1i 1").raise_for_rejected()
    for data in (engine.plant.pump, arc.Result(engine.plant.pump.table())):
        for library in (pandas.DataFrame, pandas.Series, numpy.asarray):
            with pytest.raises(TypeError, match=r"\bdf\(\)"):
                library(data)
    with engine.tail("plant.pump") as tail, pytest.raises(TypeError, match=r"next\(\)\.df\(\)"):
        pandas.DataFrame(tail)
