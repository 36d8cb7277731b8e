#!/usr/bin/env python3
"""Set two builds of arc-server beside each other: ingest, replay and the ten queries, in turn on one machine.

    git worktree add ../before COMMIT && (cd ../before && cargo build --release -p arc-server)
    cargo build --release -p arc-server -p arc-benches
    taskset -c 0,1 benches/pairs.py ../before/target/release/arc-server target/release/arc-server [--rounds 7] [--parts ingest ...]

Each round asks both builds, the one that comes first changing. The tables have the medians of each build, and the median of the
rounds' ratios with the least and the most. CPU is that of the server's process. Needs Linux, and what benches/queries.txt
names. Nothing else should run.
"""
import argparse
import http.client
import os
import statistics
import subprocess
import sys
import tempfile
import time
import zlib
from pathlib import Path

import measure
from host_metrics import TAGS, write
from queries import queries

INGEST = [("lp", "short"), ("lp", "tsbs"), ("msgpack-columnar", "iot"), ("msgpack-columnar", "tsbs"), ("msgpack-row", "iot")]
TICKS = os.sysconf("SC_CLK_TCK")


class Build(measure.Server):
    """A server of one build."""

    def __init__(self, program, folder):
        # Where the server of `measure` is looked for.
        self.home = Path(folder) / f"build-{zlib.crc32(str(program).encode()):08x}"
        self.home.mkdir(exist_ok=True)
        if not (self.home / "arc-server").exists():
            (self.home / "arc-server").symlink_to(Path(program).resolve())
        super().__init__(folder)

    def start(self):
        measure.TARGET = self.home
        return super().start()

    def cpu_s(self):
        return self.cpu_ticks() / TICKS


def load(target, server, **options):
    """Runs the load generator of this build, whatever the server's."""
    measure.TARGET = target
    return measure.load(server, **options)


def in_turn(programs, rounds, measured):
    """Returns the figures of each build, round by round: `measured(program)` gives a dictionary of them."""
    figures = [[], []]
    for number in range(rounds):
        for which in [0, 1] if number % 2 == 0 else [1, 0]:
            figures[which].append(measured(programs[which]))
    return figures


def table(title, figures):
    print(f"\n| {title} | before | now | now/before | least | most |\n| --- | --- | --- | --- | --- | --- |")
    for name in figures[0][0]:
        before, now = ([one[name] for one in of] for of in figures)
        ratios = [b / a for a, b in zip(before, now)]
        print(f"| {name} | {statistics.median(before):.3f} | {statistics.median(now):.3f} | {statistics.median(ratios):.3f} "
              f"| {min(ratios):.3f} | {max(ratios):.3f} |", flush=True)


def ingest(a, target):
    for kind, shape in INGEST:
        def once(program):
            with Build(program, a.folder) as server:
                report = load(target, server, kind=kind, shape=shape, requests=a.requests, seconds=600, settle=1)
                return {f"{kind} {shape}, CPU s/M points": report["server"]["cpu_seconds_per_million_points"]}
        table("ingest", in_turn(a.builds, a.rounds, once))


def replay(a, target):
    for kind, shape in [("lp", "tsbs"), ("msgpack-columnar", "iot")]:
        def once(program):
            with Build(program, a.folder) as server:
                server.stop()
                server.options = ("--flush-after", "1h", "--flush-bytes", "4GiB", "--max-buffer-bytes", "4GiB", "--flush-wal-bytes", "100GiB")
                server.start()
                load(target, server, kind=kind, shape=shape, requests=a.requests, seconds=600)
                server.stop(measure.signal.SIGKILL)
                ready_s = server.start()
                return {f"{kind} {shape}, s until ready": ready_s, f"{kind} {shape}, CPU s": server.cpu_s()}
        table("replay", in_turn(a.builds, a.rounds, once))


def ask(connection, sql):
    connection.request("POST", "/api/v1/query/arrow?db=bench", '{"sql": %s}' % measure.json.dumps(sql))
    answer = connection.getresponse()
    body = answer.read()
    if answer.status != 200:
        sys.exit(f"{sql}: {body[:300]}")
    return body


def ten(a, _):
    parquet = Path(a.folder) / "parquet"
    if not parquet.exists():
        write(parquet, 2000, 24)
    asked = [one for one in queries() if not a.queries or one[0] in a.queries]
    servers = []
    for program in a.builds:
        server = Build(program, a.folder)
        server.stop()
        data = server.data / "arc"
        subprocess.run([program, "import", "--db", "bench", "--table", "cpu", "--tags", ",".join(TAGS), "--data-dir", data,
                        "--log-level", "warn", *sorted(parquet.glob("*.parquet"))], check=True, stdout=subprocess.DEVNULL)
        server.start()
        wait = http.client.HTTPConnection("127.0.0.1", server.port, timeout=600)
        wait.request("POST", "/api/v1/compaction/trigger", "{}")
        wait.getresponse().read()
        servers.append((server, wait))
    time.sleep(a.settle)
    try:
        for one in asked:
            name, sql = one[0], one[1]
            def once(program):
                server, connection = servers[0 if program is a.builds[0] else 1]
                cpu, times = server.cpu_s(), []
                for _ in range(a.repeats):
                    began = time.perf_counter()
                    ask(connection, sql)
                    times.append(time.perf_counter() - began)
                return {f"{name}, ms": statistics.median(times) * 1000,
                        f"{name}, CPU ms": max(server.cpu_s() - cpu, 1 / TICKS) / a.repeats * 1000}
            once(a.builds[0]), once(a.builds[1])
            table("query", in_turn(a.builds, a.rounds, once))
    finally:
        for server, _ in servers:
            server.__exit__()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("builds", nargs=2, metavar="PROGRAM", help="arc-server before, and now")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--requests", type=int, default=4_000, help="of 1,000 points, for ingest and replay")
    parser.add_argument("--repeats", type=int, default=10, help="of a query in one round")
    parser.add_argument("--queries", nargs="+", help="of the ten only these")
    parser.add_argument("--settle", type=float, default=60, help="seconds for merges before the queries")
    parser.add_argument("--folder", default=None, help="on the disk that is measured")
    parser.add_argument("--parts", nargs="+", choices=["ingest", "replay", "ten"], default=["ingest", "replay", "ten"])
    a = parser.parse_args()
    a.folder = a.folder or tempfile.mkdtemp(prefix="arc-pairs-")
    target = measure.TARGET
    for part in a.parts:
        {"ingest": ingest, "replay": replay, "ten": ten}[part](a, target)


if __name__ == "__main__":
    main()
