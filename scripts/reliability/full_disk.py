#!/usr/bin/env python3
"""Fills the disk under the release server: writes get 507, queries answer, a kill and a restart on the full disk lose
nothing, and ingest goes on by itself once there is room.

    python scripts/reliability/full_disk.py

Needs Linux and root, for a small tmpfs.
"""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from collections import Counter

import bodies
import oracle
from bodies import Points
from oracle import Fate, Oracle, Request, promise
from server import Ended, Server, verify

SIZE = "24m"
SETTINGS = {"flush_bytes": "256KiB", "wal_segment_bytes": "1MiB", "max_buffer_bytes": "8MiB", "write_timeout": "200ms"}
# Requests on the full disk, so that it is not by luck that they are refused.
REFUSALS = 20
PATIENCE_S = 60
# What makes the server write files beside those of the engine, and what it answers once they are there.
OTHER_FILES = {"/api/v1/auth/tokens": 201, "/api/v1/console/documents": 201}


class Round:
    """One directory on the small disk."""

    def __init__(self, mount: pathlib.Path) -> None:
        self.mount = mount
        self.data_dir = mount / "data"
        self.filler = mount / "filler"
        self.oracle = Oracle()
        self.statuses: Counter[int] = Counter()
        self.number = 0
        self.problems: list[str] = []

    def write(self, server: Server, count: int = 2_000) -> int:
        points = Points(self.number, self.number % 4, self.number * 10_000, count, self.number % 3)
        request = Request(points, ("appended",))
        self.number += 1
        self.oracle.add([request])
        body = bodies.columns(points, "appended")
        path = "/api/v1/write/msgpack?db=storm"
        status, answer = server.request("POST", path, body, x_arc_durability=["disk", "process"][self.number % 2])
        request.what, request.fate = f"{status} {answer!r}", promise(status, answer)
        self.statuses[status] += 1
        return status

    def fill(self) -> None:
        """Takes all the room there is, and what becomes free."""
        with open(self.filler, "ab", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(4096))
            except OSError:
                pass

    def check(self, server: Server, what: str) -> None:
        self.oracle.check(oracle.ask_server(server), what)

    def run(self) -> None:
        server = Server(self.data_dir, has_tokens=True, **SETTINGS)
        server.wait_until_ready()
        for _ in range(20):
            if self.write(server) != 204:
                self.problems.append(f"refused with room: {self.statuses}")
        self.refuse(server, "full")
        self.check(server, "on a full disk")
        server.kill()
        server = self.restart_full()
        self.resume(server)
        self.check(server, "with room again")
        server.kill()
        self.end()

    def refuse(self, server: Server, what: str) -> None:
        """Fills the disk and writes until nothing is taken any more."""
        refused, began = 0, time.monotonic()
        while refused < REFUSALS and time.monotonic() - began < PATIENCE_S:
            self.fill()
            refused = 0 if self.write(server) == 204 else refused + 1
        if refused < REFUSALS or self.statuses[507] == 0 or set(self.statuses) - {204, 503, 507}:
            self.problems.append(f"{what}: statuses {self.statuses}")
        print(f"{what}: {dict(self.statuses)}")
        for path, status in OTHER_FILES.items():
            self.refuse_other(server, path, status)

    def refuse_other(self, server: Server, path: str, stored: int) -> None:
        """Has the server write a file of its own until the disk has no room for it, and once more when it has."""
        statuses: Counter[int] = Counter()
        while statuses[507] == 0 and statuses.total() < REFUSALS:
            self.fill()
            statuses[self.store(server, path)] += 1
        if statuses[507] == 0 or set(statuses) - {stored, 507}:
            self.problems.append(f"{path} on a full disk: statuses {statuses}")

    def store(self, server: Server, path: str) -> int:
        self.number += 1
        document = {"kind": "query", "name": f"n{self.number}", "body": {"sql": "x" * 5_000}}
        asked = document if "documents" in path else {"name": document["name"]}
        return server.request("POST", path, json.dumps(asked).encode())[0]

    def restart_full(self) -> Server:
        """Opens the directory on the full disk; if that takes room, it says so and loses nothing."""
        self.fill()
        server = Server(self.data_dir, has_tokens=True, **SETTINGS)
        try:
            server.wait_until_ready()
            print("a restart on the full disk serves")
            self.check(server, "after a restart on the full disk")
            self.filler.unlink()
        except Ended as error:
            print("a restart on the full disk is refused:", str(error).strip().splitlines()[-1])
            if "No space left" not in str(error) and "full" not in str(error):
                self.problems.append(f"a restart on the full disk: {error}")
            self.filler.unlink()
            server = Server(self.data_dir, has_tokens=True, **SETTINGS)
            server.wait_until_ready()
        return server

    def resume(self, server: Server) -> None:
        """Fills the disk again while the server runs, gives room, and waits until writes are taken by themselves."""
        self.refuse(server, "full again")
        self.filler.unlink()
        began = time.monotonic()
        while self.write(server, 100) != 204:
            if time.monotonic() - began > PATIENCE_S:
                self.problems.append(f"no write was taken for {PATIENCE_S} s after there was room: {self.statuses}")
                return
        for path, stored in OTHER_FILES.items():
            if (status := self.store(server, path)) != stored:
                self.problems.append(f"{path} with room again: {status}")
        print(f"resumed {time.monotonic() - began:.2f} s after there was room")
        for _ in range(20):
            self.write(server, 100)

    def end(self) -> None:
        status, text, _ = verify(self.data_dir)
        if status != 0:
            self.problems.append(f"verify ended with {status}: {text}")
        server = Server(self.data_dir, compaction="false")
        server.wait_until_ready()
        self.check(server, "after a restart")
        server.stop()
        answers, wrong = oracle.ask_duckdb(self.data_dir, verify(self.data_dir)[2].get("files"))
        self.oracle.check(answers, "DuckDB")
        self.problems += wrong + self.oracle.violations
        stored = sum(request.points.count for request in self.oracle.requests.values() if request.fate is Fate.STORED)
        print(f"{stored} points acknowledged and there, {dict(self.statuses)}, {len(self.problems)} violations")


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="arc-full-") as folder:
        mount = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", folder]
        if not hasattr(os, "geteuid") or os.geteuid() != 0 or subprocess.run(mount, stderr=subprocess.DEVNULL).returncode:
            print("SKIPPED: no small tmpfs can be mounted without root")
            return 0
        try:
            one = Round(pathlib.Path(folder))
            one.run()
        finally:
            subprocess.run(["umount", "-l", folder], check=True)
    for problem in one.problems:
        print("VIOLATION", problem[:2_000])
    return 1 if one.problems else 0


if __name__ == "__main__":
    sys.exit(main())
