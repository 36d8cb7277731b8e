"""DuckDB over the data directory, and the Python package after the server: the same rows as the server's SQL."""

from __future__ import annotations

import arc
import duckdb
import pyarrow
from conftest import Server

DAY_NS = 86_400 * 10**9
QUERIES = [
    "SELECT count(*), count(usage), count(busy), count(note) FROM {cpu}",
    "SELECT host, count(*), sum(n), min(usage), max(usage) FROM {cpu} GROUP BY host ORDER BY host",
    "SELECT busy, count(DISTINCT host) FROM {cpu} GROUP BY busy ORDER BY busy NULLS LAST",
    "SELECT note, n FROM {cpu} WHERE note IS NOT NULL ORDER BY n LIMIT 5",
]


def lines() -> str:
    """Returns points of three days and seven hosts, some of them late, some columns absent."""
    points = []
    for n in range(10_000):
        fields = f"n={n}i,usage={n / 8}"
        fields += f",busy={'t' if n % 3 else 'f'}" if n % 5 else ""
        fields += f',note="ü {n}"' if n % 1_000 == 0 else ""
        points.append(f"cpu,host=h{n % 7} {fields} {(n * 7919 % 10_000) * 3 * DAY_NS // 10_000}")
    return "\n".join(points)


def test_the_files_have_what_sql_answers(server: Server) -> None:
    status, answer = server.post("/write?db=fleet", lines().encode())
    assert status == 204, answer
    of_server = [server.sql(query.format(cpu="cpu"), "fleet") for query in QUERIES]
    assert of_server[0][0][0] == 10_000
    server.stop()

    with arc.open(server.data_dir) as engine:
        files = engine.data_files("fleet", "cpu")
        of_engine = [
            [list(row.values()) for row in pyarrow.table(engine.sql("fleet", query.format(cpu="cpu"))).to_pylist()]
            for query in QUERIES
        ]
    assert of_engine == of_server

    connection = duckdb.connect()
    listed = ", ".join("'" + file.replace("'", "''") + "'" for file in files)
    of_duckdb = [
        [list(row) for row in connection.execute(query.format(cpu=f"read_parquet([{listed}])")).fetchall()]
        for query in QUERIES
    ]
    assert of_duckdb == of_server


def test_a_pattern_finds_all_files_of_a_table(server: Server) -> None:
    assert server.post("/write?db=fleet", lines().encode())[0] == 204
    server.stop()
    pattern = str(server.data_dir / "data" / "fleet" / "cpu" / "*" / "*.parquet").replace("'", "''")
    counted = (
        duckdb.connect().execute(f"SELECT count(*), count(DISTINCT day) FROM read_parquet('{pattern}')").fetchall()
    )
    assert counted == [(10_000, 3)]
