"""Expressions of SQL at random, each written twice: for Arc and for DuckDB.

They differ where docs/sql.md or DataFusion says so; `answers.py` lists these differences. An expression has a kind rather than
a type: `small` are integers that can be added and multiplied, `nice` are floats whose sums are exact, so that
these are compared to the last bit whatever the order.
"""

from __future__ import annotations

import random
from datetime import datetime, timezone

from terms import (
    FLOATS,
    HOSTS,
    INTEGERS,
    KINDS,
    LARGEST,
    ORIGINS,
    PARTS,
    PATTERNS,
    TEXTS,
    UNITS,
    WIDTHS,
    Expr,
    float_literal,
    make,
    quoted,
    same,
)


class Expressions:
    """Draws expressions over the columns of a scope."""

    def __init__(self, chance: random.Random, scope: list[Expr], times_ns: list[int], has_nanoseconds: bool) -> None:
        self.random, self.scope, self.times_ns, self.has_nanoseconds = chance, scope, times_ns, has_nanoseconds

    def with_scope(self, scope: list[Expr]) -> Expressions:
        return Expressions(self.random, scope, self.times_ns, self.has_nanoseconds)

    def columns(self, kind: str) -> list[Expr]:
        return [column for column in self.scope if column.kind in KINDS[kind]]

    def column(self, kind: str) -> Expr:
        """Returns a column, or a constant where there is none of this kind."""
        columns = self.columns(kind)
        return self.random.choice(columns) if columns else self.literal(kind)

    def literal(self, kind: str) -> Expr:
        draw = self.random.choice
        if kind == "small":
            return same(kind, str(draw((-3, -1, 0, 1, 2, 7, 100))))
        if kind == "int":
            value = draw(INTEGERS)
            # The least is an operation on what is too large.
            return same(kind, str(value) if value > -LARGEST else f"(-{LARGEST} - {-value - LARGEST})")
        if kind == "uint":
            value = draw((0, 1, 7, 2**63, 2**64 - 1))
            return Expr(kind, f"arrow_cast({value}, 'UInt64')", f"{value}::UBIGINT")
        if kind == "nice":
            return Expr(kind, text := f"{draw((0.0, -0.0, 0.25, -0.75, 1.5, 100.0))}e0", text)
        if kind == "float":
            return float_literal(draw(FLOATS))
        if kind == "text":
            return same(kind, quoted(draw(TEXTS[:-1] + HOSTS)))
        if kind == "bool":
            return same(kind, draw(("true", "false")))
        return self.time_literal()

    def time_literal(self) -> Expr:
        time_ns = self.random.choice(self.times_ns) + self.random.choice((0, 0, -1_000, 1_000, 3_600 * 10**9))
        seconds, rest = divmod(time_ns, 10**9)
        arc = f"to_timestamp_nanos({time_ns})"
        if seconds >= 0 and self.random.random() < 0.5:
            moment = datetime.fromtimestamp(seconds, timezone.utc)
            arc = f"TIMESTAMP '{moment:%Y-%m-%d %H:%M:%S}.{rest:09}'"
        duck = f"make_timestamp_ns({time_ns})" if self.has_nanoseconds else f"make_timestamp({time_ns // 1_000})"
        return Expr("time", arc, duck)

    def draw(self, kind: str, depth: int = 2) -> Expr:
        """Draws an expression of this kind; it is a column most of the time."""
        if depth <= 0 or self.random.random() < 0.45:
            return self.column(kind) if self.random.random() < 0.9 else self.literal(kind)
        chosen = kind if kind != "int" or self.random.random() < 0.5 else "small"
        if chosen == "float" and self.random.random() < 0.4:
            chosen = "nice"
        if self.random.random() < 0.25:
            return self._choice(chosen, depth)
        makers = {
            "small": self._small,
            "int": self._int,
            "uint": self._uint,
            "nice": self._nice,
            "float": self._float,
            "text": self._text,
            "bool": self.condition,
            "time": self._time,
        }
        return makers[chosen](depth - 1)

    def _choice(self, kind: str, depth: int) -> Expr:
        """What there is for all kinds."""
        one, other = self.draw(kind, depth - 1), self.draw(kind, depth - 1)
        which = self.random.randrange(5)
        if which == 0:
            return make(kind, "coalesce({0}, {1})", one, other)
        if which == 1:
            return make(kind, "nullif({0}, {1})", one, other)
        if which == 2:
            return make(kind, "CASE WHEN {0} THEN {1} END", self.condition(depth - 1), one)
        if which == 3:
            return make(kind, "CASE WHEN {0} THEN {1} ELSE {2} END", self.condition(depth - 1), one, other)
        of = self.random.choice(("text", "small", "nice"))
        parts = (self.column(of), self.literal(of), one, other)
        return make(kind, "CASE {0} WHEN {1} THEN {2} ELSE {3} END", *parts)

    def _small(self, depth: int) -> Expr:
        which = self.random.randrange(10)
        draw = self.draw
        if which == 0:
            return make("int", "({0} + {1})", draw("small", 0), draw("small", 0))
        if which == 1:
            return make("int", "({0} - {1})", draw("small", 0), draw("small", 0))
        if which == 2:
            return make("int", "({0} * 3)", draw("small", 0))
        if which == 3:
            return make(
                "small",
                "({0} // {1})",
                draw("small", 0),
                same("small", self.random.choice(("2", "7", "-3"))),
                duck="trunc_divide({0}, {1})",
            )
        if which == 4:
            return make("small", "({0} % {1})", draw("int", 0), same("small", self.random.choice(("2", "7", "-3"))))
        if which == 5:
            return make("small", "abs({0})", self.column("small"))
        if which == 6:
            return make("small", "length({0})", draw("text", depth))
        if which == 7:
            part = self.random.choice(PARTS)
            return make(
                "small",
                f"date_part('{part}', {{0}})",
                self.column("time"),
                duck=f"date_part('{part}', us({{0}}))",
            )
        if which == 8:
            bucket = "CASE WHEN {0} < -8 THEN 0 WHEN {0} >= 8 THEN 5 ELSE CAST(floor(({0} + 8) / 4) AS BIGINT) + 1 END"
            return make("small", "width_bucket({0}, -8, 8, 4)", self.column("nice"), duck=bucket)
        return make("small", "CAST({0} AS BIGINT)", draw("bool", depth))

    def _int(self, depth: int) -> Expr:
        which = self.random.randrange(5)
        if which == 0:
            return make("int", "({0} // 7)", self.draw("int", 0), duck="trunc_divide({0}, 7)")
        if which == 1:
            unit = self.random.choice(("ns", "us", "ms"))
            return make("int", f"epoch_{unit}({{0}})", self.column("time"), duck=f"floor_{unit}({{0}})")
        if which == 2:
            return make("int", "TRY_CAST({0} AS BIGINT)", self.column("text"))
        if which == 3:
            unit = self.random.choice(UNITS)
            # Weeks begin on Mondays here; DuckDB counts them from a Thursday.
            one, other = (f"date_trunc('week', us({{{n}}}))" if unit == "week" else f"us({{{n}}})" for n in (0, 1))
            return make(
                "int",
                f"date_diff('{unit}', {{0}}, {{1}})",
                self.column("time"),
                self.time_literal(),
                duck=f"date_diff('{unit}', {one}, {other})",
            )
        return make("int", "CAST(floor({0}) AS BIGINT)", self.column("nice"))

    def _uint(self, depth: int) -> Expr:
        return self.column("uint")

    def _nice(self, depth: int) -> Expr:
        which = self.random.randrange(6)
        if which == 0:
            return make("float", "({0} + {1})", self.column("nice"), self.column("nice"))
        if which == 1:
            return make("float", "({0} * 0.5e0)", self.column("nice"))
        if which == 2:
            return make(
                "nice",
                self.random.choice(("floor({0})", "ceil({0})", "trunc({0})", "round({0})", "abs({0})")),
                self.column("nice"),
            )
        if which == 3:
            return make("nice", "CAST({0} AS DOUBLE)", self.draw("small", 0))
        if which == 4:
            return make(
                "nice",
                self.random.choice(("greatest({0}, {1})", "least({0}, {1})")),
                self.column("nice"),
                self.column("nice"),
            )
        return make("nice", "(- {0})", self.column("nice"))

    def _float(self, depth: int) -> Expr:
        which = self.random.randrange(6)
        if which == 0:
            template = self.random.choice(("({0} + {1})", "({0} - {1})", "({0} * {1})"))
            # What a processor makes of infinity less infinity may have a sign.
            return make("float", template, self.draw("float", 0), self.draw("float", 0), marks=("NaN with a sign",))
        if which == 1:
            return make("float", "({0} / 3.5e0)", self.draw("float", 0))
        if which == 2:
            return make("float", "({0} / 7.0e0)", self.draw("small", 0))
        if which == 3:
            return make("float", "CAST({0} AS DOUBLE)", self.draw("int", 0))
        if which == 4:
            return make("float", "sqrt(abs({0}))", self.column("float"))
        return make("float", "abs({0})", self.column("float"))

    def _text(self, depth: int) -> Expr:
        one = self.draw("text", depth)
        which = self.random.randrange(14)
        number = self.random.choice((1, 2, 3, 5))
        templates = (
            "upper({0})",
            "lower({0})",
            "trim({0})",
            "reverse({0})",
            "replace({0}, 'a', 'xy')",
            f"substr({{0}}, {number})",
            f"substr({{0}}, {number}, 2)",
            f"left({{0}}, {number})",
            f"right({{0}}, {number})",
            f"lpad({{0}}, {number}, '*')",
            f"rpad({{0}}, {number}, '-')",
            f"split_part({{0}}, 'b', {number})",
            "({0} || '!')",
        )
        if which < len(templates):
            return make("text", templates[which], one)
        if self.random.random() < 0.5:
            return make("text", "concat({0}, {1})", one, self.column("text"))
        return make("text", "CAST({0} AS VARCHAR)", self.draw(self.random.choice(("int", "bool")), 0))

    def _time(self, depth: int) -> Expr:
        time = self.column("time")
        which = self.random.randrange(5)
        width = self.random.choice(WIDTHS)
        if which == 0:
            return make(
                "time",
                f"time_bucket(INTERVAL '{width}', {{0}})",
                time,
                duck=f"time_bucket(INTERVAL '{width}', us({{0}}))",
            )
        origin = self.random.choice(ORIGINS)
        if which == 1:
            name = self.random.choice(("time_bucket", "date_bin"))
            if "month" in width or "year" in width:
                # Months of an origin in the middle of one are counted by DuckDB from the first.
                origin = ORIGINS[0]
            return make(
                "time",
                f"{name}(INTERVAL '{width}', {{0}}, TIMESTAMP '{origin}')",
                time,
                duck=f"time_bucket(INTERVAL '{width}', us({{0}}), TIMESTAMP '{origin}')",
            )
        if which == 2:
            return make(
                "time",
                f"date_bin(INTERVAL '{width}', {{0}})",
                time,
                duck=f"time_bucket(INTERVAL '{width}', us({{0}}), TIMESTAMP '1970-01-01')",
            )
        if which == 3 and not self.has_nanoseconds:
            step = self.random.choice(
                ("+ INTERVAL '1 day'", "- INTERVAL '90 minutes'", "+ INTERVAL '1 month'", "- INTERVAL '1 year'")
            )
            return make("time", f"({{0}} {step})", time)
        unit = self.random.choice(UNITS)
        return make("time", f"date_trunc('{unit}', {{0}})", time, duck=f"date_trunc('{unit}', us({{0}}))")

    def condition(self, depth: int = 2) -> Expr:
        """Draws a condition on rows."""
        which = self.random.randrange(16)
        if depth > 0 and which < 4:
            one, other = self.condition(depth - 1), self.condition(depth - 1)
            return make(
                "bool", ("({0} AND {1})", "({0} OR {1})", "(NOT {0} AND {1})", "(NOT ({0} OR {1}))")[which], one, other
            )
        kind = self.random.choice(("int", "small", "nice", "float", "text", "text", "time", "time", "uint"))
        one = self.draw(kind, min(depth, 1))
        if which in (4, 5):
            return make("bool", "{0} IS NULL" if which == 4 else "{0} IS NOT NULL", one)
        if which in (6, 7):
            return self._is_in(kind, one)
        if which == 8:
            low, high = self.literal(kind), self.literal(kind)
            return make(
                "bool",
                self.random.choice(("({0} BETWEEN {1} AND {2})", "({0} NOT BETWEEN {1} AND {2})")),
                one,
                low,
                high,
            )
        if which in (9, 10):
            like = self.random.choice(("LIKE", "NOT LIKE", "ILIKE"))
            pattern = quoted(self.random.choice(PATTERNS))
            return make(
                "bool", f"({{0}} {like} {pattern})", self.draw("text", 1), duck=f"({{0}} {like} {pattern} ESCAPE '\\')"
            )
        if which == 11:
            other = self.draw(kind, 0)
            return make(
                "bool", self.random.choice(("({0} IS DISTINCT FROM {1})", "({0} IS NOT DISTINCT FROM {1})")), one, other
            )
        if which == 12:
            return self.random.choice(self.columns("bool") or [same("bool", "true")])
        if which == 13:
            test = self.random.choice(
                (
                    "starts_with({0}, 'a')",
                    "contains({0}, 'b')",
                    "ends_with({0}, 'c')",
                    "regexp_matches({0}, '^[a-z]+$')",
                )
            )
            return make("bool", test, self.column("text"))
        other = self.draw(kind, 0) if self.random.random() < 0.4 else self.literal(kind)
        return make("bool", "({0} " + self.random.choice(("=", "<>", "<", "<=", ">", ">=")) + " {1})", one, other)

    def _is_in(self, kind: str, one: Expr) -> Expr:
        values = [self.literal(kind) for _ in range(self.random.randint(1, 7))]
        places = ", ".join(f"{{{place + 1}}}" for place in range(len(values)))
        return make("bool", f"({{0}} {self.random.choice(('IN', 'NOT IN'))} ({places}))", one, *values)
