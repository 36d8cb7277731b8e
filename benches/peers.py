#!/usr/bin/env python3
"""Put the same line protocol into this server and into others, one after the other in one run, and print a table.

    cargo build --release -p arc-server -p arc-benches
    python3 benches/peers.py [--seconds 10] [--rounds 2] [--folder DIR] [--only NAME ...] [--tables DIR]

InfluxDB 1.6 comes from Debian's packages (`apt-get install influxdb`), QuestDB from Maven Central (needs Java 17 and Maven); one that
cannot be had is left out, and said to be. Needs Linux and Python 3.9+. Nothing else should run.

Each gets 1,000 points a request over 12 connections from the load generator, for as long, into an empty folder. Its CPU is
counted until all that it has acknowledged can be queried, and two seconds longer. Durability is what the name says.
"""
import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

import measure

QUESTDB = "9.3.4"
TICKS = os.sysconf("SC_CLK_TCK")
SHAPES = {"short": "usage_user", "tsbs": "usage_user"}


def get(url, data=None):
    with urllib.request.urlopen(url, data=data, timeout=60) as answer:
        return answer.read()


class Peer:
    """A server process of another engine, on a folder and a free port of its own."""

    path = None

    def __init__(self, folder):
        self.data = Path(tempfile.mkdtemp(prefix="peer-", dir=folder))
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        log = open(self.data / "log", "wb")
        self.process = subprocess.Popen(self.command(), stdout=log, stderr=log, env={**os.environ, **self.settings()})
        for _ in range(600):
            try:
                self.ready()
                return
            except OSError:
                if self.process.poll() is not None:
                    break
                time.sleep(0.1)
        sys.exit(f"{type(self).__name__} does not start:\n{(self.data / 'log').read_text(errors='replace')[-2000:]}")

    def settings(self):
        return {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.data)


class Arc(measure.Server):
    name = "Arc, `disk`: synced before the answer"
    path = None

    def count(self, table, _field):
        query = json.dumps({"sql": f'SELECT count(*) FROM "{table}"'}).encode()
        request = urllib.request.Request(f"{self.url}/api/v1/query", data=query,
                                         headers={"content-type": "application/json", "x-arc-database": "load"})
        return int(json.loads(urllib.request.urlopen(request, timeout=60).read())["data"][0][0])

    @staticmethod
    def missing():
        return None


class Influx(Peer):
    name = "InfluxDB 1.6: log synced before the answer"
    path = "/write?db=load&precision=ns"

    @staticmethod
    def missing():
        return None if shutil.which("influxd") else "influxd is not installed"

    def command(self):
        config = self.data / "influxdb.conf"
        config.write_text(f"""
reporting-disabled = true
bind-address = "127.0.0.1:0"
[meta]
  dir = "{self.data}/meta"
[data]
  dir = "{self.data}/data"
  wal-dir = "{self.data}/wal"
  query-log-enabled = false
[http]
  bind-address = "127.0.0.1:{self.port}"
  log-enabled = false
[monitor]
  store-enabled = false
""")
        return ["influxd", "run", "-config", str(config)]

    def ready(self):
        get(f"{self.url}/query?" + urllib.parse.urlencode({"q": "CREATE DATABASE load"}), data=b"")

    def count(self, table, field):
        query = urllib.parse.urlencode({"db": "load", "q": f'SELECT count("{field}") FROM "{table}"'})
        return int(json.loads(get(f"{self.url}/query?{query}"))["results"][0]["series"][0]["values"][0][1])


