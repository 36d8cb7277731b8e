#!/usr/bin/env python3
"""Run TSBS: its lines, its loader and its query types, of Arc and of others, each answer compared, and print what each took.

    cargo build --release -p arc-server
    python3 benches/tsbs/run.py [--case cpu-only] [--scale 100] [--hours 25] [--interval 10s] [--queries 20] [--threads 2] [--workers 4]
                                [--peers questdb victoria] [--types lastpoint ...] [--folder DIR] [--program arc-server]

Needs Linux, Python 3.10, Go 1.14 for the programs of TSBS, which are built from its module as it is published, and from PyPI what
benches/suites.txt names, which are installed into .venv. QuestDB comes from Maven Central (Java 17, Maven), VictoriaMetrics from its
Go module; what cannot be had is left out, and said to be. Use cases are cpu-only, devops and iot; iot is asked of Arc and DuckDB.

`tsbs_load_influx` sends the lines to each server. DuckDB has the same rows in tables of its own. Then each statement that
`tsbs_generate_queries` makes of a type is asked of each: once to compare its answer with DuckDB's, then once more for the time, all of a
type one after the other by one client. Of VictoriaMetrics, whose windows begin with the range, buckets are asked for that lie wholly in it.
"""
import argparse
import contextlib
import os
import shutil
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent)]

import queries  # noqa: E402
import spellings  # noqa: E402
import tools  # noqa: E402
from beside import FILES_REST_S, Refused, difference, first_processors, mean, measured, positive, server_program  # noqa: E402

PEERS = ["questdb", "victoria"]


def loaded(engine, tsbs, lines, expected, workers):
    """Has the loader send the lines to a server, waits until all rows are there, and prints a line of what it took."""
    took, all_rows = {}, sum(expected.values())
    expected = {table: rows for table, rows in expected.items() if table in engine.counts(expected)}

    def work():
        took["rate"] = tsbs.load(engine.loader(), lines, workers)
        until = time.monotonic() + 120
        while any(engine.rows(table) < rows for table, rows in expected.items()) and time.monotonic() < until:
            time.sleep(0.2)
        took["found"] = {table: engine.rows(table) for table in expected}

    cpu = measured(work, engine.pid, 1)[1] / 1000
    if took["found"] != expected:
        raise SystemExit(f"{engine.name} has {took['found']} rows instead of {expected}")
    print(f"| {engine.name} | {took['rate']:,.0f} | {cpu / all_rows * 1e6:.2f} |", flush=True)


def started(name, folder, programs):
    """Starts a peer; says why not and returns none if it cannot be had."""
    import engines
    if name == "questdb":
        reason, kind = engines.QuestDB.missing(), engines.QuestDB
    else:
        reason, kind = tools.build(programs, tools.VICTORIA, ["app/victoria-metrics"]), engines.VictoriaMetrics
        kind.programs = programs
    if reason:
        print(f"{kind.name} is left out: {reason}")
        return None
    return kind(folder)


def asked(asks, kind, statements):
    """Asks one after the other, twice; returns the milliseconds and those of processors that a statement took, by engine, and what differs."""
    import engines
    took, wrong = {}, []
    expected = [asks[1].table(kind, sql) for sql in statements]
    for engine in asks:
        spelled = [engine.spelled(kind, sql) for sql in statements]
        if None in spelled:
            continue
        if engine is not asks[1]:
            for sql, wanted, own in zip(statements, expected, spelled):
                inner = isinstance(own, spellings.Windows)
                found = difference(engine.table(kind, own), engines.only_inner(wanted, own) if inner else wanted)
                if found:
                    wrong.append(f"{engine.name}: {found}: {sql}")
        whole = measured(lambda: [engine.answer(kind, own) for own in spelled], engine.pid, 1)
        took[engine.name] = [one / len(statements) for one in whole]
    return took, wrong


def table(asks, tsbs, kinds, count):
    """Prints a line for each type; returns the ratios of Arc by the engine beside, wall and processor time, and what differs."""
    others = [engine.name for engine in asks[1:]]
    columns = ["query type", "Arc, ms", *(f"{name}, ms (ratio)" for name in others)]
    columns += ["Arc, CPU ms", *(f"{name}, CPU ms (ratio)" for name in others), "answers"]
    print(f"\n| {' | '.join(columns)} |\n{'| --- ' * len(columns)}|", flush=True)
    ratios, different = {name: [] for name in others}, []
    for kind in kinds:
        statements = [spellings.flat(kind, text) for text in tsbs.statements(kind, count)]
        if not statements:
            print(f"| {kind} | left out: tsbs_generate_queries refuses it: more --hours or a larger --scale |", flush=True)
            continue
        try:
            took, wrong = asked(asks, kind, statements)
        except Refused as refused:
            print(f"| {kind} | REFUSED: {refused} |", flush=True)
            different.append(f"refused: {refused}")
            continue
        different += wrong
        cells = []
        for of in range(2):
            cells.append(f"{took['Arc'][of]:.1f}")
            cells += [f"{took[name][of]:.1f} ({took['Arc'][of] / took[name][of]:.2f})" if name in took else "" for name in others]
        for name in others:
            if name in took:
                ratios[name].append([ours / theirs for ours, theirs in zip(took["Arc"], took[name])])
        print(f"| {kind} | {' | '.join(cells)} | {f'{len(wrong)} DIFFER' if wrong else 'same'} |", flush=True)
    return ratios, different


