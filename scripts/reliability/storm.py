#!/usr/bin/env python3
"""Kills a server that is written to, again and again, and compares what it stored with what it acknowledged.

    python scripts/reliability/storm.py --kills 100 --seed 1

Acknowledged: each point exactly once, unaltered. No answer: the whole request or nothing. Refused: nothing. Backups are
under way when the server is killed, too; they are whole, and what is restored from one has the same. Ends with status 1 if
anything else was found, and then keeps the data directory.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from http.client import HTTPException

import clock
import oracle
import versions
from bodies import DROPPED
from clock import Clock
from drops import DroppedTable
from oracle import Oracle
from server import ROOT, Ended, Server, binary, knows, knows_command, unpack, verify
from writers import Writer, run_all


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100, help="end after so many kills")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="or after this time")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="of all random choices")
    parser.add_argument("--writers", type=int, default=4)
    parser.add_argument("--largest", type=int, default=5_000, help="points of the largest request")
    parser.add_argument("--rotate", type=int, default=50, help="kills before a new directory")
    parser.add_argument("--verify-every", type=int, default=5, help="kills between runs of `arc-server verify`")
    parser.add_argument("--duckdb-every", type=int, default=25, help="kills between counts by DuckDB")
    parser.add_argument("--real-clock", action="store_true", help="without jumps of the server's clock")
    parser.add_argument("--crash-points", action="store_true", help="die there, too; for a server with that feature")
    parser.add_argument("--directory", type=pathlib.Path, default=None, help="parent of the data directories")
    return parser.parse_args()


def crash_points() -> list[str]:
    """Returns the names in the engine's sources."""
    sources = (ROOT / "crates/arc-core/src").rglob("*.rs")
    names = {name for path in sources for name in re.findall(r'crash_point\("([a-z_:]+)"\)', path.read_text())}
    return sorted(names)


