#!/usr/bin/env python3
"""Measure how fast one column of random integers leaves a built arc-server, and how fast it gets in.

    cargo build --release -p arc-server
    .venv/bin/python benches/transfer.py [--rows 1000000 10000000] [--rounds 7] [--folder DIR] [--server PATH] [--tables DIR]

Needs pyarrow and Linux. Everything is on loopback and the client on the same cores. Beside it runs pyarrow's own Flight
server, in a process of its own, which holds the column in memory and throws away what it gets. Prints the tables of
docs/performance.md, and with --tables writes them to files: of times (best of the rounds, and the CPU seconds of the
server in that round), and of exports in each format: bytes, time until the first of them, memory of the server.

What a client does counts until the last byte is in its memory: as an Arrow table by Flight and Arrow IPC, else as bytes.
The time to parse them, or to plan and run the query inside of the server, is not taken out: the latter is part of it.
"""
import argparse
import json
import multiprocessing
import os
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path

import numpy
import pyarrow
from pyarrow import flight, ipc

ROOT = Path(__file__).resolve().parent.parent
SERVER = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target").resolve() / "release" / "arc-server"
CHUNK_ROWS = 65_536
FORMS = {
    "Flight": "flight",
    "Arrow IPC over HTTP": "arrow",
    "Parquet over HTTP": "parquet",
    "MessagePack over HTTP": "msgpack",
    "CSV over HTTP": "csv",
    "NDJSON over HTTP": "ndjson",
    "JSON over HTTP": "json",
}


class Process:
    """A process whose CPU time is read from /proc."""

    def __init__(self, pid):
        self.pid = pid

    def cpu(self):
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory(self, name):
        """Returns VmRSS, or VmHWM since `forget_peak`, in MB."""
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 / 1e6 for line in lines if line.startswith(name))

    def forget_peak(self):
        Path(f"/proc/{self.pid}/clear_refs").write_text("5")


def best(process, rounds, work):
    """Returns the seconds of the fastest round, and the CPU seconds of the process in it."""
    results = []
    for _ in range(rounds):
        cpu, began = process.cpu(), time.perf_counter()
        work()
        results.append((time.perf_counter() - began, process.cpu() - cpu))
    return min(results)


class Arc(Process):
    """An arc-server over a fresh data directory."""

    program = SERVER

    def __init__(self, folder, *options):
        self.data = Path(tempfile.mkdtemp(prefix="arc-transfer-", dir=folder))
        self.start(*options)

    def start(self, *options):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        command = [self.program, "serve", "--no-auth", "--data-dir", self.data / "arc", "--http", f"127.0.0.1:{self.port}", "--log-level", "warn"]
        self.process = subprocess.Popen([*command, *options])
        self.pid = self.process.pid
        while True:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{self.port}/ready", timeout=60).close()
                break
            except OSError:
                time.sleep(0.01)
        self.client = flight.connect(f"grpc://127.0.0.1:{self.port}")

    def end(self):
        self.client.close()
        self.process.terminate()
        self.process.wait()

    def stop(self):
        self.end()
        shutil.rmtree(self.data)

    def metric(self, name):
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/metrics", headers={"Accept": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)[name]

    def put(self, table, name, **headers):
        options = flight.FlightCallOptions(headers=[(k.replace("_", "-").encode(), v.encode()) for k, v in headers.items()])
        writer, reader = self.client.do_put(flight.FlightDescriptor.for_path(name), table.schema, options)
        with writer:
            writer.write_table(table, max_chunksize=CHUNK_ROWS)
            writer.done_writing()
            reader.read()

    def get(self, sql):
        return self.client.do_get(flight.Ticket(json.dumps({"database": "default", "sql_query": sql}))).read_all()

    def http(self, path, sql):
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data=json.dumps({"sql": sql}).encode())
        return urllib.request.urlopen(request, timeout=600)

    def arrow(self, sql):
        with self.http("/api/v1/query/arrow", sql) as answer:
            return ipc.open_stream(answer).read_all()

    def bytes(self, sql, form):
        with self.http(f"/api/v1/query?format={form}", sql) as answer:
            return answer.read()

    def export(self, sql, form):
        """Throws an answer away; returns the seconds until its first bytes and until its last, and how many they are."""
        began = time.perf_counter()
        if form == "flight":
            first, size = 0, 0
            for chunk in self.client.do_get(flight.Ticket(json.dumps({"database": "default", "sql_query": sql}))):
                first = first or time.perf_counter() - began
                size += chunk.data.nbytes
            return first, time.perf_counter() - began, size
        with self.http(f"/api/v1/query?format={form}", sql) as answer:
            size = len(answer.read(1))
            first = time.perf_counter() - began
            while piece := answer.read(1 << 20):
                size += len(piece)
        return first, time.perf_counter() - began, size


class Peer(flight.FlightServerBase):
    """What pyarrow's own server does with the least work."""

    def __init__(self, location, rows):
        self.table = pyarrow.table({"v": numbers(rows)})
        # It serves from here on.
        super().__init__(location)

    def do_get(self, context, ticket):
        return flight.RecordBatchStream(self.table)

    def do_put(self, context, descriptor, reader, writer):
        for _ in reader:
            pass


def peer(port, rows):
    with Peer(f"grpc://127.0.0.1:{port}", rows) as server:
        server.serve()


def numbers(rows):
    return pyarrow.array(numpy.random.default_rng(1).integers(-(2**63), 2**63 - 1, rows))


def timed(rows):
    return pyarrow.table({"time": pyarrow.array(numpy.arange(rows)).cast(pyarrow.timestamp("ns")), "v": numbers(rows)})


