"""The wheel as a black box: a program for an environment with nothing but it, pandas, polars and duckdb.

Started by scripts/black-box with the pages whose lines are to be run. Each `check_…` gets an empty folder.
"""

import asyncio
import dataclasses
import importlib.util
import math
import os
import re
import subprocess
import sys
import tempfile
import threading
from datetime import datetime, timedelta, timezone
from pathlib import Path

import arc
import duckdb
import numpy
import pandas
import polars

HAS_PYARROW = importlib.util.find_spec("pyarrow") is not None
AT = datetime(2026, 1, 31, 12, 0, 0, 250, tzinfo=timezone.utc)
TIMES = [AT + timedelta(seconds=n) for n in range(4)]
IDS = ["7", "8", "7", None]
RPM = [1450, 1502, None, 1490]
LOAD = [0.5, None, 0.75, 1.0]
IS_ON = [True, False, None, True]
NOTE = ["ü", "", None, "x\ny"]
ROWS = list(zip(TIMES, IDS, RPM, LOAD, IS_ON, NOTE))
NAMES = ["time", "id", "rpm", "load", "is_on", "note"]
COLUMNS = dict(zip(NAMES, map(list, zip(*ROWS))))


@dataclasses.dataclass
class Row:
    """A row of the pump."""

    time: datetime
    id: "str | None"
    rpm: "int | None"
    load: "float | None"
    is_on: "bool | None"
    note: "str | None"


def frame(**types):
    """The rows as a frame of pandas."""
    made = pandas.DataFrame({name: pandas.Series(values, dtype=types.get(name)) for name, values in COLUMNS.items()})
    return made


SOURCES = {
    "dict of lists": lambda: COLUMNS,
    "list of dicts": lambda: [dict(zip(NAMES, row)) for row in ROWS],
    "generator of dicts": lambda: (dict(zip(NAMES, row)) for row in ROWS),
    "dataclasses": lambda: [Row(*row) for row in ROWS],
    "pandas": lambda: frame(),
    "pandas, nullable": lambda: frame(rpm="Int64", load="Float64", is_on="boolean", note="string", id="string"),
    "pandas, objects": lambda: frame(rpm=object, load=object, is_on=object, note=object, id=object),
    "pandas, categories": lambda: frame(id="category", rpm="Int64", is_on="boolean"),
    "pandas, index": lambda: frame(rpm="Int64", is_on="boolean").set_index("time"),
    "pandas, another zone": lambda: frame(rpm="Int64", is_on="boolean").assign(
        time=lambda f: f["time"].dt.tz_convert("Asia/Kolkata")
    ),
    "polars": lambda: polars.DataFrame(COLUMNS),
    "polars, lazy": lambda: polars.LazyFrame(COLUMNS),
    "duckdb": lambda: duckdb_rows(),
}


def duckdb_rows():
    """The rows as a relation of DuckDB."""
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE pump (time TIMESTAMPTZ, id TEXT, rpm BIGINT, load DOUBLE, is_on BOOLEAN, note TEXT)"
    )
    connection.executemany("INSERT INTO pump VALUES (?, ?, ?, ?, ?, ?)", ROWS)
    return connection.sql("SELECT * FROM pump ORDER BY time")


def check_rows_go_in_in_every_form(folder):
    with arc.open(folder) as engine:
        for number, (name, source) in enumerate(SOURCES.items()):
            table = f"pump_{number}"
            written = engine.write(table, source(), tags=["id"], database="plant")
            assert (written.points, written.rejected_points) == (4, 0), name
            rows = engine.sql("plant", f"SELECT {', '.join(NAMES)} FROM {table} ORDER BY time").fetchall()
            assert rows == ROWS, (name, rows)


def pump(folder):
    """An engine with the rows."""
    engine = arc.open(folder)
    engine.write("pump", COLUMNS, tags=["id"], database="plant")
    return engine


def check_rows_come_out_in_every_form(folder):
    with pump(folder) as engine:
        rows = engine.sql("plant", f"SELECT {', '.join(NAMES)} FROM pump ORDER BY time")
        assert rows.fetchall() == ROWS and rows.fetchone() == ROWS[0] and rows.columns == NAMES
        made = rows.df()
        assert list(made.columns) == NAMES and len(made) == 4
        assert str(made["time"].dtype) == "datetime64[ns, UTC]" and made["time"].tolist() == [pandas.Timestamp(at) for at in TIMES]
        assert str(made["id"].dtype) == "category" and made["id"].tolist()[:3] == IDS[:3]
        assert made["rpm"].dtype == "float64" and made["rpm"].tolist()[:2] == RPM[:2] and math.isnan(made["rpm"][2])
        assert made["is_on"].tolist() == IS_ON and made["note"].tolist()[:2] == NOTE[:2]
        assert rows.select("rpm").filter("rpm > 0").df()["rpm"].dtype == "int64"
        assert rows.limit(0).df().shape == (0, 6)
        polar = rows.pl()
        assert polar.columns == NAMES and polar.rows() == ROWS, polar
        arrays = rows.numpy()
        assert arrays["time"].dtype == "datetime64[ns]" and arrays["rpm"].tolist() == RPM
        assert [len(part) for part in rows] == [4]
        if HAS_PYARROW:
            assert rows.arrow().num_rows == 4
            assert duckdb.sql("SELECT count(*) FROM rows").fetchall() == [(4,)]
        assert "1502" in repr(rows) and "<td>1502</td>" in rows._repr_html_()


