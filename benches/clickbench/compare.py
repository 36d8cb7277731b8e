#!/usr/bin/env python3
"""Ask Arc and DuckDB ClickBench's 43 statements about the same made-up rows, compare the answers, and print what each took.

    cargo build --release -p arc-server
    benches/clickbench/compare.py [--rows 3000000] [--rounds 3] [--threads 2] [--folder DIR] [--program arc-server] [--only 7 13]

Needs Linux, Python 3.9, and from PyPI what benches/queries.txt names, which are installed into .venv if they are not there. Makes the
rows in the folder unless they are there (hits.py), imports them into a server of its own, and waits until it has done with merging its
files; DuckDB has them in a table of its own. Arc answers over HTTP, in Arrow; DuckDB in this process, in Arrow.

A statement is asked of one, then of the other; the fastest of the rounds counts. Answers must be equal. Where a statement leaves open
which rows come, because more than one may be the tenth, the rows must be among those that DuckDB has without the limit, and in order.
"""
import argparse
import os
import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent)]

import queries  # noqa: E402
from beside import FILES_REST_S, Arc, is_same, mean, measured, positive, server_program  # noqa: E402


class DuckDB:
    def __init__(self, folder, path, threads):
        import duckdb
        self.connection = duckdb.connect(folder / "hits.duckdb", config={"threads": threads})
        self.connection.execute("SET TimeZone = 'UTC'")
        if not self.connection.sql("SHOW TABLES").fetchall():
            self.connection.execute(f"""CREATE TABLE hits AS SELECT * EXCLUDE EventTime, make_timestamp(EventTime * 1000000) AS time
                                        FROM read_parquet('{path}')""")
            self.connection.execute("CHECKPOINT")

    def fetch(self, sql):
        return self.connection.sql(sql).to_arrow_table()

    def leaves_out(self, answer, sql):
        """Returns how many of the rows are not among those of the statement without its limit."""
        self.connection.register("answer", answer)
        names = ", ".join(f'"{name}"' for name in answer.column_names)
        if sql.startswith("SELECT * "):
            sql = sql.replace("*", names, 1)
        return self.connection.sql(f"SELECT count(*) FROM (SELECT {names} FROM answer EXCEPT ({sql}))").fetchall()[0][0]


def rows(table):
    """Returns the rows in a form in which equal ones are equal."""
    import pyarrow
    columns = []
    for name, column in sorted(zip(table.column_names, table.columns)) if table.num_columns == 105 else zip(table.column_names, table.columns):
        if pyarrow.types.is_timestamp(column.type):
            column = column.cast(pyarrow.timestamp("us", column.type.tz))
        values = column.to_pylist()
        columns.append([value.replace(tzinfo=None) if hasattr(value, "tzinfo") else value for value in values])
    return list(zip(*columns))


def are_same(found, expected):
    return len(found) == len(expected) and all(
        all(is_same(*pair) for pair in zip(row, wanted)) for row, wanted in zip(found, expected))


def check(sql, arc, duckdb, other):
    """Returns whether the answers are the same, with how: `same`, or `ties` where rows of equal rank may be others."""
    found, expected = rows(arc), rows(other)
    key = lambda row: [str(round(value, 6) if isinstance(value, float) else value) for value in row]  # noqa: E731
    if are_same(found, expected) or ("LIMIT" not in sql and are_same(sorted(found, key=key), sorted(expected, key=key))):
        return "same"
    whole = re.sub(r" LIMIT \d+( OFFSET \d+)?$", "", sql)
    if whole == sql or len(found) != len(expected) or duckdb.leaves_out(arc, re.sub(r" ORDER BY .*$", "", whole)):
        return "DIFFERS"
    ordered = re.search(r"ORDER BY ([\w(*)]+)", sql)
    wanted = ordered and ordered[1].lower().replace("count(*)", "count_star()")
    for at, name in enumerate(other.column_names):
        if name.lower() == wanted and [row[at] for row in found] != [row[at] for row in expected]:
            return "DIFFERS"
    return "ties"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=positive, default=3_000_000)
    parser.add_argument("--rounds", type=positive, default=3)
    parser.add_argument("--threads", type=positive, default=2)
    parser.add_argument("--folder", type=Path, default=queries.TARGET / "clickbench")
    parser.add_argument("--program", type=server_program, default=str(queries.TARGET / "release" / "arc-server"))
    parser.add_argument("--only", type=int, nargs="+", help="numbers of statements, from 0 as in ClickBench")
    parser.add_argument("--rest", type=float, default=FILES_REST_S, help="seconds for which the server's files have to stay the same")
    arguments = parser.parse_args()
    queries.enter_venv()
    import hits
    folder = arguments.folder.resolve() / str(arguments.rows)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "hits.parquet"
    if not path.exists():
        hits.write(path, arguments.rows)
    duckdb = DuckDB(folder, path, arguments.threads)
    statements = [line.rstrip(";\n") for line in (HERE / "queries.sql").open()]
    ratios, different = [], 0
    with Arc(folder, arguments.program, arguments.threads) as arc:
        arc.load("hits", path, "--time-column", "EventTime", "--precision", "s", rest=arguments.rest)
        print("| statement | Arc, ms | DuckDB, ms | ratio | Arc, CPU ms | DuckDB, CPU ms | ratio | answers |\n" + "| --- " * 8 + "|")
        for number, sql in enumerate(statements):
            if arguments.only and number not in arguments.only:
                continue
            how = check(sql, arc.ask(sql), duckdb, duckdb.fetch(sql))
            ours = measured(lambda: arc.fetch(sql), arc.pid, arguments.rounds)
            theirs = measured(lambda: duckdb.fetch(sql), os.getpid(), arguments.rounds)
            ratios.append([one / other for one, other in zip(ours, theirs)])
            different += how == "DIFFERS"
            cells = [f"{one:.1f} | {other:.1f} | {one / other:.2f}" for one, other in zip(ours, theirs)]
            print(f"| {number} | {' | '.join(cells)} | {how} |", flush=True)
        memory = arc.most_memory_mb()
    wall, cpu = (mean(column) for column in zip(*ratios))
    print(f"\n{len(ratios)} statements, {arguments.rows:,} rows: geometric mean of the ratios {wall:.2f}, of processor time {cpu:.2f}; "
          f"{different} answers differ; most memory of the server {memory:.0f} MB")
    return different > 0


if __name__ == "__main__":
    sys.exit(main())
