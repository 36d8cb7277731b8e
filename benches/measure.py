#!/usr/bin/env python3
"""Measure a built arc-server with the load generator and print the tables of docs/performance.md.

    cargo build --release -p arc-server -p arc-benches
    python3 benches/measure.py [--seconds 10] [--rounds 5] [--folder DIR] [--tables DIR] [section ...]

Sections: paths, encodings, durability, requests, single, size, kill, start, dashboards (default: all). Needs Python 3.9+ and Linux, nothing else.
Every section starts servers of its own, on a free port and with a fresh data directory below --folder (default: the
folder for temporary files; it must be on the disk that is to be measured, not in memory). Nothing else should run.
"""
import argparse
import http.client
import json
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target").resolve() / "release"

PATHS = [("msgpack-columnar", "iot"), ("msgpack-columnar", "tsbs"), ("msgpack-row", "iot"), ("msgpack-row", "tsbs"),
         ("lp", "iot"), ("lp", "short"), ("lp", "tsbs")]


class Server:
    """A server process on a data directory, its own or that of another one; restarted on the same port."""

    def __init__(self, folder, *options, of=None):
        self.of = of
        self.data = of.data if of else Path(tempfile.mkdtemp(prefix="arc-measure-", dir=folder))
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.options = options
        self.took = self.start()

    def start(self):
        """Starts it and returns the seconds until it is ready."""
        program = TARGET / "arc-server"
        # Earlier builds, which benches/pairs.py asks as well, let everybody in by themselves.
        settings = subprocess.run([program, "serve", "--help"], capture_output=True, text=True).stdout
        command = [program, "serve", *(["--no-auth"] if "--no-auth" in settings else []), "--data-dir", self.data / "arc",
                   "--http", f"127.0.0.1:{self.port}", "--log-level", "warn", *self.options]
        began = time.perf_counter()
        self.process = subprocess.Popen(command)
        while True:
            try:
                with urllib.request.urlopen(f"{self.url}/ready", timeout=60):
                    return time.perf_counter() - began
            except OSError:
                if self.process.poll() is not None:
                    sys.exit(f"the server ended with {self.process.returncode}")
                time.sleep(0.002)

    def stop(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        self.process.wait()

    def proc(self, key):
        """A figure of /proc/PID/status in MB."""
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith(key):
                return int(line.split()[1]) * 1024 / 1e6
        return 0.0

    def cpu_ticks(self):
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])

    def files(self, pattern):
        return [path for path in (self.data / "arc").rglob(pattern) if path.is_file()]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.stop(signal.SIGKILL)
        if not self.of:
            shutil.rmtree(self.data)


