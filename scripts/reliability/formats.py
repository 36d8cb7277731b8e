"""The formats that the points of a world are written in."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from bodies import head

if TYPE_CHECKING:
    from worlds import Table

Row = dict[str, Any]

ARROW = {
    "small": pa.int64(),
    "int": pa.int64(),
    "uint": pa.uint64(),
    "nice": pa.float64(),
    "float": pa.float64(),
    "text": pa.string(),
    "bool": pa.bool_(),
    "time": pa.timestamp("ns", "UTC"),
}
# What line protocol and MessagePack cannot say: a second time.
ONLY_ARROW = ("t2",)


def finite(row: Row) -> Row:
    """What a number in SQL can be."""
    return {
        name: None if isinstance(value, float) and (value != value or abs(value) == float("inf")) else value
        for name, value in row.items()
    }


def as_line_can(row: Row) -> Row:
    """What line protocol can say: no NaN, no infinity, no time but one."""
    return {name: value for name, value in finite(row).items() if name not in ONLY_ARROW}


def line(table: Table, row: Row) -> str:
    """Line protocol in nanoseconds."""

    def escaped(text: str) -> str:
        return text.replace(",", "\\,").replace("=", "\\=").replace(" ", "\\ ")

    def value(name: str, cell: Any) -> str:
        if isinstance(cell, bool):
            return "true" if cell else "false"
        if isinstance(cell, str):
            return '"' + cell.replace("\\", "\\\\").replace('"', '\\"') + '"'
        if isinstance(cell, int):
            return f"{cell}{'u' if table.fields[name] == 'uint' else 'i'}"
        return repr(cell)

    tags = "".join(f",{tag}={escaped(row[tag])}" for tag in table.tags if row.get(tag))
    fields = ",".join(f"{name}={value(name, row[name])}" for name in table.fields if row.get(name) is not None)
    return f"{table.name}{tags} {fields} {row['time']}"


def arrow_body(table: Table, rows: list[Row]) -> bytes:
    """An Arrow IPC stream with the columns of which a row has something."""
    columns = {"time": pa.array([row["time"] for row in rows], ARROW["time"])}
    for name in (*table.tags, *table.fields):
        kind = "text" if name in table.tags else table.fields[name]
        values = [row.get(name) for row in rows]
        if name in table.tags or any(value is not None for value in values):
            columns[name] = pa.array(values, ARROW[kind])
    data = pa.table(columns)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, data.schema) as writer:
        writer.write_table(data)
    return bytes(sink.getvalue())


def sql_value(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, float):
        return repr(value) if "e" in repr(value) else f"{value!r}e0"
    return str(value)


def packed(value: Any, is_unsigned: bool) -> bytes:
    """A value of MessagePack."""
    if value is None:
        return b"\xc0"
    if isinstance(value, bool):
        return b"\xc3" if value else b"\xc2"
    if isinstance(value, int):
        return b"\xcf" + struct.pack(">Q", value) if is_unsigned else b"\xd3" + struct.pack(">q", value)
    if isinstance(value, float):
        return b"\xcb" + struct.pack(">d", value)
    data = value.encode()
    return b"\xda" + struct.pack(">H", len(data)) + data


def msgpack_body(table: Table, rows: list[Row]) -> bytes:
    """One map of columns."""
    names = [name for name in ("time", *table.tags, *table.fields) if name not in ONLY_ARROW]
    names = [name for name in names if name in table.tags or any(row.get(name) is not None for row in rows)]
    body = head(0x80, 0xDF, 2) + packed("m", False) + packed(table.name, False) + packed("columns", False)
    body += head(0x80, 0xDF, len(names))
    for name in names:
        is_unsigned = table.fields.get(name) == "uint"
        cells = b"".join(packed(row.get(name), is_unsigned) for row in rows)
        body += packed(name, False) + head(0x90, 0xDD, len(rows)) + cells
    return body
