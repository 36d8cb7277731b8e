"""Every place of a statement that takes an expression, and what nests.

Pure: templates. `{e}` is the expression, `{f}` another one, `{t}` a table whose alias is `q`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Clause:
    """A place for an expression: of one row (`row`), of a group (`group`), or a constant."""

    name: str
    sql: str
    scope: str = "row"
    is_change: bool = False


def rows(name: str, *statements: str) -> list[Clause]:
    return [Clause(name, sql) for sql in statements]


def constants(name: str, *statements: str) -> list[Clause]:
    return [Clause(name, sql, "constant") for sql in statements]


def groups(name: str, *statements: str) -> list[Clause]:
    return [Clause(name, sql, "group") for sql in statements]


def changes(name: str, *statements: str, scope: str = "constant") -> list[Clause]:
    return [Clause(name, sql, scope, is_change=True) for sql in statements]


OF_ROWS = [
    *rows("SELECT", "SELECT {e} FROM {t} q", "SELECT {e}, {e} FROM {t} q",
        "SELECT DISTINCT {e} FROM {t} q"),
    *rows("SELECT of all", "SELECT *, {e} FROM {t} q",
        "SELECT count(*) FROM (SELECT {e} AS v FROM {t} q)"),
    *rows("WHERE", "SELECT count(*) FROM {t} q WHERE ({e}) IS NOT NULL",
        "SELECT q.time FROM {t} q WHERE {e}"),
    *rows("comparison", "SELECT count(*) FROM {t} q WHERE ({e}) = ({f})",
        "SELECT ({e}) < ({f}), ({e}) IS DISTINCT FROM ({f}) FROM {t} q"),
    *rows("operator", "SELECT ({e}) + ({f}) FROM {t} q", "SELECT ({e}) * ({f}) FROM {t} q",
        "SELECT ({e}) % ({f}) FROM {t} q", "SELECT ({e}) / ({f}) FROM {t} q"),
    *rows("operator of texts", "SELECT ({e}) || ({f}) FROM {t} q",
        "SELECT ({e}) LIKE ({f}) FROM {t} q", "SELECT ({e}) ~ ({f}) FROM {t} q"),
    *rows("operator of bits", "SELECT ({e}) << ({f}) FROM {t} q", "SELECT -({e}) FROM {t} q",
        "SELECT ({e}) & ({f}) FROM {t} q"),
    *rows("operator of lists", "SELECT ({e}) @> ({f}) FROM {t} q", "SELECT ({e})[{f}] FROM {t} q",
        "SELECT ({e})[{f}:{f}] FROM {t} q"),
    *rows("GROUP BY", "SELECT count(*) FROM {t} q GROUP BY {e}",
        "SELECT {e}, count(*) FROM {t} q GROUP BY 1",
        "SELECT count(*) FROM {t} q GROUP BY ROLLUP({e}, {f})"),
    *rows("HAVING", "SELECT q.time FROM {t} q GROUP BY q.time, {e} HAVING ({e}) IS NULL"),
    *rows("ORDER BY", "SELECT q.time FROM {t} q ORDER BY {e}",
        "SELECT q.time FROM {t} q ORDER BY {e} DESC NULLS LAST, {f} LIMIT 5"),
    *rows("JOIN ON",
        "SELECT count(*) FROM {t} q JOIN x_many r ON ({e}) IS NOT NULL AND q.time = r.time",
        "SELECT count(*) FROM {t} q LEFT JOIN x_one r ON ({e}) = r.i"),
    *rows("FULL JOIN ON",
        "SELECT count(*) FROM {t} q FULL JOIN x_one r ON ({e}) IS NOT DISTINCT FROM r.s"),
    *rows("JOIN of expressions",
        "SELECT count(*) FROM (SELECT {e} AS v FROM {t} q) a JOIN (SELECT {f} AS v FROM {t} q) b "
        "ON a.v = b.v"),
    *rows("ASOF JOIN",
        "SELECT count(*) FROM (SELECT {e} AS v, q.time FROM {t} q) a ASOF JOIN x_one r "
        "ON a.v = r.i AND a.time >= r.time"),
    *rows("PARTITION BY", "SELECT count(*) OVER (PARTITION BY {e}) FROM {t} q",
        "SELECT row_number() OVER (PARTITION BY {e} ORDER BY {f}) FROM {t} q"),
    *rows("ORDER BY of a window", "SELECT sum(1) OVER (ORDER BY {e}) FROM {t} q",
        "SELECT lag({e}, 3, {f}) OVER (ORDER BY q.time) FROM {t} q"),
    *rows("IN", "SELECT count(*) FROM {t} q WHERE ({e}) IN ({e}, {f})",
        "SELECT count(*) FROM {t} q WHERE q.time IN (SELECT {e} FROM {t} q)"),
    *rows("CASE", "SELECT CASE WHEN ({e}) IS NULL THEN {e} ELSE {f} END FROM {t} q",
        "SELECT CASE {e} WHEN {f} THEN 1 END FROM {t} q"),
    *rows("COALESCE", "SELECT coalesce({e}, {f}) FROM {t} q", "SELECT nullif({e}, {f}) FROM {t} q"),
    *rows("BETWEEN", "SELECT count(*) FROM {t} q WHERE ({e}) BETWEEN ({f}) AND ({e})"),
    *rows("QUALIFY", "SELECT q.time FROM {t} q QUALIFY row_number() OVER (ORDER BY {e}) = 1",
        "SELECT q.time FROM {t} q QUALIFY max({e}) OVER () IS NULL"),
    *rows("FILTER", "SELECT count(*) FILTER (WHERE ({e}) IS NOT NULL) FROM {t} q",
        "SELECT max({e}) FILTER (WHERE ({f}) IS NULL) FROM {t} q"),
    *rows("DISTINCT ON", "SELECT DISTINCT ON ({e}) q.time FROM {t} q ORDER BY {e}, q.time"),
    *rows("UNION", "SELECT {e} FROM {t} q UNION SELECT {f} FROM {t} q",
        "SELECT {e} FROM {t} q EXCEPT SELECT {f} FROM {t} q"),
    *rows("unnest", "SELECT unnest({e}) FROM {t} q",
        "SELECT count(*) FROM {t} q CROSS JOIN unnest({e}) u"),
    *rows("aggregate", "SELECT array_agg({e}) FROM {t} q",
        "SELECT min({e}), max({f}), count(DISTINCT {e}) FROM {t} q",
        "SELECT string_agg(CAST({e} AS TEXT), ',') FROM {t} q"),
    *rows("aggregate with an order", "SELECT array_agg(q.time ORDER BY {e}) FROM {t} q",
        "SELECT first_value({e} ORDER BY {f}) FROM {t} q"),
    *rows("EXISTS",
        "SELECT count(*) FROM {t} q WHERE EXISTS (SELECT 1 FROM x_one r WHERE ({e}) = r.i)"),
    *rows("subquery", "SELECT (SELECT max(r.i) FROM x_one r WHERE r.i = ({e})) FROM {t} q"),
    *rows("CTE", "WITH a AS (SELECT {e} AS v FROM {t} q) SELECT a.v, b.v FROM a, a b LIMIT 9"),
    *rows("EXPLAIN", "EXPLAIN SELECT {e} FROM {t} q",
        "EXPLAIN ANALYZE SELECT {e} FROM {t} q WHERE ({f}) IS NULL",
        "EXPLAIN VERBOSE SELECT {e} FROM {t} q"),
    *rows("zone", "SELECT ({e}) AT TIME ZONE ({f}) FROM {t} q",
        "SELECT extract(hour FROM {e}) FROM {t} q"),
]  # fmt: skip

OF_GROUPS = [
    *groups("SELECT", "SELECT {e} FROM {t} q", "SELECT {e}, {f} FROM {t} q",
        "SELECT q.time, {e} FROM {t} q GROUP BY q.time"),
    *groups("HAVING", "SELECT q.time FROM {t} q GROUP BY q.time HAVING ({e}) IS NULL"),
    *groups("ORDER BY", "SELECT q.time FROM {t} q GROUP BY q.time ORDER BY {e} LIMIT 5"),
    *groups("EXPLAIN", "EXPLAIN ANALYZE SELECT {e} FROM {t} q"),
]  # fmt: skip

BOUNDS = "SELECT sum(1) OVER (ORDER BY q.time {0} BETWEEN {1} AND {2}) FROM x_many q"
OF_CONSTANTS = [
    *constants("nothing", "SELECT {e}", "SELECT [{e}, {f}]", "SELECT named_struct('a', {e})",
        "SELECT MAP([{e}], [{f}])"),
    *constants("LIMIT", "SELECT time FROM x_many LIMIT {e}",
        "SELECT count(*) FROM (SELECT 1 FROM x_many LIMIT {e})"),
    *constants("OFFSET", "SELECT time FROM x_many OFFSET {e}",
        "SELECT time FROM x_many ORDER BY i LIMIT {e} OFFSET {f}"),
    *constants("VALUES", "VALUES ({e}), ({f})",
        "SELECT * FROM (VALUES ({e}, {f}), ({e}, NULL)) a (v, w)"),
    *constants("frame",
        *(BOUNDS.format(unit, "{e} PRECEDING", "{f} FOLLOWING") for unit in ("ROWS", "RANGE",
            "GROUPS"))),
    *constants("frame before",
        *(BOUNDS.format(unit, "{e} PRECEDING", "{f} PRECEDING") for unit in ("ROWS", "RANGE",
            "GROUPS"))),
    *constants("frame behind",
        *(BOUNDS.format(unit, "{e} FOLLOWING", "{f} FOLLOWING") for unit in ("ROWS", "RANGE",
            "GROUPS"))),
    *constants("AS OF", "SELECT count(*) FROM x_many FOR SYSTEM_TIME AS OF {e}",
        "SELECT count(*) FROM x_many AT (TIMESTAMP => {e})",
        "SELECT count(*) FROM x_many AT (SNAPSHOT => {e})"),
    *constants("table function", "SELECT count(*) FROM generate_series({e}, {f})",
        "SELECT count(*) FROM range({e}, {f}, {e})", "SELECT count(*) FROM unnest({e})"),
    *constants("table function, rows", "SELECT * FROM generate_series({e}, {f}) LIMIT 5"),
    *constants("recursion",
        "WITH RECURSIVE r AS (SELECT {e} AS v UNION ALL SELECT {f} FROM r WHERE v IS NOT NULL) "
        "SELECT count(*) FROM r"),
    *constants("lambda", "SELECT array_transform([1, 2], v -> {e})",
        "SELECT array_filter({e}, v -> v IS NULL)", "SELECT array_any_match({e}, v -> v = {f})"),
    *constants("SHOW", "SHOW COLUMNS FROM x_one WHERE {e}", "SHOW TABLES LIKE {e}",
        "SHOW SERIES FROM x_one WHERE {e}"),
    *constants("time bucket",
        "SELECT count(*) FROM (SELECT time_bucket({e}, time, {f}) AS v FROM x_many GROUP BY v)"),
    *constants("index", "SELECT ({e})[1], ({e})['a'], ({e})[{f}]"),
]  # fmt: skip

OF_CHANGES = [
    *changes("INSERT", "INSERT INTO x_scratch (time, i) VALUES ({e}, {f})",
        "INSERT INTO x_scratch (time, s) VALUES (1, {e}), (2, {f})",
        "INSERT INTO x_scratch (time, f, b, t) VALUES (3, {e}, {e}, {f})"),
    *changes("INSERT of rows", "INSERT INTO x_scratch (time, s) SELECT q.time, {e} FROM {t} q",
        "INSERT INTO x_scratch (time, i) SELECT {e}, {f} FROM {t} q", scope="row"),
    *changes("RESTORE", "RESTORE TABLE x_scratch AS OF {e}",
        "RESTORE TABLE x_scratch AS OF SNAPSHOT {e}"),
    *changes("DELETE", "DELETE FROM x_scratch WHERE ({e}) IS NULL",
        "DELETE FROM x_scratch WHERE i = ({e})", "DELETE FROM x_scratch WHERE time < {e}",
        "DELETE FROM x_scratch WHERE {e}"),
    *changes("CREATE TABLE",
        "CREATE TABLE IF NOT EXISTS x_scratch (time TIMESTAMP, v BIGINT DEFAULT {e})",
        "CREATE TABLE x_new AS SELECT {e} AS v"),
    *changes("WITH",
        "CREATE TABLE IF NOT EXISTS x_scratch (time TIMESTAMP) "
        "WITH (string_columns = {e}, on_conflict = {f})"),
]  # fmt: skip

CLAUSES = OF_ROWS + OF_GROUPS + OF_CONSTANTS + OF_CHANGES

LEVELS = (12, 24, 24, 24, 99, 180, 199, 249, 999, 3_999, 5_000)
"""How often something nests: at the limits that docs/sql.md names, and beyond all of them."""

NESTINGS = {
    "parentheses": ("(", "1", ")"), "NOT": ("NOT ", "true", ""), "minus": ("- ", "1", ""),
    "CASE": ("CASE WHEN true THEN ", "1", " END"),
    "ELSE": ("CASE WHEN false THEN 1 ELSE ", "1", " END"), "lists": ("[", "1", "]"),
    "make_array": ("make_array(", "1", ")"), "lists of two": ("[NULL, ", "[]", "]"),
    "structures": ("struct(", "1", ")"), "named structures": ("named_struct('a', ", "1", ")"),
    "maps": ("MAP(['a'], [", "1", "])"), "sums": ("1 + ", "1", ""),
    "sums of sums": ("(1 + ", "1", ")"), "texts": ("'a' || ", "'a'", ""),
    "coalesce": ("coalesce(NULL, ", "1", ")"), "casts": ("CAST(", "1", " AS BIGINT)"),
    "colons": ("", "1", "::BIGINT"), "subscripts": ("", "[1]", "[1]"),
    "slices": ("", "[1]", "[1:1]"), "fields": ("", "named_struct('a', 1)", "['a']"),
    "subqueries": ("(SELECT ", "1", ")"), "tests": ("", "1", " IS NULL"),
    "zones": ("", "now()", " AT TIME ZONE 'UTC'"), "IN": ("1 IN (", "1", ")"),
    "BETWEEN": ("1 BETWEEN 0 AND ", "1", ""), "AND": ("true AND ", "true", ""),
    "OR": ("b OR ", "true", ""), "ANDs of ORs": ("(false OR (true AND ", "true", "))"),
    "EXISTS": ("EXISTS (SELECT 1 WHERE ", "true", ")"), "LIKE": ("'a' LIKE ", "'a'", ""),
    "intervals": ("INTERVAL '1 day' + ", "INTERVAL '1 day'", ""),
    "words of intervals": ("INTERVAL ", "'1 day'", ""), "functions": ("abs(", "1", ")"),
    "windows": ("sum(", "1", ") OVER ()"), "aggregates": ("max(", "1", ")"),
    "lambdas": ("array_transform([1], v -> ", "1", ")"),
    "texts that grow": ("concat('a', ", "'a'", ")"),
    "replaced": ("replace(", "'a'", ", 'a', 'aa')"), "repeated": ("repeat(", "'a'", ", 2)"),
    "lists that grow": ("array_repeat(", "1", ", 2)"),
    "lists after each other": ("array_concat([1], ", "[1]", ")"),
    "BETWEEN of truths": ("(", "q.b", " BETWEEN false AND q.b)"),
    "IN of truths": ("(", "q.b", " IN (false, q.b))"),
    "casts there and back": ("CAST(CAST(", "q.i", " AS TEXT) AS BIGINT)"),
    "casts of times": ("CAST(CAST(", "q.time", " AS TEXT) AS TIMESTAMP)"),
    "CASE of truths": ("CASE WHEN ", "q.b", " THEN q.b ELSE q.i = 2 END"),
    "CASE of types": ("CASE WHEN q.b THEN ", "q.i", " / 2 ELSE 1.5 END"),
    "coalesce of columns": ("coalesce(q.i, ", "q.i", ", q.f)"),
    "nullif": ("nullif(", "q.i", ", q.u)"), "nvl2": ("nvl2(", "q.i", ", q.i, 1)"),
    "comparisons": ("(", "q.b", " = q.b)"),
    "distinct comparisons": ("(", "q.b", " IS DISTINCT FROM (q.i = 1))"),
    "mixed types": ("(", "q.i", " + q.u + q.f)"),
    "IN of queries": ("(q.i IN (SELECT i FROM x_one q WHERE ", "q.b", "))"),
    "NOT IN of queries": ("(q.i NOT IN (SELECT i FROM x_one q WHERE ", "q.b", ") OR q.b)"),
    "EXISTS of rows": ("EXISTS (SELECT 1 FROM x_one r WHERE r.i = q.i AND ", "true", ")"),
    "ANY": ("(1 = ANY(SELECT ", "1", "))"), "trimmed": ("trim(BOTH 'a' FROM ", "'a'", ")"),
    "extracted": ("extract(hour FROM to_timestamp(", "1", "))"),
    "greatest": ("greatest(q.i, ", "q.f", ", q.u)"),
    "buckets": ("time_bucket('1 day', ", "q.time", ")"),
    "regular expressions": ("regexp_replace(", "q.s", ", 'a', 'aa', 'g')"),
}  # fmt: skip
"""How an expression stands in itself: what is before it, the innermost, what is after it."""

NESTED_QUERIES = {
    "selects": ("SELECT * FROM (", "SELECT 1 AS v", ")"),
    "unions": ("SELECT 1 UNION ALL ", "SELECT 1", ""),
    "unions in parentheses": ("(SELECT 1 UNION ", "SELECT 1", ")"),
    "CTEs": ("WITH a AS (", "SELECT 1", ") SELECT * FROM a"),
    "joins": ("SELECT 1 FROM x_one JOIN (", "SELECT 1", ") ON true"),
    "EXPLAIN": ("EXPLAIN ", "SELECT 1", ""),
    "lateral": ("SELECT * FROM x_one, LATERAL (", "SELECT 1", ")"),
    "derived": ("SELECT count(*) FROM (", "SELECT 1", ") q"),
    "sums": ("SELECT y + y AS y FROM (", "SELECT i AS y FROM x_one", ") z"),
    "orders": ("SELECT y + y AS y FROM (", "SELECT i AS y FROM x_one", ") z ORDER BY y LIMIT 9"),
    "groups": ("SELECT max(y) + min(y) AS y FROM (", "SELECT i AS y FROM x_one", ") z GROUP BY y"),
    "scalars": ("SELECT (SELECT max(y) FROM (", "SELECT i AS y FROM x_one", ") z) AS y"),
    "joins of derived": (
        "SELECT a.y FROM x_one r JOIN (", "SELECT i AS y FROM x_one", ") a ON a.y = r.i",
    ),
    "windows": ("SELECT sum(y) OVER () AS y FROM (", "SELECT i AS y FROM x_one", ") z"),
    "distinct": ("SELECT DISTINCT y FROM (", "SELECT i AS y FROM x_one", ") z WHERE y + y > 0"),
    "conditions": ("SELECT 1 FROM x_one WHERE i IN (", "SELECT 1", ")"),
    "values": ("VALUES ((", "SELECT 1", "))"),
}  # fmt: skip
