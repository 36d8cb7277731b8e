"""The tables and tokens of `extremes.py`.

Tables have 0, 1 and 8,192 rows of every kind, and of 3,000 columns.

The clients' tokens have rights for the tables `x_*` of one database. What they may not read is in a
table beside these, and in a database of its own.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from datetime import timedelta
from decimal import Decimal

import numpy as np
import pyarrow as pa
from extreme_bodies import arrow_stream
from extreme_values import (
    MANY_ROWS,
    SECRET_DATABASE,
    SECRET_NUMBER,
    SECRET_TABLE,
    SECRET_TEXT,
    WIDE_COLUMNS,
)
from server import Server

DATABASE = "extremes"
ROLES = {"reader": ["read"], "writer": ["read", "write", "delete"]}
FLOATS = (0.0, -0.0, 1.0, -1.0, 1e14, float("nan"), float("inf"), float("-inf"), 5e-324, 1e308)
INTEGERS = (0, 1, -1, 2**31, -(2**31) - 1, 10**14, 2**63 - 1, -(2**63))
TEXTS = ("", "a", "0", "é🦀", "%", "x" * 1_000, "2026-01-31T12:00:00Z", "[1, 2]")


def cells(values: Iterable[object], rows: int) -> list[object]:
    """Returns values and a null, one after the other."""
    all_ = [*values, None]
    return [all_[n % len(all_)] for n in range(rows)]


def narrow(rows: int) -> pa.Table:
    """Returns rows with a column for each kind of argument."""
    instant = pa.timestamp("ns", "UTC")
    most = Decimal((0, (9,) * 38, -10))
    columns = {
        "time": pa.array(range(rows), pa.int64()),
        "host": pa.array([f"h{n % 10}" for n in range(rows)]),
        "i": pa.array(cells(INTEGERS, rows), pa.int64()),
        "u": pa.array(cells((0, 1, 2**64 - 1), rows), pa.uint64()),
        "i8": pa.array(cells((0, 127, -128), rows), pa.int8()),
        "f": pa.array(cells(FLOATS, rows), pa.float64()),
        "f32": pa.array(cells(FLOATS[:8], rows), pa.float32()),
        "s": pa.array(cells(TEXTS, rows), pa.string()),
        "b": pa.array(cells((True, False), rows), pa.bool_()),
        "t": pa.array(cells((0, 2**63 - 1, -(2**63), 10**18), rows), pa.int64()).view(instant),
        "d": pa.array(cells((0, 2**31 - 1, -(2**31), 20_000), rows), pa.int32()).view(pa.date32()),
        "c": pa.array(cells((0, 86_399_999_999_999), rows), pa.int64()).view(pa.time64("ns")),
        "du": pa.array(cells((timedelta(0), timedelta(days=106_751)), rows), pa.duration("ns")),
        "dec": pa.array(cells((Decimal(0), most), rows), pa.decimal128(38, 10)),
        "bin": pa.array(cells((b"", b"\0", b"\xff" * 100), rows), pa.binary()),
        "li": pa.array(cells(([], [None], [1, 2**63 - 1], [0] * 50), rows), pa.list_(pa.int64())),
        "ls": pa.array(cells(([], ["", None], ["a"]), rows), pa.list_(pa.string())),
        "fl": pa.array(cells(([0.0] * 4, [float("nan")] * 4), rows), pa.list_(pa.float32(), 4)),
        "st": pa.array(cells(({"a": 1, "b": "x"}, {"a": None, "b": None}), rows),
            pa.struct([("a", pa.int64()), ("b", pa.string())])),
        "mp": pa.array(cells(([], [("a", 1)]), rows), pa.map_(pa.string(), pa.int64())),
    }  # fmt: skip
    return pa.table(columns)


def wide(rows: int) -> pa.Table:
    values = pa.array(np.resize(np.array(FLOATS), rows))
    columns = {f"c{n}": values for n in range(WIDE_COLUMNS)}
    return pa.table({"time": pa.array(range(rows), pa.int64()), **columns})


def secrets() -> pa.Table:
    columns = {
        "time": [1, 2],
        "host": [SECRET_TEXT] * 2,
        "s": [SECRET_TEXT] * 2,
        "n": [SECRET_NUMBER] * 2,
    }
    return pa.table({**columns, f"c{SECRET_TEXT}": [1, 2]})


def expect(answer: tuple[int, bytes], *statuses: int) -> bytes:
    status, text = answer
    if status not in statuses:
        raise RuntimeError(f"the tables could not be made: {status} {text[:500]!r}")
    return text


def write(server: Server, database: str, table: str, rows: pa.Table) -> None:
    tags = "&tags=host" if "host" in rows.column_names else ""
    path = f"/api/v1/write/arrow?db={database}&table={table}{tags}"
    for at in range(0, len(rows), 512):
        body = arrow_stream(rows.slice(at, 512))
        answer = server.request("POST", path, body)
        while answer[0] == 503:
            time.sleep(0.2)
            answer = server.request("POST", path, body)
        expect(answer, 204)


def execute(server: Server, sql: str) -> None:
    body = json.dumps({"sql": sql}).encode()
    expect(server.request("POST", "/api/v1/query", body, x_arc_database=DATABASE), 200)


def delete_all(server: Server, table: str) -> None:
    condition = {
        "database": DATABASE,
        "measurement": table,
        "where": "time IS NOT NULL",
        "confirm": True,
    }
    expect(server.request("POST", "/api/v1/delete", json.dumps(condition).encode()), 200)


def prepare(server: Server, has_wide_rows: bool) -> None:
    """Writes all tables; those of no rows had some."""
    for name, rows in (("x_none", 3), ("x_one", 1), ("x_many", MANY_ROWS)):
        write(server, DATABASE, name, narrow(rows))
    for name, rows in (("x_wide_none", 1), ("x_wide_one", 1), ("x_wide_many", MANY_ROWS)):
        if rows == 1 or has_wide_rows:
            write(server, DATABASE, name, wide(rows))
    for name in ("x_none", "x_wide_none"):
        delete_all(server, name)
    execute(
        server,
        "CREATE TABLE x_scratch "
        "(time TIMESTAMP, i BIGINT, f DOUBLE, s TEXT, b BOOLEAN, t TIMESTAMP)",
    )
    for database in (DATABASE, SECRET_DATABASE):
        write(server, database, SECRET_TABLE, secrets())


def tokens(server: Server) -> dict[str, str]:
    """Makes a token for each role; returns their texts."""
    found = {}
    for role, rights in ROLES.items():
        grant = {"rights": rights, "databases": [DATABASE], "tables": ["x_*"]}
        body = json.dumps({"name": role, "grants": [grant]}).encode()
        answer = expect(server.request("POST", "/api/v1/auth/tokens", body), 200, 201)
        found[role] = json.loads(answer)["token"]
    return found
