#!/usr/bin/env python3
"""Thousands of connections to a server that may open few files: writes on connections that it has go on.

    python scripts/reliability/connections.py --seed 1

Writers keep their connections while others come in a flood, idle, or with half a request. Meanwhile each writer has to get
answers, none of which is a failure of a disk, and the server has to stay ready; once the flood is over, new connections are
served; after a kill everything acknowledged is there. Linux only.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import pathlib
import random
import resource
import shutil
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable

import oracle
import versions
from bodies import DROPPED
from clock import Clock
from drops import DroppedTable
from oracle import Oracle
from server import Server
from writers import Writer, run_all

# How long something may take that has to happen at all.
PATIENCE_SECONDS = 60


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--connections", type=int, default=3_000)
    parser.add_argument("--open-files", type=int, default=128, help="what the server may open: files and connections")
    parser.add_argument("--seconds", type=float, default=4, help="how long the flood stays")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    return parser.parse_args()


class Flood:
    """A data directory, its writers, and the floods that its server gets."""

    def __init__(self, options: argparse.Namespace, data_dir: pathlib.Path) -> None:
        self.options, self.data_dir = options, data_dir
        self.random = random.Random(options.seed)
        self.violations: list[str] = []
        self.opened = 0
        self.dropped = {name: DroppedTable(name) for name in DROPPED}
        self.writers = [Writer(number, options.seed, 500, Clock(), self.dropped) for number in range(4)]
        self.oracle = Oracle()

    def limit(self) -> None:
        files = self.options.open_files
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))

    def start(self, is_limited: bool) -> Server:
        settings = {
            "flush_bytes": "256KiB",
            "flush_after": "100ms",
            "wal_segment_bytes": "64KiB",
            "compaction_quiet": "0ms",
        }
        environment = {"ARC_DELETE_ENABLED": "true"}
        server = Server(self.data_dir, environment, self.limit if is_limited else None, **settings)
        server.wait_until_ready()
        return server

    def run(self) -> None:
        for number in range(self.options.rounds):
            self.round(number)
            self.check(number)

    def round(self, number: int) -> None:
        server = self.start(is_limited=True)
        stop = threading.Event()
        threads, requests = run_all(self.writers, server, stop)
        watcher = server.connect(PATIENCE_SECONDS)
        self.expect_ready(watcher, f"round {number}, before")
        with contextlib.ExitStack() as held:
            self.flood(server, held)
            time.sleep(self.options.seconds)
            # All have answers to requests that they sent while everything was taken.
            before = [writer.requests for writer in self.writers]
            if not holds(lambda: all(writer.requests > one + 1 for writer, one in zip(self.writers, before))):
                counts = [(one, writer.requests) for writer, one in zip(self.writers, before)]
                self.violations.append(f"round {number}: writers stand still in the flood: {counts}")
            self.expect_ready(watcher, f"round {number}, in the flood")
        if not holds(lambda: is_served(server)):
            self.violations.append(f"round {number}: no new connection is served after the flood")
        if not server.is_alive():
            self.violations.append(f"round {number}: the server ended:\n" + "".join(server.log[-20:]))
        server.kill()
        stop.set()
        for thread in threads:
            thread.join()
        watcher.close()
        self.oracle.add(requests)
        failed = [request for request in requests if request.what.startswith("500")]
        self.violations += [f"round {number}: {request}" for request in failed[:5]]

    def flood(self, server: Server, held: contextlib.ExitStack) -> None:
        host, port = server.address.split(":")
        half = b"POST /write?db=storm HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nlines v="
        for _ in range(self.options.connections):
            connection = socket.socket()
            held.callback(connection.close)
            connection.settimeout(0.05)
            # What the kernel does not take now, waits or is refused: as it likes.
            with contextlib.suppress(OSError):
                connection.connect((host, int(port)))
                self.opened += 1
                if self.random.random() < 0.5:
                    connection.send(half)
            connection.setblocking(False)

    def expect_ready(self, watcher: http.client.HTTPConnection, case: str) -> None:
        """Asks on a connection that is there already."""
        try:
            watcher.request("GET", "/ready")
            answer = watcher.getresponse()
            text = answer.read()
            if answer.status != 200:
                self.violations.append(f"{case}: not ready: {answer.status} {text!r}")
        except (OSError, http.client.HTTPException) as error:
            self.violations.append(f"{case}: a connection that was kept broke: {error}")

    def check(self, number: int) -> None:
        server = self.start(is_limited=False)
        case = f"round {number}, after a kill"
        self.oracle.check(oracle.ask_server(server), case)
        rows = versions.ask(server)
        for writer in self.writers:
            self.violations += writer.versions.check(rows, case) + writer.problems
        for table in self.dropped.values():
            self.violations += table.settle(case)
        self.violations += self.oracle.violations
        server.kill()


def holds(condition: Callable[[], bool]) -> bool:
    """Whether something comes true, in whatever time."""
    until = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < until:
        if condition():
            return True
        time.sleep(0.05)
    return False


def is_served(server: Server) -> bool:
    with contextlib.suppress(OSError, http.client.HTTPException):
        return server.request("GET", "/health")[0] == 200
    return False


def main() -> int:
    options = arguments()
    # Ours are as many, twice.
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard != resource.RLIM_INFINITY and hard < options.connections + 100:
        print(f"SKIPPED: this process may open {hard} files only")
        return 0
    resource.setrlimit(resource.RLIMIT_NOFILE, (options.connections + 100, hard))
    parent = pathlib.Path(tempfile.mkdtemp(prefix="arc-connections-"))
    flood = Flood(options, parent / "data")
    flood.run()
    for violation in flood.violations[:20]:
        print("VIOLATION", violation)
    acknowledged = sum(writer.acknowledged for writer in flood.writers)
    print(
        f"seed {options.seed}: {options.rounds} floods of {options.connections} connections, {flood.opened} of them taken by "
        f"the kernel, to a server of {options.open_files} files; {acknowledged} points acknowledged in "
        f"{len(flood.oracle.requests)} requests, {len(flood.violations)} violations"
    )
    if flood.violations:
        print(f"kept {parent}")
    else:
        shutil.rmtree(parent)
    return 1 if flood.violations else 0


if __name__ == "__main__":
    sys.exit(main())
