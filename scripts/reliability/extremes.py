#!/usr/bin/env python3
"""Gives every function, cast and clause of SQL, and every type of a body, extreme values.

    python scripts/reliability/extremes.py --seconds 600 --seed 1
    python scripts/reliability/extremes.py --statement "SELECT lpad('a', 9223372036854775807)"

The functions are those of `information_schema.routines` of the server that runs. Requests come in
groups, by clients whose tokens have rights for some tables of one database. One second after the
time limit of each request, the process lives, a plain `SELECT count(*)` and a durable write are
answered, no thread computes for a client, and memory is back within 10 % of before. No answer has a
value of a table beyond the token, and none is a 500. If a check fails, the requests of the group
are sent again one by one, and the guilty one is printed whole. `--statement` sends a statement
again, and `--only` a body by its name.

On Linux, in a control group of `--cap-mib` without swap, as for `hostile.py`. Ends with status 1 if
there is a violation that is not in `TO_BE_MENDED`.
"""

from __future__ import annotations

import argparse
import pathlib
import queue
import random
import re
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Any

import extreme_statements as statements
from extreme_bodies import all_bodies
from extreme_clauses import CLAUSES
from extreme_requests import (
    DOORS,
    FORMATS,
    Case,
    Outcome,
    body_case,
    run,
    send,
    statement_case,
)
from extreme_statements import Drawing, Routine, Statement
from extreme_world import DATABASE, prepare, tokens
from group import Group, own_group
from server import Ended, Server
from watch import KEPT_KIB, Health, grown

TO_BE_MENDED: tuple[tuple[str, str], ...] = (
    (
        r"^function (arg_?m|m)(ax|in)(_by)? .*Dictionary\(Int8, Utf8\)",
        "the first of equal texts in a dictionary overflows in builds that look for it (500)",
    ),
)
"""Patterns of cases (name, a space, text) that are known to fail, each with what is wrong."""

SETTINGS = {
    "query_timeout": "1s", "read_timeout": "1s", "send_timeout": "1s", "write_timeout": "1s",
    "slow_query": "none",
    # What is stored is soon on disk, so that memory is that of requests.
    "flush_after": "1s", "flush_bytes": "16MiB", "max_buffer_bytes": "64MiB",
}  # fmt: skip
SWITCHES = {"ARC_DELETE_ENABLED": "true"}
CLIENTS = 4
GROUP = 32
# How often a function is called with ordinary values to find out what it takes.
TRIES = 60
# Longer texts go to a file.
LONGEST_LINE = 4_000


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--seconds", type=float, default=600, help="of drawn statements, after one of each"
    )
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--cap-mib", type=int, default=2_048)
    parser.add_argument("--control-group", type=pathlib.Path, default=None)
    parser.add_argument("--only", help="cases whose name or text has this pattern")
    parser.add_argument(
        "--statement", help="sends this statement alone, or that of the file after @"
    )
    parser.add_argument(
        "--door", default="json", help="for --statement: " + ", ".join((*DOORS, *FORMATS))
    )
    parser.add_argument(
        "--list", action="store_true", help="print the functions, clauses and bodies"
    )
    parser.add_argument(
        "--patience", type=float, default=1.0, help="seconds that an answer may be late"
    )
    parser.add_argument(
        "--short",
        action="store_true",
        help="one statement of each function and clause, some bodies, no wide rows",
    )
    return parser.parse_args()


def known(case: Case) -> int | None:
    """Returns which entry of `TO_BE_MENDED` a case is of."""
    text = f"{case.name} {case.text}"
    return next(
        (at for at, (pattern, _) in enumerate(TO_BE_MENDED) if re.search(pattern, text, re.DOTALL)),
        None,
    )


