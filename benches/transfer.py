#!/usr/bin/env python3
"""Measure how fast one column of random integers leaves a built arc-server, and how fast it gets in.

    cargo build --release -p arc-server
    .venv/bin/python benches/transfer.py [--rows 1000000 10000000] [--rounds 7] [--folder DIR]

Needs pyarrow and Linux. Everything is on loopback and the client on the same cores. Beside it runs pyarrow's own Flight
server, in a process of its own, which holds the column in memory and throws away what it gets. Prints the table of
docs/performance.md: best of the rounds, and the CPU seconds of the server in that round.

What a client does counts until the last byte is in its memory: as an Arrow table, or for JSON as text. The time to
parse JSON, or to plan and run the query inside of the server, is not taken out: the latter is part of it.
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


class Process:
    """A process whose CPU time is read from /proc."""

    def __init__(self, pid):
        self.pid = pid

    def cpu(self):
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def peak_mb(self):
        line = next(line for line in Path(f"/proc/{self.pid}/status").read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) // 1024


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

    def __init__(self, folder, *options):
        self.data = Path(tempfile.mkdtemp(prefix="arc-transfer-", dir=folder))
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        command = [SERVER, "serve", "--data-dir", self.data / "arc", "--http", f"127.0.0.1:{self.port}", "--log-level", "warn"]
        self.process = subprocess.Popen([*command, *options])
        super().__init__(self.process.pid)
        while True:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{self.port}/ready", timeout=60).close()
                break
            except OSError:
                time.sleep(0.01)
        self.client = flight.connect(f"grpc://127.0.0.1:{self.port}")

    def stop(self):
        self.client.close()
        self.process.terminate()
        self.process.wait()
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

    def json(self, sql):
        with self.http("/api/v1/query", sql) as answer:
            return answer.read()


class Peer(flight.FlightServerBase):
    """What pyarrow's own server does with the least work."""

    def __init__(self, location, rows):
        super().__init__(location)
        self.table = pyarrow.table({"v": numbers(rows)})

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


def measure_peer(rows, rounds):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    child = multiprocessing.get_context("spawn").Process(target=peer, args=(port, rows))
    child.start()
    client = flight.connect(f"grpc://127.0.0.1:{port}")
    client.wait_for_available(timeout=60)
    table = pyarrow.table({"v": numbers(rows)})

    def put():
        writer, _ = client.do_put(flight.FlightDescriptor.for_path("v"), table.schema)
        with writer:
            writer.write_table(table, max_chunksize=CHUNK_ROWS)

    yield "pyarrow's server, Flight get", best(Process(child.pid), rounds, lambda: client.do_get(flight.Ticket(b"")).read_all())
    yield "pyarrow's server, Flight put", best(Process(child.pid), rounds, put)
    client.close()
    child.terminate()
    child.join()


def measure_arc(folder, rows, rounds):
    table = pyarrow.table({"time": pyarrow.array(range(rows), pyarrow.timestamp("ns")), "v": numbers(rows)})
    sql = "SELECT v FROM numbers"
    server = Arc(folder, "--flush-after", "1h", "--flush-bytes", "2GB", "--max-buffer-bytes", "4GB")
    server.put(table, "numbers", x_arc_durability="memory")
    assert server.get(sql).num_rows == rows
    yield "Flight get, from the buffer", best(server, rounds, lambda: server.get(sql))
    server.stop()
    server = Arc(folder, "--flush-after", "1s")
    server.put(table, "numbers")
    while server.metric("arc_buffer_records_buffered") > 0:
        time.sleep(0.2)
    peak = server.peak_mb()
    for name, work in [("Flight get", server.get), ("Arrow IPC over HTTP", server.arrow), ("JSON over HTTP", server.json)]:
        yield f"{name}, from files", best(server, rounds if name != "JSON over HTTP" else 3, lambda work=work: work(sql))
    print(f"peak memory: {peak} MB before the queries, {server.peak_mb()} MB after", flush=True)
    server.stop()
    for level in ["memory", "process", "disk"]:
        server = Arc(folder, "--flush-after", "1h", "--flush-bytes", "2GB", "--max-buffer-bytes", "4GB", "--compaction", "false")
        tries = iter(range(rounds))

        def put(level=level, tries=tries, server=server):
            server.put(table, f"numbers{next(tries)}", x_arc_durability=level)

        yield f"Flight put with a time, {level}", best(server, min(rounds, 3), put)
        server.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 10_000_000])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--folder", default=None)
    arguments = parser.parse_args()
    figures = {}
    for rows in arguments.rows:
        for source in [measure_peer(rows, arguments.rounds), measure_arc(arguments.folder, rows, arguments.rounds)]:
            for name, result in source:
                figures.setdefault(name, []).append(result)
                print(f"{rows} {name}: {result[0]:.3f} s, CPU {result[1]:.2f} s", flush=True)
    print("| | " + " | ".join(f"{rows // 1_000_000} M, s (server CPU s)" for rows in arguments.rows) + " |")
    print("| --- |" + " --- |" * len(arguments.rows))
    for name, results in figures.items():
        print(f"| {name} | " + " | ".join(f"{seconds:.3f} ({cpu:.2f})" for seconds, cpu in results) + " |")


if __name__ == "__main__":
    main()
