#!/usr/bin/env python3
"""What it costs to read a directory that another process writes, and to read it as it was.

    cargo build --release -p arc-server -p arc-benches
    python3 benches/readers.py [--files 100000] [--hours 24] [--seconds 10] [--rounds 5] [--folder DIR] [section ...]

Sections: open, visible, queries, writer, past (default: all). Needs Linux and Python 3.9, and for `queries` and `past` what
benches/queries.txt names, which is installed into .venv. Every figure is a ratio or a time of one run, beside a writer that
is a server process of its own; a median with the least and the most, unless it says otherwise. Nothing else should run.
"""
import argparse
import http.client
import json
import statistics
import subprocess
import time
from datetime import datetime, timezone
from pathlib import Path
from threading import Event, Thread

import queries
from measure import TARGET, Server, load, row, table

TABLES = 1_000
READERS = 4
PROBE_SECONDS = 0.01


def reader_of(writer):
    """A server process that reads the directory of another one."""
    return Server(None, "--reader", of=writer)


class Asking:
    """A connection that asks a server."""

    def __init__(self, server, database):
        self.connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=600)
        self.headers = {"x-arc-database": database, "content-type": "application/json"}

    def send(self, path, body, headers=None):
        self.connection.request("POST", path, body, {**self.headers, **(headers or {})})
        answer = self.connection.getresponse()
        text = answer.read()
        if answer.status not in (200, 204):
            raise SystemExit(f"{path}: {answer.status} {text[:300]}")
        return text

    def ask(self, sql):
        """Returns the milliseconds until the whole answer was there, as Arrow."""
        began = time.perf_counter()
        self.send("/api/v1/query/arrow", json.dumps({"sql": sql}))
        return 1000 * (time.perf_counter() - began)

    def value(self, sql):
        return json.loads(self.send("/api/v1/query", json.dumps({"sql": sql})))["data"][0][0]


def spread(values, form="{:.1f}"):
    return f"{form.format(statistics.median(values))} ({form.format(min(values))} to {form.format(max(values))})"


def percentiles(values):
    cuts = statistics.quantiles(values, n=100, method="inclusive")
    return [f"{cuts[49]:.1f}", f"{cuts[98]:.1f}", f"{max(values):.0f}"]


