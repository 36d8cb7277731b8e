#!/usr/bin/env python3
"""Measure what tokens and TLS cost a built arc-server, and print the table of docs/performance.md.

    cargo build --release -p arc-server
    taskset -c 0,1 python3 benches/security.py [--rounds 5] [--requests 400] [--connections 9990]

Servers without a log-in, with a token, and with a token over TLS take the same work in turn, each on a fresh data
directory: lines of 10 tags and 10 integers, 1,000 a request, and requests of one point at durability `memory`. What counts
is the processor time of the server, from /proc. Needs Python 3.9+ and Linux, nothing else. Nothing else should run.
"""
import argparse
import http.client
import os
import random
import resource
import signal
import socket
import ssl
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target").resolve() / "release" / "arc-server"
TICKS = os.sysconf("SC_CLK_TCK")
KINDS = ("no log-in", "token", "token, TLS")


class Server:
    def __init__(self, kind, folder):
        self.data, self.context = Path(folder) / "data", None
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        command = [PROGRAM, "serve", "--data-dir", self.data, "--http", f"127.0.0.1:{self.port}", "--log-level", "error"]
        if kind == "no log-in":
            command.append("--no-auth")
        if "TLS" in kind:
            subprocess.run([PROGRAM, "cert", "--to", folder], check=True, capture_output=True)
            command += ["--tls-cert", f"{folder}/cert.pem", "--tls-key", f"{folder}/key.pem"]
            self.context = ssl.create_default_context(cafile=f"{folder}/cert.pem")
        began = time.perf_counter()
        self.process = subprocess.Popen(command)
        while True:
            try:
                connection = self.connect()
                connection.request("GET", "/ready")
                if connection.getresponse().status == 200:
                    break
            except OSError:
                time.sleep(0.0005)
        self.ready = time.perf_counter() - began
        self.headers = {}
        if kind != "no log-in":
            self.headers["authorization"] = "Bearer " + (self.data / "admin.token").read_text().strip()

    def connect(self):
        if self.context is None:
            return http.client.HTTPConnection("localhost", self.port)
        return http.client.HTTPSConnection("localhost", self.port, context=self.context)

    def cpu(self):
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def resident(self):
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:")) / 1024

    def post(self, connection, path, body):
        connection.request("POST", path, body, self.headers)
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 204, (answer.status, path)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()


def bodies(count, rng):
    """Bodies of 1,000 lines as of the TSBS suite, of which none is like another."""
    tags = [f"cpu,hostname=host_{n},region=eu-central-1,datacenter=eu-central-1a,rack={n % 97},os=Ubuntu16.04LTS,arch=x64,"
            f"team=NYC,service={n % 18},service_version={n % 2},service_environment=production" for n in range(1_000)]
    names = ["user", "system", "idle", "nice", "iowait", "irq", "softirq", "steal", "guest", "guest_nice"]
    for number in range(count):
        time_ns = 1_700_000_000_000_000_000 + number * 10_000_000_000
        lines = (tag + " " + ",".join(f"usage_{name}={rng.randrange(100)}i" for name in names) + f" {time_ns}" for tag in tags)
        yield "\n".join(lines).encode()


def measure(kind, work, singles):
    """CPU seconds a million points, CPU microseconds a request of one point, seconds to ready, MB when idle."""
    with tempfile.TemporaryDirectory(prefix="arc-security-") as folder:
        server = Server(kind, folder)
        time.sleep(1)
        idle, connection = server.resident(), server.connect()
        began = server.cpu()
        for body in work:
            server.post(connection, "/write?db=tsbs", body)
        lines = (server.cpu() - began) / (len(work) * 1_000) * 1e6
        began = server.cpu()
        for number in range(singles):
            server.post(connection, "/write?db=one&durability=memory", b"pump,id=7 rpm=%di" % number)
        single = (server.cpu() - began) / singles * 1e6
        server.stop()
        return lines, single, server.ready * 1000, idle


def many(connections):
    """MB with so many open TLS connections, each of which has asked once."""
    soft = min(connections + 1_000, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    with tempfile.TemporaryDirectory(prefix="arc-security-") as folder:
        server = Server("token, TLS", folder)
        before, held = server.resident(), []
        for _ in range(connections):
            connection = server.connect()
            connection.request("GET", "/health", headers=server.headers)
            connection.getresponse().read()
            held.append(connection)
        resident = server.resident()
        server.stop()
        return before, resident


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--requests", type=int, default=400)
    parser.add_argument("--singles", type=int, default=5_000)
    parser.add_argument("--connections", type=int, default=9_990)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    work = list(bodies(options.requests, random.Random(options.seed)))
    found = {kind: [] for kind in KINDS}
    for _ in range(options.rounds):
        for kind in KINDS:
            found[kind].append(measure(kind, work, options.singles))
    print("| server | CPU s a million points | beside none | CPU µs a request of one point | ms to ready | MB idle |")
    print("| --- | --- | --- | --- | --- | --- |")
    # In one round machines differ least: the ratio is the median of those of the rounds.
    for kind in KINDS:
        lines, single, ready, idle = (sorted(column) for column in zip(*found[kind]))
        ratio = statistics.median(own[0] / none[0] for own, none in zip(found[kind], found[KINDS[0]]))
        middle = [statistics.median(column) for column in (lines, single, ready, idle)]
        print(f"| {kind} | {middle[0]:.3f} ({lines[0]:.3f}–{lines[-1]:.3f}) | {ratio:.3f} | {middle[1]:.1f} "
              f"({single[0]:.1f}–{single[-1]:.1f}) | {middle[2]:.1f} | {middle[3]:.0f} |")
    if options.connections:
        before, resident = many(options.connections)
        print(f"{options.connections} TLS connections: {resident:.0f} MB ({before:.0f} before)")


if __name__ == "__main__":
    main()