class QuestDb(Peer):
    name = "QuestDB " + QUESTDB + ": not synced (its default)"
    mode = "nosync"
    path = "/write?precision=n"

    @staticmethod
    def jar():
        return Path.home() / f".m2/repository/org/questdb/questdb/{QUESTDB}/questdb-{QUESTDB}.jar"

    @classmethod
    def missing(cls):
        if not shutil.which("java") or not shutil.which("mvn"):
            return "there is no Java or no Maven"
        if not cls.jar().exists():
            subprocess.run(["mvn", "-q", "dependency:get", "-Dtransitive=false",
                            f"-Dartifact=org.questdb:questdb:{QUESTDB}"], check=False)
        return None if cls.jar().exists() else "its jar cannot be had"

    def settings(self):
        return {"QDB_HTTP_BIND_TO": f"127.0.0.1:{self.port}", "QDB_PG_ENABLED": "false",
                "QDB_LINE_TCP_ENABLED": "false", "QDB_HTTP_MIN_ENABLED": "false", "QDB_TELEMETRY_ENABLED": "false",
                "QDB_CAIRO_COMMIT_MODE": self.mode}

    def command(self):
        return ["java", "-p", str(self.jar()), "-m", "io.questdb/io.questdb.ServerMain", "-d", str(self.data)]

    def ready(self):
        get(f"{self.url}/exec?query=select%201")

    def count(self, table, _field):
        query = urllib.parse.urlencode({"query": f'select count() from "{table}"'})
        return int(json.loads(get(f"{self.url}/exec?{query}"))["dataset"][0][0])


class QuestDbSync(QuestDb):
    name = "QuestDB " + QUESTDB + ": `cairo.commit.mode=sync`"
    mode = "sync"


ENGINES = [Arc, Influx, QuestDb, QuestDbSync]


def cpu_seconds(process):
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def peak_mb(process):
    status = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 / 1e6 for line in status if line.startswith("VmHWM"))


def bytes_in(folder):
    # What is allocated: some make their files large ahead of need.
    return sum(path.stat().st_blocks * 512 for path in folder.rglob("*") if path.is_file())


def counted(server, shape, points):
    """Waits until as many points are found as were acknowledged, or no more come."""
    found, since = -1, time.monotonic()
    while time.monotonic() - since < 30:
        try:
            now = server.count(shape, SHAPES[shape])
        except (OSError, LookupError, ValueError):
            now = 0
        if now == points:
            return now
        if now != found:
            found, since = now, time.monotonic()
        time.sleep(0.2)
    return found


def run(engine, shape, a):
    with engine(a.folder) as server:
        before = cpu_seconds(server.process)
        options = {"kind": "lp", "shape": shape, "seconds": a.seconds}
        if server.path:
            options["path"] = server.path
        report = measure.load(server, **options)
        points = report["points"]
        found = counted(server, shape, points)
        time.sleep(2)
        return {"points": points, "found": found, "rate": report["points_per_second"], "latency": report["latency_ms"],
                "cpu": (cpu_seconds(server.process) - before) / points * 1e6, "peak": peak_mb(server.process),
                "bytes": bytes_in(server.data) / points}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--folder", default=tempfile.gettempdir())
    parser.add_argument("--tables", type=Path)
    parser.add_argument("--only", nargs="*", default=[engine.__name__ for engine in ENGINES])
    a = parser.parse_args()
    engines = []
    for engine in (engine for engine in ENGINES if engine.__name__ in a.only):
        reason = engine.missing()
        print(f"{engine.name} is left out: {reason}") if reason else engines.append(engine)
    measure.table("line protocol", "engine and durability", "server CPU s/M points", "points/s", "p50 ms", "p99 ms",
                  "peak MB", "bytes a point on disk", "found of acknowledged")
    for shape in SHAPES:
        results = {engine: [] for engine in engines}
        for _ in range(a.rounds):
            for engine in engines:
                results[engine].append(run(engine, shape, a))
        for engine, rounds in results.items():
            # The round that the machine disturbed least, but the worst of what has to be right.
            best = min(rounds, key=lambda result: result["cpu"])
            found = min(result["found"] / result["points"] for result in rounds)
            measure.row(shape, engine.name, f"{best['cpu']:.2f}", f"{best['rate'] / 1e6:.2f} M",
                        f"{best['latency']['p50']:.1f}", f"{best['latency']['p99']:.1f}", f"{best['peak']:.0f}",
                        f"{best['bytes']:.1f}", f"{found:.2%}")
    if a.tables:
        a.tables.mkdir(parents=True, exist_ok=True)
        (a.tables / "peers.md").write_text("\n".join(measure.lines) + "\n")


if __name__ == "__main__":
    main()
