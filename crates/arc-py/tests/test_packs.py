"""Data files of small tables lie in one file, and each of them is Parquet that any reader takes."""

import io
import json
from collections.abc import Iterator
from pathlib import Path

import arc
import duckdb
import pyarrow
import pyarrow.parquet

TABLES = 70
ROWS = 40


def packed(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Cuts the data files out of all packs, as docs/operations.md says."""
    for pack in folder.glob("data/_packs/*.pack"):
        with pack.open("rb") as file:
            file.seek(-16, 2)
            length = int.from_bytes(file.read(8), "little")
            file.seek(-16 - length, 2)
            for entry in map(json.loads, file.read(length).splitlines()):
                file.seek(entry["offset"])
                yield entry["table"], file.read(entry["bytes"])


def line(table: int, row: int) -> str:
    """A point with fields of all types, most of which are missing now and then."""
    fields = [f"n={row - 9}i", f"u={row + table}u"]
    if row % 3:
        fields.append(f"f={row / 8 - 1}")
    if row % 4:
        fields.append(f'b={row % 8 > 3},s="state {row % 5} \u00fc"')
    tags = f",host=h{row % 2}" + (",zone=z" if row % 2 else "")
    return f"t{table}{tags} {','.join(fields)} {row * 1_000_000_007}"


def test_other_readers_take_packed_files(engine: arc.Engine, folder: Path, tmp_path: Path) -> None:
    for row in range(ROWS):
        engine.write_lp("plant", "\n".join(line(table, row) for table in range(TABLES)))
    engine.flush()
    files = dict(packed(folder))
    assert sorted(files) == sorted(f"t{table}" for table in range(TABLES))
    for table in ["t0", "t42"]:
        columns = "time, host, zone, n, u, f, b, s"
        expected = pyarrow.table(engine.sql("plant", f"SELECT {columns} FROM {table} ORDER BY time"))
        found = pyarrow.parquet.read_table(io.BytesIO(files[table])).select(columns.split(", ")).sort_by("time")
        assert found.num_rows == ROWS
        plain = [column.cast(pyarrow.string()) for column in (found["host"], found["zone"])]
        assert plain == [expected[name].cast(pyarrow.string()) for name in ("host", "zone")]
        assert found.drop_columns(["host", "zone"]) == expected.drop_columns(["host", "zone"]).cast(
            found.drop_columns(["host", "zone"]).schema
        )
        alone = tmp_path / f"{table}.parquet"
        alone.write_bytes(files[table])
        question = "SELECT count(*), count(zone), sum(n), sum(u), sum(f), count(b), max(s), min(f) FROM "
        with duckdb.connect() as connection:
            [counted] = connection.sql(f"{question} '{alone}'").fetchall()
        assert counted == tuple(pyarrow.table(engine.sql("plant", question + table)).to_pylist()[0].values())
        # Row groups are left out by their bounds.
        with duckdb.connect() as connection:
            assert connection.sql(f"SELECT count(*) FROM '{alone}' WHERE n > {ROWS}").fetchall() == [(0,)]
            assert connection.sql(f"SELECT count(*) FROM '{alone}' WHERE s > 'state 3'").fetchall() != [(0,)]
