#!/usr/bin/env python3
"""Ask two builds of arc-server the ten questions of queries.py, and two more by the hour, in turns, over HTTP.

    cargo build --release -p arc-server
    benches/turns.py AFTER BEFORE [--rounds 7] [--turns 2] [--threads 2] [--folder DIR]

Needs Linux, Python 3.9, and from PyPI what benches/queries.txt names, which are installed into .venv if they are not there. Loads the
rows of queries.py, which are made unless they are there, into a directory of each. Prints the fastest of all rounds, in milliseconds.
"""
import argparse
import subprocess
import time
from pathlib import Path

import beside
import queries

MORE = {
    "by_the_hour": "SELECT date_trunc('hour', time) AS hour, avg(usage_user) FROM cpu GROUP BY 1 ORDER BY 1",
    "range_within_hours": "SELECT hostname, avg(usage_user) FROM cpu WHERE time >= TIMESTAMP '2025-01-01 03:17:00' "
                          "AND time < TIMESTAMP '2025-01-01 20:41:00' GROUP BY 1 ORDER BY 1",
}


def load(arc, folder, program, tags):
    for path in sorted((folder.parent / "parquet").iterdir()):
        done = folder / f"{path.stem}.done"
        if not done.exists():
            command = [program, "import", "--url", arc.url, "--table", "cpu", "--tags", ",".join(tags), path]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            done.touch()
    arc.rest()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("after", type=beside.server_program)
    parser.add_argument("before", type=beside.server_program)
    parser.add_argument("--rounds", type=beside.positive, default=7)
    parser.add_argument("--turns", type=beside.positive, default=2)
    parser.add_argument("--threads", type=beside.positive, default=2)
    parser.add_argument("--folder", type=Path, default=queries.TARGET / "queries")
    arguments = parser.parse_args()
    queries.enter_venv()
    import host_metrics
    if not (arguments.folder / "parquet" / f"{queries.HOURS - 1:02}.parquet").exists():
        host_metrics.write(arguments.folder / "parquet", queries.HOSTS, queries.HOURS)
    asked = {name: (sql, rows, first) for name, sql, rows, first in queries.queries()}
    asked |= {name: (sql, None, None) for name, sql in MORE.items()}
    best = {}
    for _ in range(arguments.turns):
        for which in ("after", "before"):
            folder, program = arguments.folder / which, getattr(arguments, which)
            folder.mkdir(exist_ok=True)
            with beside.Arc(folder, program, arguments.threads) as arc:
                load(arc, folder, program, host_metrics.TAGS)
                for name, (sql, rows, first) in asked.items():
                    for _ in range(arguments.rounds):
                        began = time.perf_counter()
                        answer = arc.ask(sql)
                        took = 1000 * (time.perf_counter() - began)
                        best[name, which] = min(took, best.get((name, which), took))
                    if first is not None:
                        queries.check(name, answer, rows, first)
    print("| question | after, ms | before, ms | ratio |\n| --- | ---: | ---: | ---: |")
    for name in asked:
        after, before = best[name, "after"], best[name, "before"]
        print(f"| {name} | {after:.1f} | {before:.1f} | {after / before:.2f} |")


if __name__ == "__main__":
    main()
