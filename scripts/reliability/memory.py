#!/usr/bin/env python3
"""Writes millions of points to the release server and asks large questions under small limits: it stays alive, answers
or refuses, and its memory stays under a cap.

    python scripts/reliability/memory.py --points 50000000

Linux: the peak is `VmHWM` of the process. Ends with status 1 above `--cap-mib`, or if a point is missing.
"""

from __future__ import annotations

import argparse
import http.client
import pathlib
import random
import sys
import tempfile
import threading
import time
from collections import Counter

import bodies
from bodies import Points
from server import Server, knows
from writers import call

SETTINGS = {
    "flush_bytes": "8MiB",
    "max_buffer_bytes": "32MiB",
    "query_memory_bytes": "48MiB",
    "max_body_bytes": "4MiB",
    "max_decompressed_bytes": "16MiB",
    "max_concurrent_queries": "2",
    "wal_segment_bytes": "4MiB",
    "flush_wal_bytes": "64MiB",
}
# Groups as many as there are points, orders of everything, wide rows.
QUERIES = [
    "SELECT w, n, max(v) FROM appended GROUP BY w, n ORDER BY 3 DESC LIMIT 5",
    "SELECT * FROM appended ORDER BY v DESC, n LIMIT 100",
    "SELECT count(*) FROM (SELECT DISTINCT w, n, v FROM appended)",
    "SELECT r, array_agg(n) FROM appended GROUP BY r ORDER BY r LIMIT 5",
    "SELECT n, row_number() OVER (ORDER BY v) FROM appended LIMIT 5",
    "SELECT * FROM wide ORDER BY f0 DESC LIMIT 5",
]
WIDE_COLUMNS = 1_000


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=50_000_000)
    parser.add_argument("--writers", type=int, default=3)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--cap-mib", type=float, default=512)
    return parser.parse_args()


class Pressure:
    """Writers as fast as they are let, and who asks too much."""

    def __init__(self, server: Server, options: argparse.Namespace) -> None:
        self.server, self.options = server, options
        self.written = threading.Event()
        self.statuses: Counter[str] = Counter()
        self.stored = [0] * options.writers

    def count(self, what: str, status: int) -> None:
        # One operation of the interpreter; a lost count would only understate.
        self.statuses[f"{what} {status}"] += 1

    def write(self, number: int) -> None:
        draw = random.Random(f"{self.options.seed} {number}")
        connection = self.server.connect()
        requests = 0
        while self.stored[number] < self.options.points // self.options.writers:
            count = draw.choice([1_000, 20_000, 20_000])
            points = Points(number << 32 | requests, number, self.stored[number], count, draw.randrange(4))
            status = self.send(connection, "/api/v1/write/msgpack?db=storm", bodies.columns(points, "appended"))
            requests += 1
            if status == 204:
                self.stored[number] += count
            if requests % 50 == 0:
                fields = ",".join(f"f{i}={draw.random()}" for i in range(WIDE_COLUMNS))
                lines = "\n".join(f"wide,writer=w{number} {fields} {requests * 100 + i}" for i in range(20))
                self.send(connection, "/write?db=storm", lines.encode())

    def send(self, connection: http.client.HTTPConnection, path: str, data: bytes) -> int:
        status, _, _ = call(connection, path, data, {"x-arc-durability": "process"})
        self.count("write", status)
        if status == 503:
            time.sleep(0.05)
        return status

    def ask(self, number: int) -> None:
        while not self.written.is_set():
            for query in QUERIES[number::2]:
                time.sleep(0.2)
                status = self.query(query)
                self.count("query", status)

    def query(self, query: str) -> int:
        try:
            status, answer = self.server.request("POST", "/api/v1/query", b'{"sql": "%s"}' % query.encode(), x_arc_database="storm")
        except http.client.HTTPException:
            # What fails after the first part of the answer breaks the connection.
            return 0
        if status not in (200, 404):
            self.statuses["refusal: " + answer.decode().split('"error":"')[-1][:60]] += 1
        return status


def main() -> int:
    options = arguments()
    print(f"seed {options.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="arc-memory-") as folder:
        budget = {"memory": "128MiB"} if knows("memory <SIZE>") else {}
        server = Server(pathlib.Path(folder) / "data", **SETTINGS, **budget)
        server.wait_until_ready()
        pressure, began = Pressure(server, options), time.monotonic()
        writers = [threading.Thread(target=pressure.write, args=(number,)) for number in range(options.writers)]
        askers = [threading.Thread(target=pressure.ask, args=(number,)) for number in range(2)]
        for thread in writers + askers:
            thread.start()
        for thread in writers:
            thread.join()
        print(f"written in {time.monotonic() - began:.0f} s, peak {server.status_kib('VmHWM') / 1024:.0f} MiB", flush=True)
        pressure.written.set()
        for thread in askers:
            thread.join()
        for query in QUERIES:
            print(pressure.query(query), query, f"peak {server.status_kib('VmHWM') / 1024:.0f} MiB", flush=True)
        rows = server.sql("SELECT w, count(*), sum(n) FROM appended GROUP BY w")
        whole = {number: [count, (count - 1) * count // 2] for number, count in enumerate(pressure.stored)}
        problems = [] if {row[0]: row[1:] for row in rows} == whole else [f"stored {rows}, acknowledged {whole}"]
        peak = server.status_kib("VmHWM") / 1024
        if peak > options.cap_mib:
            problems.append(f"peak of {peak:.0f} MiB is above {options.cap_mib:g} MiB")
        if not server.is_alive():
            problems.append("the server is gone:\n" + "".join(server.log[-10:]))
        server.kill()
    for what, count in sorted(pressure.statuses.items()):
        print(f"{count:8} {what}")
    for problem in problems:
        print("VIOLATION", problem)
    print(f"seed {options.seed}: {sum(pressure.stored)} points acknowledged, peak {peak:.0f} MiB, {len(problems)} violations")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
