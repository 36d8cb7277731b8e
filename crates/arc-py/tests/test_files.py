"""Files in and out: imports of CSV and Parquet, and the Parquet file of a query."""

import gzip
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import arc
import duckdb
import polars
import pyarrow
import pyarrow.parquet
import pytest

CSV = "when;id;rpm;note\n31.01.2026 12:00;7;1450;ü\n31.01.2026 12:01;8;nil;\nsoon;7;1;x\n"


def test_a_file_of_csv_is_stored_by_row(engine: arc.Engine, tmp_path: Path) -> None:
    path = tmp_path / "pump.csv.gz"
    path.write_bytes(gzip.compress(CSV.encode()))
    report = engine.import_csv(
        path, "pump", database="plant", tags=["id"], time="when", time_format="%d.%m.%Y %H:%M", types={"rpm": "float"}
    )
    assert (report.rows, report.rows_before, report.rejected_rows) == (2, 0, 1)
    assert (report.rejected[0].row, report.rejected[0].column) == (4, "when")
    assert report.types == {"when": "time", "id": "tag", "rpm": "float", "note": "string"}
    with pytest.raises(arc.InvalidInputError, match="1 rows were rejected, 2 stored; row 4, column when: .*soon"):
        report.raise_for_rejected()
    rows = engine.plant.pump.order("time").select("id", "rpm", "note").fetchall()
    assert rows == [("7", 1450.0, "ü"), ("8", None, "")]


@pytest.mark.parametrize(
    ("text", "settings", "columns"),
    [
        ("x\ny\nat|v\n1|2\n", {"skip_rows": 2, "time": "at", "precision": "s"}, {"time": 10**9, "v": 2}),
        ("day,hour,v,w\n2026-01-31,3,?x,5\n", {"time": ["day", "hour"], "nulls": ["?x"], "exclude": ["w"]}, {"time": 1769828400 * 10**9}),
        ("time,v\n1000000000,1\n", {"delimiter": ",", "types": {"v": "string"}}, {"time": 10**18, "v": "1"}),
    ],
)
def test_settings_of_an_import(
    engine: arc.Engine, tmp_path: Path, text: str, settings: dict[str, Any], columns: dict[str, Any]
) -> None:
    path = tmp_path / "a.csv"
    path.write_text(text)
    engine.import_csv(path, "t", **settings).raise_for_rejected()
    row = engine.sql("default", "SELECT *, CAST(time AS BIGINT) AS ns FROM t").dicts()[0]
    time_ns = row.pop("ns")
    row["time"] = time_ns
    assert row == columns


def test_what_cannot_be_imported_says_why(engine: arc.Engine, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("time,v\n1,2\n")
    for settings, reason in [
        ({"delimiter": "ab"}, "delimiter.*'ab'|delimiter.*\"ab\""),
        ({"types": {"v": "int"}}, "float, integer, unsigned, boolean or string"),
        ({"time": "when"}, "when"),
        ({"precision": "sec"}, "precision"),
        ({"durability": "tape"}, "durability"),
    ]:
        with pytest.raises(arc.InvalidInputError, match=reason):
            engine.import_csv(path, "t", **settings)  # type: ignore[arg-type]
    with pytest.raises(arc.InvalidInputError, match="Parquet"):
        engine.import_parquet(path, "t")
    with pytest.raises((arc.IoError, arc.NotFoundError), match="nothing.csv"):
        engine.import_csv(tmp_path / "nothing.csv", "t")
    assert "default" not in engine or "t" not in engine["default"]


def test_an_import_that_is_done_again_under_a_key_stores_nothing(engine: arc.Engine, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("time,v\n2026-01-31,2\n")
    assert engine.import_csv(path, "t", idempotency_key="a").rows == 1
    again = engine.import_csv(path, "t", idempotency_key="a")
    assert (again.rows, again.rows_before) == (0, 1)
    # Without one it is another import, as another `write` is.
    assert engine.import_csv(path, "t").rows == 1
    assert len(engine.sql("default", "SELECT * FROM t")) == 2


def test_a_query_goes_to_parquet_and_comes_back(engine: arc.Engine, tmp_path: Path) -> None:
    lines = "\n".join(f"pump,id={i % 3} rpm={i}i,load=0.5,note=\"ü\",on=true {i * 10**9 + 7}" for i in range(9))
    engine.write_lp("plant", lines).raise_for_rejected()
    rows = engine.sql("plant", "SELECT * FROM pump ORDER BY time")
    for compression in ("zstd", "snappy", "lz4", "none"):
        path = tmp_path / f"{compression}.parquet"
        assert rows.write_parquet(path, compression=compression) == 9  # type: ignore[arg-type]
        assert polars.read_parquet(path)["rpm"].to_list() == list(range(9))
        assert duckdb.sql(f"SELECT max(rpm) FROM '{path}'").fetchall() == [(8,)]
    (tmp_path / "probe").touch()
    assert path.stat().st_mode == (tmp_path / "probe").stat().st_mode
    report = engine.import_parquet(path, "copy", database="plant", tags=["id"]).raise_for_rejected()
    assert report.rows == 9
    assert engine.sql("plant", "SELECT * FROM copy ORDER BY time").fetchall() == rows.fetchall()
    # In memory, and without a row.
    assert engine.sql("plant", "SELECT 1 AS x WHERE false").write_parquet(path) == 0
    assert pyarrow.parquet.read_table(path).schema.names == ["x"]


def test_a_file_that_fails_leaves_what_was_there(engine: arc.Engine, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(b"as it was")
    failing = engine.sql("default", "SELECT 1 / (value - 70000) AS x FROM generate_series(1, 100000)")
    with pytest.raises(arc.Error, match="zero"):
        failing.write_parquet(path)
    with pytest.raises(arc.InvalidInputError, match="zstd"):
        failing.write_parquet(path, compression="gz")  # type: ignore[arg-type]
    with pytest.raises(arc.IoError, match="nowhere"):
        engine.sql("default", "SELECT 1").write_parquet(tmp_path / "nowhere" / "a.parquet")
    assert path.read_bytes() == b"as it was"
    assert [entry.name for entry in tmp_path.glob("*.part")] == []


def test_an_interrupt_ends_an_import(engine: arc.Engine, tmp_path: Path) -> None:
    path = tmp_path / "large.csv"
    with path.open("w") as file:
        file.write("time,a,b,c\n")
        block = "".join(f"{i * 10**9},{i},{i * 2},{i * 3}\n" for i in range(10**9 % 7, 100_000))
        for _ in range(20):
            file.write(block)
    threading.Timer(0.4, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        engine.import_csv(path, "t", precision="ns")
    # What was being read then is stored; nothing comes after it.
    count, before = -1, -2
    while count != before:
        before, count = count, len(engine.sql("default", "SELECT * FROM t")) if "t" in engine["default"] else 0
        time.sleep(0.3)
    assert count < 2_000_000
