"""Statements that put extreme values into every function, cast and clause.

Pure: a seed and the rows of the information schema make them. `extremes.py` sends them.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import extreme_clauses as clauses
import extreme_types as types
from extreme_clauses import Clause
from extreme_values import (
    EXTREMES,
    NARROW,
    PLAIN,
    SCHEMA,
    SECRET_DATABASE,
    SECRET_TABLE,
    WIDE,
    Arguments,
    Table,
    kind_of_parameter,
    kind_of_type,
)

# Longer texts are refused before they are parsed.
LONGEST = 1 << 20
DEPTH = 24
SPECIAL = ("part", "encoding", "format", "zone", "pattern", "flags")
# Tried where nothing is known of the parameters of a function.
GUESSES: tuple[tuple[str, ...], ...] = (
    (), ("float",), ("text",), ("list",), ("time",), ("map",), ("struct",), ("binary",),
    ("text", "text"), ("list", "int"), ("list", "list"), ("float", "float"), ("text", "int"),
    ("float", "time"), ("interval", "time"), ("time", "text"), ("part", "time"), ("struct", "text"),
    ("map", "text"), ("int", "int"), ("bool",), ("interval",), ("text", "text", "text"),
    ("list", "int", "int"), ("text", "int", "int"), ("text", "int", "text"),
    ("list", "list", "int"), ("part", "time", "time"), ("float", "float", "float", "int"),
    ("int", "int", "int"), ("float", "int"), ("list", "int", "text"), ("binary", "encoding"),
    ("text", "format"), ("time", "format"), ("time", "zone"), ("text", "list"), ("fixed",),
    ("fixed", "fixed"), ("decimal",), ("duration",), ("clock",), ("date",), ("int", "text"),
    ("time", "time"), ("time", "time", "interval"),
)  # fmt: skip


@dataclass(frozen=True)
class Routine:
    """A function: its name, its form, and the kinds of its parameters as far as they are known."""

    name: str
    form: str
    signatures: tuple[tuple[str, ...], ...] = ()

    @property
    def sql_name(self) -> str:
        return self.name if re.fullmatch(r"[a-z_][a-z0-9_]*", self.name) else f'"{self.name}"'

    def candidates(self) -> list[tuple[str, ...]]:
        """Returns signatures to try, the most likely first."""
        return list(dict.fromkeys(self.signatures + GUESSES))


def routines(
    described: Sequence[Sequence[str]], parameters: Sequence[Sequence[object]]
) -> list[Routine]:
    """Returns all functions from the rows of `ROUTINES` and `PARAMETERS`, in order of name."""
    known: dict[tuple[str, str], dict[tuple[str, ...], None]] = {}
    for name, form, syntax in described:
        signatures = known.setdefault((name, form.lower()), {})
        if syntax:
            signatures.update(dict.fromkeys(signatures_of_syntax(syntax)))
    for (name, form), signatures in known.items():
        if form != "table":
            of_name = [row for row in parameters if row[0] == name]
            typed = dict.fromkeys(signatures_of_parameters(of_name))
            known[name, form] = {**typed, **signatures}
    return [
        Routine(name, form, tuple(signatures)) for (name, form), signatures in sorted(known.items())
    ]


ROUTINES = (
    "SELECT DISTINCT routine_name, function_type, syntax_example FROM information_schema.routines"
)
PARAMETERS = (
    "SELECT specific_name, rid, ordinal_position, parameter_name, data_type "
    "FROM information_schema.parameters WHERE parameter_mode = 'IN' "
    "ORDER BY specific_name, rid, ordinal_position"
)


def signatures_of_parameters(rows: Sequence[Sequence[object]]) -> list[tuple[str, ...]]:
    """Returns the kinds of the parameters of one function, for each of its overloads."""
    overloads: dict[object, list[str]] = {}
    for _, overload, _, name, type_ in rows:
        kind, by_name = kind_of_type(str(type_)), kind_of_parameter(str(name or ""))
        overloads.setdefault(overload, []).append(
            by_name if kind == "text" and by_name in SPECIAL else kind
        )
    return [tuple(kinds) for kinds in overloads.values()]


def signatures_of_syntax(syntax: str) -> list[tuple[str, ...]]:
    """Returns the kinds that an example such as `lpad(str, n[, padding_str])` names, twice.

    The first has what is required, the second all.
    """
    inner = syntax.partition("(")[2].rpartition(")")[0]
    inner = re.sub(r"\.\.\.|\[\w*\.\.\. *,? *\w*\]", "", inner)
    required, optional = inner.partition("[")[0], inner.replace("[", "").replace("]", "")
    found = []
    for text in (required, optional):
        names = [name.strip(" '\"") for name in text.split(",")]
        found.append(tuple(kind_of_parameter(name) or "float" for name in names if name))
    return list(dict.fromkeys(found))


def plain_call(routine: Routine, kinds: Sequence[str]) -> str:
    """Returns a statement that calls a function with ordinary values."""
    call = f"{routine.sql_name}({', '.join(PLAIN[kind] for kind in kinds)})"
    if routine.form == "table":
        return f"SELECT count(*) FROM {call}"
    return (
        f"SELECT {call} OVER (ORDER BY q.time) FROM x_one q"
        if routine.form == "window"
        else f"SELECT {call} FROM x_one q"
    )


@dataclass(frozen=True)
class Statement:
    """A statement, named for the part that is tried."""

    name: str
    sql: str
    is_change: bool = False

    def names_a_secret(self) -> bool:
        return SECRET_TABLE in self.sql or SECRET_DATABASE in self.sql


class Drawing:
    """Draws statements from a seed."""

    def __init__(self, draw: random.Random, has_wide_rows: bool = True) -> None:
        self.draw, self.arguments = draw, Arguments(draw)
        self.wide = WIDE if has_wide_rows else WIDE[:2]

    def table(self) -> Table:
        chance = self.draw.random()
        if chance < 0.8:
            return self.draw.choice(NARROW)
        return self.draw.choice(self.wide) if chance < 0.95 else SCHEMA

    # Expressions.

    def kinds(self, routine: Routine) -> Sequence[str]:
        if not routine.signatures or self.draw.random() < 0.05:
            return self.draw.choice(routine.candidates())
        kinds = list(self.draw.choice(routine.signatures))
        # Now and then one argument more or less than it should be.
        if self.draw.random() < 0.95:
            return kinds
        return kinds[: self.draw.randrange(len(kinds) + 1)] + [self.draw.choice(list(EXTREMES))]

    def call(self, routine: Routine, table: Table | None) -> str:
        """Returns a call with at least one argument at its ends, as far as it has any."""
        kinds = self.kinds(routine)
        at = self.draw.randrange(len(kinds)) if kinds else 0
        chance = self.draw.random()
        if chance < 0.4:
            # One extreme among ordinary values comes furthest.
            values = [
                self.arguments.extreme(kind) if n == at else PLAIN[kind]
                for n, kind in enumerate(kinds)
            ]
        elif chance < 0.65:
            values = [
                self.arguments.extreme(kind) if n == at else self.arguments.column(kind, table)
                for n, kind in enumerate(kinds)
            ]
        else:
            values = [self.arguments.drawn(kind, table) for kind in kinds]
        return self.finished(routine, values, table)

    def finished(self, routine: Routine, values: Sequence[str], table: Table | None) -> str:
        inner = ", ".join(values)
        if routine.form == "aggregate":
            return self.aggregate(routine.sql_name, inner, table)
        if routine.form == "window":
            return f"{routine.sql_name}({inner}) {self.over(table)}"
        if routine.form == "table":
            return f"(SELECT count(*) FROM {routine.sql_name}({inner}))"
        return f"{routine.sql_name}({inner})"

    def aggregate(self, name: str, inner: str, table: Table | None) -> str:
        key = self.arguments.column(self.draw.choice(("int", "text", "float", "time")), table)
        if self.draw.random() < 0.25:
            return f"{name}({inner}) {self.over(table)}"
        word = self.draw.choice(("", "", "", "", "DISTINCT "))
        order = self.draw.choice(("", "", "", "", f" ORDER BY {key} DESC"))
        after = self.draw.choice(
            (
                "",
                "",
                "",
                "",
                f" FILTER (WHERE {key} IS NOT NULL)",
                f" WITHIN GROUP (ORDER BY {key})",
            )
        )
        return f"{name}({word}{inner}{order}){after}"

    def over(self, table: Table | None) -> str:
        partition = self.arguments.column(self.draw.choice(("int", "text", "bool")), table)
        order = self.arguments.column(
            self.draw.choice(("time", "time", "int", "float", "text")), table
        )
        parts = [
            self.draw.choice(("", f"PARTITION BY {partition}")),
            self.draw.choice(("", f"ORDER BY {order}", f"ORDER BY {order} DESC")),
        ]
        if parts[1] and self.draw.random() < 0.5:
            unit = self.draw.choice(("ROWS", "ROWS", "GROUPS", "RANGE"))
            low, high = (self.bound(unit) for _ in range(2))
            sides = self.draw.choice(
                (("PRECEDING", "FOLLOWING"), ("PRECEDING", "PRECEDING"), ("FOLLOWING", "FOLLOWING"))
            )
            parts.append(f"{unit} BETWEEN {low} {sides[0]} AND {high} {sides[1]}")
        return f"OVER ({' '.join(part for part in parts if part)})"

    def bound(self, unit: str) -> str:
        numbers = (
            "0",
            "1",
            "3",
            "2147483648",
            "100000000000000",
            "9223372036854775807",
            "18446744073709551615",
            "-1",
            "UNBOUNDED",
            "NULL",
            "1e308",
        )
        is_interval = unit == "RANGE" and self.draw.random() < 0.5
        return self.draw.choice(EXTREMES["interval"] if is_interval else numbers)

    def nested(self, routine: Routine) -> str:
        """Returns calls of a function with itself as one of its arguments, 24 deep."""
        kinds = self.kinds(routine) or ("float",)
        at = 0 if self.draw.random() < 0.7 else self.draw.randrange(len(kinds))
        inner = self.arguments.extreme(kinds[at])
        is_plain = self.draw.random() < 0.7
        values = [PLAIN[kind] if is_plain else self.arguments.extreme(kind) for kind in kinds]
        for _ in range(DEPTH):
            values[at] = inner
            inner = f"{routine.sql_name}({', '.join(values)})"
            if len(inner) > LONGEST // 2:
                break
        return inner

    def other(self, table: Table | None) -> str:
        """Returns a second expression for a clause."""
        return self.arguments.drawn(self.draw.choice(list(EXTREMES)), table)

    # Statements.

    def placed(self, name: str, expression: str, clause: Clause, table: Table | None) -> Statement:
        other = self.other(table if clause.scope != "constant" else None)
        source = table.name if table else "x_one"
        sql = (
            clause.sql.replace("{e}", "\0")
            .replace("{t}", source)
            .replace("{f}", other)
            .replace("\0", expression)
        )
        return Statement(f"{name} in {clause.name}", sql, clause.is_change)

    def of_routine(self, routine: Routine) -> Statement:
        """Returns a statement that calls a function, in any clause."""
        name, chance = f"function {routine.name}", self.draw.random()
        if chance < 0.5:
            # The clause that refuses the least.
            table = self.table()
            clause = (clauses.OF_GROUPS if routine.form == "aggregate" else clauses.OF_ROWS)[0]
            return self.placed(name, self.call(routine, table), clause, table)
        if chance < 0.6 and routine.form != "window":
            return Statement(f"{name} nested", f"SELECT {self.nested(routine)}")
        clause = self.draw.choice(clauses.CLAUSES)
        return self.placed(name, *self.call_for(routine, clause))

    def call_for(self, routine: Routine, clause: Clause) -> tuple[str, Clause, Table | None]:
        """Returns a call for a clause; one over many rows is in a subquery where it has to be."""
        table = None if clause.scope == "constant" else self.table()
        is_direct = routine.form == clause.scope.replace("group", "aggregate")
        if is_direct or routine.form in ("scalar", "table"):
            return self.call(routine, table), clause, table
        source = table or NARROW[1]
        call = f"(SELECT {self.call(routine, source)} FROM {source.name} q LIMIT 1)"
        return call, clause, table

    def of_clause(self, clause: Clause) -> Statement:
        """Returns a clause with an extreme value alone."""
        table = None if clause.scope == "constant" else self.table()
        kind = self.draw.choice(list(EXTREMES))
        expression = self.arguments.drawn(kind, table)
        return self.placed(
            "value", f"max({expression})" if clause.scope == "group" else expression, clause, table
        )

    def of_cast(self) -> Statement:
        chance = self.draw.random()
        table = self.table()
        kind = self.draw.choice(list(table.columns))
        value = (
            self.draw.choice(types.VALUES) if chance < 0.7 else self.arguments.column(kind, table)
        )
        is_simple = self.draw.random() < 0.6
        clause = clauses.OF_ROWS[0] if is_simple else self.draw.choice(clauses.OF_ROWS)
        return self.placed("cast", types.cast(self.draw, value), clause, table)

    def of_nesting(self) -> Statement:
        """Returns what stands in itself up to 5,000 times."""
        levels = self.draw.choice(clauses.LEVELS)
        chance = self.draw.random()
        if chance < 0.15:
            name, (before, inner, after) = self.draw.choice(list(types.NESTED_TYPES.items()))
            text = before * levels + inner + after * levels
            return Statement(f"nested types: {name}", f"SELECT arrow_cast(NULL, '{text}')")
        if chance < 0.3:
            name, (before, inner, after) = self.draw.choice(list(clauses.NESTED_QUERIES.items()))
            return Statement(f"nested queries: {name}", before * levels + inner + after * levels)
        name, (before, inner, after) = self.draw.choice(list(clauses.NESTINGS.items()))
        expression = before * levels + inner + after * levels
        if self.draw.random() < 0.6:
            return Statement(f"nested {name}", f"SELECT {expression} FROM x_one q")
        clause = self.draw.choice(clauses.OF_ROWS)
        return replace(
            self.placed(f"nested {name}", expression, clause, self.draw.choice(NARROW)),
            name=f"nested {name}",
        )

    def of_secret(self) -> Statement:
        """Returns a statement that reaches for a table beyond the rights of its token."""
        clause = self.draw.choice(clauses.CLAUSES)
        secret = self.draw.choice(
            (
                SECRET_TABLE,
                f"{SECRET_DATABASE}.{SECRET_TABLE}",
                f'arc."{SECRET_DATABASE}"."{SECRET_TABLE}"',
            )
        )
        column = self.draw.choice(("s", "n", "time"))
        if clause.scope == "row" and self.draw.random() < 0.5:
            return self.placed("secret", f"q.{column}", clause, Table(secret, {}))
        expression = self.draw.choice(
            (f"(SELECT max({column}) FROM {secret})", f"(SELECT array_agg({column}) FROM {secret})")
        )
        return self.placed(
            "secret", expression, clause, None if clause.scope == "constant" else self.table()
        )

    def one_of_each(self, functions: Sequence[Routine]) -> Iterator[Statement]:
        """Yields a statement for each function and each clause, and some for types and levels."""
        made = [self.of_routine(function) for function in functions]
        made += [self.of_clause(clause) for clause in clauses.CLAUSES]
        made += [self.of_cast() for _ in range(60)]
        made += [self.of_nesting() for _ in range(60)]
        made += [self.of_secret() for _ in range(20)]
        self.draw.shuffle(made)
        yield from made

    def endless(self, functions: Sequence[Routine]) -> Iterator[Statement]:
        """Yields statements without end: each function as often as any other."""
        while True:
            order = list(functions)
            self.draw.shuffle(order)
            for function in order:
                yield self.of_routine(function)
                chance = self.draw.random()
                if chance < 0.15:
                    yield self.of_cast()
                elif chance < 0.25:
                    yield self.of_clause(self.draw.choice(clauses.CLAUSES))
                elif chance < 0.42:
                    yield self.of_nesting()
                elif chance < 0.46:
                    yield self.of_secret()