def run(arguments, tsbs, folder, programs):
    """Loads, asks and prints; returns how many answers differ."""
    import engines
    lines = folder / "lines"
    if not lines.exists():
        tsbs.write_lines(lines)
    duckdb = engines.DuckDB(folder, lines, arguments.threads)
    expected = {name: duckdb.points(name) for name in duckdb.tables()}
    shutil.rmtree(folder / "arc", ignore_errors=True)
    with contextlib.ExitStack() as running:
        arc = running.enter_context(engines.Arc(folder, arguments.program, arguments.threads, engines.DATABASE))
        names = [name for name in arguments.peers if arguments.case != "iot"]
        servers = [running.enter_context(server) for name in names if (server := started(name, folder, programs))]
        print(f"{sum(expected.values()):,} rows of {', '.join(sorted(expected))}\n")
        print("| loaded by the loader of TSBS | rows/s | CPU s/M rows |\n| --- | --- | --- |")
        for server in [arc, *servers]:
            loaded(server, tsbs, lines, expected, arguments.workers)
        arc.rest(arguments.rest)
        kinds = arguments.types or tools.TYPES[arguments.case]
        ratios, different = table([arc, duckdb, *servers], tsbs, kinds, arguments.queries)
        on_disk = [(server.name, engines.disk_bytes(server.data) / sum(expected.values())) for server in (arc, *servers)]
        print(f"\nBytes a row on disk, logs included: {', '.join(f'{name} {one:.0f}' for name, one in on_disk)}")
        print(f"Most memory of the server {arc.most_memory_mb():.0f} MB")
    for name, found in ratios.items():
        if found:
            wall, cpu = (mean(column) for column in zip(*found))
            print(f"Beside {name}: {len(found)} types, geometric mean of the ratios {wall:.2f}, of processor time {cpu:.2f}")
    for text in different:
        print(f"DIFFERS: {text}", flush=True)
    return len(different)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", choices=tools.TYPES, default="cpu-only")
    parser.add_argument("--scale", type=positive, default=100, help="hosts, or trucks")
    parser.add_argument("--hours", type=positive, default=25, help="of rows; the longest query types look at 12 of them, of iot at 24")
    parser.add_argument("--interval", default="10s", help="between two rows of a host")
    parser.add_argument("--queries", type=positive, default=20, help="statements of each type")
    parser.add_argument("--threads", type=positive, default=2)
    parser.add_argument("--workers", type=positive, default=4, help="connections of the loader")
    parser.add_argument("--peers", nargs="*", choices=PEERS, default=PEERS, help="beside DuckDB, with whose answers all are compared")
    parser.add_argument("--types", nargs="+", metavar="TYPE", help="query types; all of the use case without it")
    parser.add_argument("--folder", type=Path, default=queries.TARGET / "tsbs")
    parser.add_argument("--program", type=server_program, default=str(queries.TARGET / "release" / "arc-server"))
    parser.add_argument("--rest", type=float, default=FILES_REST_S, help="seconds for which the server's files have to stay the same")
    arguments = parser.parse_args()
    unknown = set(arguments.types or []) - set(tools.TYPES[arguments.case])
    if unknown:
        parser.error(f"unknown types of {arguments.case}: {', '.join(sorted(unknown))}; expected some of {', '.join(tools.TYPES[arguments.case])}")
    if arguments.hours > tools.MOST_HOURS:
        parser.error(f"--hours is at most {tools.MOST_HOURS}")
    queries.enter_venv("suites.txt")
    os.sched_setaffinity(0, first_processors(arguments.threads))
    programs = queries.TARGET / "tsbs" / "programs"
    reason = tools.build_tsbs(programs)
    if reason:
        raise SystemExit(f"the programs of TSBS cannot be had: {reason}")
    folder = arguments.folder.resolve() / f"{arguments.case}-{arguments.scale}-{arguments.hours}-{arguments.interval}"
    folder.mkdir(parents=True, exist_ok=True)
    tsbs = tools.Tsbs(programs, arguments.case, arguments.scale, arguments.hours, arguments.interval)
    return run(arguments, tsbs, folder, programs) > 0


if __name__ == "__main__":
    sys.exit(main())
