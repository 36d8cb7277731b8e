"""The data files through the readers that people have: each gives back what was written, value by value."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import duckdb
import polars
import pyarrow.parquet
import pytest
from conftest import Server

NANOSECONDS = {"ns": 1, "us": 1_000}
ROWS = 60_000
HOSTS = 50
COLUMNS = ["time", "host", "zone", "walk", "digits", "count", "any", "busy", "state", "note", "rare"]


def written(unit: str) -> list[dict[str, Any]]:
    """Returns rows whose columns take every encoding, of fewer and more values than a page and a dictionary have; their
    times are whole ones of a unit."""
    draw = random.Random(42)
    rows = []
    walk, count = [50.0] * HOSTS, [0] * HOSTS
    for n in range(ROWS):
        host = n % HOSTS
        walk[host] = round(walk[host] + draw.uniform(-1, 1), 2)
        count[host] += draw.randrange(3)
        rows.append(
            {
                # A step that is not always the same.
                "time": 1_700_006_400_000_000_000 + (n * 1_000 + draw.randrange(1_000)) * NANOSECONDS[unit],
                "host": f"host_{host}",
                "zone": "eu" if host % 3 else None,
                "walk": walk[host],
                "digits": draw.random() if n % 7 else None,
                "count": count[host],
                "any": draw.randrange(-(2**63), 2**63),
                "busy": None if n % 11 == 0 else n % 3 == 0,
                "state": ["up", "down", "", "ü"][n % 4],
                "note": f"{draw.random()} {'x' * (n % 40)}",
                "rare": n if n % 20_000 == 0 else None,
            }
        )
    return rows


def line(row: dict[str, Any]) -> str:
    tags = "".join(f",{key}={row[key]}" for key in ["host", "zone"] if row[key] is not None)
    fields = [f"walk={row['walk']!r}", f"count={row['count']}i", f"any={row['any']}i"]
    fields += [f'{key}="{row[key]}"' for key in ["state", "note"]]
    fields += [f"digits={row['digits']!r}"] if row["digits"] is not None else []
    fields += [f"busy={'t' if row['busy'] else 'f'}"] if row["busy"] is not None else []
    fields += [f"rare={row['rare']}i"] if row["rare"] is not None else []
    return f"cpu{tags} {','.join(fields)} {row['time']}"


def of_pyarrow(file: Path) -> list[tuple[Any, ...]]:
    table = pyarrow.parquet.ParquetFile(file).read(COLUMNS)
    times = table["time"].cast(pyarrow.timestamp("ns", "UTC"))
    table = table.set_column(0, "time", times.cast(pyarrow.int64()))
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def of_duckdb(file: Path) -> list[tuple[Any, ...]]:
    names = ", ".join(f'"{name}"' for name in COLUMNS[1:])
    query = f"SELECT epoch_ns(time), {names} FROM read_parquet('{file}')"
    return duckdb.connect().execute(query).fetchall()


def of_polars(file: Path) -> list[tuple[Any, ...]]:
    return polars.read_parquet(file, columns=COLUMNS).with_columns(polars.col("time").dt.timestamp("ns")).rows()


READERS = [of_pyarrow, of_duckdb, of_polars]


@pytest.fixture(scope="module", params=["ns", "us"])
def unit(request: pytest.FixtureRequest) -> str:
    """The unit of the times in files."""
    return str(request.param)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory, unit: str) -> list[Path]:
    return stored(tmp_path_factory.mktemp("readers") / "data", unit)


def stored(folder: Path, unit: str) -> list[Path]:
    """Has a server store the rows; returns its files, whose times are in this unit."""
    server = Server(folder, "--time-unit", unit)
    lines = [line(row) for row in written(unit)]
    for start in range(0, ROWS, 20_000):
        status, answer = server.post("/write?db=fleet", "\n".join(lines[start : start + 20_000]).encode())
        assert status == 204, answer
    server.stop()
    found = sorted((server.data_dir / "data").rglob("*.parquet"))
    assert {pyarrow.parquet.read_schema(file).field("time").type for file in found} == {pyarrow.timestamp(unit, "UTC")}
    return found


@pytest.mark.parametrize("reader", READERS)
def test_a_reader_gives_back_what_was_written(
    files: list[Path], unit: str, reader: Callable[[Path], list[tuple[Any, ...]]]
) -> None:
    assert in_order(row for file in files for row in reader(file)) == expected(unit)


def rounded(folder: Path) -> Path:
    """Has a server round points to microseconds, of a table with another column of times; returns the table's folder."""
    server = Server(folder, "--time-unit", "us", "--finer-times", "round")
    for statement in [
        "CREATE TABLE fleet.trip (time TIMESTAMP, x DOUBLE, t TIMESTAMP)",
        "INSERT INTO fleet.trip (time, x, t) VALUES (-1, 1, 2000), (1999, 2, 5000)",
    ]:
        status, answer = server.post("/api/v1/query", json.dumps({"sql": statement}).encode())
        assert status == 200, answer
    server.stop()
    return next((server.data_dir / "data").rglob("trip"))


def expected(unit: str) -> list[tuple[Any, ...]]:
    return in_order(tuple(row[name] for name in COLUMNS) for row in written(unit))


def in_order(rows: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return sorted(rows, key=lambda row: (row[1], row[0]))


@pytest.mark.proof
def test_spark_reads_microseconds_and_no_nanoseconds(tmp_path: Path) -> None:
    from pyspark.errors import AnalysisException, PySparkException
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.sql.session.timeZone", "UTC").getOrCreate()
    try:
        folder = stored(tmp_path / "us", "us")[0].parents[1]
        columns = ["unix_micros(time) * 1000", *(f"`{name}`" for name in COLUMNS[1:])]
        rows = spark.read.parquet(str(folder)).selectExpr(*columns).collect()
        assert in_order(tuple(row) for row in rows) == expected("us")
        first = expected("us")[0]
        seen = spark.read.parquet(str(folder)).where(f"time = timestamp_micros({first[0] // 1_000})").count()
        assert seen == sum(row[0] == first[0] for row in expected("us"))
        rows = spark.read.parquet(str(rounded(tmp_path / "rounded"))).selectExpr("unix_micros(time)", "unix_micros(t)", "x")
        assert sorted(tuple(row) for row in rows.collect()) == [(-1, 2, 1.0), (1, 5, 2.0)]
        # Why there is the setting; once this passes, its page can say so.
        folder = stored(tmp_path / "ns", "ns")[0].parents[1]
        with pytest.raises((AnalysisException, PySparkException), match="NANOS"):
            spark.read.parquet(str(folder)).collect()
    finally:
        spark.stop()


def test_filters_that_skip_pages_find_what_is_there(files: list[Path], unit: str) -> None:
    rows = written(unit)
    first, last = min(row["count"] for row in rows), max(row["count"] for row in rows)
    middle = (first + last) // 2
    found = sum(row["count"] >= middle and row["host"] == "host_7" for row in rows)
    listed = [str(file) for file in files]
    of_duckdb = duckdb.connect().read_parquet(listed).filter(f"count >= {middle} AND host = 'host_7'")
    of_polars = polars.scan_parquet(listed).filter(
        (polars.col("count") >= middle) & (polars.col("host").cast(polars.String) == "host_7")
    )
    of_pyarrow = pyarrow.parquet.read_table(listed, filters=[("count", ">=", middle), ("host", "=", "host_7")])
    assert (len(of_duckdb), of_polars.collect().height, of_pyarrow.num_rows) == (found,) * 3
