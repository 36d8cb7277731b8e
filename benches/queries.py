#!/usr/bin/env python3
"""Ask Arc, DuckDB, chDB and plain DataFusion the same ten questions about a day of host metrics.

    cargo build --release -p arc-py
    benches/queries.py [--rounds 7] [--threads 2] [--folder DIR] [--engines arc duckdb chdb datafusion] [--no-write]

Needs Linux, Python 3.9, and from PyPI what benches/queries.txt names, which are installed into .venv if they are not there.
Makes 17,280,000 rows (2,000 hosts, 24 hourly Parquet files in order of arrival, 250 MB) in the folder unless they are there,
loads them into Arc, hour by hour, and waits until Arc has done with merging its files. The others read the Parquet files.

Each engine runs in a process of its own, on the same processors, one after the other. Every answer is compared with the
known one before anything is measured. Then each query runs `rounds` times more; the table has the fastest of these, which
other work on the machine disturbs least, up to the last row as Arrow in memory, and the most memory that the process had.
It goes into docs/performance.md, between the marks `figures: queries`.
"""
import argparse
import json
import multiprocessing
import os
import re
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = Path(os.environ.get("VIRTUAL_ENV") or ROOT / ".venv")
TARGET = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target").resolve()
PAGE = ROOT / "docs" / "performance.md"
HOSTS, HOURS = 2000, 24
MUST = {"count": (1, 0.5), "one_host_1h": (6, 2), "eight_hosts_all_fields": (60, 20), "host_avg": (110, 80),
        "double_groupby_all": (260, 180), "last_point": (100, 5), "high_cardinality": (430, 350), "top_k": (8, 5),
        "high_cpu": (45, 30), "export_1m": (90, 60)}


def queries():
    """Returns the name, the SQL, the number of rows and the beginning of the first row of each query."""
    text = (ROOT / "benches" / "queries_cpu.sql").read_text()
    for part in text.split("-- name: ")[1:]:
        head, _, sql = part.partition("\n")
        name, rows, first = re.fullmatch(r"(\w+), (\d+):(.*)", head).groups()
        yield name, sql.strip().rstrip(";"), int(rows), [cell.strip() for cell in first.split(",")] if first else []


class Arc:
    def __init__(self, folder, threads):
        import arc
        self.engine = arc.open(folder / "arc")
        self.version = f"{len(self.engine.data_files('bench', 'cpu'))} files"

    def ask(self, sql):
        import pyarrow
        return pyarrow.table(self.engine.sql("bench", sql))


def load(folder):
    """Loads the rows into Arc, in a process of its own, so that its memory is not that of the queries."""
    import arc
    import host_metrics
    import pyarrow.parquet
    with arc.open(folder / "arc", flush_after=3600) as engine:
        for path in sorted((folder / "parquet").iterdir()):
            table = pyarrow.parquet.read_table(path, read_dictionary=host_metrics.TAGS)
            for at in range(0, table.num_rows, 100_000):
                engine.write("cpu", table.slice(at, 100_000), tags=host_metrics.TAGS, durability="memory", database="bench")
            engine.flush()
        files = -1
        while files != len(engine.data_files("bench", "cpu")):
            files = len(engine.data_files("bench", "cpu"))
            time.sleep(5)


class DuckDB:
    def __init__(self, folder, threads):
        import duckdb
        self.version = duckdb.__version__
        self.connection = duckdb.connect(config={"threads": threads})
        self.connection.execute(f"CREATE VIEW cpu AS SELECT * FROM read_parquet('{folder}/parquet/*.parquet')")

    def ask(self, sql):
        return self.connection.sql(sql).to_arrow_table()


class ChDB:
    def __init__(self, folder, threads):
        import chdb
        import chdb.session
        self.version = ".".join(str(part) for part in chdb.engine_version.split(".")[:2])
        self.session = chdb.session.Session()
        self.session.query(f"SET max_threads = {threads}")
        self.session.query("CREATE DATABASE bench; USE bench")
        self.session.query(f"CREATE VIEW cpu AS SELECT * FROM file('{folder}/parquet/*.parquet', Parquet)")

    def ask(self, sql):
        import pyarrow
        with pyarrow.ipc.open_file(pyarrow.BufferReader(self.session.query(sql, "Arrow").bytes())) as file:
            return file.read_all()


class DataFusion:
    def __init__(self, folder, threads):
        import datafusion
        self.version = datafusion.__version__
        self.context = datafusion.SessionContext(datafusion.SessionConfig().with_target_partitions(threads))
        self.context.register_parquet("cpu", folder / "parquet")

    def ask(self, sql):
        return self.context.sql(sql).to_arrow_table()


ENGINES = {"arc": Arc, "duckdb": DuckDB, "chdb": ChDB, "datafusion": DataFusion}


def text(value):
    if isinstance(value, bytes):
        return value.decode()
    if hasattr(value, "strftime"):
        return value.strftime("%Y-%m-%d %H:%M:%S")
    return str(value)


