#!/usr/bin/env python3
"""Writes millions of points to the release server and asks large questions under a cap on its memory: it stays alive,
answers or refuses, and no acknowledged point is missing.

    python scripts/reliability/memory.py --points 50000000

The server is told half of the cap as its `--memory`, and nothing else of it: all other limits follow from that, or are the
defaults. With `--control-group FOLDER`, a group that this user may write to, of cgroup version 2 that hands on `memory` or of
version 1 (`/sys/fs/cgroup/memory`), it runs in a group of its own with the cap as its limit and no swap, and finds out about it
by itself: above the cap the kernel kills it. Without, the peak of what is resident (`VmHWM`) is compared with the cap. Linux.
Ends with status 1 above the cap, if the server is gone, or if a point is missing.
"""

from __future__ import annotations

import argparse
import http.client
import json
import pathlib
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from typing import Any

import bodies
from bodies import Points
from group import Group
from server import Server
from writers import call

# A log of no more than its share keeps restarts short; it takes disk, not memory.
SETTINGS = {"flush_wal_bytes": "256MiB"}
# Groups as many as there are points, orders of everything, wide rows.
QUERIES = [
    "SELECT w, n, max(v) FROM appended GROUP BY w, n ORDER BY 3 DESC LIMIT 5",
    "SELECT * FROM appended ORDER BY v DESC, n LIMIT 100",
    "SELECT count(*) FROM (SELECT DISTINCT w, n, v FROM appended)",
    "SELECT r, array_agg(n) FROM appended GROUP BY r ORDER BY r LIMIT 5",
    "SELECT w, length(string_agg(n::text, ',')) FROM appended GROUP BY w",
    "SELECT a.n, count(*) FROM appended a JOIN appended b ON a.n = b.n GROUP BY a.n ORDER BY 2 DESC LIMIT 5",
    "SELECT n, row_number() OVER (ORDER BY v) FROM appended LIMIT 5",
    "SELECT * FROM wide ORDER BY f0 DESC LIMIT 5",
]
# Known to go above the cap: DataFusion sorts the values of such a group in one step, as one object for each.
BEYOND = "SELECT w, length(string_agg(n::text, ',' ORDER BY v)) FROM appended GROUP BY w"
WIDE_COLUMNS = 1_000
# Points that are counted at a time.
PIECE = 1_000_000


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=50_000_000)
    parser.add_argument("--writers", type=int, default=3)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--askers", type=int, default=2)
    parser.add_argument("--cap-mib", type=int, default=256)
    parser.add_argument("--control-group", type=pathlib.Path)
    parser.add_argument("--beyond", action="store_true", help="also ask what is known to go above the cap")
    options = parser.parse_args()
    if options.beyond:
        QUERIES.append(BEYOND)
    return options


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
        status, *_ = call(connection, path, data, {"x-arc-durability": "process"})
        self.count("write", status)
        if status == 503:
            time.sleep(0.05)
        return status

    def ask(self, number: int) -> None:
        while not self.written.is_set():
            for query in QUERIES[number :: self.options.askers]:
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
            reason = json.loads(answer).get("error", "").split(",")[0]
            self.statuses[f"refusal: {reason}"] += 1
        return status


def patiently(server: Server, query: str) -> list[list[Any]]:
    """Asks again for two minutes where there is no memory for it now: merges of what was written may still be running."""
    deadline = time.monotonic() + 120
    while True:
        try:
            return server.sql(query)
        except RuntimeError as error:
            if ": 503 " not in str(error) or time.monotonic() > deadline:
                raise
        time.sleep(0.5)


def counted(server: Server, stored: list[int]) -> list[str]:
    """Counts the points of each writer in pieces, each of them a query of little memory; returns what is wrong."""
    problems = []
    for writer, count in enumerate(stored):
        for low in range(0, count, PIECE):
            high = min(low + PIECE, count)
            query = f"SELECT count(*), count(DISTINCT n), min(n), max(n) FROM appended WHERE w = {writer} AND n >= {low} AND n < {high}"
            row = patiently(server, query)[0]
            if row != [high - low, high - low, low, high - 1]:
                problems.append(f"writer {writer} from {low} to {high}: {row}")
        row = patiently(server, f"SELECT count(*), sum(n) FROM appended WHERE w = {writer}")[0]
        if row != [count, (count - 1) * count // 2]:
            problems.append(f"writer {writer}: stored {row}, acknowledged {count}")
    return problems


def main() -> int:
    options = arguments()
    print(f"seed {options.seed}", flush=True)
    group = Group(options.control_group, options.cap_mib)
    budget = {} if options.control_group else {"memory": f"{options.cap_mib // 2}MiB"}
    with tempfile.TemporaryDirectory(prefix="arc-memory-") as folder:
        server = Server(pathlib.Path(folder) / "data", before=group.enter, **SETTINGS, **budget)
        server.wait_until_ready()
        try:
            return judge(run(server, options), server, group, options)
        finally:
            server.kill()
            group.remove()


def run(server: Server, options: argparse.Namespace) -> Pressure:
    """Writes and asks at the same time, then asks once more in peace."""
    pressure, began = Pressure(server, options), time.monotonic()
    writers = [threading.Thread(target=pressure.write, args=(number,)) for number in range(options.writers)]
    askers = [threading.Thread(target=pressure.ask, args=(number,)) for number in range(options.askers)]
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
    return pressure


def judge(pressure: Pressure, server: Server, group: Group, options: argparse.Namespace) -> int:
    problems = counted(server, pressure.stored)
    peak, of_group = server.status_kib("VmHWM") / 1024, group.peak_mib()
    if peak > options.cap_mib:
        problems.append(f"peak of {peak:.0f} MiB is above {options.cap_mib} MiB")
    if not server.is_alive():
        problems.append("the server is gone:\n" + "".join(server.log[-10:]))
    for what, count in sorted(pressure.statuses.items()):
        print(f"{count:8} {what}")
    for problem in problems:
        print("VIOLATION", problem)
    rest = f", at rest {server.status_kib('VmRSS') / 1024:.0f} MiB" + (f", group {of_group:.0f} MiB" if of_group else "")
    print(f"seed {options.seed}: {sum(pressure.stored)} points acknowledged and counted, peak {peak:.0f} MiB{rest}, {len(problems)} violations")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
