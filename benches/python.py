#!/usr/bin/env python3
"""Measure the Python package beside DuckDB, Polars and pyarrow, each in the same process on the same rows, and print tables.

    scripts/wheels --only linux-x86_64 && .venv/bin/pip install --force-reinstall target/wheels/arc_py-*.whl
    .venv/bin/python benches/python.py [--rows 1000000] [--many 10000000] [--rounds 5] [--folder DIR] [--only PART ...]

Parts: write, lines, row, read, small, start. Needs numpy, pandas, polars, pyarrow and duckdb, and the wheel of a release
build: a debug build is a hundred times as slow. Nothing else should run. The folder has to be on the disk that is meant.

Frames have the shapes of the other benches: iot has one tag and three floats, short two tags and two floats, tsbs ten of
both, integers. Times rise; 100 hosts. Arc's writes are durable (synced) when they return. DuckDB commits to a file of its
own with its defaults; the Parquet writers do not sync. "the engine alone" is the native call on an Arrow table that is
there: what the Rust crate does, without what Python adds. Best of the rounds, each into an empty folder; all read back.
"""
import argparse
import itertools
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import arc
import duckdb
import numpy
import pandas
import polars
import pyarrow
import pyarrow.parquet

SHAPES = {"iot": (1, 3, "f8"), "short": (2, 2, "f8"), "tsbs": (10, 10, "i8")}
START = 1_767_225_600_000_000_000
HOSTS = 100


