"""The same values in every container and every width: whichever comes first, the others are stored beside it."""

from collections.abc import Callable
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from itertools import product
from typing import Any

import arc
import duckdb
import pandas
import polars
import pyarrow
import pytest

CONTAINERS: dict[str, Callable[[pyarrow.Table], Any]] = {
    "pyarrow": lambda table: table,
    "batches": lambda table: table.to_reader(),
    "pandas": lambda table: table.to_pandas(),
    "pandas, pyarrow": lambda table: table.to_pandas(types_mapper=pandas.ArrowDtype),
    "polars": polars.from_arrow,
    "duckdb": lambda table: duckdb.connect().from_arrow(table),
    "dict": lambda table: table.to_pydict(),
    "rows": lambda table: table.to_pylist(),
}

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc)
MIDNIGHT = datetime(2026, 1, 2, tzinfo=timezone.utc)
TIMES = [pyarrow.timestamp(unit, zone) for unit in ("s", "ms", "us", "ns") for zone in (None, "UTC", "Europe/Berlin")]
INTEGERS = [getattr(pyarrow, f"{sign}int{bits}")() for sign in ("", "u") for bits in (8, 16, 32, 64)]
# A value, the types that hold it, and containers that do not know it, or know it as something else.
KINDS: dict[str, tuple[Any, list[pyarrow.DataType], set[str]]] = {
    "integer": (7, INTEGERS, set()),
    "float": (0.5, [pyarrow.float32(), pyarrow.float64()], set()),
    "integers and whole floats": (7, [pyarrow.int32(), pyarrow.int64(), pyarrow.float64()], {"duckdb"}),
    "text": ("a", [pyarrow.string(), pyarrow.large_string(), pyarrow.string_view()], set()),
    "truth": (True, [pyarrow.bool_()], set()),
    "bytes": (b"a", [pyarrow.binary(), pyarrow.large_binary()], set()),
    "time": (AT, TIMES, set()),
    "date": (date(2026, 1, 2), [pyarrow.date32(), pyarrow.date64()], set()),
    "midnight and its date": (MIDNIGHT, [pyarrow.timestamp("us"), pyarrow.timestamp("ns", "UTC"), pyarrow.date32()], set()),
    "time of day": (time(3, 4, 5), [pyarrow.time32("s"), pyarrow.time64("us"), pyarrow.time64("ns")], {"dict", "rows", "pandas"}),
    "span": (timedelta(seconds=5), [pyarrow.duration(unit) for unit in ("s", "ms", "us", "ns")], {"dict", "rows", "duckdb"}),
    "decimal": (Decimal("1.5"), [pyarrow.decimal128(3, 1), pyarrow.decimal128(10, 4)], {"dict", "rows", "pandas"}),
    "texts": (
        ["a", "b"],
        [pyarrow.list_(pyarrow.string()), pyarrow.large_list(pyarrow.large_string()), pyarrow.list_(pyarrow.string_view())],
        {"dict", "rows", "pandas", "duckdb"},
    ),
}


def of(value: Any, type_: pyarrow.DataType, second: int) -> pyarrow.Table:
    times = pyarrow.array([second * 10**9], pyarrow.timestamp("ns", "UTC"))
    if pyarrow.types.is_timestamp(type_) and type_.tz is None:
        value = value.replace(tzinfo=None)
    if pyarrow.types.is_date(type_) and isinstance(value, datetime):
        value = value.date()
    column = pyarrow.array([value], pyarrow.list_(pyarrow.string())).cast(type_) if isinstance(value, list) else pyarrow.array([value], type_)
    return pyarrow.table({"time": times, "v": column})


def plain(value: Any) -> Any:
    """What a value is, whichever type its column has: a date is its midnight, and a time without a zone of UTC."""
    if isinstance(value, date) and not isinstance(value, datetime):
        return datetime(value.year, value.month, value.day, tzinfo=timezone.utc)
    return value.replace(tzinfo=timezone.utc) if isinstance(value, datetime) and value.tzinfo is None else value


@pytest.mark.parametrize("kind", KINDS)
def test_any_container_is_stored_beside_any_other(engine: arc.Engine, kind: str) -> None:
    value, types, unknown = KINDS[kind]
    forms = [(type_, "pyarrow") for type_ in types]
    forms += [(types[-1], name) for name in CONTAINERS if name not in {"pyarrow", *unknown}]
    problems = []
    for number, (first, second) in enumerate(product(forms, forms)):
        table = f"t{number % 50}"
        if number >= 50:
            engine.drop_table("d", table)
        try:
            for at, (type_, name) in enumerate((first, second)):
                engine.write(table, CONTAINERS[name](of(value, type_, at)), database="d", durability="memory")
            found = [row[0] for row in engine.sql("d", f"SELECT v FROM {table} ORDER BY time").fetchall()]
        except arc.Error as error:
            found = [error]
        if [plain(one) for one in found] != [plain(value)] * 2:
            problems.append((first, second, found))
    assert not problems, f"{len(problems)} of {len(forms) ** 2}: {problems[:5]}"


def test_what_a_column_cannot_be_is_named_by_row_and_value(engine: arc.Engine) -> None:
    engine.write("t", pandas.DataFrame({"time": [1, 2], "v": [1, 2]}), database="d")
    with pytest.raises(arc.SchemaConflictError, match="integer, the write has float, and 2.5 in row 2 cannot be one"):
        engine.write("t", pandas.DataFrame({"time": [3, 4], "v": [1.0, 2.5]}), database="d")
    engine.write("t", pandas.DataFrame({"time": [3, 4], "v": [3.0, None]}), database="d")
    assert engine.sql("d", "SELECT v FROM t ORDER BY time").fetchall() == [(1,), (2,), (3,), (None,)]
    # Line protocol has no narrower numbers.
    engine.write("f", polars.DataFrame({"time": [1], "v": [0.5], "n": [1]}, schema_overrides={"v": polars.Float32, "n": polars.Int8}), database="d")
    engine.write_lp("d", "f v=0.1,n=300i 2").raise_for_rejected()


def test_extension_types_are_refused(engine: arc.Engine) -> None:
    table = pyarrow.table({"time": [1], "v": pyarrow.array([b"x" * 16], pyarrow.uuid())})
    with pytest.raises(arc.InvalidInputError, match="column \"v\" has the extension type arrow.uuid"):
        engine.write("t", table)
