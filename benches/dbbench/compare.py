#!/usr/bin/env python3
"""Ask Arc, DuckDB and Polars the ten questions of db-benchmark's group-by, compare the answers, and print what each took.

    cargo build --release -p arc-server
    benches/dbbench/compare.py [--rows 10000000] [--groups 100] [--nulls 0] [--rounds 3] [--threads 2] [--only 6 8]
                               [--folder DIR] [--program arc-server]

Needs Linux, Python 3.10, and from PyPI what benches/suites.txt names, which are installed into .venv if they are not there. Makes
the rows in the folder unless they are there (groups.py), imports them into a server of its own, and waits until it has done with
merging its files. DuckDB and Polars have them in memory, the texts of few values as enumerations, as db-benchmark gives them to
both; what that takes is not counted. Arc answers over HTTP, in Arrow, DuckDB in Arrow, Polars as a frame.

Each question is asked of one after the other: once to compare the answers, then `rounds` times, of which the median counts.
"""
import argparse
import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent)]

import queries  # noqa: E402
from beside import FILES_REST_S, Arc, Refused, difference, first_processors, mean, median, positive, server_program  # noqa: E402

QUESTIONS = ["sum v1 by id1", "sum v1 by id1:id2", "sum v1 mean v3 by id3", "mean v1:v3 by id4", "sum v1:v3 by id6",
             "median v3 sd v3 by id4 id5", "max v1 - min v2 by id3", "largest two v3 by id6", "regression v1 v2 by id2 id4",
             "sum v3 count by id1:id6"]
STATEMENTS = [line.rstrip(";\n") for line in (HERE / "queries.sql").open()]


class Server(Arc):
    def answer(self, number):
        return self.fetch(STATEMENTS[number])

    def table(self, number):
        return self.ask(STATEMENTS[number])


class DuckDB:
    name, pid = "DuckDB", os.getpid()

    def __init__(self, path, threads):
        import duckdb
        self.connection = duckdb.connect(config={"threads": threads})
        for column in ("id1", "id2"):
            values = f"SELECT DISTINCT {column} FROM read_parquet('{path}') WHERE {column} IS NOT NULL ORDER BY {column}"
            self.connection.execute(f"CREATE TYPE {column}s AS ENUM ({values})")
        self.connection.execute(f"CREATE TABLE x AS SELECT * REPLACE (id1::id1s AS id1, id2::id2s AS id2) FROM read_parquet('{path}')")

    def answer(self, number):
        return self.connection.sql(STATEMENTS[number]).to_arrow_table()

    table = answer


class Polars:
    name, pid = "Polars", os.getpid()

    def __init__(self, path):
        import polars
        texts = polars.col("id1", "id2", "id3")
        self.rows = polars.read_parquet(path).with_columns(texts.cast(polars.Categorical)).lazy()

    def question(self, number):
        import polars
        from polars import col
        by = self.rows.group_by
        total, average = polars.sum, polars.mean
        return [
            lambda: by("id1").agg(total("v1")),
            lambda: by("id1", "id2").agg(total("v1")),
            lambda: by("id3").agg(total("v1"), average("v3")),
            lambda: by("id4").agg(average("v1", "v2", "v3")),
            lambda: by("id6").agg(total("v1", "v2", "v3")),
            lambda: by("id4", "id5").agg(polars.median("v3").alias("median_v3"), polars.std("v3").alias("sd_v3")),
            lambda: by("id3").agg((polars.max("v1") - polars.min("v2")).alias("range_v1_v2")),
            lambda: self.rows.drop_nulls("v3").group_by("id6").agg(col("v3").top_k(2).alias("largest2_v3")).explode("largest2_v3"),
            lambda: by("id2", "id4").agg((polars.corr("v1", "v2") ** 2).alias("r2")),
            lambda: by("id1", "id2", "id3", "id4", "id5", "id6").agg(total("v3"), polars.len().alias("count")),
        ][number]()

    def answer(self, number):
        return self.question(number).collect()

    def table(self, number):
        return self.answer(number).to_arrow()


