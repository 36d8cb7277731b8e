#!/usr/bin/env python3
"""Makes one sync of the release server fail with EIO: nothing is acknowledged that was not synced, writes close, queries
answer, and a restart has every acknowledged point.

    python scripts/reliability/failing_sync.py

Needs Linux and a C compiler.
"""

from __future__ import annotations

import pathlib
import subprocess
import sys
import tempfile
from typing import Optional

import bodies
import oracle
from bodies import Points
from oracle import Fate, Oracle, Request, promise
from server import Ended, Server, verify

HERE = pathlib.Path(__file__).parent
# Where the sync fails: the log, the data files, the manifest.
PLACES = ["/wal/", "/data/", "/meta/"]
CALLS = [1, 2, 3, 5, 8, 13]
REQUESTS = 60


class Case:
    """A data directory, a sync that fails, and what was acknowledged until the server was stopped."""

    def __init__(self, folder: pathlib.Path, shim: pathlib.Path, place: str, nth: int) -> None:
        self.name = f"sync {nth} of {place}"
        self.data_dir = folder / "data"
        self.mark = folder / "mark"
        self.environment = {"LD_PRELOAD": str(shim), "FAIL_SYNC_PATH": f"{self.data_dir}{place}"}
        self.environment.update(FAIL_SYNC_NTH=str(nth), FAIL_SYNC_MARK=str(self.mark))
        self.oracle = Oracle()
        self.statuses: list[int] = []
        self.problems: list[str] = []
        self.failed_at: Optional[int] = None

    def run(self) -> Optional[str]:
        """Returns the path whose sync failed, if any did."""
        server = Server(self.data_dir, self.environment, flush_bytes="64KiB", wal_segment_bytes="64KiB")
        try:
            server.wait_until_ready()
            self.write(server)
            self.oracle.check(oracle.ask_server(server), f"{self.name}, while running", settle=False)
        except Ended:
            if not self.mark.exists():
                raise
        server.kill()
        self.restart()
        return self.mark.read_text() if self.mark.exists() else None

    def write(self, server: Server) -> None:
        for number in range(REQUESTS):
            points = Points(number, 0, number * 100, 100, number % 3)
            request = Request(points, ("lines",))
            self.oracle.add([request])
            body = bodies.lines(points, request.tables)
            status, answer = server.request("POST", "/write?db=storm", body, x_arc_durability="disk")
            request.what = f"{status} {answer!r}"
            request.fate = promise(status, answer)
            self.statuses.append(status)
            self.check_acknowledged(request, number)
        self.check_closed(server)

    def check_acknowledged(self, request: Request, number: int) -> None:
        """The first answer after a sync of a segment of the log failed is not that the points are stored."""
        if self.failed_at is None and self.mark.exists():
            self.failed_at = number
            if self.mark.read_text().endswith(".wal") and request.fate is Fate.STORED:
                self.problems.append(f"{self.name}: {request} was acknowledged without its sync")

    def check_closed(self, server: Server) -> None:
        """Once the log, the manifest or a folder of data files is lost, every later write is refused, and the server says that it is not ready."""
        failed = self.mark.read_text() if self.mark.exists() else ""
        is_log = failed.endswith(".wal")
        # A new object of the manifest that is not synced is not there; one whose name is not synced may be.
        is_manifest = failed.endswith("/meta/0")
        # Nobody knows which names in such a folder are on the disk, and no folder is synced again.
        is_folder = "/data/data/" in failed and "." not in failed.rsplit("/", 1)[-1]
        after = self.statuses[self.failed_at or 0 :] if failed else []
        if is_log:
            # Of the first nobody knows; those after it are refused.
            is_right = after[:1] == [500] and set(after[1:]) <= {503}
        elif is_manifest or is_folder:
            # A flush fails at any time: until it has, writes are in the log.
            is_right = set(after) <= {204, 503} and after == sorted(after)
        else:
            is_right = 503 not in self.statuses
        if not is_right:
            self.problems.append(f"{self.name}: statuses {self.statuses}")
        ready, _ = server.request("GET", "/ready")
        if (ready == 503) != (is_log or is_manifest or is_folder):
            self.problems.append(f"{self.name}: /ready is {ready} after {after.count(503)} refused writes")

    def restart(self) -> None:
        status, text, _ = verify(self.data_dir)
        if status != 0 and self.statuses:
            self.problems.append(f"{self.name}: verify ended with {status}: {text}")
        server = Server(self.data_dir)
        server.wait_until_ready()
        self.oracle.check(oracle.ask_server(server), f"{self.name}, after a restart")
        server.stop()
        self.problems += self.oracle.violations


def main() -> int:
    problems, failed_paths, closed = [], set(), 0
    with tempfile.TemporaryDirectory(prefix="arc-sync-") as folder:
        shim = pathlib.Path(folder) / "failing_sync.so"
        source = HERE / "failing_sync.c"
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", str(shim), str(source), "-ldl"], check=True)
        for place in PLACES:
            for nth in CALLS:
                inside = pathlib.Path(folder) / f"{place.strip('/')}-{nth}"
                inside.mkdir()
                case = Case(inside, shim, place, nth)
                path = case.run()
                problems += case.problems
                closed += 503 in case.statuses
                failed_paths.add(None if path is None else path.replace(str(inside), ""))
                acknowledged = case.statuses.count(204)
                print(f"{case.name}: failed {path and path.replace(str(inside), '')}, {acknowledged} acknowledged, "
                      f"then {sorted(set(case.statuses[acknowledged:]))}")
    for problem in problems:
        print("VIOLATION", problem)
    print(f"{len(PLACES) * len(CALLS)} cases, {closed} closed to writes, {len(problems)} violations")
    return 1 if problems or closed == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