def measure_peer(rows, rounds):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    child = multiprocessing.get_context("spawn").Process(target=peer, args=(port, rows))
    child.start()
    client = flight.connect(f"grpc://127.0.0.1:{port}")
    client.wait_for_available(timeout=60)

    def put(table):
        writer, _ = client.do_put(flight.FlightDescriptor.for_path("v"), table.schema)
        with writer:
            writer.write_table(table, max_chunksize=CHUNK_ROWS)

    yield "pyarrow's server, Flight get", best(Process(child.pid), rounds, lambda: client.do_get(flight.Ticket(b"")).read_all())
    one, two = pyarrow.table({"v": numbers(rows)}), timed(rows)
    yield "pyarrow's server, Flight put", best(Process(child.pid), rounds, lambda: put(one))
    yield "pyarrow's server, Flight put with a time", best(Process(child.pid), rounds, lambda: put(two))
    client.close()
    child.terminate()
    child.join()


def measure_arc(folder, rows, rounds):
    table = timed(rows)
    sql = "SELECT v FROM numbers"
    server = Arc(folder, "--flush-after", "1h", "--flush-bytes", "2GB", "--max-buffer-bytes", "4GB")
    server.put(table, "numbers", x_arc_durability="memory")
    assert server.get(sql).num_rows == rows
    yield "Flight get, from the buffer", best(server, rounds, lambda: server.get(sql))
    yield "Arrow IPC over HTTP, from the buffer", best(server, rounds, lambda: server.arrow(sql))
    server.stop()
    server = Arc(folder, "--flush-after", "1s")
    server.put(table, "numbers")
    while server.metric("arc_buffer_records_buffered") > 0:
        time.sleep(0.2)
    for name, work in [("Flight get", server.get), ("Arrow IPC over HTTP", server.arrow)]:
        yield f"{name}, from files", best(server, rounds, lambda work=work: work(sql))
    for name, form in FORMS.items():
        if form not in ("flight", "arrow"):
            yield f"{name}, from files", best(server, min(rounds, 3), lambda form=form: server.bytes(sql, form))
    server.stop()
    for level in ["memory", "process", "disk"]:
        server = Arc(folder, "--flush-after", "1h", "--flush-bytes", "2GB", "--max-buffer-bytes", "4GB", "--compaction", "false")
        tries = iter(range(rounds))

        def put(level=level, tries=tries, server=server):
            server.put(table, f"numbers{next(tries)}", x_arc_durability=level)

        yield f"Flight put with a time, {level}", best(server, min(rounds, 3), put)
        server.stop()


def measure_exports(folder, rows):
    """Exports a table with a time, a tag and three fields from files, once in each format."""
    random = numpy.random.default_rng(2)
    hosts = pyarrow.DictionaryArray.from_arrays(pyarrow.array(numpy.arange(rows) % 100, pyarrow.int32()), [f"host-{n}" for n in range(100)])
    table = pyarrow.table({
        "time": pyarrow.array(numpy.arange(rows) * 1_000_000 + 1_700_000_000_000_000_000).cast(pyarrow.timestamp("ns")),
        "host": hosts,
        "usage": random.random(rows).round(2) * 100,
        "count": random.integers(0, 1_000_000, rows),
        "ok": random.random(rows) > 0.5,
    })
    server = Arc(folder, "--flush-after", "1s")
    server.put(table, "metrics", x_arc_tags="host")
    del table
    while server.metric("arc_buffer_records_buffered") > 0:
        time.sleep(0.2)
    for name, form in FORMS.items():
        # One that has ingested nothing, and whose threads have all run.
        server.end()
        server.start()
        server.export("SELECT * FROM metrics LIMIT 100000", form)
        before = server.memory("VmRSS")
        server.forget_peak()
        first, last, size = server.export("SELECT * FROM metrics", form)
        most = server.memory("VmHWM")
        yield name, (first * 1e3, last, size / 1e6, most - before, most)
    server.stop()


def write(folder, section, columns, lines):
    text = "".join(f"| {' | '.join(line)} |\n" for line in [columns, ["---"] * len(columns), *lines])
    print(text, flush=True)
    if folder:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{section}.md").write_text(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 10_000_000])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--folder", default=None)
    parser.add_argument("--server", type=Path, default=SERVER)
    parser.add_argument("--tables", type=Path, default=None)
    arguments = parser.parse_args()
    Arc.program = arguments.server
    figures = {}
    for rows in arguments.rows:
        for source in [measure_peer(rows, arguments.rounds), measure_arc(arguments.folder, rows, arguments.rounds)]:
            for name, result in source:
                figures.setdefault(name, []).append(result)
                print(f"{rows} {name}: {result[0]:.3f} s, CPU {result[1]:.2f} s", flush=True)
    columns = ["", *(f"{rows // 1_000_000} M rows, s" for rows in arguments.rows)]
    lines = [[name, *(f"{seconds:.3f} ({cpu:.2f})" for seconds, cpu in results)] for name, results in figures.items()]
    write(arguments.tables, "times", columns, lines)
    columns = ["", "first bytes, ms", "all, s", "MB", "memory of the server above before, MB", "in all, MB"]
    exports = measure_exports(arguments.folder, max(arguments.rows))
    lines = [[name, f"{first:.0f}", f"{last:.2f}", f"{size:.0f}", f"{above:.0f}", f"{most:.0f}"] for name, (first, last, size, above, most) in exports]
    write(arguments.tables, "exports", columns, lines)


if __name__ == "__main__":
    main()
