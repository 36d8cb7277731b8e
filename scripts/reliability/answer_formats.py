"""Answers of queries in each format, read back as a table of Arrow with the types of another answer."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Sequence
from datetime import date, datetime, time, timezone
from decimal import Decimal
from typing import Any

import msgpack
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

UNITS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}


def read(form: str, data: bytes, types: Sequence[pa.DataType]) -> pa.Table:
    """Reads an answer; `types` are those of its columns, which not every format says."""
    if form == "arrow":
        return pa.ipc.open_stream(data).read_all()
    if form == "parquet":
        table = pyarrow.parquet.read_table(io.BytesIO(data))
        for place, (found, wanted) in enumerate(zip(table.schema, types)):
            if str(found.type) == in_parquet(wanted):
                table = table.set_column(place, found.name, table.column(place).cast(wanted))
        return table
    if form == "csv":
        names = data[: data.index(b"\n")].decode().split(",")
        # Times are in UTC, also those without a zone.
        read_types = [pa.string() if is_said_in_text(type_) else type_ for type_ in types]
        # Strings that are empty have quotes, and those that are absent have none.
        convert = pyarrow.csv.ConvertOptions(
            column_types=dict(zip(names, read_types)),
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        )
        parse = pyarrow.csv.ParseOptions(newlines_in_values=True)
        table = pyarrow.csv.read_csv(io.BytesIO(data), parse_options=parse, convert_options=convert)
        for place, type_ in enumerate(types):
            if is_said_in_text(type_):
                cells = [value(cell, type_) for cell in table.column(place).to_pylist()]
                table = table.set_column(place, names[place], pa.array(cells, type_))
        return table
    if form == "msgpack":
        answer = msgpack.unpackb(data, timestamp=0, strict_map_key=False)
        columns = answer["data"]
    elif form == "ndjson":
        rows = [list(loaded(line, types).values()) for line in data.splitlines()]
        columns = [list(column) for column in zip(*rows)] or [[] for _ in types]
    else:
        answer = loaded(data, types)
        columns = [list(column) for column in zip(*answer["data"])] or [[] for _ in types]
    cells = [pa.array([value(cell, type_) for cell in column], type_) for column, type_ in zip(columns, types)]
    return pa.table(cells, names=[f"c{place}" for place in range(len(cells))])


def loaded(data: bytes, types: Sequence[pa.DataType]) -> Any:
    """JSON with all the digits of decimals, and with the sign of a zero."""
    has_decimals = any(pa.types.is_decimal(type_) for type_ in types)
    return json.loads(
        data,
        parse_int=lambda digits: -0.0 if digits == "-0" else int(digits),
        parse_float=Decimal if has_decimals else float,
    )


def is_said_in_text(type_: pa.DataType) -> bool:
    """Whether the text of a value of this type is read here, and not by pyarrow."""
    return any(
        is_one(type_)
        for is_one in (
            pa.types.is_timestamp,
            pa.types.is_date,
            pa.types.is_time,
            pa.types.is_decimal,
            pa.types.is_binary,
            pa.types.is_large_binary,
            pa.types.is_fixed_size_binary,
            pa.types.is_float16,
        )
    )


def in_parquet(type_: pa.DataType) -> str:
    """The type that Parquet has in place of times in seconds and of days in milliseconds."""
    return {"time32[s]": "time32[ms]", "date64[ms]": "timestamp[ms]"}.get(
        str(type_), str(type_).replace("timestamp[s", "timestamp[ms")
    )


def value(cell: Any, type_: pa.DataType) -> Any:
    """What JSON, MessagePack or the text of CSV has for a value of this type, for pyarrow to make one of it."""
    if cell is None:
        return None
    if pa.types.is_floating(type_):
        return float(cell)
    if pa.types.is_timestamp(type_) or pa.types.is_date(type_):
        since = nanoseconds(cell) if isinstance(cell, str) else int(cell.seconds) * 10**9 + int(cell.nanoseconds)
        if pa.types.is_date(type_):
            days, rest = divmod(since, 86_400 * 10**9)
            assert rest == 0, f"{cell} is no date"
            return date(1970, 1, 1).fromordinal(date(1970, 1, 1).toordinal() + days)
        whole, rest = divmod(since, UNITS[type_.unit])
        assert rest == 0, f"{cell} is no time in {type_}"
        return whole
    if pa.types.is_time(type_):
        whole_text, _, fraction = cell.partition(".")
        moment = time.fromisoformat(whole_text)
        seconds = moment.hour * 3_600 + moment.minute * 60 + moment.second
        return (seconds * 10**9 + int(fraction.ljust(9, "0"))) // UNITS[type_.unit]
    if pa.types.is_decimal(type_):
        return Decimal(cell)
    is_binary = pa.types.is_binary(type_) or pa.types.is_large_binary(type_) or pa.types.is_fixed_size_binary(type_)
    return bytes.fromhex(cell) if is_binary and isinstance(cell, str) else cell


def nanoseconds(text: str) -> int:
    """Nanoseconds since 1970 of a time as RFC 3339 has it, in UTC."""
    whole, _, fraction = text.removesuffix("Z").partition(".")
    moment = datetime.fromisoformat(whole).replace(tzinfo=timezone.utc)
    seconds = (moment - datetime(1970, 1, 1, tzinfo=timezone.utc)) // (moment.resolution * 10**6)
    return seconds * 10**9 + int(fraction.ljust(9, "0"))


def as_in_json(table: pa.Table) -> pa.Table:
    """What is left of a table in JSON, which has neither NaN nor infinities."""

    def finite(column: pa.ChunkedArray) -> pa.ChunkedArray:
        if not pa.types.is_floating(column.type):
            return column
        cells = [None if cell is None or not math.isfinite(cell) else cell for cell in column.to_pylist()]
        return pa.chunked_array([pa.array(cells, column.type)])

    return pa.table(
        [finite(column) for column in table.columns], names=[f"c{place}" for place in range(table.num_columns)]
    )
