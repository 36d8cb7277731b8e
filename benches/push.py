#!/usr/bin/env python3
"""What a push costs the centre, beside sending the same lines to it again; and how fast files are handed over.

    cargo build --release -p arc-server
    python3 benches/push.py [--requests 200] [--rounds 3] [--folder DIR]

Each request has 10,000 lines as TSBS has them (10 tags, 10 fields, 200 hosts). Needs Linux and Python 3.9. Processor times are
those of whole processes; a median with the least and the most. Nothing else should run.
"""
import argparse
import http.client
import json
import os
import random
import resource
import statistics
import subprocess
import time

from measure import TARGET, Server, row, table

HOSTS, LINES = 200, 10_000
BASE, STEP = 1_700_000_000 * 10**9, 10 * 10**9
TAGS = ("region=eu-west-1,datacenter=eu-west-1c,rack={},os=Ubuntu16.10,arch=x64,team=NYC,service={},service_version=0,"
        "service_environment=production")
FIELDS = "user system idle nice iowait irq softirq steal guest guest_nice".split()


def bodies(requests):
    """Returns lines of values that walk at random, so that no body is like another."""
    chance = random.Random(3)
    values = [[chance.uniform(0, 100) for _ in FIELDS] for _ in range(HOSTS)]
    made = []
    for request in range(requests):
        lines = []
        for step in range(LINES // HOSTS):
            at = BASE + (request * (LINES // HOSTS) + step) * STEP
            for host, of_host in enumerate(values):
                of_host[:] = [min(100, max(0, value + chance.gauss(0, 1))) for value in of_host]
                fields = ",".join(f"usage_{name}={value:.2f}" for name, value in zip(FIELDS, of_host))
                lines.append(f"cpu,hostname=host_{host},{TAGS.format(host % 90, host % 20)} {fields} {at}")
        made.append("\n".join(lines).encode())
    return made


def seconds(server, before=0):
    return server.cpu_ticks() / os.sysconf("SC_CLK_TCK") - before


def sent(server, lines):
    """Writes all lines and flushes; returns the processor time of that."""
    before = seconds(server)
    connection = http.client.HTTPConnection("127.0.0.1", server.port)
    for path, body in [*(("/write?db=b", body) for body in lines), ("/api/v1/write/line-protocol/flush", b"")]:
        connection.request("POST", path, body)
        answer = connection.getresponse()
        text = answer.read()
        if answer.status not in (200, 204):
            raise SystemExit(f"{path}: {answer.status} {text[:300]}")
    return seconds(server, before)


def own_time():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder")
    arguments = parser.parse_args()
    lines = bodies(arguments.requests)
    figures = {name: [] for name in ("lines", "centre", "edge", "rate", "bytes")}
    with Server(arguments.folder) as edge:
        figures["lines"].append(sent(edge, lines))
        edge.stop()
        for _ in range(arguments.rounds):
            with Server(arguments.folder) as other:
                figures["lines"].append(sent(other, lines))
            with Server(arguments.folder) as centre:
                before, edges = seconds(centre), own_time()
                command = [TARGET / "arc-server", "push", "--data-dir", edge.data / "arc", "--to", centre.url, "--json"]
                began = time.perf_counter()
                report = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
                took = time.perf_counter() - began
                if report["rows"] != LINES * arguments.requests:
                    raise SystemExit(f"{report} of {LINES * arguments.requests} rows")
                figures["centre"].append(seconds(centre, before))
                figures["edge"].append(own_time() - edges)
                figures["rate"].append(report["sent_bytes"] / took / 1e6)
                figures["bytes"].append(report["sent_bytes"] / 1e6)
    def spread(name, form="{:.2f}"):
        values = figures[name]
        return f"{form.format(statistics.median(values))} ({form.format(min(values))} to {form.format(max(values))})"

    table("2 cores", f"{LINES * arguments.requests / 1e6:.0f} M lines, {sum(map(len, lines)) / 1e6:.0f} MB")
    row("CPU s of the centre that gets the lines", spread("lines"))
    row("CPU s of the centre that adopts the files", spread("centre"))
    row("CPU s of the edge that pushes", spread("edge"))
    row("MB pushed", spread("bytes", "{:.1f}"))
    row("MB/s, with the opening of the edge's directory", spread("rate", "{:.0f}"))


if __name__ == "__main__":
    main()