def check_frames_are_tables_and_tables_are_frames(folder):
    with pump(folder) as engine:
        sites = pandas.DataFrame({"id": ["7", "8"], "site": ["north", "south"]})
        asked = "SELECT site, count(*) FROM pump JOIN {} USING (id) GROUP BY site ORDER BY site"
        assert engine.sql("plant", asked.format("sites")).fetchall() == [("north", 2), ("south", 1)]
        others = polars.DataFrame({"id": ["7", "8"], "site": ["north", "south"]})
        assert engine.sql("plant", asked.format("others")).fetchall() == [("north", 2), ("south", 1)]
        lazy = engine.scan("plant.pump").filter(polars.col("id") == "7").select("rpm", "load")
        assert lazy.collect().rows() == [(1450, 0.5), (None, 0.75)]
        assert engine.plant.pump.join(sites, on="id").filter("site = 'south'").select("rpm").fetchall() == [(1502,)]


def check_rows_come_back_after_the_end_of_a_process(folder):
    program = f"""
import arc, os, signal
engine = arc.open({str(folder)!r})
with engine.writer("pump", tags=["id"], database="plant", rows=10) as pump:
    for n in range(100):
        pump.add(time=n, id=str(n % 3), rpm=n)
os.kill(os.getpid(), signal.SIGKILL)
"""
    killed = subprocess.run([sys.executable, "-I", "-c", program], check=False)
    assert killed.returncode == -9
    with arc.open(folder, mode="r") as reader:
        assert len(reader.plant.pump) == 100
    with arc.open(folder) as engine:
        assert engine.plant.pump.aggregate("sum(rpm)").fetchone() == (4950,)
        files = engine.flush().files
        assert duckdb.execute("SELECT sum(rpm) FROM read_parquet(?)", [files]).fetchall() == [(4950,)]
        assert polars.read_parquet(files)["rpm"].sum() == 4950


def check_threads_and_tasks(folder):
    async def ask(engine):
        asked = [engine.aio.sql("plant", "SELECT count(*) FROM pump") for _ in range(8)]
        return [rows.fetchone() for rows in await asyncio.gather(*asked)]

    with pump(folder) as engine:
        assert asyncio.run(ask(engine)) == [(4,)] * 8
        threads = [
            threading.Thread(target=engine.write_lp, args=("plant", f"fan,id={n} rpm={n}i {n}")) for n in range(16)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(engine.plant.fan) == 16


def check_what_is_wrong_is_told(folder):
    with pump(folder) as engine:
        told = {
            "SELECT rmp FROM pump": arc.InvalidInputError,
            "SELECT 1 FROM nothing": arc.NotFoundError,
            "SELEC 1": arc.InvalidInputError,
        }
        for query, kind in told.items():
            try:
                engine.sql("plant", query)
            except kind as error:
                assert "LINE 1" in str(error) and "^" in str(error), error
            else:
                raise AssertionError(query)
        for bad in ([{"time": 1, "v": {1}}], {"time": [1, 2], "v": [1]}, pandas.DataFrame({"time": [pandas.NaT], "v": [1]})):
            try:
                engine.write("bad", bad, database="plant")
            except arc.InvalidInputError:
                pass
            else:
                raise AssertionError(bad)
        assert engine.plant.tables() == ["pump"]


def check_importing_is_fast(folder):
    code = "import time; began = time.perf_counter(); import arc; print(time.perf_counter() - began)"
    took = [float(subprocess.check_output([sys.executable, "-I", "-c", code])) for _ in range(5)]
    print(f"  import: {min(took) * 1000:.0f} ms", end="")
    assert min(took) < 0.5, took


def check_pages(pages):
    """Runs the Python of pages of the documentation, top to bottom."""
    for page in pages:
        blocks = re.findall(r"^```python\n(.*?)^```$", Path(page).read_text(), re.M | re.S)
        assert blocks, page
        names = {"__name__": "page"}
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            for block in blocks:
                # Others are about servers, and have tests of their own.
                if "import arc" in block or ("engine" in names and "arc.connect(" not in block and "client" not in block):
                    exec(compile(block, page, "exec"), names)
            if isinstance(names.get("engine"), arc.Engine):
                names["engine"].close()
            os.chdir("/")
        print(f"ok: the lines of {page}")


def main():
    print(f"arc {Path(arc.__file__).parent}, pandas {pandas.__version__}, polars {polars.__version__}, duckdb {duckdb.__version__}, "
          f"numpy {numpy.__version__}, pyarrow: {HAS_PYARROW}")
    assert "site-packages" in arc.__file__, "this is not the wheel"
    for name, check in list(globals().items()):
        if name.startswith("check_") and name != "check_pages":
            with tempfile.TemporaryDirectory() as folder:
                check(Path(folder) / "data")
            print(f"ok: {name.removeprefix('check_').replace('_', ' ')}")
    check_pages(sys.argv[1:])


if __name__ == "__main__":
    main()