def load(server, **options):
    """Runs the load generator; ends the program if a point is lost, doubled or refused."""
    command = [TARGET / "load", "--url", server.url, "--pid", str(server.process.pid), "--json"]
    for name, value in options.items():
        name = "--" + name.replace("_", "-")
        command += [name] if value is True else [name, str(value)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    report = json.loads(done.stdout) if done.stdout else {}
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\nis not sound: {report}")
    if report["refused_points"]:
        print(f"(refused: {report['refusals']}, {report['reason']})")
    return report


# The lines of the table that is being printed.
lines = []


def line(text):
    lines.append(text)
    print(text, flush=True)


def table(*columns):
    lines.clear()
    row(*columns)
    line("|" + " --- |" * len(columns))


def row(*cells):
    line("| " + " | ".join(cells) + " |")


def ingest_row(report, *first):
    latency = report["latency_ms"]
    row(*first, f"{report['server']['cpu_seconds_per_million_points']:.2f}",
        f"{report['generator']['cpu_seconds_per_million_points']:.2f}",
        f"{report['points_per_second'] / 1e6:.2f} M", f"{latency['p50']:.1f}", f"{latency['p99']:.1f}",
        f"{latency['max']:.0f}", f"{report['server']['peak_memory_mb']:.0f}")


INGEST_COLUMNS = ("server CPU s/M points", "generator CPU s/M", "points/s", "p50 ms", "p99 ms", "max ms", "peak MB")


def paths(a):
    """Every path at full load: 1,000 points a request, 12 connections, 100 hosts, disk."""
    table("path", "shape", *INGEST_COLUMNS)
    for kind, shape in PATHS:
        with Server(a.folder) as server:
            report = load(server, kind=kind, shape=shape, seconds=a.seconds, settle=2, verify=True)
            ingest_row(report, kind, shape)


def encodings(a):
    """What compression costs, at a rate that leaves the machine room for the generator's part."""
    table("path", "shape", "encoding", *INGEST_COLUMNS)
    for kind, shape, rate in [("lp", "tsbs", 200_000), ("msgpack-columnar", "iot", 500_000)]:
        for encoding in ["none", "gzip", "zstd"]:
            with Server(a.folder) as server:
                report = load(server, kind=kind, shape=shape, encoding=encoding, rate=rate, seconds=a.seconds,
                              settle=2, verify=True)
                ingest_row(report, kind, shape, encoding)


def durability(a):
    """Levels in turn on one server, each run into a database of its own. Shares of `memory`: medians of the rounds' ratios
    (least and most), and best run against best run, which a busy machine disturbs least."""
    table("path", "shape", "connections", "memory, median", "process", "disk", "process/memory", "disk/memory",
          "best disk/best memory")
    for kind, shape in [("lp", "short"), ("lp", "tsbs"), ("msgpack-columnar", "iot")]:
        for workers in [8, 12]:
            with Server(a.folder) as server:
                load(server, kind=kind, shape=shape, workers=workers, seconds=2, database="warm")
                rates = {level: [] for level in ["memory", "process", "disk"]}
                for number in range(a.rounds):
                    # The other way round in every other round, so that no level always comes first.
                    for level in list(rates)[::1 if number % 2 == 0 else -1]:
                        report = load(server, kind=kind, shape=shape, workers=workers, seconds=a.seconds / 4,
                                      durability=level, database=f"{level}{number}")
                        rates[level].append(report["points_per_second"])
                ratios = {level: [one / base for one, base in zip(rates[level], rates["memory"])] for level in rates}
                median = {level: f"{statistics.median(rates[level]) / 1e6:.2f} M" for level in rates}
                shares = [f"{statistics.median(ratios[level]):.0%} ({min(ratios[level]):.0%}, {max(ratios[level]):.0%})"
                          for level in ["process", "disk"]]
                row(kind, shape, str(workers), *median.values(), *shares,
                    f"{max(rates['disk']) / max(rates['memory']):.0%}")


def requests(a):
    """`memory` and `disk` by the size of requests and the number of writers: line protocol, short lines. A server for each
    size, a database for each run."""
    table("points a request", "writers", "memory, points/s", "disk, points/s", "disk/memory", "memory p50 ms", "p99",
          "disk p50 ms", "p99")
    for batch in [1, 100, 1_000, 10_000]:
        with Server(a.folder) as server:
            load(server, kind="lp", shape="short", batch=batch, workers=8, seconds=1, database="warm")
            for workers in [1, 8, 64]:
                rates, times = [], []
                for level in ["memory", "disk"]:
                    report = load(server, kind="lp", shape="short", batch=batch, workers=workers,
                                  hosts=max(100, workers), seconds=a.seconds / 4, durability=level,
                                  database=f"{level}{workers}")
                    rates.append(report["points_per_second"])
                    times += (f"{report['latency_ms'][key]:.2f}" for key in ["p50", "p99"])
                row(f"{batch:,}", str(workers), *(f"{rate:,.0f}" for rate in rates), f"{rates[1] / rates[0]:.0%}", *times)


def single(a):
    """One point a request, one connection: the time of a durable write."""
    table("durability", "p50 ms", "p90 ms", "p99 ms", "max ms", "writes/s")
    with Server(a.folder) as server:
        for level in ["memory", "process", "disk"]:
            report = load(server, kind="lp", shape="short", batch=1, workers=1, hosts=1, seconds=a.seconds,
                          durability=level, database=level, verify=True)
            latency = report["latency_ms"]
            row(level, *(f"{latency[key]:.2f}" for key in ["p50", "p90", "p99", "max"]),
                f"{report['requests_per_second']:.0f}")


def size(a):
    """Bytes a point in the data files after a graceful stop; new values for every point, nothing repeats."""
    table("path", "shape", "points", "files", "bytes a point")
    for kind, shape in [("lp", "iot"), ("lp", "short"), ("lp", "tsbs"), ("msgpack-columnar", "iot"),
                        ("msgpack-columnar", "tsbs")]:
        with Server(a.folder) as server:
            report = load(server, kind=kind, shape=shape, pool=0, workers=4, requests=500, seconds=600, verify=True)
            server.stop()
            files = server.files("*.parquet")
            total = sum(path.stat().st_size for path in files)
            row(kind, shape, f"{report['points']:,}", str(len(files)), f"{total / report['points']:.1f}")


def kill(a):
    """kill -9 in the middle of the load, restart, go on; what SQL finds against what was acknowledged."""
    table("path", "shape", "durability", "acknowledged", "of unknown fate", "found", "ready again after s", "log MB")
    for kind, shape in [("lp", "short"), ("msgpack-columnar", "iot"), ("msgpack-row", "iot")]:
        for level in ["process", "disk"]:
            with Server(a.folder) as server:
                found = {}

                def crash():
                    time.sleep(a.seconds / 2)
                    server.stop(signal.SIGKILL)
                    found["log"] = sum(path.stat().st_size for path in server.files("*wal*/*")) / 1e6
                    found["ready"] = server.start()

                thread = threading.Thread(target=crash)
                thread.start()
                report = load(server, kind=kind, shape=shape, seconds=a.seconds, durability=level, verify=True)
                thread.join()
                check = report["verification"]
                row(kind, shape, level, f"{check['acknowledged']:,}", f"{check['unknown']:,}", f"{check['rows']:,}",
                    f"{found['ready']:.2f}", f"{found['log']:.0f}")


def start(a):
    """Cold start and idleness of an empty server, alone and with connections."""
    table("start to ready ms", "memory idle MB", "CPU while idle for 5 s, ms", "10,000 open connections, MB more",
          "each has had an answer, 2 s later, MB more")
    with Server(a.folder) as server:
        times = []
        for _ in range(5):
            server.stop()
            times.append(server.start())
        memory, before = server.proc("VmRSS"), server.cpu_ticks()
        time.sleep(5)
        idle_ms = (server.cpu_ticks() - before) * 10
        connections = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(10_000)]
        time.sleep(2)
        opened = server.proc("VmRSS") - memory
        for connection in connections:
            connection.sendall(b"GET /ready HTTP/1.1\r\nhost: arc\r\n\r\n")
        for connection in connections:
            connection.recv(4096)
        time.sleep(2)
        answered = server.proc("VmRSS") - memory
        for connection in connections:
            connection.close()
        row(f"{statistics.median(times) * 1000:.0f}", f"{memory:.0f}", f"{idle_ms}", f"{opened:.0f}", f"{answered:.0f}")


