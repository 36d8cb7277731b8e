#!/usr/bin/env python3
"""Writes and queries at a steady rate, and watches what the server holds: memory, descriptors, files, log.

    python scripts/reliability/soak.py --minutes 60

Ends with status 1 if one of them still grows after the start, or if a point is not there once. Data files may only
grow as far as the data does: there is one file for each table and day, and a few not merged yet.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import random
import statistics
import sys
import tempfile
import threading
import time

import bodies
import oracle
from bodies import Points
from oracle import Fate, Oracle, Request, promise
from server import Server
from writers import call

QUERIES = [
    "SELECT writer, count(*), max(n) FROM lines GROUP BY writer",
    "SELECT time_bucket(INTERVAL '1 minute', time) AS minute, avg(v) FROM keyed GROUP BY minute ORDER BY minute LIMIT 20",
    "SELECT n, v FROM appended ORDER BY v DESC LIMIT 10",
    "SELECT count(DISTINCT r) FROM rows",
]
# What may grow in the watched part of the run, relative to its mean, and in units that are always forgiven.
TOLERANCE = {"rss_mib": (0.15, 32), "descriptors": (0.15, 8), "files": (0.35, 24), "wal_mib": (0.35, 8)}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--writers", type=int, default=4)
    parser.add_argument("--points-per-second", type=int, default=20_000, help="of all writers together")
    return parser.parse_args()


class Load:
    """Writers at a rate, and one who asks."""

    def __init__(self, server: Server, options: argparse.Namespace) -> None:
        self.server, self.options = server, options
        self.stop = threading.Event()
        self.requests: list[Request] = []
        self.errors: list[str] = []
        self.queries = 0
        threads = [threading.Thread(target=self.guard, args=(self.write, number)) for number in range(options.writers)]
        self.threads = threads + [threading.Thread(target=self.guard, args=(self.ask, 0))]
        for thread in self.threads:
            thread.start()

    def guard(self, work, number: int) -> None:  # type: ignore[no-untyped-def]
        try:
            work(number)
        except Exception as error:
            self.errors.append(f"{work.__name__} {number}: {error!r}")

    def write(self, number: int) -> None:
        draw = random.Random(f"{self.options.seed} {number}")
        connection = self.server.connect()
        sent, requests, began = 0, 0, time.monotonic()
        while not self.stop.is_set():
            count = draw.choice([1, 100, 1_000, 2_000])
            points = Points(number << 32 | requests, number, sent, count, draw.randrange(4))
            body = bodies.draw(draw, points)
            body.headers["x-arc-durability"] = draw.choice(["disk", "process", "memory"])
            request = Request(points, body.tables)
            self.requests.append(request)
            status, answer, *_ = call(connection, body.path, body.data, body.headers)
            request.fate, request.what = promise(status, answer), str(status)
            if status != 204:
                self.errors.append(f"{status} {answer!r}")
            requests, sent = requests + 1, sent + count
            ahead = sent * self.options.writers / self.options.points_per_second - (time.monotonic() - began)
            self.stop.wait(max(0, ahead))

    def ask(self, _: int) -> None:
        time.sleep(1)
        while not self.stop.wait(0.5):
            self.server.sql(QUERIES[self.queries % len(QUERIES)])
            self.queries += 1

    def end(self) -> None:
        self.stop.set()
        for thread in self.threads:
            thread.join()


def sample(server: Server) -> dict[str, float]:
    metrics = server.metrics()
    files = sum(1 for _ in (server.data_dir / "data").rglob("*.parquet"))
    return {
        "rss_mib": server.status_kib("VmRSS") / 1024,
        "descriptors": len(os.listdir(f"/proc/{server.process.pid}/fd")),
        "files": files,
        "wal_mib": metrics["arc_wal_dir_bytes"] / 2**20,
    }


def growth(samples: list[dict[str, float]], name: str) -> tuple[float, float]:
    """Returns the mean, and how much a straight line through the samples rises from the first to the last."""
    values = [one[name] for one in samples]
    places = range(len(values))
    mean, middle = statistics.fmean(values), statistics.fmean(places)
    spread = sum((place - middle) ** 2 for place in places)
    slope = sum((place - middle) * (value - mean) for place, value in zip(places, values)) / spread
    return mean, slope * (len(values) - 1)


def judge(samples: list[dict[str, float]]) -> list[str]:
    """Compares the second half of the run with what may grow in it."""
    problems, watched = [], samples[len(samples) // 2 :]
    if len(watched) < 2:
        return ["it ended before anything could be compared"]
    for name, (share, forgiven) in TOLERANCE.items():
        mean, rise = growth(watched, name)
        print(f"{name}: mean {mean:.1f}, rises by {rise:+.1f} in the second half, largest {max(s[name] for s in samples):.1f}")
        if rise > max(mean * share, forgiven):
            problems.append(f"{name} grows: by {rise:.1f} at a mean of {mean:.1f}")
    return problems


def main() -> int:
    options = arguments()
    print(f"seed {options.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="arc-soak-") as folder:
        settings = {"flush_bytes": "4MiB", "flush_after": "5s", "wal_segment_bytes": "1MiB", "compaction_quiet": "1s"}
        server = Server(pathlib.Path(folder) / "data", compaction_grace="2s", **settings)
        server.wait_until_ready()
        load, samples = Load(server, options), []
        end = time.monotonic() + options.minutes * 60
        while time.monotonic() < end and not load.errors:
            time.sleep(min(5.0, options.minutes * 2))
            samples.append(sample(server))
        load.end()
        problems = judge(samples) + load.errors
        check = Oracle()
        check.add(load.requests)
        check.check(oracle.ask_server(server), "after the load")
        problems += check.violations + [line for line in server.log if '"level":"ERROR"' in line]
        points = sum(request.points.count for request in load.requests if request.fate is Fate.STORED)
        merges = server.logged('"merged data files"')
        server.stop()
    for problem in problems:
        print("VIOLATION", problem[:500])
    print(f"seed {options.seed}: {options.minutes:g} minutes, {points} points in {len(load.requests)} requests, "
          f"{load.queries} queries, {merges} merges, {len(problems)} violations")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
