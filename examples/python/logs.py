"""Makes logs, has the example `logs` write them to Parquet files, and compares these with the input through DuckDB.

    .venv/bin/python examples/python/logs.py [ROWS]

Needs pyarrow, numpy and duckdb (scripts/requirements.txt), and cargo.
"""

import pathlib
import subprocess
import sys
import tempfile

import duckdb
import pyarrow as pa

ROOT = pathlib.Path(__file__).resolve().parents[2]
TEXT_PREFIXES = ("resource_", "scope_", "attr_")


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 40_000
    with tempfile.TemporaryDirectory() as folder:
        logs = make_logs(rows, pathlib.Path(folder))
        write = ["cargo", "run", "--locked", "--quiet", "--bin", "logs", "--"]
        subprocess.run([*write, f"{folder}/grouped.arrow", f"{folder}/out"], check=True, cwd=ROOT)
        compare(logs, f"{folder}/out/*.parquet")


def make_logs(rows: int, folder: pathlib.Path) -> pa.Table:
    """Returns logs that are grouped by service; attributes are integers and booleans as well as texts."""
    generate = [sys.executable, str(ROOT / "benches/gen_otel_logs.py"), "--attrs", "native"]
    subprocess.run([*generate, "--rows", str(rows), "--out", f"{folder}/logs.arrow"], check=True)
    logs = pa.ipc.open_file(str(folder / "logs.arrow")).read_all()
    logs = logs.sort_by([("resource_service_name", "ascending"), ("timestamp", "ascending")])
    logs = logs.append_column("attr_never", pa.nulls(rows, pa.int64()))
    with pa.ipc.new_file(str(folder / "grouped.arrow"), logs.schema) as file:
        file.write_table(logs.combine_chunks(), max_chunksize=3_000)
    return logs


def compare(logs: pa.Table, files: str) -> None:
    def one(statement: str):
        return duckdb.sql(statement).fetchall()[0][0]

    duckdb.register("logs", logs)
    duckdb.sql(f"CREATE VIEW files AS SELECT * FROM read_parquet('{files}', union_by_name = true)")
    written = [name for name, *_ in duckdb.sql("DESCRIBE files").fetchall()]
    assert set(written) == set(logs.column_names) - {"attr_never"}, written

    def as_written(name: str) -> str:
        return f"CAST({name} AS VARCHAR) AS {name}" if name.startswith(TEXT_PREFIXES) else name

    expected = f"SELECT {', '.join(map(as_written, written))} FROM logs"
    found = f"SELECT {', '.join(written)} FROM files"
    for difference in (f"{expected} EXCEPT ALL {found}", f"{found} EXCEPT ALL {expected}"):
        assert one(f"SELECT count(*) FROM ({difference})") == 0, difference
    assert one("SELECT count(*) FROM files") == logs.num_rows

    in_files = f"SELECT DISTINCT resource_service_name AS service, filename FROM read_parquet('{files}', filename = true)"
    assert one(f"SELECT max(n) FROM (SELECT count(*) AS n FROM ({in_files}) GROUP BY service)") == 1, "a group was cut"
    count = one(f"SELECT count(DISTINCT filename) FROM ({in_files})")
    print(f"DuckDB finds the same {logs.num_rows} rows in {count} files, and no service in two of them")


if __name__ == "__main__":
    main()
