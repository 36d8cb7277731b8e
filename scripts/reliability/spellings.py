"""Expressions in two spellings that mean the same: an `Expr` has one of them as `arc` and the other one as `duck`.

A tree is printed with the parentheses that it needs by PostgreSQL's precedence, and with all of them. Beside that there are
pairs of operators, functions, aggregates and windows of which one says what the other says.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from drawing import TableScope
from expressions import Expressions
from statements import Source
from terms import Expr, make, quoted

# How operators bind, as in PostgreSQL.
OR, AND, NOT, IS, COMPARE, LIKE, OTHER, ADD, MULTIPLY, AT, NEGATE, CAST, ATOM = range(1, 14)


@dataclass(frozen=True)
class Operator:
    """A template, how it binds, and of each operand the kind and how it has to bind at least to stand there as it is."""

    kind: str
    template: str
    level: int
    operands: tuple[tuple[str, int], ...]


def operators() -> list[Operator]:
    """All operators that trees are made of."""
    made = [
        Operator("bool", "{0} OR {1}", OR, (("bool", OR), ("bool", AND))),
        Operator("bool", "{0} AND {1}", AND, (("bool", AND), ("bool", NOT))),
        Operator("bool", "NOT {0}", NOT, (("bool", NOT),)),
        Operator("text", "{0} || {1}", OTHER, (("text", OTHER), ("text", ADD))),
        Operator("text", "CASE WHEN {0} THEN {1} ELSE {2} END", ATOM, (("bool", OR), ("text", OR), ("text", OR))),
        Operator("text", "coalesce({0}, {1})", ATOM, (("text", OR), ("text", OR))),
        Operator("small", "- {0}", NEGATE, (("small", NEGATE),)),
        Operator("small", "{0}::bigint", CAST, (("bool", CAST),)),
        Operator("small", "{0}::bigint", CAST, (("small", CAST),)),
        Operator("nice", "{0}::double", CAST, (("small", CAST),)),
        Operator("nice", "- {0}", NEGATE, (("nice", NEGATE),)),
        Operator("bool", "{0} ~ {1}", OTHER, (("text", OTHER), ("pattern", ADD))),
        Operator("bool", "{0} - {1} < INTERVAL '30 days'", COMPARE, (("time", ADD), ("time", MULTIPLY))),
        Operator("time", "INTERVAL '1 hour' + {0}", ADD, (("time", MULTIPLY),)),
    ]
    made += [Operator("small", f"{{0}} {sign} {{1}}", ADD, (("small", ADD), ("small", MULTIPLY))) for sign in "+-"]
    made += [Operator("nice", f"{{0}} {sign} {{1}}", ADD, (("nice", ADD), ("nice", MULTIPLY))) for sign in "+-"]
    made += [Operator("small", f"{{0}} {sign} {{1}}", MULTIPLY, (("small", MULTIPLY), ("small", AT))) for sign in "*/%"]
    made += [Operator("small", f"{{0}} {sign} {{1}}", OTHER, (("small", OTHER), ("small", ADD))) for sign in "|&"]
    made += [Operator("time", f"{{0}} {sign} INTERVAL '90 minutes'", ADD, (("time", ADD),)) for sign in "+-"]
    made += [Operator("time", f"{{0}} AT TIME ZONE '{zone}'", AT, (("time", AT),)) for zone in ("Europe/Berlin", "UTC")]
    for kind in ("small", "nice", "text", "bool", "time"):
        made.append(Operator("text" if kind == "small" else "bool", *_cast_or_test(kind)))
        for word in ("IS NULL", "IS NOT NULL"):
            made.append(Operator("bool", f"{{0}} {word}", IS, ((kind, COMPARE),)))
        for word in ("IS DISTINCT FROM", "IS NOT DISTINCT FROM"):
            made.append(Operator("bool", f"{{0}} {word} {{1}}", IS, ((kind, COMPARE), (kind, COMPARE))))
        for word in ("=", "<>", "<", ">="):
            made.append(Operator("bool", f"{{0}} {word} {{1}}", COMPARE, ((kind, LIKE), (kind, LIKE))))
        for word in ("", "NOT "):
            made.append(Operator("bool", f"{{0}} {word}BETWEEN {{1}} AND {{2}}", LIKE, ((kind, OTHER),) * 3))
            made.append(
                Operator("bool", f"{{0}} {word}IN ({{1}}, {{2}})", LIKE, ((kind, OTHER), (kind, OR), (kind, OR)))
            )
    for word in ("LIKE", "NOT LIKE", "ILIKE"):
        made.append(Operator("bool", f"{{0}} {word} {{1}}", LIKE, (("text", OTHER), ("pattern", OTHER))))
    return made


def _cast_or_test(kind: str) -> tuple[str, int, tuple[tuple[str, int], ...]]:
    if kind == "small":
        return "{0}::text", CAST, (("small", CAST),)
    return (
        ("{0} IS NOT TRUE", IS, (("bool", COMPARE),)) if kind == "bool" else ("{0} = {1}", COMPARE, ((kind, LIKE),) * 2)
    )


OPERATORS = operators()


@dataclass(frozen=True)
class Tree(Expr):
    """An expression printed with few parentheses, `arc`, and with all of them, `duck`."""

    level: int = ATOM


def parenthesized(part: Tree, least: int) -> str:
    return part.arc if part.level >= least else f"({part.arc})"


def tree(over: Expressions, kind: str, depth: int) -> Tree:
    chosen = [operator for operator in OPERATORS if operator.kind == kind]
    if kind == "pattern":
        return Tree("text", text := quoted(over.random.choice(("%", "a", "a%", "_b%"))), text)
    if depth <= 0 or not chosen or over.random.random() < 0.1:
        text = (over.column(kind) if over.random.random() < 0.8 else over.literal(kind)).arc
        return Tree(kind, text, text, level=NEGATE if text.startswith("-") else ATOM)
    operator = over.random.choice(chosen)
    parts = tuple(tree(over, of, depth - 1) for of, _ in operator.operands)
    few = [parenthesized(part, least) for part, (_, least) in zip(parts, operator.operands)]
    all_ = [part.duck if part.level == ATOM and not part.parts else f"({part.duck})" for part in parts]
    # Divided by what cannot be zero.
    if operator.template[4:5] in ("/", "%"):
        few[1] = all_[1] = "3"
    return Tree(kind, operator.template.format(*few), operator.template.format(*all_), parts, level=operator.level)


def both(one: Expr) -> Expr:
    """What was drawn for Arc, on both sides."""
    return Expr(one.kind, one.arc, one.arc, tuple(both(part) for part in one.parts), one.is_rough, one.marks)


UNITS = {
    "second": "1 second",
    "minute": "1 minute",
    "hour": "1 hour",
    "day": "1 day",
    "week": "1 week",
    "month": "1 month",
}
ORDERED = ("small", "int", "uint", "nice", "float", "text", "bool", "time")


class Spellings:
    """Draws pairs over the columns of a scope."""

    def __init__(self, over: Expressions, tables: list[TableScope]) -> None:
        self.over, self.random, self.tables = over, over.random, tables
        # How often a condition has a statement in it.
        self.of_other_tables = 0.02

    def filters(self) -> tuple[Expr, ...]:
        """Conditions for WHERE, where statements may stand in any of them."""
        self.of_other_tables = 0.2
        conditions = tuple(self.condition() for _ in range(self.random.choice((0, 1, 1, 2))))
        self.of_other_tables = 0.02
        return conditions

    def operand(self, kind: str) -> Expr:
        drawn = both(self.over.draw(kind, 1))
        # A test for null binds less than what it may stand beside.
        return make(kind, "({0})", drawn) if kind == "bool" else drawn

    def value(self, kind: str = "") -> Expr:
        """An expression of one kind that is said in two ways."""
        kind = kind or self.random.choice(ORDERED)
        if kind == "bool":
            return self.condition()
        one, other, third = (self.operand(kind) for _ in range(3))
        pairs = [
            ("coalesce({0}, {1})", "CASE WHEN {0} IS NOT NULL THEN {0} ELSE {1} END"),
            ("coalesce({0}, {1}, {2})", "coalesce({0}, coalesce({1}, {2}))"),
            ("nullif({0}, {1})", "CASE WHEN {0} = {1} THEN NULL ELSE {0} END"),
            ("CASE {0} WHEN {1} THEN {2} ELSE {0} END", "CASE WHEN {0} = {1} THEN {2} ELSE {0} END"),
            (
                "greatest({0}, {1})",
                "CASE WHEN {0} IS NULL THEN {1} WHEN {1} IS NULL OR {0} >= {1} THEN {0} ELSE {1} END",
            ),
            ("least({0}, {1})", "CASE WHEN {0} IS NULL THEN {1} WHEN {1} IS NULL OR {0} <= {1} THEN {0} ELSE {1} END"),
        ]
        if kind == "time":
            unit = self.random.choice(list(UNITS))
            spelled = [
                f"date_trunc('{unit}', {{0}})",
                f"time_bucket(INTERVAL '{UNITS[unit]}', {{0}})",
                f"date_bin(INTERVAL '{UNITS[unit]}', {{0}}, TIMESTAMP '2001-01-01')",
                f"time_bucket(INTERVAL '{UNITS[unit]}', {{0}}, TIMESTAMP '2001-01-01')",
            ]
            pairs = [
                *pairs[:3],
                tuple(self.random.sample(spelled, 2)),
                ("{0} + INTERVAL '1 day'", "{0} + INTERVAL '24 hours'"),
            ]
        if kind in ("small", "int"):
            pairs.append(("abs({0})", "CASE WHEN {0} < 0 THEN - {0} ELSE {0} END"))
        if kind == "text":
            pairs.append(("concat({0}, {1})", "coalesce({0}, '') || coalesce({1}, '')"))
            pairs.append(("substr({0}, 1, 2)", "left({0}, 2)"))
            pairs.append(("{0} || {3}", "CAST({0} AS VARCHAR) || CAST({3} AS VARCHAR)"))
        arc, duck = self.random.choice(pairs)
        return make(kind, f"({arc})", one, other, third, self.operand("small"), duck=f"({duck})")

    def condition(self, depth: int = 1) -> Expr:
        """A condition that is said in two ways."""
        if depth > 0 and self.random.random() < 0.4:
            one, other = self.condition(depth - 1), self.condition(depth - 1)
            pairs = [
                ("(NOT ({0} AND {1}))", "((NOT {0}) OR (NOT {1}))"),
                ("(NOT ({0} OR {1}))", "((NOT {0}) AND (NOT {1}))"),
                ("({0} AND {1})", "({1} AND {0})"),
                ("({0} OR {1})", "({1} OR {0} OR {1})"),
                ("({0} = {1})", "(({0} AND {1}) OR (NOT {0} AND NOT {1}))"),
                ("({0} IS TRUE)", "coalesce({0}, false)"),
                ("({0} IS NOT FALSE)", "coalesce({0}, true)"),
                ("({0})", "(CASE WHEN {0} THEN true WHEN NOT {0} THEN false END)"),
            ]
            arc, duck = self.random.choice(pairs)
            return make("bool", arc, one, other, duck=duck)
        if self.random.random() < self.of_other_tables:
            return self._of_other_table()
        kind = self.random.choice(ORDERED)
        one, low, high = self.operand(kind), both(self.over.literal(kind)), self.operand(kind)
        values = [both(self.over.literal(kind)) for _ in range(self.random.randint(1, 6))]
        places = [f"{{{place + 3}}}" for place in range(len(values))]
        pairs = [
            ("({0} BETWEEN {1} AND {2})", "({0} >= {1} AND {0} <= {2})"),
            ("({0} NOT BETWEEN {1} AND {2})", "({0} < {1} OR {0} > {2})"),
            ("({0} IS NOT DISTINCT FROM {2})", "coalesce({0} = {2}, {0} IS NULL AND {2} IS NULL)"),
            ("({0} IS DISTINCT FROM {1})", "(NOT coalesce({0} = {1}, false))"),
            ("(NOT {0} < {2})", "({0} >= {2})"),
            ("({0} <> {2})", "({0} < {2} OR {0} > {2})"),
            ("({0} > {1})", "({1} < {0})"),
            (f"({{0}} IN ({', '.join(places)}))", "(" + " OR ".join(f"{{0}} = {place}" for place in places) + ")"),
            (
                f"({{0}} NOT IN ({', '.join(places)}))",
                "(" + " AND ".join(f"{{0}} <> {place}" for place in places) + ")",
            ),
        ]
        if kind == "text":
            pairs += [
                ("({0} LIKE 'a%')", "starts_with({0}, 'a')"),
                ("({0} LIKE '%b')", "ends_with({0}, 'b')"),
                ("({0} LIKE '%b%')", "(strpos({0}, 'b') > 0)"),
                ("({0} NOT LIKE 'a%b')", "(NOT regexp_like({0}, '^a.*b$'))"),
            ]
        arc, duck = self.random.choice(pairs)
        return make("bool", arc, one, low, high, *values, duck=duck)

    def _of_other_table(self) -> Expr:
        """A semi join and an anti join, with the nulls that tell them apart left out."""
        table = self.random.choice([table for table in self.tables if "x" in table.columns])
        kind_of = {
            name: kind for name, kind in table.columns.items() if name in ("host", "j", "s", "x", "f", "time", "b")
        }
        name = self.random.choice(list(kind_of))
        one = both(self.over.column(kind_of[name]))
        condition = both(self.over.with_scope(table.as_("z")).condition(1))
        rows = f"FROM {table.name} z WHERE {{1}}"
        spelled = [
            f"coalesce({{0}} IN (SELECT z.{name} {rows}), false)",
            f"EXISTS (SELECT 1 {rows} AND z.{name} = {{0}})",
            f"((SELECT count(*) {rows} AND z.{name} = {{0}}) > 0)",
            f"(NOT coalesce({{0}} NOT IN (SELECT z.{name} {rows} AND z.{name} IS NOT NULL), true))",
        ]
        arc, duck = self.random.sample(spelled, 2)
        return make("bool", arc, one, condition, duck=duck)

    def aggregate(self) -> Expr:
        kind = self.random.choice(ORDERED)
        one, number, exact = self.operand(kind), both(self.over.column("small")), both(self.over.column("nice"))
        condition = self.condition() if self.random.random() < 0.5 else both(self.over.condition(1))
        pairs = [
            ("int", "count(*) FILTER (WHERE {3})", "coalesce(sum(CASE WHEN {3} THEN 1 ELSE 0 END), 0)"),
            ("int", "count({0})", "count(*) FILTER (WHERE {0} IS NOT NULL)"),
            ("int", "count({0})", "coalesce(sum(CASE WHEN {0} IS NULL THEN 0 ELSE 1 END), 0)"),
            ("int", "sum({1}) FILTER (WHERE {3})", "sum(CASE WHEN {3} THEN {1} END)"),
            (kind, "max({0}) FILTER (WHERE {3})", "max(CASE WHEN {3} THEN {0} END)"),
            (kind, "min({0})", "first_value({0} ORDER BY {0} NULLS LAST)"),
            (kind, "max({0})", "last_value({0} ORDER BY {0} NULLS FIRST)"),
            ("float", "avg({2})", "sum({2}) / count({2})"),
            ("float", "avg({1})", "CAST(sum({1}) AS DOUBLE) / nullif(count({1}), 0)"),
            (
                "int",
                "count(DISTINCT {0})",
                "coalesce(array_length(array_agg(DISTINCT {0}) FILTER (WHERE {0} IS NOT NULL)), 0)",
            ),
            ("bool", "bool_and({3})", "min(CASE WHEN {3} THEN 1 WHEN NOT {3} THEN 0 END) = 1"),
            ("bool", "bool_or({3})", "max(CASE WHEN {3} THEN 1 WHEN NOT {3} THEN 0 END) = 1"),
        ]
        of, arc, duck = self.random.choice(pairs)
        return make(of, arc, one, number, exact, condition, duck=duck)

    def window(self) -> Expr:
        """Over a table `q`, whose `n` tells its rows apart."""
        one, number = both(self.over.column(kind := self.random.choice(ORDERED))), both(self.over.column("small"))
        part = self.random.choice(("", "PARTITION BY q.host ", "PARTITION BY q.b ", "PARTITION BY q.f "))
        over = f"OVER ({part}ORDER BY q.n{self.random.choice(('', ' DESC'))}"
        so_far = "BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
        frame = self.random.choice(("sum({1})", "count({0})", "max({0})", "min({0})", "avg({1})"))
        of = {"sum": "int", "cou": "int", "avg": "float"}.get(frame[:3], kind)
        frames = [f"{frame} {over}{mode})" for mode in ("", f" ROWS {so_far}", f" RANGE {so_far}", f" GROUPS {so_far}")]
        pairs = [
            (of, *self.random.sample(frames, 2)),
            (of, *(f"{frame} {over} {mode} BETWEEN 2 PRECEDING AND 1 FOLLOWING)" for mode in ("ROWS", "GROUPS"))),
            (kind, f"lag({{0}}) {over})", f"first_value({{0}}) {over} ROWS BETWEEN 1 PRECEDING AND 1 PRECEDING)"),
            (kind, f"lead({{0}}, 2) {over})", f"max({{0}}) {over} ROWS BETWEEN 2 FOLLOWING AND 2 FOLLOWING)"),
            (kind, f"first_value({{0}}) {over})", f"nth_value({{0}}, 1) {over})"),
            ("int", f"row_number() {over})", f"count(*) {over} ROWS {so_far})"),
            ("int", f"rank() {over})", f"dense_rank() {over})"),
        ]
        of, arc, duck = self.random.choice(pairs)
        return make(of, arc, one, number, duck=duck)


def joined(chance: random.Random, left: TableScope, right: TableScope) -> tuple[Source, list[Expr]]:
    """A join that is said in two ways."""
    names = ["host", "j", chance.choice(("s", "b", "time", "x", "u"))]
    on = " AND ".join(f"l.{name} = r.{name}" for name in names)
    unequal = " AND ".join(["l.host = r.host", *(f"NOT l.{name} <> r.{name}" for name in names[1:])])
    scope = [one for one in left.as_("l") + right.as_("r") if one.arc[2:] not in names]
    head = f"{left.name} l"
    pairs = [
        (f"{head} JOIN {right.name} r USING ({', '.join(names)})", f"{head} JOIN {right.name} r ON {on}"),
        (f"{head} LEFT JOIN {right.name} r USING ({', '.join(names)})", f"{right.name} r RIGHT JOIN {head} ON {on}"),
        (f"{head} FULL JOIN {right.name} r ON {on}", f"{right.name} r FULL JOIN {head} ON {on}"),
        (f"{head} JOIN {right.name} r ON {on}", f"{head} JOIN {right.name} r ON {unequal}"),
        (f"{head} JOIN {right.name} r ON {on} AND l.n < r.n", f"{head} JOIN {right.name} r ON {on} AND NOT r.n <= l.n"),
    ]
    return Source(*chance.choice(pairs)), scope
