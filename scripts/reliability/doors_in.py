"""The doors that rows come in by: each sends some rows to a table, and says why they were refused."""

from __future__ import annotations

import io
import json
import math
import struct
import uuid
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any, Optional

import adbc_driver_flightsql.dbapi as flight_sql
import pyarrow as pa
import pyarrow.parquet
from bodies import head
from door_values import BASIC, DAY, NUMBER, TAG, TIME, UNITS, Column, Row, array
from formats import packed, sql_value
from server import Server

DATABASE = "doors"
HEADER = "adbc.flight.sql.rpc.call_header."


@dataclass(frozen=True)
class Table:
    """A table, and who made it: `bare` the write, `typed` a row of Arrow before it, `created` CREATE TABLE."""

    name: str
    shape: str
    is_keyed: bool


class House:
    """A server, and connections to its doors."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.http = server.connect()
        self.flights: dict[bool, Any] = {}

    def close(self) -> None:
        self.http.close()
        for connection in self.flights.values():
            connection.close()

    def post(self, path: str, body: bytes, **headers: str) -> tuple[int, bytes]:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.http.request("POST", path, body, {"x-arc-database": DATABASE, **named})
        answer = self.http.getresponse()
        return answer.status, answer.read()

    def refusal(self, path: str, body: bytes, **headers: str) -> str:
        """Posts what has to be taken; returns why it was not."""
        status, answer = self.post(path, body, **headers)
        is_whole = b'"status":"partial"' not in answer
        return "" if status in (200, 204) and is_whole else f"{status} {answer.decode(errors='replace')[:500]}"

    def execute(self, sql: str, params: Any = None) -> str:
        request = {"sql": sql} if params is None else {"sql": sql, "params": params}
        return self.refusal("/api/v1/query", json.dumps(request).encode())

    def flight(self, is_keyed: bool = False) -> Any:
        """A connection of ADBC; in what it ingests with a key the text is a tag."""
        if is_keyed not in self.flights:
            options = {f"{HEADER}database": DATABASE, **({f"{HEADER}x-arc-tags": TAG.name} if is_keyed else {})}
            with warnings.catch_warnings():
                # There are no transactions, which DB-API would like to have.
                warnings.simplefilter("ignore")
                self.flights[is_keyed] = flight_sql.connect(f"grpc://{self.server.address}", db_kwargs=options)
        return self.flights[is_keyed]

    def bound(self, sql: str, values: pa.RecordBatch) -> pa.Table:
        """The answer of ADBC to a statement with values for its placeholders."""
        with self.flight().cursor() as cursor:
            cursor.execute(sql, values)
            return cursor.fetch_arrow_table()


Put = Callable[[House, Table, Sequence[Column], list[Row]], str]


def everything(columns: Sequence[Column]) -> list[Column]:
    return [TIME, NUMBER, *columns]


def line_protocol(house: House, table: Table, columns: Sequence[Column], rows: list[Row]) -> str:
    def escaped(text: str) -> str:
        for mark in ("\\", ",", "=", " "):
            text = text.replace(mark, "\\" + mark)
        return text

    def value(column: Column, cell: Any) -> str:
        if isinstance(cell, bool):
            return "true" if cell else "false"
        if isinstance(cell, str):
            return '"' + cell.replace("\\", "\\\\").replace('"', '\\"') + '"'
        return f"{cell}{'u' if column.kind == 'uint' else 'i'}" if isinstance(cell, int) else repr(cell)

    lines = []
    for row in rows:
        fields = [one for one in (NUMBER, *columns) if one is not TAG and row[one.name] is not None]
        host = row[TAG.name] if TAG in columns else None
        tag = f",{TAG.name}={escaped(host)}" if host else ""
        texts = ",".join(f"{field.name}={value(field, row[field.name])}" for field in fields)
        lines.append(f"{table.name}{tag} {texts} {row['time']}")
    return house.refusal("/write", "\n".join(lines).encode())


def packed_cell(column: Column, cell: Any) -> bytes:
    return packed(cell, column.kind == "uint")


def whole(value: Any) -> Any:
    """A float without a fraction as an integer, as clients write it that know one kind of number."""
    is_whole = isinstance(value, float) and value.is_integer() and abs(value) < 2**53
    return int(value) if is_whole and math.copysign(1, value) > 0 else value


def packed_columns(house: House, table: Table, columns: Sequence[Column], rows: list[Row]) -> str:
    names = everything(columns)
    body = head(0x80, 0xDF, 2) + packed("m", False) + packed(table.name, False) + packed("columns", False)
    body += head(0x80, 0xDF, len(names))
    for column in names:
        values = [row[column.name] for row in rows]
        cells = b"".join(packed_cell(column, value if table.shape == "bare" else whole(value)) for value in values)
        body += packed(column.name, False) + head(0x90, 0xDD, len(rows)) + cells
    return house.refusal("/api/v1/write/msgpack?precision=ns", body, **tags(table, columns))


def packed_rows(house: House, table: Table, columns: Sequence[Column], rows: list[Row]) -> str:
    body = head(0x90, 0xDD, len(rows))
    for row in rows:
        fields = [one for one in (NUMBER, *columns) if one is not TAG]
        body += head(0x80, 0xDF, 4) + packed("m", False) + packed(table.name, False)
        body += packed("t", False) + b"\xd3" + struct.pack(">q", row["time"])
        host = row[TAG.name] if TAG in columns else None
        body += packed("tags", False) + head(0x80, 0xDF, int(host is not None))
        body += packed(TAG.name, False) + packed(host, False) if host is not None else b""
        body += packed("fields", False) + head(0x80, 0xDF, len(fields))
        body += b"".join(packed(one.name, False) + packed_cell(one, row[one.name]) for one in fields)
    return house.refusal("/api/v1/write/msgpack?precision=ns", body)


def has_tag(table: Table, columns: Sequence[Column]) -> bool:
    """Whether to say what is a tag: only a column that is there may be said to be one."""
    return table.is_keyed and TAG in columns


def tags(table: Table, columns: Sequence[Column]) -> dict[str, str]:
    return {"x_arc_tags": TAG.name} if has_tag(table, columns) else {}


def arrow_table(columns: Sequence[Column], rows: list[Row], nulls: bool = False) -> pa.Table:
    """The rows as Arrow; with `nulls` columns without a value have the type of null."""
    made = {}
    for column in columns:
        values = [row[column.name] for row in rows]
        is_null = nulls and all(value is None for value in values)
        made[column.name] = pa.nulls(len(rows)) if is_null else array(values, column.arrow)
    return pa.table(made)


def stream(data: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, data.schema) as writer:
        writer.write_table(data)
    return bytes(sink.getvalue())


def arrow(house: House, table: Table, columns: Sequence[Column], rows: list[Row]) -> str:
    data = arrow_table(everything(columns), rows)
    return house.refusal(f"/api/v1/write/arrow?table={table.name}", stream(data), **tags(table, columns))


def arrow_file(house: House, table: Table, columns: Sequence[Column], rows: list[Row]) -> str:
    """Texts are dictionaries and views; what is null throughout has no type."""
    data = arrow_table(everything(columns), rows, nulls=True)
    for place, field in enumerate(data.schema):
        if field.name == "s" and pa.types.is_string(field.type):
            data = data.set_column(place, field.name, data.column(place).cast(pa.string_view()))
        elif field.name == TAG.name and pa.types.is_string(field.type):
            data = data.set_column(place, field.name, data.column(place).dictionary_encode())
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, data.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(data)
    return house.refusal(f"/api/v1/write/arrow?table={table.name}", bytes(sink.getvalue()), **tags(table, columns))


def send_file(house: House, table: Table, columns: Sequence[Column], form: str, data: bytes) -> str:
    mark = uuid.uuid4().hex
    start = f'--{mark}\r\ncontent-disposition: form-data; name="file"; filename="rows"\r\n\r\n'.encode()
    keys = f"&tags={TAG.name}" if has_tag(table, columns) else ""
    path = f"/api/v1/import/{form}?measurement={table.name}&time_format=epoch_ns&precision=ns{keys}"
    body = start + data + f"\r\n--{mark}--\r\n".encode()
    return house.refusal(path, body, content_type=f"multipart/form-data; boundary={mark}")


def parquet(house: House, table: Table, columns: Sequence[Column], rows: list[Row]) -> str:
    sink = io.BytesIO()
    pyarrow.parquet.write_table(arrow_table(everything(columns), rows), sink)
    return send_file(house, table, columns, "parquet", sink.getvalue())


def csv(house: House, table: Table, columns: Sequence[Column], rows: list[Row]) -> str:
    def cell(value: Any) -> str:
        if isinstance(value, str):
            return '"' + value.replace('"', '""') + '"'
        return "" if value is None else str(value).lower() if isinstance(value, bool) else repr(value)

    names = everything(columns)
    lines = [",".join(column.name for column in names)]
    lines += [",".join(cell(row[column.name]) for column in names) for row in rows]
    return send_file(house, table, columns, "csv", "\n".join(lines).encode() + b"\n")


def moment(nanoseconds: int) -> str:
    """RFC 3339 in UTC, to the nanosecond."""
    seconds, rest = divmod(nanoseconds, 10**9)
    whole = datetime(1970, 1, 1) + timedelta(seconds=seconds)
    return f"{whole.isoformat()}.{rest:09}Z"


def clock(nanoseconds: int) -> str:
    seconds, rest = divmod(nanoseconds, 10**9)
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{rest:09}"


def day(days: int) -> str:
    return (date(1970, 1, 1) + timedelta(days=days)).isoformat()


def literal(column: Column, value: Any) -> str:
    """A value in SQL; a cast where no literal is one."""
    if value is None:
        return "NULL"
    if isinstance(value, float) and not math.isfinite(value):
        return f"CAST('{'NaN' if math.isnan(value) else 'Infinity' if value > 0 else '-Infinity'}' AS DOUBLE)"
    if column.kind == "time":
        return f"'{moment(value)}'"
    if column.kind == "date":
        return f"DATE '{day(value)}'"
    if column.kind == "decimal":
        type_ = column.arrow
        name = "Decimal256" if pa.types.is_decimal256(type_) else "Decimal128"
        return f"arrow_cast('{value:f}', '{name}({type_.precision}, {type_.scale})')"
    if column.kind == "binary":
        names = {"large": "LargeBinary", "two": "FixedSizeBinary(2)"}
        text = f"X'{value.hex()}'"
        return f"arrow_cast({text}, '{names[column.name]}')" if column.name in names else text
    if column.kind == "clock":
        name = "Time32(Second)" if column.arrow.bit_width == 32 else "Time64(Nanosecond)"
        return f"arrow_cast('{clock(value)}', '{name}')"
    if column.kind == "span":
        return f"arrow_cast({value // 10**6}, 'Duration(Millisecond)')"
    return sql_value(value)


def in_json(column: Column, value: Any) -> Any:
    """A value as JSON has it: for SQL to read where JSON has no such type."""
    if value is None:
        return None
    if column.kind in ("time", "date", "clock"):
        return {"time": moment, "date": day, "clock": clock}[column.kind](value)
    return f"{value:f}" if isinstance(value, Decimal) else value


def to_insert(column: Column, value: Any) -> Any:
    """The same for a column of the same type: texts become times and dates, and numbers decimals."""
    return float(value) if isinstance(value, Decimal) else in_json(column, value)


def insert_head(table: Table, columns: Sequence[Column]) -> str:
    return f"INSERT INTO {table.name} ({', '.join(column.name for column in columns)})"


def insert_values(house: House, table: Table, columns: Sequence[Column], rows: list[Row]) -> str:
    names = everything(columns)
    lists = (", ".join(literal(one, row[one.name]) for one in names) for row in rows)
    return house.execute(f"{insert_head(table, names)} VALUES ({'), ('.join(lists)})")


def insert_list(house: House, table: Table, columns: Sequence[Column], rows: list[Row]) -> str:
    names = everything(columns)
    marks = iter(range(1, len(names) * len(rows) + 1))
    lists = [", ".join(f"${next(marks)}" for _ in names) for _ in rows]
    params = [whole(to_insert(one, row[one.name])) for row in rows for one in names]
    return house.execute(f"{insert_head(table, names)} VALUES ({'), ('.join(lists)})", params)


def insert_named(house: House, table: Table, columns: Sequence[Column], rows: list[Row]) -> str:
    names = everything(columns)
    lists = [", ".join(f"${one.name}_{place}" for one in names) for place in range(len(rows))]
    params = {f"{one.name}_{place}": to_insert(one, row[one.name]) for place, row in enumerate(rows) for one in names}
    return house.execute(f"{insert_head(table, names)} VALUES ({'), ('.join(lists)})", params)


def insert_select(house: House, table: Table, columns: Sequence[Column], rows: list[Row]) -> str:
    """From a table that Arrow has made."""
    names = everything(columns)
    source = Table(f"of_{uuid.uuid4().hex[:12]}", "bare", table.is_keyed)
    said = arrow(house, source, columns, rows)
    return said or house.execute(
        f"{insert_head(table, names)} SELECT {', '.join(one.name for one in names)} FROM {source.name}"
    )


def flight_ingest(house: House, table: Table, columns: Sequence[Column], rows: list[Row]) -> str:
    data = arrow_table(everything(columns), rows)
    with house.flight(has_tag(table, columns)).cursor() as cursor:
        try:
            count = cursor.adbc_ingest(table.name, data, mode="create_append")
        except (flight_sql.Error, pa.ArrowException) as error:
            return str(error)[:500]
    return "" if count == len(rows) else f"{count} rows are said to be stored"


def flight_insert(house: House, table: Table, columns: Sequence[Column], rows: list[Row]) -> str:
    """All rows as values of one statement, with the types that they have in Arrow."""
    names = everything(columns)
    return executemany(house, table, names, arrow_table(names, rows))


def flight_untyped(house: House, table: Table, columns: Sequence[Column], rows: list[Row]) -> str:
    """The same, as of rows whose types a driver has to find: what is null throughout has none."""
    names = everything(columns)
    return executemany(house, table, names, arrow_table(names, rows, nulls=True))


def flight_tuples(house: House, table: Table, columns: Sequence[Column], rows: list[Row]) -> str:
    """The rows as Python has them, whose types the driver finds; times are texts."""
    names = everything(columns)
    tuples = [tuple(in_json(one, row[one.name]) for one in names) for row in rows]
    return executemany(house, table, names, tuples)


def executemany(house: House, table: Table, names: Sequence[Column], values: Any) -> str:
    count = len(values)
    values = values.to_batches()[0] if isinstance(values, pa.Table) else values
    marks = ", ".join("?" for _ in names)
    with house.flight().cursor() as cursor:
        try:
            cursor.executemany(f"{insert_head(table, names)} VALUES ({marks})", values)
        except (flight_sql.Error, pa.ArrowException) as error:
            return str(error)[:500]
    return "" if cursor.rowcount == count else f"{cursor.rowcount} rows are said to be stored"


@dataclass(frozen=True)
class DoorIn:
    """A door, what tables it writes to, and which columns go through it."""

    name: str
    put: Put
    shapes: tuple[str, ...]
    # Whether only the columns of line protocol do.
    is_basic: bool = False
    # Whether tables without a key are written to, and such with one.
    keys: tuple[bool, ...] = (False, True)

    def can(self, column: Column, shape: str) -> bool:
        if self.is_basic:
            # An integer of MessagePack has a sign or not by its value, unless the table says; Python's have one.
            has_sign = self.name.startswith("MessagePack") and shape == "bare" or self.name.endswith("tuples")
            return (column is TAG or column in BASIC) and not (has_sign and column.kind == "uint")
        # pyarrow writes no seconds into files.
        has_seconds = self.name == "Parquet" and column.name in ("ts_s", "t32")
        return bool(column.sql) if shape == "created" else not has_seconds


DOORS_IN = (
    DoorIn("line protocol", line_protocol, ("bare", "created"), True, (True,)),
    DoorIn("MessagePack columns", packed_columns, ("bare", "created"), True),
    DoorIn("MessagePack rows", packed_rows, ("bare", "created"), True, (True,)),
    DoorIn("CSV", csv, ("created",), True),
    DoorIn("Arrow stream", arrow, ("bare", "typed", "created")),
    DoorIn("Arrow file", arrow_file, ("typed", "created")),
    DoorIn("Parquet", parquet, ("bare", "typed", "created")),
    DoorIn("INSERT VALUES", insert_values, ("typed", "created")),
    DoorIn("INSERT list", insert_list, ("typed", "created")),
    DoorIn("INSERT names", insert_named, ("typed", "created")),
    DoorIn("INSERT SELECT", insert_select, ("typed", "created")),
    DoorIn("Flight ingest", flight_ingest, ("bare", "typed", "created")),
    DoorIn("Flight INSERT", flight_insert, ("typed", "created")),
    DoorIn("Flight INSERT untyped", flight_untyped, ("typed", "created")),
    DoorIn("Flight INSERT of tuples", flight_tuples, ("typed", "created"), True),
)