def open_(a):
    """Start of a server until it is ready, on a directory of many data files; seconds."""
    with Server(a.folder, "--compaction", "false", "--wal-segment-bytes", "64KiB") as writer:
        asking, flushes = Asking(writer, "files"), -(-a.files // TABLES)
        for flush in range(flushes):
            lines = "\n".join(f"t{number} v={flush} {flush + 1}" for number in range(TABLES))
            asking.send("/api/v1/write/line-protocol", lines.encode())
            asking.send("/api/v1/write/line-protocol/flush", b"")
        files = flushes * TABLES
        found = []
        for _ in range(a.rounds):
            reader = reader_of(writer)
            began = time.perf_counter()
            newest = Asking(reader, "files").value(f"SELECT v FROM t{TABLES - 1} ORDER BY time DESC LIMIT 1")
            found.append((reader.took, time.perf_counter() - began))
            assert newest == flushes - 1, newest
            reader.__exit__()
        writer.stop()
        again = writer.start()
    table("data files", "reader is ready", "its first answer", "the writer again")
    row(f"{files:,}", spread([ready for ready, _ in found], "{:.2f}"), spread([first for _, first in found], "{:.2f}"), f"{again:.2f}")


def visible(a):
    """From a point's acknowledgement by the writer to the answer of a reader that has it; p50, p99 and most, in ms."""
    table("beside it", "points/s", "p50", "p99", "most")
    for what, rate in {"nothing": None, "1 M points/s": 1_000_000}.items():
        with Server(a.folder) as writer:
            load(writer, kind="msgpack-columnar", shape="iot", requests=100, workers=2)
            with reader_of(writer) as reader:
                reports, done = [], Event()

                def work():
                    reports.append(load(writer, kind="msgpack-columnar", shape="iot", rate=rate, seconds=a.seconds, workers=4))
                    done.set()

                thread = Thread(target=work if rate else lambda: (time.sleep(a.seconds), done.set()))
                thread.start()
                writing, reading, took, number = Asking(writer, "probe"), Asking(reader, "probe"), [], 0
                while not done.is_set():
                    number += 1
                    writing.send("/api/v1/write/line-protocol", f"probe v={number}i".encode())
                    began = time.perf_counter()
                    while (seen := reading.value("SELECT max(v) FROM probe")) < number:
                        pass
                    took.append(1000 * (time.perf_counter() - began))
                    assert seen == number, f"{seen} of {number}"
                    time.sleep(PROBE_SECONDS)
                thread.join()
                reached = f"{reports[0]['points_per_second'] / 1e6:.2f} M" if reports else "0"
                row(what, reached, *percentiles(took))


def day_of_metrics(a, writer):
    """Loads the rows that benches/queries.py asks about."""
    import host_metrics
    parquet = Path(a.folder or TARGET.parent / "queries") / f"parquet-{a.hours}"
    if not (parquet / f"{a.hours - 1:02}.parquet").exists():
        host_metrics.write(parquet, queries.HOSTS, a.hours)
    files = sorted(parquet.glob("*.parquet"))
    command = [TARGET / "arc-server", "import", "--database", "bench", "--table", "cpu", "--tags", ",".join(host_metrics.TAGS)]
    subprocess.run([*command, "--url", writer.url, *files], check=True, stdout=subprocess.DEVNULL)
    Asking(writer, "bench").send("/api/v1/write/line-protocol/flush", b"")
    settle(writer)


def settle(writer):
    """Waits until the writer merges no more."""
    before = -1
    while before != (now := len(writer.files("*.parquet"))):
        before = now
        time.sleep(5)


def pairs(a, statements, one, other):
    """Asks both the same, in turn, and prints the medians and their ratio."""
    for name, (first, second) in statements.items():
        found = [], []
        for _ in range(a.rounds + 1):
            found[0].append(one.ask(first))
            found[1].append(other.ask(second))
        of_one, of_other = (values[1:] for values in found)
        ratio = statistics.median(of_other) / statistics.median(of_one)
        row(name, spread(of_one), spread(of_other), f"{ratio:.2f}", f"{found[1][0]:.1f}")


def queries_(a):
    """The ten queries of benches/queries.py over HTTP, as Arrow: of the writer, and of a reader beside it; ms."""
    with Server(a.folder) as writer:
        day_of_metrics(a, writer)
        with reader_of(writer) as reader:
            table("query", "writer", "reader", "ratio", "reader, first time")
            statements = {name: (sql, sql) for name, sql, *_ in queries.queries()}
            pairs(a, statements, Asking(writer, "bench"), Asking(reader, "bench"))


def writer_(a):
    """What readers cost the process that writes columnar iot points: CPU seconds per million points, and points/s."""
    kinds = {"no reader": (0, False), f"{READERS} readers at rest": (READERS, False), f"{READERS} readers, each asked once a second": (READERS, True)}
    found = {name: [] for name in kinds}
    for _ in range(a.rounds):
        for name, (count, asks) in kinds.items():
            with Server(a.folder) as writer:
                load(writer, kind="msgpack-columnar", shape="iot", requests=100, workers=2)
                readers, done = [reader_of(writer) for _ in range(count)], Event()

                def work(reader):
                    asking = Asking(reader, "load")
                    while not done.wait(1):
                        asking.ask("SELECT count(*) FROM iot")

                threads = [Thread(target=work, args=(reader,)) for reader in readers if asks]
                for thread in threads:
                    thread.start()
                report = load(writer, kind="msgpack-columnar", shape="iot", rate=1_000_000, seconds=a.seconds, workers=4)
                done.set()
                for thread in threads:
                    thread.join()
                for reader in readers:
                    reader.__exit__()
                found[name].append((report["server"]["cpu_seconds_per_million_points"], report["points_per_second"] / 1e6))
    table("beside it", "CPU s/M points", "of the first", "points/s")
    first = statistics.median(cpu for cpu, _ in found["no reader"])
    for name, runs in found.items():
        cpu = [cpu for cpu, _ in runs]
        row(name, spread(cpu, "{:.3f}"), f"{statistics.median(cpu) / first:.2f}", spread([rate for _, rate in runs], "{:.2f} M"))


def past(a):
    """The ten queries as of ten seconds ago, when a hundred thousand later points were not there, beside the same of now; ms."""
    with Server(a.folder) as writer:
        day_of_metrics(a, writer)
        time.sleep(1)
        moment = datetime.now(timezone.utc)
        time.sleep(1)
        load(writer, kind="lp", shape="tsbs", requests=100, workers=2)
        with reader_of(writer) as reader:
            as_of = f"cpu FOR SYSTEM_TIME AS OF '{moment.strftime('%Y-%m-%dT%H:%M:%S.%fZ')}'"
            statements = {name: (sql, sql.replace("FROM cpu", f"FROM {as_of}")) for name, sql, *_ in queries.queries()}
            for name, server in {"writer": writer, "reader": reader}.items():
                table(f"query of the {name}", "now", "as it was", "ratio", "as it was, first time")
                pairs(a, statements, Asking(server, "bench"), Asking(server, "bench"))


SECTIONS = {"open": open_, "visible": visible, "queries": queries_, "writer": writer_, "past": past}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", nargs="*", metavar="section", choices=[*SECTIONS, []], help=", ".join(SECTIONS))
    parser.add_argument("--files", type=int, default=100_000, help="data files that a reader opens")
    parser.add_argument("--hours", type=int, default=24, help="hours of host metrics; their answers are known for 24")
    parser.add_argument("--seconds", type=float, default=10, help="length of a run")
    parser.add_argument("--rounds", type=int, default=5, help="how often each figure is taken")
    parser.add_argument("--folder", default=None, help="where the data directories go")
    a = parser.parse_args()
    wanted = a.sections or list(SECTIONS)
    if {"queries", "past"} & set(wanted):
        queries.enter_venv()
    for name in wanted:
        print(f"\n{SECTIONS[name].__doc__}\n", flush=True)
        SECTIONS[name](a)


if __name__ == "__main__":
    main()