PANELS = {
    "a minute of one host, by second":
        "SELECT time_bucket(INTERVAL '1 second', time) AS t, avg(usage_user) AS user, max(usage_system) AS system FROM tsbs "
        "WHERE hostname = 'host_{host}' AND time > now() - INTERVAL '1 minute' GROUP BY t ORDER BY t",
    "newest 20 points of one host": "SELECT * FROM tsbs WHERE hostname = 'host_{host}' ORDER BY time DESC LIMIT 20",
    "newest value of each host": "SELECT hostname, max(time) AS newest, arg_max(usage_user, time) AS user FROM tsbs GROUP BY hostname",
    "rows": "SELECT count(*) AS n FROM tsbs",
}
PANEL_CLIENTS = 4
PANEL_HOSTS = 1_000


class Panels:
    """Clients that ask the panels of a dashboard in turn, ten times a second each, until it is left."""

    def __init__(self, server):
        self.server, self.stop, self.times, self.errors = server, threading.Event(), {name: [] for name in PANELS}, []
        self.threads = [threading.Thread(target=self.guard, args=(number,)) for number in range(PANEL_CLIENTS)]

    def guard(self, number):
        try:
            self.ask(number)
        except Exception as error:
            self.errors.append(error)

    def ask(self, number):
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port)
        headers = {"x-arc-database": "load", "content-type": "application/json"}
        asked = number
        while not self.stop.wait(0.1):
            name = list(PANELS)[asked % len(PANELS)]
            body = json.dumps({"sql": PANELS[name].format(host=asked % PANEL_HOSTS)})
            began = time.perf_counter()
            connection.request("POST", "/api/v1/query", body, headers)
            answer = connection.getresponse()
            text = answer.read()
            self.times[name].append((time.perf_counter() - began) * 1000)
            if answer.status != 200 or not json.loads(text)["data"]:
                raise ValueError(f"{name}: {answer.status} {text[:200]}")
            asked += 1

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        for thread in self.threads:
            thread.join()
        if self.errors:
            sys.exit(f"a panel failed: {self.errors}")


def dashboards(a):
    """Small queries over JSON while tsbs lines come in, 5 M points being there: p50 and p99 in ms."""
    rates = {"nothing written": None, "200,000 points/s": 200_000, "1 M points/s": 1_000_000, "as much as goes": 0}
    found = {name: [] for name in PANELS}
    reached, memory = [], []
    for rate in rates.values():
        with Server(a.folder) as server:
            load(server, kind="lp", shape="tsbs", hosts=PANEL_HOSTS, requests=417, seconds=60, verify=True)
            with Panels(server) as panels:
                if rate is None:
                    time.sleep(a.seconds)
                else:
                    options = {"rate": rate} if rate else {}
                    report = load(server, kind="lp", shape="tsbs", hosts=PANEL_HOSTS, seconds=a.seconds, verify=True, **options)
                    memory.append(f"{report['server']['peak_memory_mb']:.0f}")
                    reached.append(f"{report['points_per_second'] / 1e6:.2f} M")
            for name, times in panels.times.items():
                cuts = statistics.quantiles(times, n=100, method="inclusive")
                found[name].append(f"{cuts[49]:.1f}, {cuts[98]:.1f}")
    table("panel", *rates)
    for name, cells in found.items():
        row(name, *cells)
    row("points/s reached", "", *reached)
    row("peak MB", "", *memory)


def main():
    sections = [paths, encodings, durability, requests, single, size, kill, start, dashboards]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", nargs="*", metavar="section", help=", ".join(part.__name__ for part in sections))
    parser.add_argument("--seconds", type=float, default=10, help="length of a run")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of the comparison of durability levels")
    parser.add_argument("--tables", type=Path, default=None, help="where to write the tables as well, SECTION.md each")
    parser.add_argument("--folder", default=None, help="where the data directories go")
    a = parser.parse_args()
    known = {part.__name__: part for part in sections}
    for name in a.sections or known:
        if name not in known:
            sys.exit(f"no section {name!r}; there are {', '.join(known)}")
        print(f"\n{known[name].__doc__}\n")
        known[name](a)
        if a.tables:
            a.tables.mkdir(parents=True, exist_ok=True)
            (a.tables / f"{name}.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
