"""Aggregates and window functions at random."""

from __future__ import annotations

from expressions import Expressions
from statements import ORDERED
from terms import Expr, make, same

FRAMES = (
    "",
    "ROWS BETWEEN 2 PRECEDING AND CURRENT ROW",
    "ROWS BETWEEN 3 PRECEDING AND 1 FOLLOWING",
    "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
    "ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
    "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
)
DIRECTIONS = (" NULLS LAST", " NULLS FIRST", " DESC NULLS LAST", " DESC NULLS FIRST")


def aggregate(over: Expressions) -> Expr:
    made = _aggregate(over)
    if over.random.random() < 0.12:
        return make(made.kind, "{0} FILTER (WHERE {1})", made, over.condition(1))
    return made


def _aggregate(over: Expressions) -> Expr:
    draw, which = over.random.choice, over.random.randrange(17)
    if which == 0:
        return same("int", "count(*)")
    if which < 3:
        one = over.draw(draw(ORDERED), 1)
        if which == 1:
            return make("int", "count({0})", one)
        return make("int", "count(DISTINCT {0})", one)
    if which < 7:
        one = over.draw(draw(ORDERED), 1)
        return make(one.kind, draw(("min({0})", "max({0})")), one)
    if which < 9:
        return make(*draw((("int", "sum({0})"), ("float", "avg({0})"))), over.column("small"))
    if which == 9:
        return make("float", draw(("sum({0})", "avg({0})")), over.column("nice"))
    if which == 10:
        return rough(over)
    if which == 11:
        return make("int", "sum({0})", over.column("int"))
    if which == 12:
        return make("bool", draw(("bool_and({0})", "bool_or({0})")), over.condition(1))
    if which == 13:
        return make("int", draw(("bit_and({0})", "bit_or({0})", "bit_xor({0})")), over.column("int"))
    if which == 14:
        return make("map", "histogram({0})", over.column(draw(("text", "small"))))
    numbers = [column for column in over.scope if column.arc in ("q.n", "l.n")]
    if not numbers or any(column.arc == "r.n" for column in over.scope):
        return same("int", "count(*)")
    if which == 15:
        one = over.column(draw(ORDERED))
        arc, duck = draw((("arg_max", "arg_max"), ("arg_min", "arg_min"), ("last", "arg_max"), ("first", "arg_min")))
        return make(one.kind, f"{arc}({{0}}, {{1}})", one, numbers[0], duck=f"{duck}({{0}}, {{1}})")
    return ordered(over, numbers[0])


def ordered(over: Expressions, number: Expr) -> Expr:
    """Of rows in an order, which may name a column twice, or the one that is collected."""
    draw = over.random.choice
    one, key = over.column(draw(ORDERED)), over.column(draw(ORDERED))
    keys = [f"{{1}}{draw(DIRECTIONS)}", draw(("{0}", "{1}")) + draw(DIRECTIONS), f"{{2}}{draw(('', ' DESC'))}"]
    order = "ORDER BY " + ", ".join(keys[draw((0, 0, 1, 2)) :])
    if one.kind == "text" and draw((True, False)):
        return make("text", f"string_agg({{0}}, '|' {order})", one, key, number)
    if one.kind in ("text", "small", "nice") and draw((True, False)):
        return make("list", f"array_agg({{0}} {order})", one, key, number)
    end = draw(("first", "last"))
    return make(one.kind, f"{end}_value({{0}} {order})", one, key, number, duck=f"{end}({{0}} {order})")


def rough(over: Expressions) -> Expr:
    """Whose last bits depend on the order of the rows, or on how it is computed."""
    positive = [column for column in over.scope if column.arc.endswith(".g")]
    if positive and over.random.random() < 0.5:
        return make("float", over.random.choice(("sum({0})", "avg({0})")), over.random.choice(positive), is_rough=True)
    if over.random.random() < 0.3:
        template = over.random.choice(("quantile_cont({0}, 0.25)", "quantile_cont({0}, 0.9)"))
        return make("float", template, over.column("nice"), is_rough=True, marks=("fractions of quantiles",))
    templates = ("stddev({0})", "stddev_pop({0})", "var_pop({0})", "var_samp({0})", "median({0})")
    return make("float", over.random.choice(templates), over.column("nice"), is_rough=True)


def window(over: Expressions) -> Expr:
    draw = over.random.choice
    parts = draw(("", "PARTITION BY q.host ", "PARTITION BY q.host, q.b ", "PARTITION BY q.j ", "PARTITION BY q.f, q.f "))
    number = draw(("q.n", "q.n DESC", "q.time, q.n", "q.time DESC, q.n DESC, q.time"))
    total = f"OVER ({parts}ORDER BY {number}"
    # DuckDB has no frames of times in nanoseconds.
    which = over.random.randrange(8 if over.has_nanoseconds else 9)
    if which == 0:
        return same("int", f"row_number() {total})")
    if which == 8:
        # Of times that are equal all are in the frame or none.
        frame = f"RANGE BETWEEN INTERVAL '{draw(('1 hour', '1 day'))}' PRECEDING AND CURRENT ROW"
        template = draw(("count(*)", "sum({0})", "min({0})", "max({0})"))
        return make("int", f"{template} OVER ({parts}ORDER BY q.time {frame})", over.column("small"))
    if which == 1:
        # Rows that are equal in the order are so in the answer.
        key = draw(("q.j", "q.s", "q.time", "q.host", "(q.f + 0.0e0)", "(q.x + 0.0e0)", "q.i"))
        made = draw(
            (
                ("int", "rank()"),
                ("int", "dense_rank()"),
                ("int", "count(*)"),
                ("int", "sum(q.j)"),
                ("int", "max(q.j)"),
                ("float", "cume_dist()"),
                ("float", "percent_rank()"),
            )
        )
        return same(made[0], f"{made[1]} OVER ({parts}ORDER BY {key}{draw(('', ' DESC', ' NULLS FIRST'))})")
    one = over.column(draw(ORDERED))
    if which == 2:
        step = draw((1, 2, 5))
        return make(one.kind, f"{draw(('lag', 'lead'))}({{0}}, {step}) {total})", one)
    if which == 3:
        frame = draw(FRAMES)
        return make(
            one.kind, f"{draw(('first_value({0})', 'last_value({0})', 'nth_value({0}, 2)'))} {total} {frame})", one
        )
    if which == 4:
        return same("int", f"ntile({draw((2, 3, 7))}) {total})")
    if which == 5:
        frame = "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
        return make(
            one.kind, f"locf({{0}}) {total} {frame})", one, duck=f"last_value({{0}} IGNORE NULLS) {total} {frame})"
        )
    frame = draw(FRAMES)
    if which == 6:
        kind, name = draw((("nice", "sum"), ("nice", "avg"), ("small", "avg"), ("small", "sum")))
        return make(
            "float" if (kind, name) != ("small", "sum") else "int",
            f"{name}({{0}}) {total} {frame})",
            over.column(kind),
        )
    if draw((True, False)):
        return make("int", f"count({{0}}) {total} {frame})", one)
    return make(one.kind, f"{draw(('min', 'max'))}({{0}}) {total} {frame})", one)