class Findings:
    """What was found: violations, and what is known already."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        self.violations: list[str] = []
        self.noted: set[tuple[str, str]] = set()
        self.known: Counter[int] = Counter()

    def note(self, case: Case, problems: list[str]) -> None:
        entry = known(case)
        if entry is not None:
            self.known[entry] += bool(problems)
            return
        for problem in problems:
            # A group finds some problems that its cases have alone, too.
            key = (case.text, problem[:20])
            if key in self.noted:
                continue
            self.noted.add(key)
            text = f"{case.name}: {problem}\n    {self.shown(case.text)}"
            self.violations.append(text)
            print(f"VIOLATION {text}", flush=True)

    def shown(self, text: str) -> str:
        if len(text) <= LONGEST_LINE:
            return text
        path = self.folder / f"statement-{len(self.violations)}.sql"
        path.write_text(text)
        return f"{text[:200]} … ({len(text)} characters, whole in {path})"

    def stale(self) -> list[str]:
        """Returns the patterns of known cases of which none failed."""
        return [pattern for at, (pattern, _) in enumerate(TO_BE_MENDED) if not self.known[at]]


class World:
    """The server with its tables and tokens, started again wherever it ends."""

    def __init__(
        self,
        options: argparse.Namespace,
        folder: pathlib.Path,
        group: Group,
        budget: dict[str, str],
    ) -> None:
        self.options, self.folder, self.group, self.budget = options, folder, group, budget
        self.starts = 0
        self.data_dir = folder / "data"
        self.tokens: dict[str, str] = {}

    def begin(self) -> None:
        self.start()
        self.health = Health(self.server, "probes", self.options.patience)
        self.prepare()

    def end(self) -> None:
        """Ends the server; the folder stays if statements are in it."""
        if self.starts:
            self.server.kill()
        self.group.remove()
        for data_dir in self.folder.glob("data*"):
            shutil.rmtree(data_dir)
        if not any(self.folder.iterdir()):
            self.folder.rmdir()

    def start(self) -> None:
        settings: dict[str, Any] = {**SETTINGS, **self.budget}
        self.server = Server(
            self.data_dir, SWITCHES, before=self.group.enter, has_tokens=True, **settings
        )
        self.starts += 1
        self.server.wait_until_ready()

    def prepare(self) -> None:
        prepare(self.server, has_wide_rows=not self.options.short)
        self.tokens = tokens(self.server)
        for _ in range(20):
            self.health.probe()

    def restart(self) -> list[str]:
        """Starts the server again, on its directory if it can; returns what is wrong with that."""
        self.server.process.wait()
        problems = []
        try:
            self.start()
            self.health.move_to(self.server)
            rows = self.server.sql("SELECT count(*) FROM probe", self.health.database)
            if rows != [[self.health.acknowledged]]:
                sent = self.health.acknowledged
                problems.append(f"{rows} probes after a restart, {sent} acknowledged")
        except (Ended, OSError, RuntimeError) as error:
            problems.append(f"no restart: {str(error)[-500:]}")
            self.server.kill()
            self.data_dir = self.folder / f"data-{self.starts}"
            self.start()
            self.health = Health(self.server, "probes", self.options.patience)
            self.prepare()
        return problems


class Round:
    """Groups of cases, each with a look at the server after it."""

    def __init__(self, world: World, findings: Findings) -> None:
        self.world, self.findings = world, findings
        self.count = self.groups = 0
        self.peak_kib = 0
        self.statuses: Counter[str] = Counter()
        self.last = Case("start", "", list)

    # One group.

    def send_all(self, cases: list[Case], clients: int = CLIENTS) -> list[Outcome]:
        """Sends cases by several clients, until all are answered or the process is gone."""
        left: queue.SimpleQueue[Case] = queue.SimpleQueue()
        for case in cases:
            left.put(case)
        outcomes: list[Outcome] = []
        server, patience_s = self.world.server, self.world.options.patience

        def client() -> None:
            while server.is_alive():
                try:
                    case = left.get_nowait()
                except queue.Empty:
                    return
                outcomes.append(run(server, self.world.tokens, case, patience_s))

        threads = [threading.Thread(target=client, daemon=True) for _ in range(clients)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return outcomes

    def look(self, before_kib: float) -> list[str]:
        """Returns what is wrong with the server once a group is answered."""
        world = self.world
        if not world.server.ends_within(0.05):
            try:
                problems = world.health.probe()
                problems += world.health.calm(before_kib, working_s=world.options.patience)
                self.peak_kib = max(self.peak_kib, world.server.status_kib("VmHWM"))
            except (OSError, StopIteration):
                # The files of a process go before it has ended.
                world.server.ends_within(10)
            if world.server.is_alive():
                return problems
        words = ("panic", "overflow", "memory allocation")
        last = [line for line in world.server.log[-9:] if any(word in line for word in words)]
        status = world.server.process.returncode
        return [f"the process is gone: {status} {''.join(last)[-300:]}".strip()]

    def attempt(self, cases: list[Case], clients: int) -> tuple[list[Outcome], list[str]]:
        """Sends cases, twice where memory is not back: an allocator keeps some of its first use."""
        self.revive()
        self.last = cases[-1]
        for is_last in (False, True):
            before = self.world.health.watch.resident_kib()
            outcomes = self.send_all(cases, clients)
            problems = self.look(float("inf"))
            is_gone = not self.world.server.is_alive()
            resident = 0 if is_gone else self.world.health.watch.resident_kib()
            if problems or resident <= before * 1.1 + KEPT_KIB:
                break
            if is_last and (kept := self.look(before)):
                problems += kept or [grown(resident, before)]
        return outcomes, problems

    def run_group(self, cases: list[Case]) -> None:
        self.groups += 1
        outcomes, problems = self.attempt(cases, CLIENTS)
        self.count += len(cases)
        self.statuses.update(status for outcome in outcomes for status in outcome.statuses)
        suspects = [outcome for outcome in outcomes if outcome.problems]
        for outcome in suspects:
            # A client that shares two cores with others may be late; alone it may not.
            rest = [problem for problem in outcome.problems if not problem.startswith("late")]
            self.findings.note(outcome.case, rest)
        late = [
            one.case for one in suspects if any(text.startswith("late") for text in one.problems)
        ]
        if problems:
            self.name_culprits(cases, outcomes, problems)
            self.settle()
        else:
            for case in late:
                self.alone(case)

    # One by one.

    def name_culprits(
        self, cases: list[Case], outcomes: list[Outcome], problems: list[str]
    ) -> None:
        """Sends the cases of a group one by one, suspects first, and notes the guilty ones."""
        is_gone = not self.world.server.is_alive()
        self.settle()
        took = {id(outcome.case): outcome.took_s for outcome in outcomes}
        if is_gone:
            broken = [one.case for one in outcomes if not "".join(one.statuses[-1:]).isdigit()]
            others = [one.case for one in outcomes[::-1] if one.case not in broken]
            cases = broken + others[:CLIENTS]
        else:
            cases = sorted(cases, key=lambda case: -took.get(id(case), 0.0))
        guilty = [case for case in cases if self.alone(case)]
        if not guilty and not any(known(case) is not None for case in cases):
            text = ";\n    ".join(self.findings.shown(case.text) for case in cases)
            self.findings.note(Case(f"{len(cases)} cases together", text, list), problems)

    def settle(self) -> None:
        """Makes sure that the server is at rest, with a new process where it is not."""
        if self.world.server.is_alive() and self.look(float("inf")):
            self.world.server.kill()
        self.revive()

    def alone(self, case: Case) -> bool:
        """Sends one case alone and notes what is wrong; returns whether anything was."""
        self.settle()
        outcomes, problems = self.attempt([case], 1)
        problems = [one for outcome in outcomes for one in outcome.problems] + problems
        self.findings.note(case, problems)
        return bool(problems)

    def revive(self) -> None:
        """Starts the server again if it has ended, and notes what is wrong with that."""
        if not self.world.server.is_alive():
            self.findings.note(self.last, self.world.restart())

    # All groups.

    def run_all(self, cases: Iterator[Case], until: float) -> None:
        """Runs groups until no case is left or the time is over.

        Known cases run alone until one of their entry fails, and not at all in a short round.
        """
        while time.monotonic() < until and (group := list(islice(cases, GROUP))):
            for case in group:
                entry = None if self.world.options.short else known(case)
                if entry is not None and not self.findings.known[entry]:
                    self.count += 1
                    self.alone(case)
            if fresh := [case for case in group if known(case) is None]:
                self.run_group(fresh)


# Cases.


def functions_of(world: World, tries: int) -> list[Routine]:
    """Returns the functions of the server, each with signatures that it takes, if any was found."""
    described = world.server.sql(statements.ROUTINES, DATABASE)
    parameters = world.server.sql(statements.PARAMETERS, DATABASE)
    return [probed(world, routine, tries) for routine in statements.routines(described, parameters)]


def probed(world: World, routine: Routine, tries: int) -> Routine:
    good: list[tuple[str, ...]] = []
    for kinds in routine.candidates()[:tries]:
        case = statement_case(
            Statement("probe", statements.plain_call(routine, kinds)), "json", "reader"
        )
        status, _ = send(world.server, world.tokens["reader"], case.make()[0], case, GIVEN_S)
        good += [kinds] if status == "200" else []
        if len(good) == 3 or not world.server.is_alive():
            break
    return Routine(routine.name, routine.form, tuple(good) or routine.signatures)


GIVEN_S = 10.0


def cases_of(draw: random.Random, drawn: Iterator[Statement]) -> Iterator[Case]:
    for statement in drawn:
        door = draw.choice(("json", "json", "json", *DOORS, *FORMATS))
        yield statement_case(statement, door, draw.choice(("reader", "reader", "reader", "writer")))


def bodies_of(draw: random.Random, is_short: bool) -> Iterator[Case]:
    """Yields bodies in an order of the seed; in a short round some, read in fewer formats."""
    bodies = [body for body in all_bodies() if not (is_short and body.is_wide)]
    draw.shuffle(bodies)
    for body in bodies[:24] if is_short else bodies:
        yield body_case(body, ("json", "arrow") if is_short else ("json", "arrow", *FORMATS))


def matching(cases: Iterator[Case], pattern: str | None) -> Iterator[Case]:
    if pattern is None:
        return cases
    return (case for case in cases if re.search(pattern, f"{case.name} {case.text}", re.DOTALL))


def rounds(round_: Round, options: argparse.Namespace) -> None:
    """Runs one of each, the bodies, and what the seed draws after them."""
    functions = functions_of(round_.world, 4 if options.short else TRIES)
    draw = random.Random(options.seed)
    drawing = Drawing(draw, has_wide_rows=not options.short)
    each = cases_of(draw, drawing.one_of_each(functions))
    print(f"{len(functions)} functions", flush=True)
    for cases in (each, bodies_of(draw, options.short)):
        round_.run_all(matching(cases, options.only), float("inf"))
    until = time.monotonic() + options.seconds
    round_.run_all(matching(cases_of(draw, drawing.endless(functions)), options.only), until)


def one(round_: Round, options: argparse.Namespace) -> None:
    text = options.statement
    sql = pathlib.Path(text[1:]).read_text() if text.startswith("@") else text
    is_change = re.match(r"\s*(INSERT|DELETE|DROP|CREATE|RESTORE)", sql, re.IGNORECASE) is not None
    case = statement_case(Statement("statement", sql, is_change), options.door, "reader")
    outcome = run(round_.world.server, round_.world.tokens, case, options.patience)
    print(f"{outcome.statuses} in {outcome.took_s:.2f} s", flush=True)
    round_.alone(case)


def names(world: World) -> list[str]:
    functions = [f"function {routine.name}" for routine in functions_of(world, 0)]
    clauses = sorted({f"clause {clause.name}" for clause in CLAUSES})
    return functions + clauses + [f"body {body.name}" for body in all_bodies()]


def main() -> int:
    options = arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    print(f"seed {options.seed}", flush=True)
    parent = options.control_group or own_group()
    if parent is None:
        print(
            "no control group: this user may not make one; --memory is half of the cap", flush=True
        )
    budget = {} if parent else {"memory": f"{options.cap_mib // 2}MiB"}
    group = Group(parent, options.cap_mib)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="arc-extremes-"))
    findings, world = Findings(folder), World(options, folder, group, budget)
    round_ = Round(world, findings)
    try:
        world.begin()
        if options.list:
            print("\n".join(names(world)))
        elif options.statement:
            one(round_, options)
        else:
            rounds(round_, options)
    finally:
        world.end()
    return report(round_, findings, options)


def report(round_: Round, findings: Findings, options: argparse.Namespace) -> int:
    is_full = not (options.only or options.short or options.statement or options.list)
    for at, count in sorted(findings.known.items()):
        print(f"known: {TO_BE_MENDED[at][1]}: {count}")
    for pattern in findings.stale() if is_full else []:
        print(f"stale: no case of {pattern!r} failed")
    world = round_.world
    print(
        f"{round_.count} cases in {round_.groups} groups, "
        f"answers {dict(round_.statuses.most_common(8))}, {world.starts} starts, "
        f"slowest probe {world.health.slowest_s:.2f} s, peak {round_.peak_kib >> 10} MiB, "
        f"{len(findings.violations)} violations"
    )
    return 1 if findings.violations else 0


if __name__ == "__main__":
    sys.exit(main())
