"""What `logictests.py` finds: it is given files with right answers and with wrong ones."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import pytest

arc = pytest.importorskip("arc")

OPTIONS = argparse.Namespace(all=True, seed=1, share=1, strict=False, differences=0)
TABLE = """statement ok
CREATE TABLE t1(a INTEGER, b FLOAT, c TEXT)

statement ok
INSERT INTO t1 VALUES(2, 0.5, 'x'), (10, NULL, '')

"""
VIEWS = """statement ok
CREATE VIEW v1 AS SELECT a FROM t1 WHERE a > 2

statement ok
CREATE VIEW v2 AS SELECT a + 1 AS b FROM v1

"""
HASHED = "2 values hashing to 17fe8000e24ee6a32c6b488462abebf0"


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[arc.Engine]:
    with arc.open(tmp_path_factory.mktemp("logictests")) as opened:
        yield opened


@pytest.mark.parametrize(
    ("record", "differences"),
    [
        ("query I nosort\nSELECT a FROM t1 ORDER BY a\n----\n2\n10", 0),
        ("query I nosort\nSELECT a FROM t1 ORDER BY a\n----\n10\n2", 1),
        # Values are sorted as text.
        ("query I rowsort\nSELECT a FROM t1\n----\n10\n2", 0),
        ("query IR valuesort\nSELECT a, b FROM t1\n----\n0.500\n10\n2\nNULL", 0),
        ("query T rowsort\nSELECT c FROM t1\n----\n(empty)\nx", 0),
        ("query T rowsort\nSELECT c FROM t1\n----\n(empty)", 1),
        ("query I nosort\nSELECT 1, 2\n----\n1", 1),
        ("query I nosort\nSELECT 1e999\n----\n1", 1),
        ("query I nosort\nSELECT a FROM t1 WHERE a > 10\n----", 0),
        (f"query I rowsort\nSELECT a FROM t1\n----\n{HASHED}", 0),
        (f"query I rowsort\nSELECT a + 1 FROM t1\n----\n{HASHED}", 1),
        ("skipif sqlite\nquery I nosort\nSELECT 1\n----\n2", 0),
        ("onlyif mysql # DIV\nquery I nosort\nSELECT 1 DIV 1\n----\n2", 0),
        ("onlyif sqlite\nhalt\n\nquery I nosort\nSELECT 1\n----\n2", 0),
        # The state is as each statement left it, and views are those of now.
        ("statement ok\nDELETE FROM t1\n\nquery I nosort\nSELECT count(*) FROM t1\n----\n0", 0),
        (f"{VIEWS}query I nosort\nSELECT b FROM v2\n----\n11", 0),
        ("statement error\nINSERT INTO t1 VALUES(1)", 0),
        ("statement ok\nINSERT INTO t1 VALUES(1)", 1),
        # A refusal is a difference, unless there is a rule for it.
        ("query I nosort\nSELECT unknown(1)\n----\n1", 1),
        ("query I nosort\nSELECT 1 IN ()\n----\n0", 0),
        ("query I nosort\nSELECT a / 0 FROM t1 LIMIT 1\n----\nNULL", 0),
        ("query I nosort\nSELECT 1 / 0 IS NULL\n----\n1", 1),
        # So is a value of another type, if DuckDB has the same one.
        ("query I nosort\nSELECT COALESCE(7, 1.5) / 2 * 2\n----\n6", 0),
        ("query I nosort\nSELECT COALESCE(7, 1.5) / 2 * 2\n----\n8", 1),
    ],
)
def test_differences_are_found(engine: arc.Engine, record: str, differences: int) -> None:
    from logictests import Visit

    assert Visit(engine, "trial.test", OPTIONS).run(TABLE + record).differences == differences
