"""Statements at random over the tables of a world."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import Optional

from aggregates import aggregate, window
from expressions import Expressions
from statements import ORDERED, Order, Select, Source
from terms import Expr, make, same

# What stands between two statements of the same columns.
UNIONS = ("UNION ALL", "UNION", "INTERSECT", "EXCEPT")


@dataclass(frozen=True)
class TableScope:
    """A table as statements see it."""

    name: str
    # Kinds of the columns by name.
    columns: dict[str, str]
    # Columns of which no two rows have the same values together.
    key: tuple[str, ...]

    def as_(self, alias: str) -> list[Expr]:
        return [same(kind, f"{alias}.{name}") for name, kind in self.columns.items()]


class Drawing:
    """Draws statements over tables of one shape, and some over others."""

    def __init__(
        self, chance: random.Random, tables: list[TableScope], times_ns: list[int], has_nanoseconds: bool
    ) -> None:
        self.random = chance
        self.tables = tables
        self.wide = [table for table in tables if "x" in table.columns]
        self.any = Expressions(chance, [], times_ns, has_nanoseconds)

    def draw(self) -> Select:
        makers = [
            (self.plain, 6),
            (self.grouped, 7),
            (self.windowed, 4),
            (self.latest, 3),
            (self.united, 2),
            (self.nested, 3),
        ]
        maker = self.random.choice([maker for maker, weight in makers for _ in range(weight)])
        select, over = maker()
        return self.ordered(select, over) if not select.order else select

    # Where rows come from.

    def source(self, depth: int = 1) -> tuple[Source, Expressions]:
        """A table, two of them joined, or a statement; and the columns that it has."""
        which = self.random.randrange(10) if depth > 0 else 0
        if which < 6:
            table = self.random.choice(self.tables if self.random.random() < 0.3 else self.wide)
            return self.of_table(table)
        if which < 8:
            return self.joined()
        if which == 8:
            return self.asof()
        return self.of_statement("(<0>) q", self.inner())

    def of_table(self, table: TableScope) -> tuple[Source, Expressions]:
        text = f"{table.name} q"
        return Source(text, text), self.any.with_scope(table.as_("q"))

    def of_statement(self, text: str, inner: Select) -> tuple[Source, Expressions]:
        kinds = [(place, item) for place, item in enumerate(inner.items) if not item.is_rough and item.kind in ORDERED]
        scope = [same(item.kind, f"q.c{place}") for place, item in kinds]
        return Source(text, text, (inner,)), self.any.with_scope(scope)

    def inner(self) -> Select:
        """A statement inside of another one: without LIMIT, for which rows it takes of equal ones is open."""
        return replace(self.random.choice((self.plain, self.grouped))(depth=0)[0], prefix="c")

    def joined(self) -> tuple[Source, Expressions]:
        left, right = self.random.choice(self.wide), self.random.choice(self.wide)
        kind = self.random.choice(("JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"))
        # Enough of it has to be equal that the answer is not much larger than the tables.
        chosen = ["host", "j", self.random.choice(("s", "b", "time", "f", "i", "u", "x", "region"))]
        if self.random.random() < 0.2:
            chosen = ["time", "host"]
        condition = " AND ".join(f"l.{name} = r.{name}" for name in chosen)
        if kind in ("JOIN", "LEFT JOIN") and self.random.random() < 0.3:
            condition += " AND l.n < r.n"
        text = f"{left.name} l {kind} {right.name} r ON {condition}"
        return Source(text, text), self.any.with_scope(left.as_("l") + right.as_("r"))

    def asof(self) -> tuple[Source, Expressions]:
        """The right side has one row for each host and time, so that there is one answer."""
        left = self.random.choice(self.wide)
        right = next(table for table in self.tables if table.key == ("host", "time"))
        head = f"{left.name} l {self.random.choice(('ASOF JOIN', 'ASOF LEFT JOIN'))} {right.name} r"
        scope = left.as_("l") + right.as_("r")
        if self.random.random() < 0.2:
            text = f"{head} USING (host, time)"
            scope = [column for column in scope if column.arc not in ("l.host", "l.time", "r.host", "r.time")]
        else:
            text = f"{head} ON l.host = r.host AND l.time {self.random.choice(('>=', '>', '<=', '<'))} r.time"
        return Source(text, text), self.any.with_scope(scope)

    # Clauses.

    def where(self, over: Expressions) -> tuple[Expr, ...]:
        conditions = [over.condition() for _ in range(self.random.choice((0, 1, 1, 2, 3)))]
        if self.random.random() < 0.15:
            conditions.append(self.of_other_table(over))
        return tuple(conditions)

    def of_other_table(self, over: Expressions) -> Expr:
        """A condition with a statement in it."""
        table = self.random.choice(self.wide)
        condition = over.with_scope(table.as_("z")).condition(1)
        column = self.random.choice(("host", "j", "s"))
        one = over.column(table.columns[column])
        word = self.random.choice(("IN", "NOT IN", "EXISTS", "NOT EXISTS", ">="))
        if word == ">=":
            one = over.column("small")
            return make("bool", f"({{0}} >= (SELECT max(z.j) FROM {table.name} z WHERE {{1}}))", one, condition)
        if word.endswith("EXISTS"):
            return make(
                "bool", f"({word} (SELECT 1 FROM {table.name} z WHERE z.{column} = {{0}} AND {{1}}))", one, condition
            )
        return make("bool", f"({{0}} {word} (SELECT z.{column} FROM {table.name} z WHERE {{1}}))", one, condition)

    def ordered(self, select: Select, over: Optional[Expressions]) -> Select:
        """Gives a statement an order and limits; `over` draws sort keys that are not in the answer."""
        if self.random.random() < 0.4:
            return select
        keys: list[Order] = []
        places = [place for place, item in enumerate(select.items) if not item.is_rough and item.kind in ORDERED]
        for _ in range(self.random.choice((0, 1, 1, 2, 3))):
            suffix = self.random.choice(("", " ASC", " DESC")) + self.random.choice(
                ("", "", " NULLS FIRST", " NULLS LAST")
            )
            if over and over.scope and self.random.random() < 0.4:
                key = over.column(self.random.choice(over.scope).kind)
                # So that zeros of both signs are equal in this sort, too.
                keys.append(
                    Order(make("float", "({0} + 0.0e0)", key) if key.kind in ("nice", "float") else key, suffix)
                )
            elif places:
                keys.append(Order(self.random.choice(places), suffix))
        # Negative zeros come before others, which leaves rows alone that are equal in it only where no key follows.
        floats = [
            order for order in keys if isinstance(order.key, int) and select.items[order.key].kind in ("nice", "float")
        ]
        keys = [order for order in keys if order not in floats] + floats[:1]
        limit = self.random.choice((None, None, 0, 1, 3, 10, 100)) if keys or self.random.random() < 0.2 else None
        offset = self.random.choice((0, 0, 1, 7, 50)) if limit is not None else 0
        return replace(select, order=tuple(keys), limit=limit, offset=offset)

    # Statements, and what may sort them beside their own columns.

    def plain(self, depth: int = 1) -> tuple[Select, Optional[Expressions]]:
        source, over = self.source(depth)
        items = tuple(over.draw(self.random.choice(ORDERED)) for _ in range(self.random.randint(1, 5)))
        is_distinct = self.random.random() < 0.2
        select = Select(items, source, self.where(over), distinct="DISTINCT" if is_distinct else "")
        return select, None if is_distinct else over

    def grouped(self, depth: int = 1) -> tuple[Select, None]:
        source, over = self.source(depth)
        group = tuple(self.group_key(over) for _ in range(self.random.choice((0, 1, 1, 1, 2, 3))))
        # A constant behind GROUP BY would be the place of a column.
        group = tuple(key for key in group if any(column.arc in key.arc for column in over.scope))
        aggregates = tuple(aggregate(over) for _ in range(self.random.randint(1, 4)))
        select = Select(group + aggregates, source, self.where(over), group)
        if group and self.random.random() < 0.1:
            # One key twice is refused there.
            keys = tuple(dict.fromkeys(group))
            grouping = self.random.choice(("ROLLUP", "CUBE"))
            select = replace(select, items=keys + aggregates, group=keys, grouping=grouping)
        if self.random.random() < 0.2:
            condition = self.random.choice(("count(*) > 1", "count(*) < 3", "count(*) % 2 = 0"))
            small = make("bool", f"{self.random.choice(('min', 'max', 'sum'))}({{0}}) > 3", over.column("small"))
            select = replace(select, having=(self.random.choice((same("bool", condition), small)),))
        return select, None

    def group_key(self, over: Expressions) -> Expr:
        column = self.random.choice(over.scope or [same("small", "1")])
        if column.kind == "time" or self.random.random() < 0.4:
            return over.draw(column.kind, 2)
        return column

    def windowed(self) -> tuple[Select, Optional[Expressions]]:
        table = self.random.choice(self.wide)
        source, over = self.of_table(table)
        items = tuple(over.column(self.random.choice(ORDERED)) for _ in range(self.random.randint(1, 2)))
        items += tuple(window(over) for _ in range(self.random.randint(1, 3)))
        return Select(items, source, self.where(over)), over

    def latest(self) -> tuple[Select, Optional[Expressions]]:
        """The newest row of each series, however it is said, and what else takes a series in order."""
        table = self.random.choice([table for table in self.tables if "time" in table.key])
        tags = tuple(same("text", f"q.{name}") for name in table.key if name != "time")
        source, over = self.of_table(table)
        where = self.where(over) if self.random.random() < 0.5 else ()
        keys = ", ".join(tag.arc for tag in tags)
        values = tuple(over.column(self.random.choice(ORDERED)) for _ in range(self.random.randint(1, 3)))
        time = same("time", "q.time")
        form = self.random.randrange(6)
        if form == 0:
            order = (*(Order(tag, " NULLS FIRST") for tag in tags), Order(time, " DESC"))
            return Select((*tags, time, *values), source, where, distinct=f"DISTINCT ON ({keys})", order=order), None
        if form == 1:
            qualify = f"row_number() OVER (PARTITION BY {keys} ORDER BY q.time DESC) = 1"
            return Select((*tags, time, *values), source, where, qualify=qualify), over
        if form == 2:
            limit = self.random.choice((1, 5, 100, 10_000))
            order = (
                Order(
                    time,
                    self.random.choice((" DESC", " DESC", "")),
                ),
            )
            return Select((*tags, time, *values), source, where, order=order, limit=limit), None
        items = [make("time", "max({0})", time), same("int", "count(*)")]
        numbers = over.column("nice")
        for value in values:
            arc, duck = self.random.choice(
                (
                    ("last({0}, q.time)", "arg_max({0}, q.time)"),
                    ("first({0}, q.time)", "arg_min({0}, q.time)"),
                    ("first_value({0} ORDER BY q.time DESC)", "first({0} ORDER BY q.time DESC)"),
                    ("last_value({0} ORDER BY q.time)", "last({0} ORDER BY q.time)"),
                    ("first_value({0} ORDER BY q.time)", "first({0} ORDER BY q.time)"),
                )
            )
            items.append(make(value.kind, arc, value, duck=duck))
        if form == 3:
            change = "CASE WHEN count({0}) > 1 THEN arg_max({0}, q.time) - arg_min({0}, q.time) END"
            items.append(make("float", "delta({0}, q.time)", numbers, duck=change))
        if form == 5:
            whole = "max(q.time) FILTER (WHERE {0} IS NOT NULL)", "min(q.time) FILTER (WHERE {0} IS NOT NULL)"
            seconds = f"((floor_ns({whole[0]}) - floor_ns({whole[1]})) / 1e9)"
            change = (
                f"CASE WHEN count({{0}}) > 1 THEN (arg_max({{0}}, q.time) - arg_min({{0}}, q.time)) / {seconds} END"
            )
            items.append(make("float", "derivative({0}, q.time)", numbers, duck=change, is_rough=True))
        if form == 4 and over.columns("nice"):
            items.append(make("float", "selector_max({0}, q.time)['value']", numbers, duck="max({0})"))
        return Select((*tags, *items), source, where, tags), None

    def united(self) -> tuple[Select, None]:
        kinds = [self.random.choice(ORDERED) for _ in range(self.random.randint(1, 3))]
        sides = []
        for _ in range(2):
            source, over = self.of_table(self.random.choice(self.wide))
            items = tuple(over.column(kind) for kind in kinds)
            if len({*items}) < len(items):
                source = replace(source, marks=frozenset(("a column twice in a union",)))
            sides.append(Select(items, source, self.where(over)))
        return replace(sides[0], other=(self.random.choice(UNIONS), sides[1])), None

    def nested(self) -> tuple[Select, Optional[Expressions]]:
        """A statement over a common table expression, or over it twice."""
        inner = self.inner()
        _, over = self.of_statement("", inner)
        source = Source("cte q", "cte q")
        if over.scope and self.random.random() < 0.3:
            column = self.random.choice(over.scope).arc
            join = f"cte q JOIN (SELECT DISTINCT {column} AS k FROM cte q) d ON {column} = d.k"
            source = Source(join, join)
        if over.scope and self.random.random() < 0.5:
            items = tuple(over.draw(self.random.choice(over.scope).kind, 1) for _ in range(self.random.randint(1, 3)))
            return Select(items, source, self.where(over), common=(("cte", inner),)), over
        aggregates = tuple(aggregate(over) for _ in range(self.random.randint(1, 3)))
        return Select(aggregates, source, self.where(over), common=(("cte", inner),)), None
