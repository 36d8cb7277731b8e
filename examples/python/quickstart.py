"""Opens a store, writes line protocol and an Arrow table, asks both in SQL, reads the files with DuckDB."""

import tempfile
from datetime import datetime, timezone

import arc
import duckdb
import pyarrow

with tempfile.TemporaryDirectory() as folder, arc.open(f"{folder}/data") as engine:
    plant = engine.database("plant")

    written = plant.write_lp("pump,id=7 rpm=1450i 1700000000000000000\npump,id=8 rpm=fast 1700000000000000000")
    print(f"stored {written.points} point, refused {written.rejected}")
    assert (written.points, [line.line for line in written.rejected]) == (1, [2])

    readings = pyarrow.table({"measured": [datetime(2026, 1, 1, tzinfo=timezone.utc)], "id": ["8"], "rpm": [1550]})
    plant.write("pump", readings, tags=["id"], time="measured")

    table = pyarrow.table(plant.sql("SELECT id, avg(rpm) AS rpm FROM pump GROUP BY id ORDER BY id"))
    print(table.to_pylist())
    assert table.to_pylist() == [{"id": "7", "rpm": 1450.0}, {"id": "8", "rpm": 1550.0}]

    print(f"flushed {engine.flush().rows} rows; DuckDB reads them:")
    files = plant.data_files("pump")
    rows = duckdb.sql("SELECT id, rpm FROM read_parquet($files) ORDER BY id", params={"files": files}).fetchall()
    print(rows)
    assert rows == [("7", 1450), ("8", 1550)]
