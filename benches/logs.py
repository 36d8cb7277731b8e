#!/usr/bin/env python3
"""Writes the same log rows to Parquet with Arc's writer, pyarrow, DuckDB and Polars, one after the other, and prints a table.

    cargo build --release -p arc-benches --no-default-features --features engine --bin write_logs
    .venv/bin/python benches/logs.py                 # .venv: scripts/requirements.txt, as scripts/test makes it
    .venv/bin/python benches/logs.py --rows 1000000 --rounds 9

The rows are those of benches/gen_otel_logs.py, in memory as Arrow record batches before the clock starts. Each engine gets one
core (Arc with two threads gets two) by `taskset`, and Zstandard level 1; the best of some rounds counts, in turns, so that
what else runs on the machine is shared out. The folder is in memory (/dev/shm) where there is one: fsync, which only Arc
does, costs nothing there. Needs Linux.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ENGINES = ["pyarrow", "duckdb", "polars"]
WAYS = [("arrow", 1), ("arrow", 2), ("whole", 1), ("rows", 1), ("maps", 1)]


def write(engine, rows, out):
    """Returns what a round of one of the other engines took, in this process."""
    import pyarrow as pa

    table = pa.ipc.open_file(rows).read_all()
    if engine == "pyarrow":
        import pyarrow.parquet as pq

        run = lambda: pq.write_table(table, out, compression="zstd", compression_level=1)
    elif engine == "duckdb":
        import duckdb

        connection = duckdb.connect(config={"threads": 1})
        connection.register("logs", table)
        run = lambda: connection.execute(
            f"COPY (SELECT * FROM logs) TO '{out}' (FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 1)"
        )
    else:
        import polars

        frame = polars.from_arrow(table)
        run = lambda: frame.write_parquet(out, compression="zstd", compression_level=1)
    best = None
    for _ in range(3):
        start, cpu = time.perf_counter(), time.process_time()
        run()
        took = (time.process_time() - cpu, time.perf_counter() - start)
        best = min(best or took, took)
    count = table.num_rows
    return {"seconds": best[1], "cpu_seconds": best[0], "rows": count, "bytes_per_row": os.path.getsize(out) / count}


def child(command, cores):
    answer = subprocess.run(["taskset", "-c", cores, *command], check=True, stdout=subprocess.PIPE, text=True,
                            env={**os.environ, "POLARS_MAX_THREADS": "1", "OMP_NUM_THREADS": "1"})
    return json.loads(answer.stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description="Compare writers of Parquet files on log rows.")
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--binary", default=str(HERE.parent / "target/release/write_logs"))
    parser.add_argument("--engine", help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.engine:
        folder = pathlib.Path(arguments.folder)
        print(json.dumps(write(arguments.engine, str(folder / "logs.arrow"), str(folder / "other.parquet"))))
        return
    memory = "/dev/shm" if os.path.isdir("/dev/shm") else None
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        rows = f"{folder}/logs.arrow"
        generate = [sys.executable, str(HERE / "gen_otel_logs.py"), "--rows", str(arguments.rows), "--out", rows]
        subprocess.run(generate, check=True, stdout=sys.stderr)
        found = {}
        for _ in range(arguments.rounds):
            for way, threads in WAYS:
                command = [arguments.binary, way, "--input", rows, "--out", f"{folder}/out", "--threads", str(threads)]
                answer = child([*command, "--rounds", "3"], "0" if threads == 1 else "0,1")
                name = f"Arc, {way}" + (f", {threads} threads" if threads > 1 else "")
                found.setdefault(name, []).append(answer)
            for engine in ENGINES:
                command = [sys.executable, __file__, "--engine", engine, "--folder", folder]
                found.setdefault(engine, []).append(child(command, "0"))
    print("| writer | rows/s | CPU µs a row | bytes a row | heap over the input MB | allocations a row |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name, answers in found.items():
        best = min(answers, key=lambda answer: answer["seconds"])
        count, cpu_seconds = best["rows"], min(answer["cpu_seconds"] for answer in answers)
        # Of two threads only one is counted.
        cpu = "" if "threads" in name else f"{1e6 * cpu_seconds / count:.2f}"
        heap = f"{best['peak_mb']:.0f}" if "peak_mb" in best and name.split()[1][:5] in ("arrow", "whole") else ""
        allocations = f"{best['allocations_per_row']:.3f}" if "allocations_per_row" in best else ""
        print(f"| {name} | {count / best['seconds'] / 1e6:.2f} M | {cpu} | {best['bytes_per_row']:.1f} | {heap} | {allocations} |")


if __name__ == "__main__":
    main()