class Storm:
    """A round: directories one after the other, each killed and started again many times."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.random = random.Random(options.seed)
        self.parent = pathlib.Path(tempfile.mkdtemp(prefix="arc-storm-", dir=options.directory))
        self.points = crash_points() if options.crash_points else []
        self.deletes = {"ARC_DELETE_ENABLED": "true"} if knows("delete-enabled") else {}
        self.has_backups = knows("backup-dir")
        self.has_packs = knows_command("unpack")
        self.preload = None if options.real_clock else clock.library()
        if not self.preload:
            print("the clock does not jump: there is no libfaketime (Debian: libfaketime)", flush=True)
        self.backups = self.restored = 0
        self.began = time.monotonic()
        self.kills = self.early = self.died = self.acknowledged = self.requests = self.unknown = self.refused = 0
        self.deleted = self.verified = self.counted = self.flushes = self.merges = 0
        self.retried = self.replayed = self.drops = self.expired = self.unpacked = 0
        self.paused = self.jumps = self.versions = 0
        self.is_ended = False
        self.restarts: list[float] = []
        self.violations: list[str] = []
        self.new_directory()

    def new_directory(self) -> None:
        self.data_dir = self.parent / f"{self.kills:06}"
        self.backup_dir = self.parent / f"{self.kills:06}-backups"
        seed = self.random.randrange(1 << 60)
        self.clock = Clock(self.parent / f"{self.kills:06}-clock", random.Random(f"{seed} clock"), self.preload)
        self.oracle = Oracle(self.clock)
        self.dropped = {name: DroppedTable(name) for name in DROPPED}
        self.writers = [
            Writer(number, seed, self.options.largest, self.clock, self.dropped, self.has_packs)
            for number in range(self.options.writers)
        ]

    def settings(self) -> dict[str, str]:
        """Draws settings under which flushes and merges run all the time."""
        draw = self.random.choice
        backups = {"backup_dir": str(self.backup_dir)} if self.has_backups else {}
        units = {"time_unit": draw(["ns", "us", "ms"])} if knows("time-unit") else {}
        return backups | units | {
            "flush_bytes": draw(["16KiB", "256KiB", "4MiB"]),
            "flush_after": draw(["50ms", "1s", "60s"]),
            "wal_segment_bytes": draw(["64KiB", "1MiB", "16MiB"]),
            "compaction_quiet": draw(["0ms", "100ms", "1h"]),
            "compaction_grace": draw(["0ms", "0ms", "100ms"]),
        }

    def is_over(self) -> bool:
        late = time.monotonic() - self.began > self.options.seconds
        return late or self.kills >= self.options.kills or bool(self.violations)

    def run(self) -> None:
        kills_here = 0
        while not self.is_over():
            self.kill_once()
            kills_here += 1
            if self.kills % self.options.verify_every == 0:
                self.verify()
            if self.kills % self.options.duckdb_every == 0:
                self.count_files()
            if kills_here >= self.options.rotate and not self.is_over():
                kills_here = 0
                self.count_files()
                self.end_directory()
                self.new_directory()
            if self.kills % 100 == 0:
                print(self.summary(), flush=True)
        if not self.violations:
            self.count_files()
        self.end_directory()
        self.is_ended = True

    def end_directory(self) -> None:
        self.acknowledged += sum(writer.acknowledged for writer in self.writers)
        self.refused += sum(writer.refused for writer in self.writers)
        self.retried += sum(writer.retried for writer in self.writers)
        self.replayed += sum(writer.replayed for writer in self.writers)
        self.drops += sum(writer.drops for writer in self.writers)
        self.versions += sum(writer.versions.number for writer in self.writers)
        if self.violations:
            print(f"kept {self.data_dir}")
        else:
            shutil.rmtree(self.data_dir)
            shutil.rmtree(self.backup_dir, ignore_errors=True)

    def kill_once(self) -> None:
        """Starts the server, checks all of the directory, lets the writers go and kills it."""
        environment = {}
        if self.points and self.random.random() < 0.5:
            environment["ARC_CRASH_POINT"] = f"{self.random.choice(self.points)}:{self.random.randint(1, 3)}"
        faked = self.clock.environment()
        server = Server(self.data_dir, {**environment, **self.deletes, **faked}, **self.settings())
        self.kills += 1
        self.jumps += bool(faked)
        if self.random.random() < 0.1:
            # While it starts.
            time.sleep(self.random.uniform(0, 0.03))
            self.early += 1
            server.kill()
            return
        try:
            server.wait_until_ready()
            self.restarts.append(server.ready_after)
            self.check(server, f"kill {self.kills}")
            self.load(server, may_die=bool(environment), may_jump=bool(faked))
        except (Ended, OSError, RuntimeError, HTTPException) as error:
            # The checks run into a crash point, too.
            if not environment or not server.ends_within(10):
                self.violations.append(f"kill {self.kills}: the server failed: {error}\n" + "".join(server.log[-20:]))
            self.died += not server.is_alive()
        server.kill()
        self.read_log(server)
        self.violations += self.oracle.violations

    def check(self, server: Server, case: str) -> None:
        """Compares all that the server has with what it was sent; drops of an earlier process are done or not."""
        self.oracle.check(oracle.ask_server(server), case)
        for table in self.dropped.values():
            self.violations += table.settle(case)
        rows = versions.ask(server)
        for writer in self.writers:
            self.violations += writer.versions.check(rows, case)

    def read_log(self, server: Server) -> None:
        """Counts what the server did. No kill is a reason for it to meet an error."""
        self.flushes += server.logged('"flushed"')
        self.merges += server.logged('"merged data files"')
        self.expired += server.logged('"dropped data files past their retention"')
        errors = [line for line in server.log if '"level":"ERROR"' in line]
        self.violations += [f"kill {self.kills}: logged {line}" for line in errors]

    def load(self, server: Server, may_die: bool, may_jump: bool) -> None:
        stop = threading.Event()
        threads, requests = run_all(self.writers, server, stop)
        wait = self.random.uniform(0.005, 0.5)
        if self.has_backups and self.random.random() < 0.3:
            self.begin_backup(server, wait)
        elif self.random.random() < 0.2:
            self.pause(server, wait)
        elif may_jump:
            time.sleep(wait / 2)
            self.clock.jump()
            self.jumps += 1
            time.sleep(wait / 2)
        else:
            time.sleep(wait)
        died = not server.is_alive()
        server.kill()
        stop.set()
        for thread in threads:
            thread.join()
        self.died += died
        if died and not may_die:
            self.violations.append(f"kill {self.kills}: the server ended by itself:\n" + "".join(server.log[-20:]))
        self.oracle.add(requests)
        self.requests += len(requests)
        self.unknown += sum(not request.what for request in requests)
        self.deleted += sum("delete 200" in request.what for request in requests)
        for writer in self.writers:
            self.violations += [f"kill {self.kills}: {problem}" for problem in writer.problems]

    def pause(self, server: Server, wait: float) -> None:
        """Stops the process for a while, wherever it is; it may be killed before it goes on."""
        early = self.random.uniform(0, wait)
        time.sleep(early)
        server.process.send_signal(signal.SIGSTOP)
        time.sleep(self.random.uniform(0.01, 0.3))
        self.paused += 1
        if self.random.random() < 0.7:
            server.process.send_signal(signal.SIGCONT)
            time.sleep(wait - early)

    def begin_backup(self, server: Server, wait: float) -> None:
        """Has a backup begin while points are written; it may be cut off."""
        early = self.random.uniform(0, wait)
        time.sleep(early)
        try:
            status, _ = server.request("POST", "/api/v1/backup", b'{"id": "storm"}')
            self.backups += status == 202
        except (OSError, HTTPException):
            pass  # A crash point came first.
        time.sleep(wait - early)

    def restore(self, server: Server) -> None:
        """Brings the backup up to date in peace, restores it, and compares that with what the server has to have."""
        case = f"kill {self.kills}, restored"
        status, answer = server.request("POST", "/api/v1/backup", b'{"id": "storm"}')
        while status == 202 and json.loads(server.request("GET", "/api/v1/backup/status")[1])["status"] == "running":
            time.sleep(0.01)
        copy, restored = self.backup_dir / "storm", self.backup_dir / "restored"
        done = subprocess.run(
            [binary(), "restore", "--from", str(copy), "--data-dir", str(restored)], capture_output=True, text=True
        )
        if status != 202 or done.returncode != 0:
            self.violations.append(f"{case}: {status} {answer!r} {done.stdout}{done.stderr}")
            return
        again = Server(restored, compaction="false")
        again.wait_until_ready()
        self.check(again, case)
        again.stop()
        self.restored += 1
        shutil.rmtree(restored)

    def verify_backup(self) -> None:
        """A backup that was cut off is whole, or is none yet."""
        status, text, _ = verify(self.backup_dir / "storm")
        if status != 0 and "is not a data directory" not in text:
            self.violations.append(f"kill {self.kills}: verify of the backup ended with {status}: {text}")

    def verify(self) -> dict[str, int]:
        """Runs `arc-server verify` on the stopped directory, and on its backup."""
        self.verify_backup()
        status, text, totals = verify(self.data_dir)
        self.verified += 1
        # A kill may come before anything was there.
        if status != 0 and "no data directory" not in text and self.oracle.requests:
            self.violations.append(f"kill {self.kills}: verify ended with {status}: {text}")
        return totals

    def count_files(self) -> None:
        """Starts and stops the server in order, so that all is in files, and counts them with DuckDB."""
        case = f"kill {self.kills}, DuckDB"
        # With the default history: what a table's folder has is what the manifest lists all the same.
        backups = {"backup_dir": str(self.backup_dir)} if self.has_backups else {}
        server = Server(self.data_dir, compaction="false", **backups)
        try:
            server.wait_until_ready()
            self.check(server, f"kill {self.kills}, before DuckDB")
            if self.has_backups and self.oracle.requests:
                self.restore(server)
            server.stop()
        except (Ended, OSError, RuntimeError, HTTPException) as error:
            self.violations.append(f"{case}: the server failed: {error}")
            server.kill()
            return
        if self.has_packs:
            # DuckDB does not look into them.
            self.verify()
            self.unpacked += unpack(self.data_dir)
        totals = self.verify()
        answers, wrong = oracle.ask_duckdb(self.data_dir, totals.get("files"))
        self.oracle.check(answers, case, of_files=True)
        self.violations += self.oracle.violations + [f"{case}: {one}" for one in wrong]
        self.counted += 1

    def summary(self) -> str:
        acknowledged = self.acknowledged
        acknowledged += 0 if self.is_ended else sum(writer.acknowledged for writer in self.writers)
        times = sorted(self.restarts) or [0.0]
        return (
            f"seed {self.options.seed}: {self.kills} kills ({self.early} while starting, {self.died} by crash point), "
            f"{acknowledged} points acknowledged in {self.requests} requests, {self.unknown} unknown, {self.refused} refused, "
            f"{self.deleted} deleted, {self.drops} drops, {self.expired} rounds of retention, "
            f"{self.retried} sent again, of which {self.replayed} were there, {self.versions} times points written again, paused {self.paused} times, {self.jumps} jumps of the clock, {self.flushes} flushes, {self.merges} merges, verified {self.verified} times, counted by DuckDB {self.counted} times, {self.unpacked} files unpacked for it, {self.backups} backups, {self.restored} restored, "
            f"restart median {times[len(times) // 2]:.3f} s, longest {times[-1]:.3f} s, "
            f"{time.monotonic() - self.began:.0f} s, {len(self.violations)} violations"
        )


def main() -> int:
    options = arguments()
    print(f"seed {options.seed}", flush=True)
    storm = Storm(options)
    storm.run()
    for violation in storm.violations[:20]:
        print("VIOLATION", violation)
    print(storm.summary())
    return 1 if storm.violations else 0


if __name__ == "__main__":
    sys.exit(main())
