"""Statements of which another one says the same."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Optional

from aggregates import aggregate
from drawing import Drawing
from expressions import Expressions
from spellings import ORDERED
from statements import Order, Select, Source
from terms import Expr, make, same
from ways import Case, Way, way


class SpelledStatements:
    """Draws a statement, and the ways to say it."""

    def __init__(self, drawing: Drawing) -> None:
        self.drawing, self.random = drawing, drawing.random

    def keys(self, over: Expressions, least: int, most: int) -> tuple[Expr, ...]:
        keys = [self.drawing.group_key(over) for _ in range(self.random.randint(least, most))]
        return tuple(dict.fromkeys(key for key in keys if any(one.arc in key.arc for one in over.scope)))

    def distinct(self) -> Case:
        source, over = self.drawing.source()
        items = tuple(over.column(self.random.choice(ORDERED)) for _ in range(self.random.randint(1, 3)))
        items = tuple(item for item in dict.fromkeys(items) if any(one.arc == item.arc for one in over.scope))
        select = Select(items or tuple(over.scope[:1]), source, self.drawing.where(over), distinct="DISTINCT")

        def ways(one: Select) -> Optional[list[Way]]:
            if not one.distinct or not one.items:
                return None
            bare = replace(one, distinct="")
            keys = ", ".join(f"a{place}" for place in range(len(one.items)))
            twice = f"{bare.text('arc')} UNION {bare.text('arc')}"
            counted = f"SELECT {keys} FROM (SELECT {keys}, row_number() OVER (PARTITION BY {keys}) AS z"
            return [
                way(one.text("arc")),
                way(replace(bare, group=one.items).text("arc")),
                way(twice),
                way(f"{counted} FROM ({bare.text('arc')}) w) v WHERE z = 1"),
            ]

        return Case("DISTINCT and GROUP BY", select, ways)

    def grouping_sets(self) -> Case:
        source, over = self.drawing.source(0)
        keys = self.keys(over, 1, 2)
        items = (*keys, *(aggregate(over) for _ in range(2)))
        select = Select(items, source, self.drawing.where(over), keys, self.random.choice(("ROLLUP", "CUBE")))

        def ways(one: Select) -> Optional[list[Way]]:
            count = len(one.group)
            if not one.grouping or not count or one.items[:count] != one.group or not set(one.items) <= set(items):
                return None
            sets = [set(range(size)) for size in range(count + 1)]
            if one.grouping == "CUBE":
                sets = [set(some) for size in range(count + 1) for some in itertools.combinations(range(count), size)]
            texts = []
            for some in sets:
                group = tuple(key for place, key in enumerate(one.group) if place in some)
                # Of no row there is no type of null: nullif has the one of the key.
                nulls = [make(key.kind, "nullif(max({0}), max({0}))", key) for key in one.group]
                keys = [key if place in some else nulls[place] for place, key in enumerate(one.group)]
                texts.append(replace(one, items=(*keys, *one.items[count:]), group=group, grouping="").text("arc"))
            return [way(one.text("arc")), way(*texts), way(" UNION ALL ".join(texts))]

        return Case("ROLLUP and its groups", select, ways)

    def sets(self) -> Case:
        """INTERSECT and EXCEPT as joins, LEFT JOIN as its two kinds of rows."""
        one, other = self.random.choice(self.drawing.wide), self.random.choice(self.drawing.wide)
        names = self.random.sample(("host", "j", "s", "b", "f", "x", "u", "time", "region"), self.random.randint(1, 3))
        kinds = one.columns
        items = tuple(same(kinds[name], f"q.{name}") for name in names)
        source, over = self.drawing.of_table(one)
        select = Select(items, source, self.drawing.where(over))
        words = self.random.choice(("INTERSECT", "EXCEPT", "LEFT JOIN"))
        right_condition = self.drawing.any.with_scope(other.as_("z")).condition(1)

        def ways(one: Select) -> Optional[list[Way]]:
            if one.source.arc != source.arc or not one.items:
                return None
            columns = [item.arc[2:] for item in one.items]
            right = f"(SELECT * FROM {other.name} z WHERE {right_condition.arc}) z"
            tests = " AND ".join(f"z.{name} IS NOT DISTINCT FROM q.{name}" for name in columns)
            if words == "LEFT JOIN":
                on = " AND ".join(f"z.{name} = q.{name}" for name in [*columns, "host"])
                text = replace(one, items=(*one.items, same("small", "z.n")))
                none = make("bool", f"NOT EXISTS (SELECT 1 FROM {right} WHERE {on})")
                alone = replace(one, items=(*one.items, same("small", "nullif(q.n, q.n)")), where=(*one.where, none))
                joins = [
                    replace(text, source=Source(f"{side} ON {on}", "")).text("arc")
                    for side in (f"{source.arc} LEFT JOIN {right}", f"{source.arc} JOIN {right}")
                ]
                return [way(joins[0]), way(joins[1], alone.text("arc"))]
            listed = ", ".join(f"z.{name}" for name in columns)
            exists = make("bool", f"{'NOT ' if words == 'EXCEPT' else ''}EXISTS (SELECT 1 FROM {right} WHERE {tests})")
            semi = replace(one, distinct="DISTINCT", where=(*one.where, exists))
            return [way(f"{one.text('arc')} {words} SELECT {listed} FROM {right}"), way(semi.text("arc"))]

        return Case("sets and joins", select, ways)

    def newest(self) -> Case:
        """The newest row of each series, in all forms."""
        table = self.random.choice([table for table in self.drawing.wide if "time" in table.key])
        source, over = self.drawing.of_table(table)
        tags = [name for name in table.key if name != "time"]
        keys, where = ", ".join(f"q.{tag}" for tag in tags), self.drawing.where(over)
        names = self.random.sample(("n", "f", "x", "s", "b", "u", "j", "t2"), 2)
        plain = tuple(
            same(kind, f"q.{name}") for name, kind in table.columns.items() if name in (*tags, "time", *names)
        )
        select = Select(plain, source, where)

        def ways(one: Select) -> Optional[list[Way]]:
            if one.items[: len(plain)] != plain:
                return None
            order = (*(Order(same("text", f"q.{tag}")) for tag in tags), Order(same("time", "q.time"), " DESC"))
            on = " AND ".join(f"z.{tag} IS NOT DISTINCT FROM w.a{place_of(tag)}" for tag in tags)
            inner = f"SELECT {keys}, max(q.time) AS newest FROM {source.arc}"
            inner += "".join(f" {word} {text.arc}" for word, text in zip(("WHERE", *("AND",) * 9), one.where))
            inner += f" GROUP BY {keys}"
            listed = ", ".join(f"w.a{place}" for place in range(len(plain)))
            grouped = [
                item
                if item.arc[2:] in tags
                else make(item.kind, "max({0})" if item.arc == "q.time" else "last_value({0} ORDER BY q.time)", item)
                for item in plain
            ]
            texts = [
                replace(one, distinct=f"DISTINCT ON ({keys})", order=order),
                replace(one, qualify=f"row_number() OVER (PARTITION BY {keys} ORDER BY q.time DESC) = 1"),
                replace(one, items=tuple(grouped), group=tuple(same("text", f"q.{tag}") for tag in tags)),
            ]
            on += f" AND z.newest = w.a{place_of('time')}"
            joined = f"SELECT {listed} FROM ({one.text('arc')}) w JOIN ({inner}) z ON {on}"
            return [*(way(text.text("arc")) for text in texts), way(joined)]

        def place_of(name: str) -> int:
            return [item.arc[2:] for item in plain].index(name)

        return Case("the newest rows", select, ways)