def header(engines):
    columns = ["question", *(f"{engine.name}, ms" for engine in engines), *(f"Arc/{other.name}" for other in engines[1:])]
    columns += [*(f"{engine.name}, CPU ms" for engine in engines), *(f"Arc/{other.name}, CPU" for other in engines[1:]), "answers"]
    print(f"| {' | '.join(columns)} |\n{'| --- ' * len(columns)}|", flush=True)


def compare(engines, compared, number):
    """Says how the answers of some differ from that of the second."""
    expected = engines[1].table(number)
    return "; ".join(f"{engine.name}: {found}" for engine in compared if (found := difference(engine.table(number), expected)))


def ask(engines, compared, numbers, rounds):
    """Compares answers of some with those of the second, and times all: prints a line for each question. Returns the ratios, of wall and
    processor time by the engine beside, and how many answers differ."""
    ratios, different = [], 0
    for number in numbers:
        title = f"{number + 1}: {QUESTIONS[number]}"
        try:
            wrong = compare(engines, compared, number)
            took = [median(lambda: engine.answer(number), engine.pid, rounds) for engine in engines]
        except Refused as refused:
            print(f"| {title} | REFUSED: {refused} |", flush=True)
            different += 1
            continue
        different += bool(wrong)
        beside = [[took[0][of] / other[of] for other in took[1:]] for of in range(2)]
        ratios.append(beside)
        cells = [cell for of in range(2) for cell in (*(f"{one[of]:.1f}" for one in took), *(f"{ratio:.2f}" for ratio in beside[of]))]
        print(f"| {title} | {' | '.join(cells)} | {f'DIFFER: {wrong}' if wrong else 'same'} |", flush=True)
    return ratios, different


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=positive, default=10_000_000)
    parser.add_argument("--groups", type=positive, default=100)
    parser.add_argument("--nulls", type=float, default=0, help="of a hundred values")
    parser.add_argument("--rounds", type=positive, default=3)
    parser.add_argument("--threads", type=positive, default=2)
    parser.add_argument("--folder", type=Path, default=queries.TARGET / "dbbench")
    parser.add_argument("--program", type=server_program, default=str(queries.TARGET / "release" / "arc-server"))
    parser.add_argument("--only", type=int, nargs="+", choices=range(1, 11), help="numbers of questions")
    parser.add_argument("--rest", type=float, default=FILES_REST_S, help="seconds for which the server's files have to stay the same")
    arguments = parser.parse_args()
    queries.enter_venv("suites.txt")
    # Before it is imported: it looks once.
    os.environ["POLARS_MAX_THREADS"] = str(arguments.threads)
    os.sched_setaffinity(0, first_processors(arguments.threads))
    import groups
    folder = arguments.folder.resolve() / f"{arguments.rows}-{arguments.groups}-{arguments.nulls:g}"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "groups.parquet"
    if not path.exists():
        groups.write(path, arguments.rows, arguments.groups, arguments.nulls)
    with Server(folder, arguments.program, arguments.threads) as arc:
        arc.load("x", path, rest=arguments.rest)
        engines = [arc, DuckDB(path, arguments.threads), Polars(path)]
        header(engines)
        # The sum of no values is 0 to Polars, and null to SQL.
        compared = [arc] if arguments.nulls else [arc, engines[2]]
        numbers = [number - 1 for number in arguments.only or range(1, 11)]
        ratios, different = ask(engines, compared, numbers, arguments.rounds)
        memory = arc.most_memory_mb()
    for at, other in enumerate(engines[1:]):
        wall, cpu = (mean([question[of][at] for question in ratios]) for of in range(2))
        print(f"\nBeside {other.name}: geometric mean of the ratios {wall:.2f}, of processor time {cpu:.2f}", end="")
    print(f"\n{arguments.rows:,} rows, {len(ratios)} questions, {different} answers differ; most memory of the server {memory:.0f} MB")
    return different > 0


if __name__ == "__main__":
    sys.exit(main())