def columns(rows, shape, seed=19):
    """Makes the columns of a frame."""
    tags, fields, kind = SHAPES[shape]
    random = numpy.random.default_rng(seed)
    made = {"time": (START + numpy.arange(rows) // HOSTS * 1_000_000_000).astype("datetime64[ns]")}
    host = numpy.arange(rows) % HOSTS
    for n in range(tags):
        values = numpy.array([f"host-{h:03}" if n == 0 else f"value-{n}-{h % (n + 3)}" for h in range(HOSTS)], object)
        made[f"tag{n}"] = values[host]
    for n in range(fields):
        walk = numpy.cumsum(random.normal(0, 1, rows)).round(2)
        made[f"f{n}"] = walk if kind == "f8" else walk.astype("i8")
    return made, [f"tag{n}" for n in range(tags)]


def timed(work, rounds, folder, before=lambda place: None, after=lambda state: None):
    """Returns the best of the rounds, in seconds; each gets an empty folder."""
    best = float("inf")
    for _ in range(rounds):
        place = Path(tempfile.mkdtemp(dir=folder))
        state = before(place)
        began = time.perf_counter()
        work(state if state is not None else place)
        best = min(best, time.perf_counter() - began)
        after(state)
        shutil.rmtree(place)
    return best


def table(title, head, rows):
    """Prints a table."""
    print(f"\n{title}\n\n| {' | '.join(head)} |\n|{' --- |' * len(head)}")
    for row in rows:
        print(f"| {' | '.join(str(cell) for cell in row)} |", flush=True)


def opened(place):
    return arc.open(place / "data", memory_bytes=4 << 30, max_buffer_bytes=2 << 30)


def writes(options):
    """A frame of each kind and shape into each store."""
    for shape in SHAPES:
        made, tags = columns(options.rows, shape)
        of_pandas, of_polars = pandas.DataFrame(made), polars.DataFrame(made)
        of_arrow = pyarrow.table({name: pyarrow.array(values) for name, values in made.items()})
        native = arc.Table.from_arrow(of_arrow)
        settings = {"tags": tags, "database": "d"}

        def into_arc(data):
            return timed(lambda e: e.write("t", data, **settings), options.rounds, options.folder, opened, whole)

        def whole(engine):
            assert len(engine.d.t) == options.rows
            engine.close()

        def duck(place):
            # A name in the text of a statement is not captured by a lambda.
            connection = duckdb.connect(str(place / "duck.db"))
            connection.register("of_arrow", of_arrow)
            connection.register("of_pandas", of_pandas)
            return connection

        def parquet_of_duck(place):
            with duckdb.connect() as connection:
                connection.register("of_arrow", of_arrow)
                connection.execute(f"COPY (SELECT * FROM of_arrow) TO '{place}/t.parquet'")

        alone = timed(lambda e: e._native.write("t", native, **settings), options.rounds, options.folder, opened, whole)
        best = {
            "the engine alone": alone,
            "arc, pyarrow": into_arc(of_arrow),
            "arc, polars": into_arc(of_polars),
            "arc, pandas": into_arc(of_pandas),
            "arc, dict of numpy": into_arc(made),
            "DuckDB, table, of pyarrow": timed(
                lambda d: d.execute("CREATE TABLE t AS SELECT * FROM of_arrow"), options.rounds, options.folder, duck, lambda d: d.close()
            ),
            "DuckDB, table, of pandas": timed(
                lambda d: d.execute("CREATE TABLE t AS SELECT * FROM of_pandas"), options.rounds, options.folder, duck, lambda d: d.close()
            ),
            "DuckDB, Parquet": timed(parquet_of_duck, options.rounds, options.folder),
            "Polars, Parquet": timed(lambda p: of_polars.write_parquet(p / "t.parquet"), options.rounds, options.folder),
            "pyarrow, Parquet": timed(
                lambda p: pyarrow.parquet.write_table(of_arrow, p / "t.parquet"), options.rounds, options.folder
            ),
        }
        rows = [(name, f"{options.rows / took / 1e6:.2f}", f"{alone / took:.2f}") for name, took in best.items()]
        table(f"{options.rows:,} rows, {shape}", ("into", "million rows/s", "of the engine alone"), rows)


def lines(options):
    """Line protocol as one text, and as an iterable of lines."""
    made, _ = columns(options.rows, "short")
    times = made["time"].astype("i8").tolist()
    text = [f"t,tag0={a},tag1={b} f0={x},f1={y} {at}" for at, a, b, x, y in
            zip(times, made["tag0"], made["tag1"], made["f0"].tolist(), made["f1"].tolist())]
    pieces = ["\n".join(text[at : at + 100_000]) for at in range(0, len(text), 100_000)]

    def each(engine):
        for piece in pieces:
            engine.write_lp("d", piece)

    best = {
        "text, 100,000 lines each": timed(each, options.rounds, options.folder, opened, lambda e: e.close()),
        "an iterable of lines": timed(lambda e: e.write_lp("d", iter(text)), options.rounds, options.folder, opened, lambda e: e.close()),
    }
    table("Line protocol, short", ("as", "million lines/s"), [(n, f"{len(text) / took / 1e6:.2f}") for n, took in best.items()])


def spread(call, count):
    """Returns the median and the 99th percentile of calls, in milliseconds."""
    took = []
    for n in range(count):
        began = time.perf_counter()
        call(n)
        took.append((time.perf_counter() - began) * 1000)
    took.sort()
    return f"{statistics.median(took):.3f}", f"{took[int(count * 0.99)]:.3f}"


def row(options):
    """One durable row at a time."""
    place = Path(tempfile.mkdtemp(dir=options.folder))
    found = []
    with opened(place) as engine:
        found.append(("arc, write_lp", *spread(lambda n: engine.write_lp("d", f"t,tag0=a f0={n} {START + n}"), 2_000)))
        found.append(("arc, write of a dict", *spread(lambda n: engine.write("t", [{"time": START + n, "tag0": "b", "f0": float(n)}], database="d"), 2_000)))
        found.append(("arc, `process`", *spread(lambda n: engine.write_lp("d", f"t,tag0=c f0={n} {START + n}", durability="process"), 2_000)))
    with duckdb.connect(str(place / "duck.db")) as duck:
        duck.execute("CREATE TABLE t (time TIMESTAMP_NS, tag0 TEXT, f0 DOUBLE)")
        found.append(("DuckDB, INSERT", *spread(lambda n: duck.execute("INSERT INTO t VALUES (make_timestamp_ns(?), 'a', ?)", [START + n, float(n)]), 500)))
    shutil.rmtree(place)
    table("One row, durable", ("by", "p50, ms", "p99, ms"), found)


def reads(options):
    """All rows out, in each form; those of Arc from its files."""
    for rows in dict.fromkeys((options.rows, options.many)):
        place = Path(tempfile.mkdtemp(dir=options.folder))
        with opened(place) as engine, duckdb.connect(str(place / "duck.db")) as duck:
            for at in range(0, rows, 1_000_000):
                made, tags = columns(min(1_000_000, rows - at), "iot", seed=at)
                made["time"] = made["time"] + numpy.timedelta64(at // HOSTS, "s")
                part = pyarrow.table({name: pyarrow.array(values) for name, values in made.items()})
                engine.write("t", part, tags=tags, database="d")
                duck.execute("CREATE TABLE IF NOT EXISTS t AS SELECT * FROM part LIMIT 0")
                duck.execute("INSERT INTO t SELECT * FROM part")
            engine.flush()
            asked = "SELECT * FROM t"
            forms = {
                "the engine alone": lambda: engine._native.sql("d", asked).read(),
                "arc, Arrow": lambda: engine.sql("d", asked).arrow(),
                "arc, polars": lambda: engine.sql("d", asked).pl(),
                "arc, pandas": lambda: engine.sql("d", asked).df(),
                "arc, numpy": lambda: engine.sql("d", "SELECT time, f0, f1, f2 FROM t").numpy(),
                "DuckDB, Arrow": lambda: duck.sql(asked).to_arrow_table(),
                "DuckDB, polars": lambda: duck.sql(asked).pl(),
                "DuckDB, pandas": lambda: duck.sql(asked).df(),
            }
            best = {}
            for name, form in forms.items():
                for _ in range(options.rounds):
                    began = time.perf_counter()
                    assert len(form()) in (rows, 4)
                    best[name] = min(best.get(name, float("inf")), time.perf_counter() - began)
        shutil.rmtree(place)
        alone = best["the engine alone"]
        found = [(name, f"{rows / took / 1e6:.1f}", f"{alone / took:.2f}") for name, took in best.items()]
        table(f"{rows:,} rows out, iot", ("into", "million rows/s", "of the engine alone"), found)


def small(options):
    """Small queries, one after the other."""
    place = Path(tempfile.mkdtemp(dir=options.folder))
    made, tags = columns(options.rows, "iot")
    asked = "SELECT max(f0) FROM t WHERE tag0 = '{}' AND time >= TIMESTAMP '2026-01-01T00:10:00' AND time < TIMESTAMP '2026-01-01T00:20:00'"
    names = itertools.cycle(f"host-{n:03}" for n in range(HOSTS))
    with opened(place) as engine, duckdb.connect(str(place / "duck.db")) as duck:
        frame = pyarrow.table({name: pyarrow.array(values) for name, values in made.items()})
        engine.write("t", frame, tags=tags, database="d")
        engine.flush()
        duck.execute("CREATE TABLE t AS SELECT * FROM frame")
        calls = {
            "arc": lambda: engine.sql("d", asked.format(next(names))).fetchall(),
            "arc, SELECT 1": lambda: engine.sql("d", "SELECT 1").fetchall(),
            "DuckDB": lambda: duck.execute(asked.format(next(names))).fetchall(),
            "DuckDB, SELECT 1": lambda: duck.execute("SELECT 1").fetchall(),
        }
        found = []
        for name, call in calls.items():
            call()
            took = spread(lambda _: call(), 1_000)
            found.append((name, f"{1000 / float(took[0]):,.0f}", *took))
    shutil.rmtree(place)
    table(f"Small queries over {options.rows:,} rows", ("of", "queries/s", "p50, ms", "p99, ms"), found)


def start(options):
    """What importing costs: time, and memory."""
    program = "import time; began = time.perf_counter(); import {}; took = time.perf_counter() - began; import resource; " \
        "print(took, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    found = []
    for name in ("arc", "duckdb", "polars", "pyarrow", "sys"):
        measured = [subprocess.check_output([sys.executable, "-c", program.format(name)], text=True).split() for _ in range(max(options.rounds, 3))]
        found.append((name, f"{min(float(took) for took, _ in measured) * 1000:.0f}", f"{min(int(kib) for _, kib in measured) / 1024:.0f}"))
    table("Import", ("of", "ms", "MiB, most resident"), found)


PARTS = {"write": writes, "lines": lines, "row": row, "read": reads, "small": small, "start": start}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--many", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", type=Path, default=None)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    options = parser.parse_args()
    arc.show_progress(False)
    print(f"Python {sys.version.split()[0]}, DuckDB {duckdb.__version__}, Polars {polars.__version__}, pyarrow {pyarrow.__version__}, "
          f"pandas {pandas.__version__}; best of {options.rounds}")
    for name in options.only:
        PARTS[name](options)


if __name__ == "__main__":
    main()
