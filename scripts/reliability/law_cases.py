"""The laws: statements at random, each with several ways to ask for its rows, which have to agree."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Optional

from aggregates import aggregate, window
from drawing import Drawing
from expressions import Expressions
from placeholders import Literals, with_literals, with_placeholders
from spelled_statements import SpelledStatements
from spellings import ORDERED, Spellings, both, joined, tree
from statements import Order, Select, Source
from terms import Expr, make, quoted, same
from ways import COLUMNS, Case, DeleteCase, LayoutCase, Way, way

# Aggregates of which those of parts make that of the whole.
FOLDED = {
    "count(*)": ("int", "any", "sum"),
    "count({0})": ("int", "any", "sum"),
    "sum({0})": ("int", "small", "sum"),
    "sum({0}) ": ("float", "nice", "sum"),
    "min({0})": ("", "any", "min"),
    "max({0})": ("", "any", "max"),
    "bool_and({0})": ("bool", "bool", "min"),
    "bool_or({0})": ("bool", "bool", "max"),
    "bit_or({0})": ("int", "int", "or"),
}


class Laws(SpelledStatements):
    """Draws a statement and its ways for each law."""

    def draw(self, law: str) -> Case:
        while True:
            case: Case = self.random.choice(LAWS[law])(self)
            # What has its own way with signs of NaN differs as docs/sql.md says.
            if isinstance(case, (LayoutCase, DeleteCase)) or case.ways(case.select) and not case.select.marks:
                return case

    def folded(self, over: Expressions) -> tuple[Expr, str]:
        template, (kind, of, fold) = self.random.choice(list(FOLDED.items()))
        of = self.random.choice(ORDERED) if of == "any" else of
        one = over.column(of) if of in ("nice", "small") else over.draw(of, 1)
        made = make(kind or of, template.strip(), one)
        if self.random.random() < 0.2:
            made = make(made.kind, "{0} FILTER (WHERE {1})", made, over.condition(1))
        return made, fold

    # 1. A condition is true, false or null.

    def rows(self) -> Case:
        source, over = self.drawing.source()
        items = tuple(over.draw(self.random.choice(ORDERED), 1) for _ in range(self.random.randint(1, 3)))
        conditions = (*self.drawing.where(over), self.condition(over))
        return Case("parts by WHERE", Select(items, source, conditions), lambda one: parts(one, "where"))

    def condition(self, over: Expressions) -> Expr:
        which = self.random.random()
        if which < 0.4 and over.scope:
            # Several of one column, so that one may follow from another, or exclude it.
            few = over.columns("text") if self.random.random() < 0.4 else []
            few = few or over.scope
            chosen = self.random.sample(few, min(len(few), self.random.randint(1, 2)))
            return self.comparisons({column.arc: column.kind for column in chosen}, 3)
        return self.drawing.of_other_table(over) if which < 0.55 else over.condition(2)

    def sums(self) -> Case:
        source, over = self.drawing.source()
        keys = self.keys(over, 0, 2)
        aggregates, folds = zip(*(self.folded(over) for _ in range(self.random.randint(1, 4))))
        select = Select((*keys, *aggregates), source, (self.condition(over),), keys)
        if keys and self.random.random() < 0.15:
            select = replace(select, grouping=self.random.choice(("ROLLUP", "CUBE")))
        of = dict(zip(aggregates, folds))

        def ways(one: Select) -> Optional[list[Way]]:
            folds = tuple(of.get(item, "") for item in one.items[len(one.group) :])
            if one.items[: len(one.group)] != one.group or not all(folds):
                return None
            return parts(one, "where", (len(one.group), folds))

        return Case("parts of aggregates", select, ways)

    def having(self) -> Case:
        source, over = self.drawing.source()
        keys = self.keys(over, 1, 2)
        scope = over.with_scope([aggregate(over) for _ in range(4)])
        select = Select((*keys, aggregate(over)), source, self.drawing.where(over), keys, having=(scope.condition(1),))
        return Case("parts by HAVING", select, lambda one: parts(one, "having"))

    def qualify(self) -> Case:
        table = self.random.choice(self.drawing.wide)
        source, over = self.drawing.of_table(table)
        scope = over.with_scope([window(over) for _ in range(2)])
        text = scope.condition(1).arc
        items = tuple(over.column(self.random.choice(ORDERED)) for _ in range(2))
        select = Select(items, source, self.drawing.where(over), qualify=text)

        def ways(one: Select) -> Optional[list[Way]]:
            if not one.qualify:
                return None
            said = [f"({one.qualify})", f"NOT ({one.qualify})", f"({one.qualify}) IS NULL"]
            texts = [replace(one, qualify=condition).text("arc") for condition in said]
            return [way(replace(one, qualify="").text("arc")), way(*texts)]

        return Case("parts by QUALIFY", select, ways) if " OVER " in text else self.rows()

    def tested(self) -> Case:
        """A condition that leaves out files and rows, and one that is only computed."""
        source, over = self.drawing.source()
        items = tuple(over.column(self.random.choice(ORDERED)) for _ in range(self.random.randint(1, 3)))
        conditions = tuple(self.condition(over) for _ in range(self.random.randint(1, 2)))
        # What IN and EXISTS say of another table is no value here.
        conditions = tuple(one for one in conditions if "SELECT" not in one.arc)

        def ways(one: Select) -> Optional[list[Way]]:
            all_ = make("bool", " AND ".join(f"({{{place}}})" for place in range(len(one.where))), *one.where)
            computed = replace(one, items=(*one.items, all_), where=()).text("arc")
            return [way(one.text("arc")), way(computed, is_tested=True)] if one.where else None

        return Case("conditions and their values", Select(items, source, conditions), ways)

    # 2. A LIMIT takes a part of what there is without it.

    def slices(self) -> Case:
        which = self.random.randrange(5)
        table = self.random.choice(self.drawing.wide)
        source, over = self.drawing.of_table(table)
        total: tuple[Order, ...] = (Order(same("small", "q.n"), self.random.choice(("", " DESC"))),)
        items = tuple(over.draw(self.random.choice(ORDERED), 1) for _ in range(self.random.randint(1, 3)))
        if which == 0:
            items += tuple(window(over) for _ in range(2))
        elif which == 1:
            source, over = self.drawing.joined()
            items = tuple(over.column(self.random.choice(ORDERED)) for _ in range(3))
            total = (Order(same("small", "l.n")), Order(same("small", "r.n"), self.random.choice(("", " DESC"))))
        elif which == 2:
            # Of zeros of both signs DISTINCT leaves either.
            items = tuple(item for item in items if item.kind not in ("nice", "float")) or (over.column("text"),)
            total = tuple(Order(place) for place in range(len(items)))
        elif which == 3 and "time" in table.key:
            direction = self.random.choice((" DESC", ""))
            tags = [same("text", f"q.{name}") for name in table.key if name != "time"]
            total = (Order(same("time", "q.time"), direction), *(Order(tag) for tag in tags))
        keys: tuple[Order, ...] = ()
        if which in (0, 1, 4):
            column = over.column(self.random.choice(ORDERED))
            key = make("float", "({0} + 0.0e0)", column) if column.kind in ("nice", "float") else column
            keys = (Order(key, self.random.choice(("", " DESC", " NULLS FIRST"))),)
        limit, offset = self.random.choice((1, 3, 10, 100)), self.random.choice((0, 0, 1, 7, 50))
        distinct = "DISTINCT" if which == 2 else ""
        select = Select(
            items,
            source,
            self.drawing.where(over),
            (),
            distinct=distinct,
            order=(*keys, *total),
            limit=limit,
            offset=offset,
        )
        is_paged = self.random.random() < 0.3

        def ways(one: Select) -> Optional[list[Way]]:
            last = one.order[-len(total) :]
            if one.limit is None or last != total or one.distinct and len(one.items) != len(total):
                return None
            whole = replace(one, limit=None, offset=0).text("arc")
            end = one.offset + one.limit
            asked = [way(whole, cut=(one.offset, end)), way(one.text("arc"))]
            if is_paged:
                step = max(one.limit // 3, 1)
                pages = [(start, min(step, end - start)) for start in range(one.offset, end, step)][:12]
                if pages[-1][0] + pages[-1][1] == end:
                    asked.append(way(*(replace(one, limit=size, offset=start).text("arc") for start, size in pages)))
            return asked

        return Case("a slice", select, ways, is_ordered=True)

    # 3. and 4. Two spellings.

    def parentheses(self) -> Case:
        source, over = self.drawing.of_table(self.random.choice(self.drawing.wide))
        items = tuple(tree(over, self.random.choice(("small", "text", "bool", "nice", "time")), 3) for _ in range(2))
        where = (tree(over, "bool", 4),) if self.random.random() < 0.7 else ()
        return Case("few parentheses and all", Select(items, source, where), spelled)

    def spellings(self) -> Case:
        """Rows or groups, with expressions that are said in two ways."""
        if self.random.random() < 0.25:
            left, right = self.random.choice(self.drawing.wide), self.random.choice(self.drawing.wide)
            source, scope = joined(self.random, left, right)
            over = self.drawing.any.with_scope(scope)
        else:
            source, over = self.drawing.of_table(self.random.choice(self.drawing.wide))
        pairs = Spellings(over, self.drawing.tables)
        where = pairs.filters()
        if self.random.random() < 0.5:
            keys = tuple(both(key) for key in self.keys(over, 0, 2))
            select = Select((*keys, *(pairs.aggregate() for _ in range(2))), source, where, keys)
            if self.random.random() < 0.2:
                scope = over.with_scope([both(aggregate(over)) for _ in range(4)])
                select = replace(select, having=(Spellings(scope, self.drawing.tables).condition(0),))
        else:
            items = tuple(pairs.value() for _ in range(self.random.randint(1, 3)))
            if source.arc.endswith(" q") and self.random.random() < 0.4:
                items += (pairs.window(),)
            select = Select(items, source, where)
        return Case("two spellings", select, spelled)

    # 5. A bucket begins before its times, and ends after them.

    def buckets(self) -> Case:
        table = self.random.choice(self.drawing.wide)
        source, _ = self.drawing.of_table(table)
        time = same("time", self.random.choice(("q.time", "q.t2")))
        zone = self.random.choice(("Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Sydney", "UTC"))
        unit, longest = self.random.choice(
            (
                ("minute", "60"),
                ("hour", "3600"),
                ("day", "90000"),
                ("week", "608400"),
                ("month", "2682000"),
                ("year", "31626000"),
            )
        )
        zoned = self.random.choice((time.arc, f"({time.arc} AT TIME ZONE '{zone}')"))
        template = self.random.choice(
            (
                f"date_trunc('{unit}', {{0}})",
                f"time_bucket(INTERVAL '1 {unit}', {{0}})",
                f"date_bin(INTERVAL '1 {unit}', {{0}})",
            )
        )
        bucket = template.format(zoned)
        ordered = make("bool", f"{bucket} <= {time.arc} AND {time.arc} - {bucket} < INTERVAL '{longest} seconds'", time)
        again = make("bool", f"{template.format(bucket)} = {bucket}", time)
        select = Select((same("small", "q.n"),), source, (self.random.choice((ordered, again)),))

        def ways(one: Select) -> Optional[list[Way]]:
            there = replace(one, where=(make("bool", "{0} IS NOT NULL", time),)).text("arc")
            return [way(there), way(one.text("arc"))] if one.where == select.where else None

        return Case("buckets of times", select, ways)

    def first_buckets(self) -> Case:
        """Near the first and last times, where it is known what the bucket is."""
        unit = self.random.choice(("microsecond", "millisecond", "second", "minute", "hour", "day"))
        width = {"microsecond": 10**3, "millisecond": 10**6, "second": 10**9}.get(unit) or {
            "minute": 60,
            "hour": 3_600,
            "day": 86_400,
        }[unit] * 10**9
        number = self.random.choice((-(2**63) // width + 1, (2**63 - 1) // width - 1, -1, 0)) + self.random.randrange(2)
        time_ns = number * width + self.random.choice((0, 1, width // 2, width - 1))
        moment = f"to_timestamp_nanos({min(time_ns, 2**63 - 1)})"
        template = self.random.choice(
            ("date_trunc('{0}', {1})", "time_bucket(INTERVAL '1 {0}', {1})", "date_bin(INTERVAL '1 {0}', {1})")
        )
        item = same("int", f"epoch_ns({template.format(unit, moment)})")
        source = Source("(VALUES (1)) q", "")
        column = Source(f"(VALUES ({moment}), ({moment})) q(t)", "")

        def ways(one: Select) -> Optional[list[Way]]:
            listed = replace(one, items=(same("int", item.arc.replace(moment, "q.t")),), source=column, limit=1)
            return [way(f"SELECT {number * width} AS a0"), way(one.text("arc")), way(listed.text("arc"))]

        return Case("buckets near the ends", Select((item,), source), ways)

    # 6. Equal values are equal wherever they are grouped.

    def regrouped(self) -> Case:
        source, over = self.drawing.source()
        keys = self.keys(over, 2, 3)
        aggregates, folds = zip(*(self.folded(over) for _ in range(self.random.randint(1, 3))))
        of = dict(zip(aggregates, folds))

        def ways(one: Select) -> Optional[list[Way]]:
            count = len(one.group)
            folds = tuple(of.get(item, "") for item in one.items[count:])
            if count < 2 or one.items[:count] != one.group or not all(folds):
                return None
            fewer = replace(one, items=(*one.group[:-1], *one.items[count:]), group=one.group[:-1]).text("arc")
            words = {"or": "bit_or"}
            outer = ", ".join(f"a{place}" for place in range(count - 1))
            values = ", ".join(
                f"{words.get(fold, fold)}(a{count + place}) AS v{place}" for place, fold in enumerate(folds)
            )
            again = f"SELECT {', '.join(filter(None, (outer, values)))} FROM ({one.text('arc')}) w GROUP BY {outer}"
            # A key between the others and the aggregates is folded to nothing.
            return [way(fewer), way(one.text("arc"), fold=(count - 1, ("leave", *folds)))] + (
                [way(again)] if not any("bool_" in item.arc for item in one.items) else []
            )

        return Case("groups of groups", Select((*keys, *aggregates), source, self.drawing.where(over), keys), ways)

    def alone(self) -> Case:
        """Aggregates of all rows together, and each on its own."""
        source, over = self.drawing.source()
        most = self.random.choice(("min({0})", "max({0})", ""))
        drawn = [over.draw(self.random.choice(ORDERED), self.random.choice((0, 1, 2))) for _ in range(3)]
        items = tuple(make(one.kind, most, one) if most else aggregate(over) for one in drawn)

        def ways(one: Select) -> Optional[list[Way]]:
            each = [replace(one, items=(item,)).text("arc") for item in one.items]
            tables = " CROSS JOIN ".join(f"({text}) w{place}" for place, text in enumerate(each))
            listed = ", ".join(f"w{place}.a0 AS a{place}" for place in range(len(each)))
            return (
                [way(one.text("arc")), way(f"SELECT {listed} FROM {tables}")] if set(one.items) <= set(items) else None
            )

        return Case("aggregates alone", Select(items, source, self.drawing.where(over)), ways)

    def texts(self) -> Case:
        """Rows that are equal in a value are equal in its text."""
        source, over = self.drawing.of_table(self.random.choice(self.drawing.wide))
        kind = self.random.choice(ORDERED)
        key = both(over.draw(kind, 1))
        key = make("float", "({0} + 0.0e0)", key) if kind in ("nice", "float") else key
        text = make(kind, "{0}", key, duck=f"CAST({key.arc} AS VARCHAR)")
        items = (same("int", "count(*)"), same("small", "min(q.n)"), make("int", "count(DISTINCT {0})", text))
        where = tuple(both(condition) for condition in self.drawing.where(over))
        select = Select(items, source, where, (text,) if any(one.arc in key.arc for one in over.scope) else ())
        return Case("values and their texts", select, spelled)

    # 7. The same rows in any layout.

    def layouts(self) -> Case:
        return LayoutCase("layouts", self.drawing.draw(), lambda _: None)

    def now(self) -> Case:
        select = unlimited(self.drawing.draw())

        def ways(one: Select) -> Optional[list[Way]]:
            text = one.text("arc")
            form = self.forms[len(text) % 2]
            then = re.sub(r"\b(FROM|JOIN) (k|e|c|v|p\d\d) (?=[qlrz]\b)", rf"\1 \2 {form} AS ", text)
            return [way(text), way(then)] if not is_open(one) else None

        return Case("as of now", select, ways)

    def copied(self) -> Case:
        """Rows of a table with tags, and the same in one without: a tag is a text."""
        select = unlimited(self.drawing.draw())
        table = f"t{next(DeleteCase.numbers)}"
        columns = ", ".join(f"{name} {type_}" for name, type_ in COLUMNS.items())
        names = f"time, {', '.join(COLUMNS)}"
        before = (
            f"CREATE TABLE {table} (time TIMESTAMP, {columns}, g DOUBLE)",
            f"INSERT INTO {table} ({names}, g) SELECT {names}, g FROM k",
        )

        def ways(one: Select) -> Optional[list[Way]]:
            text = one.text("arc")
            other = re.sub(r"\b(FROM|JOIN) k (?=[qlrz]\b)", rf"\1 {table} ", text)
            made = way(other, before=before, after=(f"DROP TABLE IF EXISTS {table}",))
            return [way(text), made] if other != text and not is_open(one) else None

        return Case("tags and texts", select, ways)

    forms = ("FOR SYSTEM_TIME AS OF now()", "AT (TIMESTAMP => now())")

    # 8. DELETE takes what SELECT finds.

    def deletes(self) -> Case:
        keys = self.random.choice(((), (), ("host", "region"), ("host",)))
        kinds = {"host": "text", "region": "text", "s": "text", "f": "nice", "x": "float", "i": "int", "j": "small"}
        kinds |= {"u": "uint", "b": "bool", "time": "time", "n": "small"}
        if keys:
            kinds = {name: kind for name, kind in kinds.items() if name in (*keys, "time")}
        elif self.random.random() < 0.5:
            kinds = dict(self.random.sample(list(kinds.items()), 2))
        return DeleteCase("deletes", self.comparisons(kinds, 2), keys, self.random.random() < 0.4)

    def comparisons(self, kinds: dict[str, str], depth: int) -> Expr:
        """A condition as deletes take it: columns beside values."""
        if depth > 0 and self.random.random() < 0.6:
            parts_ = [self.comparisons(kinds, depth - 1) for _ in range(2)]
            return make(
                "bool",
                self.random.choice(("({0} AND {1})", "({0} OR {1})", "(NOT {0})", "(NOT ({0} OR {1}))")),
                *parts_,
            )
        name = self.random.choice(list(kinds))
        values = [self.compared_value(kinds[name]) for _ in range(3)]
        templates = [
            "= {0}",
            "<> {0}",
            "< {0}",
            ">= {0}",
            "IN ({0}, {1}, {2})",
            f"IN ({{0}}, {{1}}) AND {name} IN ({{2}})",
            f"NOT IN ({{0}}, {{1}}) OR {name} NOT IN ({{2}})",
            f"> {{0}} AND {name} < {{1}}",
            "NOT IN ({0}, {1})",
            "IS NULL",
            "IS NOT NULL",
        ]
        if kinds[name] == "bool":
            templates = ["= {0}", "<> {0}", "IS NULL"]
        else:
            templates += ["BETWEEN {0} AND {1}", "NOT BETWEEN {0} AND {1}"]
        return make("bool", f"({name} {self.random.choice(templates)})", *(same("", value) for value in values))

    def compared_value(self, kind: str) -> str:
        if kind == "time":
            seconds, rest = divmod(self.random.choice(self.drawing.any.times_ns), 10**9)
            return quoted(f"{rfc3339(seconds)}.{rest:09}Z")
        if kind == "uint":
            return str(self.random.choice((0, 1, 7, 2**63, 2**64 - 1)))
        text = self.drawing.any.literal(kind).arc
        return text if not text.startswith("(") else str(-(2**63))

    # 9. Through something else.

    def wrapped(self) -> Case:
        select = unlimited(self.drawing.draw())
        types = {
            "text": "TEXT",
            "bool": "BOOLEAN",
            "time": "TIMESTAMP",
            "nice": "DOUBLE",
            "float": "DOUBLE",
            "uint": "BIGINT UNSIGNED",
        }
        table = f"w{next(DeleteCase.numbers)}"

        def ways(one: Select) -> Optional[list[Way]]:
            if is_open(one):
                return None
            text, count = one.text("arc"), len(one.items)
            listed = ", ".join(f"a{place}" for place in range(count))
            asked = [
                way(text),
                way(f"WITH w AS ({text}) SELECT * FROM w"),
                way(f"SELECT {listed} FROM (SELECT *, 1 AS z FROM ({text}) v) w WHERE z = 1"),
                way(
                    f"WITH w AS ({text}), v AS (SELECT * FROM w) SELECT * FROM v UNION ALL SELECT * FROM v WHERE false"
                ),
            ]
            # Numbers of rows have no sign: where columns may widen, they make floats of a BIGINT. To be mended.
            if all(item.kind in ORDERED for item in one.items) and not NUMBERS.search(text):
                columns = ", ".join(
                    f"a{place} {types.get(item.kind, 'BIGINT')}" for place, item in enumerate(one.items)
                )
                create = f"CREATE TABLE {table} (time TIMESTAMP, {columns}, z BIGINT)"
                insert = f"INSERT INTO {table} (time, {listed}, z) SELECT TIMESTAMP '2024-01-01', *, 1 FROM ({text}) w"
                asked.append(
                    way(f"SELECT {listed} FROM {table}", before=(create, insert), after=(f"DROP TABLE {table}",))
                )
            return asked

        return Case("wrappers", select, ways)

    def prepared(self) -> Case:
        drawing = Drawing(self.random, self.drawing.tables, self.drawing.any.times_ns, self.drawing.any.has_nanoseconds)
        drawing.any = Literals(self.random, [], drawing.any.times_ns, drawing.any.has_nanoseconds)
        select = unlimited(drawing.draw())

        def ways(one: Select) -> Optional[list[Way]]:
            text = one.text("arc")
            placed, values = with_placeholders(text)
            return [way(with_literals(text)), way(placed, params=values)] if values and not is_open(one) else None

        return Case("placeholders", select, ways)

    def forms_of_answers(self) -> Case:
        select = unlimited(self.drawing.draw())
        chosen = self.random.sample(("json", "ndjson", "csv", "msgpack", "parquet"), 3)

        def ways(one: Select) -> Optional[list[Way]]:
            if any(item.kind not in ORDERED for item in one.items) or is_open(one):
                return None
            # Of one column CSV has no nulls.
            one = replace(one, items=(*one.items, one.items[0])) if len(one.items) == 1 and not one.other else one
            text = one.text("arc")
            return [way(text)] + [way(text, form=form) for form in chosen if len(one.items) > 1 or form != "csv"]

        return Case("formats", select, ways)


NUMBERS = re.compile(r"(row_number|rank|ntile)\(")


def unlimited(select: Select) -> Select:
    """The rows in any order, but for those of which only the order says which they are."""
    return replace(
        select, limit=None, offset=0, order=select.order if select.distinct.startswith("DISTINCT ON") else ()
    )


def is_open(select: Select) -> bool:
    return select.distinct.startswith("DISTINCT ON") and not select.order


def rfc3339(seconds: int) -> str:
    return f"{datetime(1970, 1, 1) + timedelta(seconds=seconds):%Y-%m-%dT%H:%M:%S}"


def parts(select: Select, clause: str, fold: Optional[tuple[int, tuple[str, ...]]] = None) -> Optional[list[Way]]:
    """The rows without the last condition of a clause, and those of which it is true, false and null."""
    conditions = getattr(select, clause)
    if not conditions:
        return None
    *rest, last = conditions
    said = ("({0})", "(NOT ({0}))", "(({0}) IS NULL)")
    texts = [replace(select, **{clause: (*rest, make("bool", one, last))}).text("arc") for one in said]
    whole = replace(select, **{clause: tuple(rest)}).text("arc")
    return [way(whole, fold=fold), way(*texts, fold=fold)]


def spelled(select: Select) -> Optional[list[Way]]:
    arc, duck = select.text("arc"), select.text("duck")
    return [way(arc), way(duck)] if arc != duck else None


LAWS: dict[str, tuple[Callable[[Laws], Case], ...]] = {
    "parts": (Laws.rows, Laws.sums, Laws.having, Laws.qualify, Laws.tested),
    "slices": (Laws.slices,),
    "parentheses": (Laws.parentheses,),
    "spellings": (Laws.spellings, Laws.spellings, Laws.distinct, Laws.grouping_sets, Laws.sets, Laws.newest),
    "buckets": (Laws.buckets, Laws.first_buckets),
    "groups": (Laws.regrouped, Laws.alone, Laws.texts),
    "layouts": (Laws.layouts, Laws.layouts, Laws.now, Laws.copied),
    "deletes": (Laws.deletes,),
    "wrappers": (Laws.wrapped, Laws.prepared, Laws.forms_of_answers),
}
