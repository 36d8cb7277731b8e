"""Answers of queries in each format, read back as a table of Arrow with the types of another answer."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Sequence
from datetime import datetime, timezone
from typing import Any

import msgpack
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet


def read(form: str, data: bytes, types: Sequence[pa.DataType]) -> pa.Table:
    """Reads an answer; `types` are those of its columns, which not every format says."""
    if form == "arrow":
        return pa.ipc.open_stream(data).read_all()
    if form == "parquet":
        return pyarrow.parquet.read_table(io.BytesIO(data))
    if form == "csv":
        names = data[: data.index(b"\n")].decode().split(",")
        # Times are in UTC, also those without a zone.
        types = [pa.timestamp("ns", "UTC") if pa.types.is_timestamp(type_) else type_ for type_ in types]
        # Strings that are empty have quotes, and those that are absent have none.
        convert = pyarrow.csv.ConvertOptions(
            column_types=dict(zip(names, types)),
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        )
        return pyarrow.csv.read_csv(io.BytesIO(data), convert_options=convert)
    if form == "msgpack":
        answer = msgpack.unpackb(data, timestamp=0, strict_map_key=False)
        columns = answer["data"]
    elif form == "ndjson":
        rows = [list(json.loads(line).values()) for line in data.splitlines()]
        columns = [list(column) for column in zip(*rows)] or [[] for _ in types]
    else:
        answer = json.loads(data)
        columns = [list(column) for column in zip(*answer["data"])] or [[] for _ in types]
    cells = [pa.array([value(cell, type_) for cell in column], type_) for column, type_ in zip(columns, types)]
    return pa.table(cells, names=[f"c{place}" for place in range(len(cells))])


def value(cell: Any, type_: pa.DataType) -> Any:
    """What JSON or MessagePack has for a value of this type."""
    if cell is None:
        return None
    if pa.types.is_floating(type_):
        return float(cell)
    if pa.types.is_timestamp(type_):
        return nanoseconds(cell) if isinstance(cell, str) else int(cell.seconds) * 10**9 + int(cell.nanoseconds)
    return cell


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
