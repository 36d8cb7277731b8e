#!/usr/bin/env python3
"""Sends the release server what is made to stop it, and looks whether it does.

    python scripts/reliability/hostile.py --seconds 60 --seed 1

A corpus first (`attacks.py`: statements, bodies, heads, clients that do not read, messages of Flight), then whatever the seed
makes of it for as long as `--seconds` says. After each attack's time limit, by the server's own settings, the process lives, a
plain `SELECT count(*)` and a durable write are answered within a second, no thread is busy, and memory is back within 10 % of
before. Nothing that was acknowledged is missing at the end.

On Linux, in a control group of its own of `--cap-mib` without swap: `--control-group` names its parent, as for `memory.py`; where
this user may not make one, it says so, the server is told half of the cap as its `--memory`, and the peak of what is resident is
compared with the cap. Ends with status 1 if anything else was found.
"""

from __future__ import annotations

import argparse
import pathlib
import random
import re
import sys
import tempfile
import threading
import time

import attacks
from attacks import Attack
from group import Group, own_group
from server import Server, knows
from watch import KEPT_KIB, Health

# Short limits, so that what they end is over soon.
LIMITS = {"query_timeout": "1s", "read_timeout": "1s", "send_timeout": "1s", "write_timeout": "1s"}
SETTINGS = {"flush_after": "5s"}
SWITCHES = {"ARC_DELETE_ENABLED": "true"}
DATABASE = "hostile"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60, help="of generated attacks, after the corpus")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--cap-mib", type=int, default=2_048)
    parser.add_argument("--control-group", type=pathlib.Path, default=None)
    parser.add_argument("--only", help="attacks whose name has this pattern, and nothing generated")
    parser.add_argument("--list", action="store_true", help="print the names of the corpus")
    parser.add_argument("--patience", type=float, default=1.0, help="seconds that an answer may take")
    parser.add_argument("--short", action="store_true", help="of each kind of attack the worst alone")
    return parser.parse_args()


class Judge(Health):
    """Looks at the server after each attack."""

    def __init__(self, server: Server, patience_s: float) -> None:
        super().__init__(server, DATABASE, patience_s)
        self.problems: list[str] = []

    def run(self, attack: Attack) -> bool:
        """Runs one attack and looks at what it leaves; returns whether the server lives.

        An allocator keeps some of what it had to get once. Where more is left than that may be, the attack comes again, and the
        second time leaves nothing.
        """
        before = self.watch.resident_kib()
        if not self.run_once(attack, is_first=True):
            return False
        is_back = attack.stores or self.watch.resident_kib() <= before * 1.1 + KEPT_KIB
        return is_back or self.run_once(attack, is_first=False)

    def run_once(self, attack: Attack, is_first: bool) -> bool:
        attack.over.clear()
        before, began = self.watch.resident_kib(), time.monotonic()
        thread = threading.Thread(target=attack.run, args=(self.server,), daemon=True)
        thread.start()
        time.sleep(max(0.0, attack.limit_s))
        if not self.server.is_alive():
            self.note(attack, ["the process is gone"])
            return False
        problems = self.probe()
        attack.over.set()
        thread.join(60)
        try:
            problems += self.calm(float("inf") if attack.stores or is_first else before)
        except (OSError, StopIteration):
            # A process that has died has no memory; that it is gone is said below.
            self.server.ends_within(10)
        if not self.server.is_alive():
            problems.append("the process is gone")
        self.note(attack, problems)
        took, now = time.monotonic() - began, self.watch.resident_kib() if self.server.is_alive() else 0
        print(f"{attack.name}: {took:.1f} s, {before >> 10} -> {now >> 10} MiB, {dict(attack.answers)}", flush=True)
        return self.server.is_alive()

    def note(self, attack: Attack, problems: list[str]) -> None:
        for problem in problems:
            self.problems.append(f"{attack.name}: {problem}")
            print(f"VIOLATION {attack.name}: {problem}", flush=True)


def warm(judge: Judge) -> None:
    """Fills what is filled once, so that memory is compared with a server that has worked."""
    attacks.prepare(judge.server, DATABASE)
    for _ in range(20):
        judge.probe()
    judge.server.request("POST", f"/write?db={DATABASE}", b"warm v=1 1\n" * 500_000)
    for _ in range(4):
        judge.server.sql("SELECT sum(value) FROM generate_series(1, 3000000)", DATABASE)
    time.sleep(2)


def rounds(judge: Judge, options: argparse.Namespace) -> int:
    corpus = [attack for attack in attacks.corpus(DATABASE) if re.search(options.only or "", attack.name)]
    if options.short:
        corpus = [attack for attack in corpus if attack.is_worst]
    count = 0
    for attack in corpus:
        count += 1
        if not judge.run(attack):
            return count
    draw, until = random.Random(options.seed), time.monotonic() + options.seconds
    while not options.only and time.monotonic() < until:
        count += 1
        if not judge.run(attacks.generated(draw, DATABASE)):
            break
    return count


def main() -> int:
    options = arguments()
    if options.list:
        print("\n".join(attack.name for attack in attacks.corpus(DATABASE)))
        return 0
    print(f"seed {options.seed}", flush=True)
    parent = options.control_group or own_group()
    if parent is None:
        print("no control group: this user may not make one; the server is told half of the cap instead", flush=True)
    group = Group(parent, options.cap_mib)
    settings = {**SETTINGS, **{name: value for name, value in LIMITS.items() if knows(name.replace("_", "-"))}}
    budget = {} if parent else {"memory": f"{options.cap_mib // 2}MiB"}
    with tempfile.TemporaryDirectory(prefix="arc-hostile-") as folder:
        server = Server(pathlib.Path(folder) / "data", SWITCHES, before=group.enter, **settings, **budget)
        server.wait_until_ready()
        judge, peak_kib = Judge(server, options.patience), 0
        try:
            warm(judge)
            judge.slowest_s, count = 0.0, rounds(judge, options)
            peak_kib = server.status_kib("VmHWM") if server.is_alive() else 0
            if server.is_alive() and not judge.count():
                judge.problems.append("acknowledged points are missing")
            if parent is None and peak_kib > options.cap_mib << 10:
                judge.problems.append(f"{peak_kib >> 10} MiB resident at most, above the cap")
        finally:
            server.kill()
            group.remove()
    violations = len(judge.problems)
    print(f"{count} attacks, slowest probe {judge.slowest_s:.2f} s, peak {peak_kib >> 10} MiB, {violations} violations")
    return 1 if judge.problems else 0


if __name__ == "__main__":
    sys.exit(main())
