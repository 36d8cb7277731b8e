#!/usr/bin/env python3
"""Nodes that are killed and stopped under load: has each answer all that was acknowledged before it was asked for?

    python scripts/reliability/cluster.py --rounds 10 --seed 1
    python scripts/reliability/cluster.py --rounds 5 --takeover

Starts scripts/cluster, writes through every node, asks every node, and kills or stops one of them in each round. Each writer has
a number that only grows, so that an answer shows what it lacks: all that was acknowledged before the question is there, each row
once, nothing was made up, and no write in half. A request that failed is sent again as it was. Ends with status 1 if anything
else was found.

With --takeover the owner is killed and its directory removed, or it is stopped until another node has taken the store over and
goes on then: with durability remote the same holds.
"""

from __future__ import annotations

import argparse
import http.client
import importlib.machinery
import importlib.util
import json
import pathlib
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parents[2]
START_NS = 1_700_000_000_000_000_000
LINES = 10
TIMEOUT_S = 40
FAILURES = (OSError, http.client.HTTPException)


def load_cluster():
    loader = importlib.machinery.SourceFileLoader("cluster_script", str(ROOT / "scripts" / "cluster"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


def post(url: str, path: str, body: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(urllib.parse.urlparse(url).netloc, timeout=TIMEOUT_S)
    try:
        connection.request("POST", path, body.encode())
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


class Model:
    """What was sent and what was acknowledged, by writer."""

    def __init__(self, writers: int) -> None:
        self.acknowledged, self.sent = [0] * writers, [0] * writers
        self.problems: list[str] = []
        self.answers = self.refused = 0
        self.over = threading.Event()

    def problem(self, text: str) -> None:
        self.problems.append(text)
        if len(self.problems) <= 20:
            print(text[:400], flush=True)


def write(model: Model, writer: int, url: str) -> None:
    while not model.over.is_set():
        number = model.acknowledged[writer]
        model.sent[writer] = number + 1
        values = range(number * LINES, (number + 1) * LINES)
        lines = "\n".join(f"n,w={writer} v={value}i {START_NS + value}" for value in values)
        try:
            status, text = post(url, "/write?db=storm", lines)
        except FAILURES:
            time.sleep(0.05)
            continue
        if status == 204:
            model.acknowledged[writer] = number + 1
        # With durability remote, 500 says that it is not known whether the write will be in the store.
        elif status in (502, 503) or (status == 500 and b"not known yet" in text):
            time.sleep(0.05)
        else:
            model.problem(f"write through {url}: {status} {text!r}")


def ask(model: Model, url: str) -> None:
    sql = json.dumps({"sql": "SELECT CAST(w AS BIGINT), count(*), max(v), count(DISTINCT v) FROM n GROUP BY 1"})
    while not model.over.is_set():
        before = list(model.acknowledged)
        try:
            status, text = post(url, "/api/v1/query?db=storm", sql)
        except FAILURES:
            time.sleep(0.05)
            continue
        if status == 404 and not any(before):
            continue
        # No answer is right where the owner is gone; another status is not.
        if status in (502, 503):
            model.refused += 1
            time.sleep(0.05)
            continue
        if status != 200:
            model.problem(f"{url}: {status} {text!r}")
            continue
        model.answers += 1
        rows = {row[0]: row[1:] for row in json.loads(text)["data"]}
        for writer, least in enumerate(before):
            count, newest, distinct = rows.get(writer, (0, -1, 0))
            most = model.sent[writer] * LINES
            if not (least * LINES <= count <= most and count == newest + 1 == distinct and count % LINES == 0):
                model.problem(f"{url}: writer {writer} has {count} rows up to {newest}, of {least * LINES} to {most}")


def lose_owner(model: Model, cluster, owner: str, other: str, how: str) -> float:
    """Has the node that stands by take over; returns how many seconds that took. The lost one stands by afterwards."""
    process, began = cluster.processes[owner], time.monotonic()
    process.send_signal(signal.SIGKILL if how == "kill" else signal.SIGSTOP)
    cluster.wait(other)
    taken_s = time.monotonic() - began
    if how == "stop":
        process.send_signal(signal.SIGCONT)
        try:
            status, _ = post(cluster.http[owner], "/write?db=fence", f"f v={began} 1")
        except FAILURES:
            status = 0
        sql = json.dumps({"sql": f"SELECT count(*) FROM f WHERE v = {began}"})
        if status == 204 and json.loads(post(cluster.http[other], "/api/v1/query?db=fence", sql)[1]).get("data") != [[1]]:
            model.problem(f"{owner} has acknowledged a write after {other} had taken over")
        process.kill()
    process.wait()
    shutil.rmtree(cluster.directory / owner)
    cluster.start(owner)
    return taken_s


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--takeover", action="store_true", help="lose the owner in each round")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    given = parser.parse_args()
    print(f"seed {given.seed}", flush=True)
    chance, script = random.Random(given.seed), load_cluster()
    busy = ["--flush-after", "300ms", "--compaction-grace", "60s", "--compaction-quiet", "0s", "--wal-segment-bytes", "64KiB"]
    options = argparse.Namespace(endpoint=None, tokens=False, owner_role="ingest", memory="256MiB", server_options=busy, standby=None)
    if given.takeover:
        options.standby = "3s"
    model = Model(given.nodes)
    with tempfile.TemporaryDirectory() as folder:
        cluster = script.Cluster(pathlib.Path(folder), given.nodes, options)
        try:
            cluster.start_all()
            urls = [url for name, url in cluster.http.items() if name != "standby"]
            takers = list(cluster.takers)
            threads = [threading.Thread(target=write, args=(model, number, url)) for number, url in enumerate(urls)]
            threads += [threading.Thread(target=ask, args=(model, url)) for url in urls]
            for thread in threads:
                thread.start()
            for number in range(given.rounds):
                time.sleep(chance.uniform(1, 3))
                if given.takeover:
                    how = chance.choice(["kill", "stop"])
                    taken_s = lose_owner(model, cluster, takers[0], takers[1], how)
                    print(f"{number}: {how} {takers[0]}; {takers[1]} after {taken_s:.1f} s; {sum(model.acknowledged)} writes", flush=True)
                    takers.reverse()
                    continue
                name, how = chance.choice(list(cluster.http)), chance.choice(["kill", "stop"])
                process = cluster.processes[name]
                process.send_signal(signal.SIGKILL if how == "kill" else signal.SIGSTOP)
                time.sleep(chance.uniform(0.5, 4))
                if how == "kill":
                    process.wait()
                    cluster.start(name)
                else:
                    process.send_signal(signal.SIGCONT)
                cluster.wait(name)
                print(f"{number}: {how} {name}; {sum(model.acknowledged)} writes, {model.answers} answers, {model.refused} refused", flush=True)
            time.sleep(2)
            model.over.set()
            for thread in threads:
                thread.join()
            if model.answers < given.rounds or sum(model.acknowledged) < given.rounds:
                model.problem(f"only {model.answers} answers and {sum(model.acknowledged)} writes")
        finally:
            model.over.set()
            cluster.stop()
    print(f"{sum(model.acknowledged) * LINES} rows, {model.answers} answers, {model.refused} refused, {len(model.problems)} problems")
    return 1 if model.problems else 0


if __name__ == "__main__":
    sys.exit(main())
