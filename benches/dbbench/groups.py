#!/usr/bin/env python3
"""Makes the rows of db-benchmark's group-by, as Parquet: G1_1e7_1e2_0_0 is 10,000,000 rows, 100 large groups, no nulls, no order.

Columns, types and distributions are those of its generator, which is written in R; the rows are others, as its random numbers are
R's. `time` is not there: a table of ours has one, so that row n is of n milliseconds after the beginning of 2026. The same rows for the same
arguments and version of numpy.

    benches/dbbench/groups.py groups.parquet [--rows 10000000] [--groups 100] [--nulls 0] [--seed 108]
"""
import argparse
from pathlib import Path

import numpy
import pyarrow
import pyarrow.compute
import pyarrow.parquet

CHUNK = 1_000_000
BEGIN = numpy.datetime64("2026-01-01", "ms").astype(int)


def texts(form, count):
    return pyarrow.array([form % at for at in range(1, count + 1)])


def with_nulls(random, column, percent):
    is_null = pyarrow.array(random.random(len(column)) < percent / 100)
    return pyarrow.compute.if_else(is_null, pyarrow.scalar(None, column.type), column)


def chunk(random, at, rows, pools, small):
    """Returns so many rows, the first of which is number `at`."""
    large = len(pools["id1"])
    one_of = lambda count: random.integers(1, count + 1, rows, numpy.int32)  # noqa: E731
    columns = {name: pool.take(random.integers(0, len(pool), rows)) for name, pool in pools.items()}
    columns |= {"id4": one_of(large), "id5": one_of(large), "id6": one_of(small), "v1": one_of(5), "v2": one_of(15)}
    columns["v3"] = numpy.round(random.uniform(0, 100, rows), 6)
    columns["time"] = pyarrow.array(BEGIN + numpy.arange(at, at + rows), pyarrow.timestamp("ms"))
    return pyarrow.table(columns)


def write(path, rows, groups=100, nulls=0, seed=108):
    """Writes a file of so many rows with so many large groups, and rows divided by these small ones; so many of a hundred values are null."""
    random, small = numpy.random.default_rng(seed), max(rows // groups, 1)
    ids = texts("id%03d", groups)
    pools = {"id1": ids, "id2": ids, "id3": texts("id%010d", small)}
    partial, writer = path.with_suffix(".partial"), None
    for at in range(0, rows, CHUNK):
        table = chunk(random, at, min(CHUNK, rows - at), pools, small)
        if nulls:
            columns = [column if name == "time" else with_nulls(random, column, nulls) for name, column in zip(table.column_names, table.columns)]
            table = pyarrow.table(columns, table.column_names)
        writer = writer or pyarrow.parquet.ParquetWriter(partial, table.schema, compression="zstd")
        writer.write_table(table)
    writer.close()
    partial.rename(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", type=Path)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--groups", type=int, default=100)
    parser.add_argument("--nulls", type=float, default=0, help="of a hundred values")
    parser.add_argument("--seed", type=int, default=108)
    arguments = parser.parse_args()
    write(arguments.target, arguments.rows, arguments.groups, arguments.nulls, arguments.seed)


if __name__ == "__main__":
    main()
