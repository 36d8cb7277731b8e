"""The doors that rows go out by: whole tables in each format, and rows that are found by a value of theirs."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Optional

import adbc_driver_flightsql.dbapi as flight_sql
import answer_formats
import pyarrow as pa
from door_values import NUMBER, Column, Row, array, equal, same, values_of
from doors_in import House, in_json, literal

FORMATS = ("json", "ndjson", "csv", "msgpack", "arrow", "parquet")
# These say their types themselves.
TYPED = ("arrow", "parquet", "Flight")


class Refused(Exception):
    """A door gives nothing."""


def read_types(form: str, types: Sequence[pa.DataType]) -> list[pa.DataType]:
    """The types that the values of a format are read as."""

    def of(type_: pa.DataType) -> pa.DataType:
        is_nested = pa.types.is_list(type_) or pa.types.is_struct(type_)
        if pa.types.is_duration(type_) and form not in TYPED or is_nested and form in ("msgpack", "csv"):
            return pa.string()
        if pa.types.is_decimal(type_) and form == "msgpack":
            return pa.float64()
        return type_

    return [of(type_) for type_ in types]


def read(house: House, form: str, sql: str, types: Sequence[pa.DataType]) -> pa.Table:
    """The answer to a statement by one door."""
    if form == "Flight":
        with house.flight().cursor() as cursor:
            try:
                cursor.execute(sql)
                return cursor.fetch_arrow_table()
            except (flight_sql.Error, pa.ArrowException) as error:
                raise Refused(str(error)[:500]) from error
    status, data = house.post(f"/api/v1/query?format={form}", json.dumps({"sql": sql}).encode())
    if status != 200:
        raise Refused(f"{status} {data.decode(errors='replace')[:500]}")
    return answer_formats.read(form, data, read_types(form, types))


def passed(form: str, column: Column, value: Any) -> Any:
    """What is left of a value in a format, by docs/http.md."""
    if value is None:
        return None
    if isinstance(value, float) and not math.isfinite(value) and form in ("json", "ndjson"):
        # "NaN and infinities are `null`"
        return None
    if isinstance(value, Decimal) and form == "msgpack":
        # "decimals are integers if they have no fraction and fit in 64 bits, else floats"
        return float(value)
    if column.kind in ("list", "struct") and form in ("msgpack", "csv"):
        # "lists, maps and structures are the text of their JSON"
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    if column.kind == "span" and form not in TYPED:
        # "time of day, duration, interval: string"
        return span(value // 10**6)
    return value


def span(milliseconds: int) -> str:
    """A duration as ISO 8601 has it, in seconds."""
    sign, rest = "-" if milliseconds < 0 else "", abs(milliseconds)
    text = f"{rest // 1000}.{rest % 1000:03}".rstrip("0").rstrip(".")
    return f"{sign}PT{text}S" if milliseconds else "P0D"


Find = Callable[[House, str, str, Column, Any], list[int]]


def numbers(table: pa.Table) -> list[int]:
    return sorted(table.column(NUMBER.name).to_pylist())


def posted(house: House, sql: str, params: Any = None) -> list[int]:
    request = {"sql": sql} if params is None else {"sql": sql, "params": params}
    status, data = house.post("/api/v1/query/arrow", json.dumps(request).encode())
    if status != 200:
        raise Refused(f"{status} {data.decode(errors='replace')[:500]}")
    return numbers(pa.ipc.open_stream(data).read_all())


def by_literal(house: House, table: str, operator: str, column: Column, value: Any) -> list[int]:
    return posted(house, f"SELECT n FROM {table} WHERE {column.name} {operator} {literal(column, value)}")


def by_list(house: House, table: str, operator: str, column: Column, value: Any) -> list[int]:
    return posted(house, f"SELECT n FROM {table} WHERE {column.name} {operator} $1", [in_json(column, value)])


def by_name(house: House, table: str, operator: str, column: Column, value: Any) -> list[int]:
    return posted(house, f"SELECT n FROM {table} WHERE {column.name} {operator} $it", {"it": in_json(column, value)})


def by_bound(house: House, table: str, operator: str, column: Column, value: Any) -> list[int]:
    values = pa.record_batch({"1": array([value], column.arrow)})
    try:
        return numbers(house.bound(f"SELECT n FROM {table} WHERE {column.name} {operator} ?", values))
    except (flight_sql.Error, pa.ArrowException) as error:
        raise Refused(str(error)[:500]) from error


@dataclass(frozen=True)
class Finder:
    """A way to find rows by a value."""

    name: str
    find: Find
    is_json: bool = False

    def can(self, column: Column, value: Any) -> bool:
        """JSON says numbers, texts, truths and nulls; nothing is found by a list."""
        if column.kind in ("list", "struct"):
            return False
        if not self.is_json:
            return True
        is_number = not isinstance(value, float) or math.isfinite(value)
        return is_number and (value is None or column.kind not in ("binary", "span"))


FINDERS = (
    Finder("literal", by_literal),
    Finder("list of values", by_list, True),
    Finder("named value", by_name, True),
    Finder("bound value", by_bound),
)
OPERATORS = ("=", "IS NOT DISTINCT FROM")


def found(rows: list[Row], column: Column, operator: str, value: Any) -> list[int]:
    """The rows that have to be found."""
    is_null = operator != "=" and value is None
    return sorted(
        row[NUMBER.name]
        for row in rows
        if equal(row[column.name], value) or is_null and row[column.name] is None
    )


def differing(
    form: str, columns: Sequence[Column], shape: str, rows: list[Row], answer: pa.Table
) -> list[tuple[str, str, tuple[Any, ...]]]:
    """What is not as it was written, with its column and the two values: the number of rows, types, and each cell."""
    if (answer.num_columns, answer.num_rows) != (len(columns), len(rows)):
        size = f"{answer.num_columns} columns of {answer.num_rows} rows"
        return [("", f"{size}, not {len(columns)} of {len(rows)}", ())]
    wrong: list[tuple[str, str, tuple[Any, ...]]] = []
    for column, given in zip(columns, answer.columns):
        types = column.types_in(shape)
        if form in TYPED and given.type not in types:
            wrong.append((column.name, f"the type is {given.type}, not {' or '.join(map(str, dict.fromkeys(types)))}", ()))
            continue
        for row, value in zip(rows, values_of(given)):
            expected = passed(form, column, row[column.name])
            if not same(value, expected):
                said = f"row {row[NUMBER.name]}: given {expected!r}, got {value!r}"
                wrong.append((column.name, said, (expected, value)))
    return wrong
