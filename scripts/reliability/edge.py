#!/usr/bin/env python3
"""Kills `arc-edge` and the server that it pushes to, again and again, while lines come in; counts what is at the centre.

Every line that was acknowledged at the edge has to be at the centre once, with its values, whichever of the two died when,
also while the edge removes what it need not keep. TESTED_EDGE names the program, TESTED_SERVER the server.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import pathlib
import random
import socket
import subprocess
import tempfile
import threading
import time
import urllib.request

from server import Server

ROOT = pathlib.Path(__file__).resolve().parents[2]


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


class Edge:
    """One process of the edge over its directory."""

    def __init__(self, program: str, folder: pathlib.Path, port: int, centre: str) -> None:
        self.port = port
        command = [program, "--data-dir", str(folder), "--http", f"127.0.0.1:{port}", "--to", centre]
        command += ["--every", "1s", "--keep", "1s"]
        self.log = (folder.parent / "edge.log").open("ab")
        self.process = subprocess.Popen(command, stdout=self.log, stderr=self.log)
        for _ in range(600):
            try:
                self.health()
                return
            except OSError:
                if self.process.poll() is not None:
                    raise SystemExit((folder.parent / "edge.log").read_text()) from None
                time.sleep(0.05)
        raise SystemExit("the edge does not answer")

    def health(self) -> dict[str, dict[str, object]]:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health", timeout=10) as answer:
            return dict(json.load(answer))

    def resident(self) -> int:
        """Returns the memory that it holds, in KiB; 0 where that cannot be told."""
        status = pathlib.Path(f"/proc/{self.process.pid}/status")
        lines = status.read_text().splitlines() if status.exists() else []
        return next((int(line.split()[1]) for line in lines if line.startswith("VmRSS:")), 0)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self.log.close()


class Writer(threading.Thread):
    """Writes lines whose values say which they are, and sends again under its key what was not answered."""

    def __init__(self, name: str, port: int, seed: int) -> None:
        super().__init__(daemon=True)
        self.series, self.port, self.random = name, port, random.Random(seed)
        self.acknowledged = 0
        self.wrong = ""
        self.ended = threading.Event()

    def run(self) -> None:
        # Of the year 2001, so that all of it is past what the edge keeps.
        while not self.ended.is_set() and not self.wrong:
            first, count = self.acknowledged, self.random.choice([1, 10, 200, 2000])
            lines = [f"m,w={self.series} n={n}i,x={n}.5 {10**18 + n}" for n in range(first, first + count)]
            if self.send("\n".join(lines), f"{self.series}-{first}"):
                self.acknowledged = first + count

    def send(self, body: str, key: str) -> bool:
        """Returns whether it is acknowledged; else the writer was ended, and whether it is there is not known."""
        while not self.wrong:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
            try:
                connection.request("POST", "/write?db=d", body, {"Idempotency-Key": key})
                answer = connection.getresponse()
                said = answer.read()
                if answer.status == 204:
                    return True
                if answer.status != 503:
                    self.wrong = f"{answer.status}: {said!r}"
                time.sleep(0.05)
            except (OSError, http.client.HTTPException):
                time.sleep(0.05)
            finally:
                connection.close()
        return False


def asked(server: Server, sql: str) -> list[list[object]]:
    """Returns the rows of a query; none where there is no table yet, or with why it cannot be answered."""
    connection = http.client.HTTPConnection(server.address, timeout=60)
    connection.request("POST", "/api/v1/query", json.dumps({"sql": sql, "database": "d"}))
    response = connection.getresponse()
    answer = json.load(response)
    connection.close()
    if response.status != 200:
        print(f"the centre answers {response.status}: {answer}", flush=True)
    return list(answer.get("data", []))


def started(folder: pathlib.Path, port: int) -> Server:
    server = Server(folder, port=port)
    server.wait_until_ready()
    return server


def run(program: str, folder: pathlib.Path, kills: int, seed: int) -> str:
    """Returns what is wrong, empty if nothing is."""
    chance = random.Random(seed)
    ports = free_port(), free_port()
    centre = started(folder / "centre", ports[0])
    edge = Edge(program, folder / "edge", ports[1], f"http://127.0.0.1:{ports[0]}")
    writers = [Writer(f"w{number}", ports[1], seed + number) for number in range(4)]
    for writer in writers:
        writer.start()
    for _ in range(kills):
        time.sleep(chance.uniform(0.1, 2.5))
        which = chance.randrange(3)
        if which != 0:
            edge.kill()
        if which != 1:
            centre.kill()
            centre = started(folder / "centre", ports[0])
        if which != 0:
            edge = Edge(program, folder / "edge", ports[1], f"http://127.0.0.1:{ports[0]}")
    for writer in writers:
        writer.ended.set()
    for writer in writers:
        writer.join()
    wrong = [f"{writer.series}: {writer.wrong}" for writer in writers if writer.wrong]
    wanted = {writer.series: writer.acknowledged for writer in writers}
    # One series at a time: the different values of all would take more memory than a query has.
    sql = "SELECT count(*), count(DISTINCT n), max(n), sum(n), sum(x) FROM m WHERE w = '{}'"
    for _ in range(300):
        found = {name: row for name in wanted for row in asked(centre, sql.format(name))}
        if all(found.get(name, [0])[0] == count for name, count in wanted.items()):
            break
        time.sleep(0.2)
    for name, count in wanted.items():
        total = count * (count - 1) // 2
        expected = [count, count, count - 1, total, total + count / 2]
        if found.get(name) != expected:
            wrong.append(f"{name}: {found.get(name)} at the centre, {expected} were acknowledged")
    # All of it is older than it is kept.
    files = []
    for _ in range(300):
        files = [path for path in (folder / "edge" / "data").rglob("*.parquet")]
        if not files:
            break
        time.sleep(0.2)
    if files:
        wrong.append(f"{len(files)} files are left at the edge, {files[0]} for one")
    print(f"{sum(wanted.values())} points acknowledged, {kills} kills, {edge.resident()} KiB resident, {edge.health()['push']}")
    edge.kill()
    centre.kill()
    return "; ".join(wrong)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--seed", type=int, default=time.time_ns() // 10**9)
    arguments = parser.parse_args()
    target = os.environ.get("CARGO_TARGET_DIR", str(ROOT / "target"))
    program = os.environ.get("TESTED_EDGE", str(pathlib.Path(target) / "edge" / "arc-edge"))
    if not pathlib.Path(program).is_file():
        raise SystemExit(f"{program} is missing: cargo build --profile edge -p arc-edge")
    print(f"seed {arguments.seed}")
    with tempfile.TemporaryDirectory(prefix="arc-edge-") as folder:
        wrong = run(program, pathlib.Path(folder), arguments.kills, arguments.seed)
    print(wrong or "0 violations")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