def differs(cell, expected):
    try:
        return abs(float(cell) - float(expected)) > 1e-9 * max(1.0, abs(float(expected)))
    except ValueError:
        return cell != expected


def check(name, answer, rows, first):
    if answer.num_rows != rows:
        raise SystemExit(f"{name}: {answer.num_rows} rows instead of {rows}")
    cells = [text(column[0].as_py()) for column in answer.columns[:len(first)]]
    if any(differs(cell, expected) for cell, expected in zip(cells, first)):
        raise SystemExit(f"{name}: {cells} instead of {first}")


def measure(name, folder, threads, rounds, out):
    """Runs in a process of its own; writes what it found as JSON."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    engine = ENGINES[name](folder, threads)
    base = peak_mb()
    figures = {"version": engine.version}
    for query, sql, rows, first in queries():
        check(f"{name}, {query}", engine.ask(sql), rows, first)
        took = []
        for _ in range(rounds):
            began = time.perf_counter()
            engine.ask(sql)
            took.append(1000 * (time.perf_counter() - began))
        figures[query] = min(took)
        print(f"{name} {query}: {figures[query]:.1f} ms", flush=True)
    figures["peak"] = peak_mb()
    print(f"{name}: {figures['version']}, {base:.0f} MB before, {figures['peak']:.0f} MB at most", flush=True)
    out.write_text(json.dumps(figures))
    # Engines that end their threads at exit take long for it, or crash.
    os._exit(0)


def peak_mb():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def number(value):
    return f"{value:.1f}" if value < 10 else f"{value:.0f}"


def table(figures):
    """Returns the lines of the table, with one column for each engine."""
    names = {"arc": "Arc", "duckdb": "DuckDB", "chdb": "chDB", "datafusion": "DataFusion"}
    heads = [names[name] + ("" if name == "arc" else f" {found['version']}") for name, found in figures.items()]
    yield "| query | " + " | ".join(heads) + " | must (goal) |"
    yield "| --- |" + " --- |" * (len(heads) + 1)
    for query, *_ in queries():
        must, goal = MUST[query]
        yield f"| {query} | " + " | ".join(number(found[query]) for found in figures.values()) + f" | {must} ({goal}) |"
    yield "| most memory, MB | " + " | ".join(number(found["peak"]) for found in figures.values()) + " | 900 (500) |"


def write(lines):
    page, mark = PAGE.read_text(), "<!-- figures: queries -->\n"
    before, found, behind = page.partition(mark)
    if not found:
        raise SystemExit(f"{PAGE} has no {mark}")
    _, end, rest = behind.partition("<!-- end of figures -->")
    PAGE.write_text(before + mark + "\n" + "\n".join(lines) + "\n\n" + end + rest)


def enter_venv(wanted="queries.txt"):
    """Runs this script again with the interpreter of .venv, once that has what the file names."""
    if not (VENV / "bin" / "python").exists():
        subprocess.run([sys.executable, "-m", "venv", VENV], check=True)
    if Path(sys.prefix) != VENV:
        install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", ROOT / "benches" / wanted]
        subprocess.run([VENV / "bin" / "python", *install], check=True)
        os.execv(VENV / "bin" / "python", [str(VENV / "bin" / "python"), *sys.argv])


def package(folder):
    """Puts the built extension beside the Python code of the package."""
    target = folder / "python" / "arc"
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(ROOT / "crates" / "arc-py" / "python" / "arc", target)
    shutil.copy(TARGET / "release" / "libarc_py.so", target / "_arc.abi3.so")
    sys.path[:0] = [str(target.parent)]


def run(work, *arguments):
    child = multiprocessing.get_context("fork").Process(target=work, args=arguments)
    child.start()
    child.join()
    if child.exitcode != 0:
        raise SystemExit(f"{work.__name__} ended with {child.exitcode}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--folder", type=Path, default=TARGET / "queries")
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=list(ENGINES))
    parser.add_argument("--no-write", action="store_true", help="leave docs/performance.md as it is")
    arguments = parser.parse_args()
    enter_venv()
    folder = arguments.folder.resolve()
    package(folder)
    import host_metrics
    if not (folder / "parquet" / f"{HOURS - 1:02}.parquet").exists():
        host_metrics.write(folder / "parquet", HOSTS, HOURS)
    if "arc" in arguments.engines and not (folder / "arc").exists():
        run(load, folder)
    figures = {}
    for name in arguments.engines:
        out = folder / f"{name}.json"
        out.unlink(missing_ok=True)
        run(measure, name, folder, arguments.threads, arguments.rounds, out)
        if not out.exists():
            raise SystemExit(f"{name} failed")
        figures[name] = json.loads(out.read_text())
    lines = list(table(figures))
    print("\n".join(lines))
    if not arguments.no_write:
        write(lines)


if __name__ == "__main__":
    main()
